"""A network as a list of variables, and what the simulator wants to know of it."""

import json


class Variable:
    """One variable in the order of creation. macs: multiply-adds of its layer for one sample, on one variable of the layer."""

    def __init__(self, name, count, order, macs=0, trained=True, aggregated=True):
        self.name, self.count, self.order, self.macs = name, count, order, macs
        self.trained, self.aggregated = trained, aggregated


class Network:
    """Layers are numbered in the order of the forward pass; several variables belong to one layer."""

    def __init__(self, name, about, provenance, batch, **facts):
        self.name, self.about, self.provenance, self.batch, self.facts = name, about, provenance, batch, facts
        self.variables = []
        self.order = -1

    def layer(self):
        """Begins the next layer of the forward pass."""
        self.order += 1

    def add(self, name, count, macs=0, trained=True, aggregated=True):
        self.variables.append(Variable(name, count, self.order, macs, trained, aggregated))

    def norm(self, name, channels, gamma=True, aggregated=True):
        """What batch normalization adds: scale and shift, which are trained, and two moving averages, which are not."""
        if gamma:
            self.add(name + "/gamma", channels, aggregated=aggregated)
        self.add(name + "/beta", channels, aggregated=aggregated)
        self.add(name + "/moving_mean", channels, trained=False)
        self.add(name + "/moving_variance", channels, trained=False)

    def trained(self):
        return [v for v in self.variables if v.trained]

    def values(self):
        return sum(v.count for v in self.trained())

    def macs(self):
        return sum(v.macs for v in self.trained())


def ready_times(network, first_at_zero):
    """
    When each gradient is ready, as a share of the backward pass: layers in the reverse of the forward order, each as long as its
    multiply-adds. first_at_zero: the backward time was measured from the first gradient on, so the last layer takes none of it.
    """
    layers = {}
    for variable in network.trained():
        if variable.aggregated:
            layers[variable.order] = layers.get(variable.order, 0) + variable.macs
    if first_at_zero:
        layers[max(layers)] = 0
    total, so_far, ready = sum(layers.values()), 0, {}
    for order in sorted(layers, reverse=True):
        so_far += layers[order]
        ready[order] = so_far / total
    return ready


def describe(network, first_at_zero=False):
    """The model file as an object; its lists of variables hold one object per line when it is written."""
    ready, macs = ready_times(network, first_at_zero), network.macs()
    parameters, averages = [], []
    for index, variable in enumerate(network.variables):
        if not variable.trained:
            averages.append({"name": variable.name, "count": variable.count, "variable": index})
            continue
        parameters.append({
            "name": variable.name, "count": variable.count, "macs": variable.macs, "forward_order": variable.order,
            "variable": index, "forward_share": round(variable.macs / macs, 9),
            "grad_ready": round(ready[variable.order], 9) if variable.aggregated else None,
        })
    model = {"format": "espalier-model-1", "name": network.name, "about": network.about, "provenance": network.provenance,
             "batch": network.batch, "value_bytes": 4}
    model.update(network.facts)
    model["parameters"] = parameters
    model["moving_averages"] = averages
    return model


def write(model):
    """JSON with a line per variable: to be read and compared by people."""
    parts = []
    for key, value in model.items():
        if isinstance(value, list) and value:
            rows = ",\n".join("    " + json.dumps(row) for row in value)
            parts.append(f'  "{key}": [\n{rows}\n  ]')
        else:
            parts.append(f'  "{key}": {json.dumps(value)}')
    return "{\n" + ",\n".join(parts) + "\n}\n"
