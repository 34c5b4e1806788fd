"""PyTorch: an optimizer that runs in a parameter hub. Reachable as `espalier.torch.HubOptimizer`."""

from __future__ import annotations

import contextlib
import weakref
from typing import Any, Callable, Iterator, Mapping, Optional

import torch
import torch.distributed as dist

from . import _memory, errors, hub
from .group import Group
from .work import Work

_TYPES = (torch.float32, torch.float16, torch.bfloat16)
# By kind of optimizer: what PyTorch calls the values that the hub has, with PyTorch's defaults.
_DEFAULTS: dict[str, dict[str, Any]] = {
    "sgd": {"lr": None, "momentum": 0.0, "dampening": 0.0, "weight_decay": 0.0, "nesterov": False},
    "adam": {"lr": 1e-3, "betas": (0.9, 0.999), "eps": 1e-8, "weight_decay": 0.0},
    "adamw": {"lr": 1e-3, "betas": (0.9, 0.999), "eps": 1e-8, "weight_decay": 1e-2},
}
# What PyTorch calls the arrays that the hub's optimizers keep, from state 1 on.
_STATES = {"sgd": ("momentum_buffer",), "adam": ("exp_avg", "exp_avg_sq"), "adamw": ("exp_avg", "exp_avg_sq")}
# In parameter groups of torch.optim: how it computes, and what its schedulers keep. They change no step by themselves.
_WAYS = frozenset({"foreach", "fused", "capturable", "differentiable"})
_KEPT = frozenset({"initial_lr", "max_lr", "min_lr", "max_momentum", "base_momentum", "swa_lr"})
# Of parameters of 16 bits: the weights in float32 (state 0).
_MASTER = "master"


def _parse(text: str) -> tuple[str, dict[str, Any]]:
    """Kind and values of "sgd lr=0.1 momentum=0.9", by PyTorch's names. The hub itself checks the values."""
    words = text.split()
    kind = words[0] if words else ""
    if kind == "avg":
        raise errors.UnsupportedError(
            "the job has the optimizer avg, which makes means and no steps: create it with sgd, adam or adamw"
        )
    if kind not in _DEFAULTS:
        raise errors.InvalidError(f"optimizer: the first word is {kind!r}: {', '.join(_DEFAULTS)} is expected")
    values = dict(_DEFAULTS[kind])
    for word in words[1:]:
        name, _, value = word.partition("=")
        if name == "nesterov" and kind == "sgd" and value in ("yes", "no"):
            values[name] = value == "yes"
            continue
        try:
            number = float(value)
        except ValueError:
            raise errors.InvalidError(f"optimizer {kind}: {word!r}: NAME=NUMBER is expected") from None
        if name in ("beta1", "beta2") and "betas" in values:
            first, second = values["betas"]
            values["betas"] = (number, second) if name == "beta1" else (first, number)
        elif name in values and name not in ("betas", "nesterov"):
            values[name] = number
        else:
            raise errors.InvalidError(f"optimizer {kind}: {name!r} is unknown")
    return kind, values


def _words(kind: str, group: Mapping[str, Any]) -> dict[str, str]:
    """The values of a parameter group, by the hub's names and as it reads them."""
    found = {}
    for name in _DEFAULTS[kind]:
        value = group[name]
        if name == "betas":
            found["beta1"], found["beta2"] = repr(float(value[0])), repr(float(value[1]))
        elif name == "nesterov":
            found[name] = "yes" if value else "no"
        else:
            found[name] = repr(float(value))
    return found


def _unsupported(kind: str, group: Mapping[str, Any]) -> list[str]:
    """Values of a saved group that the hub's optimizer has not, and that change steps."""
    plain = {"decoupled_weight_decay": kind == "adamw"}  # in torch 2.6 and later
    unknown = set(group) - set(_DEFAULTS[kind]) - _WAYS - _KEPT - {"params", "param_names"}
    return sorted(name for name in unknown if bool(group[name]) != plain.get(name, False))


def _frozen(groups: list[dict[str, Any]]) -> list[torch.Tensor]:
    return [param for group in groups for param in group["params"] if not getattr(param, "requires_grad", True)]


def _check_frozen(frozen: list[torch.Tensor]) -> None:
    for param in frozen:
        if param.requires_grad:
            raise errors.StateError(
                f"a parameter of shape {tuple(param.shape)} requires a gradient now, and did not when the optimizer was"
                " made: the hub does not have it; make another optimizer"
            )


class _Slot:
    """A parameter and its part in the current step."""

    __slots__ = ("number", "group", "param", "view", "version", "passes", "work", "grad", "grad_version")

    def __init__(self, number: int, group: int, param: torch.Tensor) -> None:
        self.number, self.group, self.param = number, group, param
        self.view = _memory.view(param.detach(), True)
        self.version = 0
        self.passes = 0
        self.work: Optional[Work[None]] = None
        # What backward() has left in param.grad, and how often it had been written by then.
        self.grad: Optional[torch.Tensor] = None
        self.grad_version = 0

    @property
    def name(self) -> str:
        return f"parameter {self.number} (group {self.group}, shape {tuple(self.param.shape)})"


def _check_parameter(param: torch.Tensor, number: int) -> None:
    name = f"parameter {number} (shape {tuple(param.shape)})"
    if param.dtype not in _TYPES:
        raise errors.UnsupportedError(
            f"{name} is of type {param.dtype}: HubOptimizer takes {', '.join(map(str, _TYPES))}"
        )
    if param.layout != torch.strided:
        raise errors.UnsupportedError(f"{name} is sparse: HubOptimizer takes dense parameters")
    if param.device.type != "cpu":
        raise errors.UnsupportedError(
            f"{name} is on {param.device}: HubOptimizer takes parameters in the memory of the host"
        )
    if not param.is_contiguous():
        raise errors.UnsupportedError(
            f"{name} is not contiguous: give it the memory format torch.contiguous_format first"
        )


class HubOptimizer(torch.optim.Optimizer):
    """An optimizer that runs in a parameter hub: the hub averages the workers' gradients, steps, and answers with the
    weights.

        optimizer = espalier.torch.HubOptimizer(model.parameters(), "sgd lr=0.1 momentum=0.9")
        ...
        optimizer.zero_grad(); loss.backward(); optimizer.step()

    When it is made, all workers get worker 0's weights. Each gradient is pushed as soon as backward() has it, and new
    weights come into the parameter's own memory while backward() still works on others; step() pushes what is left and
    waits.

    params: as of any optimizer. Parameters are dense, contiguous, in the memory of the host, and of float32, float16 or
    bfloat16: the hub keeps float32 masters of the latter two, and sums and steps in float32. Parameters that do not
    require a gradient are not given to the hub.
    optimizer: "sgd lr=0.1 momentum=0.9 weight_decay=1e-4 nesterov=yes", "adam lr=1e-3 beta1=0.9 beta2=0.999", "adamw
    ...": of the kind that the job was created with. None: the job's own values.
    ticket, worker, workers, settings: as of `espalier.hub.connect()`.
    overlap: False: backward() sends nothing and step() does all. Needed where gradients are changed before step()
    (clipping), and where weights are used after their gradient was computed (a retained graph, recomputation from
    detached weights); torch raises an error where the latter is done with overlap.
    accumulate: so many backward() make one step(); gradients are summed, as always in PyTorch.

    *Memory.* A gradient belongs to the hub from backward() (without overlap: from step()) until step() returns: until
    then it is neither written nor zeroed. After step() it is the program's. Weights are not written by the program at
    all: load them into the model before this is made.

    *Values.* param_groups has lr, momentum, betas ... as torch.optim's optimizers, and schedulers work. Values that
    have changed are told to the hub before the next gradient of the group, and hold from the version that `held_from`
    names. All workers make the same changes: if they differ, step() raises an error that names worker and value. A
    change between backward() and step() is refused with overlap, as gradients are on their way.

    *Parameters without a gradient* in a step count as a gradient of zeros: momentum and weight decay move them
    (torch.optim skips them), and a step in which only some workers use a parameter takes the mean over all.

    *Clipping* by torch.nn.utils.clip_grad_norm_() needs overlap=False, and is of each worker's own gradient, not of the
    mean.

    *GradScaler* is refused when it steps: workers could disagree on a step to skip. Train in float32 or bfloat16.

    *State.* state_dict() has the optimizer's state as torch.optim's SGD, Adam and AdamW have it, read from the hub, and
    load_state_dict() takes either's. It is called by all workers with the same state, before the first step of a job,
    which may have another number of workers.

    *Buffers* (BatchNorm's statistics) stay local; average_buffers() makes means of them.
    """

    # GradScaler then calls step(grad_scaler=...) on every worker, also on one that it would let skip the step.
    _step_supports_amp_scaling = True

    def __init__(
        self,
        params: Any,
        optimizer: Optional[str] = None,
        *,
        ticket: Optional[str] = None,
        worker: Optional[int] = None,
        workers: Optional[int] = None,
        settings: Optional[Mapping[str, object]] = None,
        overlap: bool = True,
        accumulate: int = 1,
    ) -> None:
        if accumulate < 1:
            raise errors.InvalidError(f"accumulate is {accumulate}: so many backward() make one step()")
        given = _parse(optimizer) if optimizer is not None else None
        groups = _groups(params)
        self._slots = _make_slots(groups)
        self._frozen = _frozen(groups)
        self._overlap, self._accumulate = overlap, accumulate
        self._is_local = False
        self._is_declared = False
        # Parameter groups of which gradients were pushed in this step.
        self._begun: set[int] = set()
        # Steps of the job that the state was loaded from, by parameter; and those of this job.
        self._before = [0] * len(self._slots)
        self._steps = 0
        self._zeros: dict[torch.dtype, torch.Tensor] = {}
        self._hooks: list[Any] = []
        self.hub = hub.connect(ticket, worker=worker, workers=workers, settings=settings)
        """The connection: statistics, the number of this worker."""
        try:
            self._declare(groups, given)
        except BaseException:
            self.hub.close()
            raise
        for slot in self._slots:
            self._hooks.append(_hook(weakref.ref(self), slot))

    def _declare(self, groups: list[dict[str, Any]], given: Optional[tuple[str, dict[str, Any]]]) -> None:
        if not self._slots:
            raise errors.InvalidError("no parameter requires a gradient: there is nothing to train")
        if self.hub.delay_bound > 0:
            raise errors.UnsupportedError(
                "the job is asynchronous (--mode async): HubOptimizer trains in rounds; espalier.hub has model() and"
                " update()"
            )
        tensors = [hub.Tensor(f"{slot.group}.{slot.number}", slot.view, slot.group) for slot in self._slots]
        self.hub.init(tensors)
        self._kind, defaults = _parse(self.hub.optimizer(self._slots[0].group))
        # What the hub has for each group, by its names; groups without parameters of the hub have none.
        self._sent = {slot.group: _words(self._kind, defaults) for slot in self._slots}
        self.held_from = {group: 0 for group in self._sent}
        """By parameter group: the version of its tensors (a step is a version) from which its values hold."""
        if given is not None:
            if given[0] != self._kind:
                raise errors.MismatchError(
                    f"the job was created with the optimizer {self._kind}, and this is {given[0]}: their values may"
                    " differ, the kind may not"
                )
            defaults = {
                name: default if value is None else value
                for (name, value), default in zip(given[1].items(), defaults.values())
            }
        for group in groups:
            unknown = set(group) - set(defaults) - {"params"}
            if unknown:
                raise errors.UnsupportedError(
                    f"a parameter group has {', '.join(sorted(unknown))}: the hub's {self._kind} has"
                    f" {', '.join(defaults)}"
                )
        self._has_momentum = float(_parse(self.hub.optimizer(self._slots[0].group))[1].get("momentum", 1)) != 0
        super().__init__(groups, defaults)
        self._is_declared = True
        for slot in self._slots:
            _bump(slot.param)
            slot.version = slot.param._version
        for number in self._sent:
            self._send_values(number)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        if self._is_declared:
            raise errors.UnsupportedError(
                "a hub's model is declared once: give all parameter groups when HubOptimizer is made"
            )
        super().add_param_group(param_group)

    # ---- values ----

    def _send_values(self, number: int) -> None:
        words = _words(self._kind, self.param_groups[number])
        changed = [f"{name}={value}" for name, value in words.items() if self._sent[number][name] != value]
        if changed:
            self.held_from[number] = self.hub.set(number, " ".join(changed))
            self._sent[number] = words

    def _check_values(self, number: int) -> None:
        """Gradients of the group are on their way."""
        words = _words(self._kind, self.param_groups[number])
        changed = [name for name, value in words.items() if self._sent[number][name] != value]
        if changed:
            raise errors.StateError(
                f"{', '.join(changed)} of parameter group {number} changed between backward() and step(), when"
                " gradients were on their way: change it after step(), or make HubOptimizer with overlap=False"
            )

    # ---- gradients ----

    def _ready(self, slot: _Slot) -> None:
        """backward() has written a gradient."""
        if self._is_local or not self._overlap:
            return
        slot.passes += 1
        if slot.work is not None:
            raise errors.StateError(
                f"backward() has written another gradient of {slot.name} before step(), while the first was on its way:"
                " use accumulate=, no_sync() or overlap=False"
            )
        if slot.passes >= self._accumulate:
            self._push(slot)

    def _push(self, slot: _Slot) -> None:
        param, grad = slot.param, slot.param.grad
        if not param.requires_grad:
            raise errors.StateError(
                f"{slot.name} does not require a gradient any more: the hub has it; make another HubOptimizer"
            )
        if param._version != slot.version or (param.numel() > 0 and param.data_ptr() != slot.view.address):
            raise errors.StateError(
                f"{slot.name} was written by the program: weights are the hub's. Load weights into the model before"
                " HubOptimizer is made"
            )
        if grad is not None:
            _check_gradient(slot, grad)
        if slot.group not in self._begun:
            self._send_values(slot.group)
            self._begun.add(slot.group)
        source = grad.detach().contiguous() if grad is not None else self._zero(param)
        # A graph that needs the weights of before later on is an error of torch's from now on.
        _bump(param)
        slot.version = param._version
        slot.work = self.hub.start_pushpull(slot.number, source, slot.view)
        slot.grad, slot.grad_version = grad, grad._version if grad is not None else 0

    def _zero(self, param: torch.Tensor) -> torch.Tensor:
        zeros = self._zeros.get(param.dtype)
        if zeros is None or zeros.numel() < param.numel():
            zeros = self._zeros[param.dtype] = torch.zeros(param.numel(), dtype=param.dtype)
        return zeros[: param.numel()]

    @contextlib.contextmanager
    def no_sync(self) -> Iterator[None]:
        """Gradients of backward() within are summed in this worker; the next backward() outside pushes the sums."""
        before, self._is_local = self._is_local, True
        try:
            yield
        finally:
            self._is_local = before

    def zero_grad(self, *arguments: Any, **options: Any) -> None:
        if self._begun:
            raise errors.StateError("zero_grad() between backward() and step(): gradients are on their way to the hub")
        super().zero_grad(*arguments, **options)

    # ---- the step ----

    def step(self, closure: Optional[Callable[[], Any]] = None, *, grad_scaler: Any = None) -> Any:
        """Pushes the gradients that are left, and waits until all parameters have new weights."""
        # How a GradScaler makes itself known differs from version to version of torch.
        if grad_scaler is not None or any(getattr(self, name, None) is not None for name in ("grad_scale", "found_inf")):
            raise errors.UnsupportedError(
                "HubOptimizer takes no GradScaler: workers could disagree on a step to skip. Train in float32 or"
                " bfloat16, without one"
            )
        _check_frozen(self._frozen)
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for number in self._begun:
            self._check_values(number)
        for slot in self._slots:
            if slot.work is None:
                self._push(slot)
            else:
                _check_unchanged(slot)
        self._wait()
        return loss

    def _wait(self) -> None:
        failure: Optional[errors.EspalierError] = None
        self._begun.clear()
        for slot in self._slots:
            work, slot.work = slot.work, None
            slot.passes, slot.grad = 0, None
            if work is None:
                continue
            try:
                work.wait()
            except errors.EspalierError as wrong:
                failure = failure or wrong
        if failure is not None:
            raise failure
        self._steps += 1

    def pull(self) -> None:
        """The hub's weights into the parameters, which have them already unless the program has written there."""
        if self._begun:
            raise errors.StateError("pull() between backward() and step(): gradients are on their way to the hub")
        works = []
        for slot in self._slots:
            _bump(slot.param)
            works.append(self.hub.start_pull(slot.number, slot.view))
            slot.version = slot.param._version
        for work in works:
            work.wait()

    # ---- the state ----

    def _states_of(self, slot: _Slot) -> dict[int, str]:
        """By number of the hub: what PyTorch calls the arrays that the optimizer keeps of a parameter."""
        names = () if self._kind == "sgd" and not self._has_momentum else _STATES[self._kind]
        master = {} if slot.param.dtype == torch.float32 else {0: _MASTER}
        return {**master, **dict(enumerate(names, 1))}

    def state_dict(self) -> dict[str, Any]:
        """The optimizer's state as torch.optim has it, read from the hub; between two steps, by any worker."""
        if self._begun:
            raise errors.StateError("state_dict() between backward() and step(): gradients are on their way to the hub")
        works = []
        for slot in self._slots:
            steps = self._before[slot.number] + self._steps
            state: dict[str, Any] = {}
            if steps > 0:  # before, there is none
                if self._kind != "sgd":
                    state["step"] = torch.tensor(float(steps))
                for number, name in self._states_of(slot).items():
                    state[name] = torch.empty(slot.param.shape, dtype=torch.float32)
                    works.append(self.hub.start_read_state(slot.number, number, state[name]))
            if state:
                state["hub_steps"] = steps
                self.state[slot.param] = state
        try:
            for work in works:
                work.wait()
            made: dict[str, Any] = super().state_dict()
            return made
        finally:
            self.state.clear()

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Goes on where another job has ended, or an optimizer of torch.optim of the same kind. All workers call it,
        before the first step.

        Weights are not in it: load them into the model before HubOptimizer is made.
        """
        if self._steps > 0 or self._begun:
            raise errors.StateError("load_state_dict() after gradients were pushed: load before the first step")
        groups = state_dict["param_groups"]
        if [len(group["params"]) for group in groups] != [len(group["params"]) for group in self.param_groups]:
            raise errors.InvalidError("the state is of other parameter groups than the optimizer's")
        for number, group in enumerate(groups):
            missing = set(_DEFAULTS[self._kind]) - set(group)
            if missing:
                raise errors.MismatchError(
                    f"parameter group {number} of the state has no {', '.join(sorted(missing))}: it is not of"
                    f" {self._kind}"
                )
            unsupported = _unsupported(self._kind, group)
            if unsupported:
                raise errors.UnsupportedError(
                    f"parameter group {number} of the state has {', '.join(f'{name}={group[name]}' for name in unsupported)}:"
                    f" the hub's {self._kind} has {', '.join(_DEFAULTS[self._kind])}"
                )
        numbers = {
            id(param): number
            for group, saved in zip(self.param_groups, groups)
            for param, number in zip(group["params"], saved["params"])
        }
        loads = [self._check_state(slot, state_dict["state"].get(numbers[id(slot.param)], {})) for slot in self._slots]
        if self.hub.worker == 0:
            works = []
            for slot, (steps, arrays) in zip(self._slots, loads):
                works += [
                    self.hub.start_write_state(slot.number, number, array, steps) for number, array in arrays.items()
                ]
            for work in works:
                work.wait()
        self._before = [steps for steps, _ in loads]
        for group, saved in zip(self.param_groups, groups):
            known = _KEPT.union(_DEFAULTS[self._kind])
            group.update({name: value for name, value in saved.items() if name in known})

    def _check_state(self, slot: _Slot, state: Mapping[str, Any]) -> tuple[int, dict[int, torch.Tensor]]:
        """Steps that lie before, and what is to be written by number of the hub."""
        if not state or (self._kind == "sgd" and state.get("momentum_buffer") is None and _MASTER not in state):
            return int(state.get("hub_steps", 0)), {}
        steps = int(state.get("hub_steps", state.get("step", 1)))
        arrays = {}
        for number, name in self._states_of(slot).items():
            array = state.get(name)
            if array is None and name == _MASTER:
                continue  # of torch.optim: the weights are all that there is
            if array is None or array.shape != slot.param.shape:
                raise errors.MismatchError(
                    f"the state of {slot.name} has no {name} of that shape: it is not of {self._kind}, or of another"
                    " model"
                )
            arrays[number] = array.detach().to(device="cpu", dtype=torch.float32).contiguous()
            if number == 0 and not torch.equal(arrays[0].to(slot.param.dtype), slot.param.detach()):
                raise errors.MismatchError(
                    f"the master weights of {slot.name} do not round to its weights: load the model's state before"
                    " HubOptimizer is made"
                )
        return steps, arrays

    # ---- beside the parameters ----

    def average_buffers(self, module: torch.nn.Module, group: Optional[Group] = None) -> None:
        """Means over all workers of a module's floating-point buffers (BatchNorm's statistics), which are local
        otherwise.

        All workers call it. group: an espalier.Group of the workers; None: the default process group of
        torch.distributed.
        """
        buffers = [buffer for buffer in module.buffers() if buffer.is_floating_point()]
        if group is None and not dist.is_initialized():
            raise errors.UnsupportedError(
                "buffers stay local: a hub has no means without steps. Give an espalier.Group, or call"
                " init_process_group() first"
            )
        allreduce: Any = dist.all_reduce  # typed in some versions of torch only
        for buffer in buffers:
            if group is not None:
                group.allreduce(buffer, op="avg")
            else:
                allreduce(buffer)
                buffer.div_(dist.get_world_size())

    def close(self) -> None:
        """Leaves the job. Gradients that are on their way fail the job for the other workers."""
        for hook in self._hooks:
            hook.remove()
        self._hooks.clear()
        self.hub.close()


def _groups(params: Any) -> list[dict[str, Any]]:
    """As torch.optim takes them: tensors, or dictionaries with tensors and values."""
    if isinstance(params, torch.Tensor):
        raise errors.InvalidError("params is a tensor: a list of tensors or of parameter groups is expected")
    found = list(params)
    if not found:
        raise errors.InvalidError("params is empty: there is nothing to train")
    if not isinstance(found[0], dict):
        found = [{"params": found}]
    return [
        {**group, "params": [group["params"]] if isinstance(group["params"], torch.Tensor) else list(group["params"])}
        for group in found
    ]


def _make_slots(groups: list[dict[str, Any]]) -> list[_Slot]:
    slots: list[_Slot] = []
    seen: set[int] = set()
    for number, group in enumerate(groups):
        for param in group["params"]:
            if not isinstance(param, torch.Tensor) or not param.requires_grad:
                continue
            if not param.is_leaf:
                raise errors.InvalidError(
                    f"parameter {len(slots)} (shape {tuple(param.shape)}) is computed from others: optimizers take"
                    " leaves"
                )
            if id(param) in seen:
                raise errors.InvalidError(f"parameter {len(slots)} (shape {tuple(param.shape)}) is given twice")
            _check_parameter(param, len(slots))
            seen.add(id(param))
            slots.append(_Slot(len(slots), number, param))
    return slots


def _hook(owner: weakref.ref[HubOptimizer], slot: _Slot) -> Any:
    """Called when backward() has written slot.param.grad."""

    def ready(*unused: Any) -> None:
        optimizer = owner()
        if optimizer is not None:
            optimizer._ready(slot)

    if hasattr(slot.param, "register_post_accumulate_grad_hook"):  # torch 2.1
        return slot.param.register_post_accumulate_grad_hook(ready)
    with torch.enable_grad():
        node: Any = slot.param.expand_as(slot.param).grad_fn
    return _NodeHook(node.next_functions[0][0], ready)


class _NodeHook:
    """A hook of the node that accumulates a parameter's gradients; the node lives as long as this refers to it."""

    def __init__(self, node: Any, ready: Callable[..., None]) -> None:
        self._node = node
        self._hook = node.register_hook(ready)

    def remove(self) -> None:
        self._hook.remove()
        self._node = None


def _bump(param: torch.Tensor) -> None:
    """torch counts a write to the parameter, and nothing is written."""
    with torch.no_grad():
        param.detach().view(-1)[:0].zero_()


def _check_gradient(slot: _Slot, grad: torch.Tensor) -> None:
    if grad.layout != torch.strided:
        raise errors.UnsupportedError(
            f"the gradient of {slot.name} is sparse: HubOptimizer takes dense gradients (Embedding(sparse=False))"
        )
    if grad.dtype != slot.param.dtype:
        raise errors.UnsupportedError(
            f"the gradient of {slot.name} is of type {grad.dtype}, and the parameter of type {slot.param.dtype}"
        )


def _check_unchanged(slot: _Slot) -> None:
    """The gradient that backward() has pushed is still there as it was."""
    if slot.grad is not None and (slot.param.grad is not slot.grad or slot.grad._version != slot.grad_version):
        raise errors.StateError(
            f"the gradient of {slot.name} was changed after backward() had pushed it: clipping and scaling need"
            " HubOptimizer(overlap=False)"
        )
