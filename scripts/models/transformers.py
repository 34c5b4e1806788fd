"""Transformers from their published architectures. Multiply-adds are those of one sequence."""


def linear(net, name, tokens, inputs, outputs, more_macs=0, bias=True):
    """A layer of its own. more_macs: what is computed with it and has no parameters, such as attention."""
    net.layer()
    net.add(name + "/weights", inputs * outputs, tokens * inputs * outputs + more_macs)
    if bias:
        net.add(name + "/biases", outputs)


def layer_norm(net, name, width):
    net.add(name + "/gamma", width)
    net.add(name + "/beta", width)


def attention_macs(tokens, width):
    """Queries with keys, and the weights with values: every token with every one, as the kernels compute it."""
    return 2 * tokens * tokens * width


def bert(net, layers, width, vocabulary, tokens):
    """With both heads of pre-training; the first shares its matrix with the embedding, whose gradient is therefore last."""
    net.layer()
    net.add("embeddings/word", vocabulary * width)
    net.add("embeddings/position", 512 * width)
    net.add("embeddings/token_type", 2 * width)
    layer_norm(net, "embeddings/norm", width)
    for i in range(layers):
        name = f"layer_{i}"
        net.layer()
        for part in ("query", "key", "value"):
            net.add(f"{name}/attention/{part}/weights", width * width, tokens * width * width)
            net.add(f"{name}/attention/{part}/biases", width)
        linear(net, name + "/attention/output", tokens, width, width, attention_macs(tokens, width))
        layer_norm(net, name + "/attention/norm", width)
        linear(net, name + "/intermediate", tokens, width, 4 * width)
        linear(net, name + "/output", tokens, 4 * width, width)
        layer_norm(net, name + "/norm", width)
    linear(net, "pooler", 1, width, width)
    masked = round(0.15 * tokens)
    linear(net, "predictions/transform", masked, width, width, masked * width * vocabulary)
    layer_norm(net, "predictions/norm", width)
    net.add("predictions/biases", vocabulary)
    linear(net, "seq_relationship", 1, width, 2)


def gpt2(net, layers, width, vocabulary, tokens):
    """The output shares its matrix with the embedding, whose gradient is therefore last."""
    net.layer()
    net.add("wte", vocabulary * width)
    net.add("wpe", 1024 * width)
    for i in range(layers):
        name = f"h{i}"
        linear(net, name + "/attn/c_attn", tokens, width, 3 * width)
        layer_norm(net, name + "/ln_1", width)
        linear(net, name + "/attn/c_proj", tokens, width, width, attention_macs(tokens, width))
        linear(net, name + "/mlp/c_fc", tokens, width, 4 * width)
        layer_norm(net, name + "/ln_2", width)
        linear(net, name + "/mlp/c_proj", tokens, 4 * width, width)
    net.layer()
    net.add("ln_f/gamma", width, tokens * width * vocabulary)
    net.add("ln_f/beta", width)


def llama(net, layers, width, inner, vocabulary, tokens):
    """No biases, a norm with scale only, a gate in the feed-forward part, and an output matrix of its own."""
    net.layer()
    net.add("tok_embeddings", vocabulary * width)
    for i in range(layers):
        name = f"layers_{i}"
        net.layer()
        net.add(name + "/attention_norm", width)
        for part in ("wq", "wk", "wv"):
            net.add(f"{name}/attention/{part}", width * width, tokens * width * width)
        net.layer()
        net.add(name + "/attention/wo", width * width, tokens * width * width + attention_macs(tokens, width))
        net.layer()
        net.add(name + "/ffn_norm", width)
        for part in ("w1", "w3"):
            net.add(f"{name}/feed_forward/{part}", width * inner, tokens * width * inner)
        net.layer()
        net.add(name + "/feed_forward/w2", inner * width, tokens * width * inner)
    net.layer()
    net.add("norm", width)
    net.add("output", vocabulary * width, tokens * vocabulary * width)
