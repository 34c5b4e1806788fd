"""Convolutional networks from their published architectures."""


def conv(net, name, kernel, channels_in, channels_out, area, groups=1, aggregated=True):
    """The weights of a convolution; area: places of its output."""
    count = kernel[0] * kernel[1] * channels_in // groups * channels_out
    net.add(name + "/weights", count, count * area, aggregated=aggregated)


def dense(net, name, inputs, outputs, aggregated=True):
    """A fully connected layer of its own."""
    net.layer()
    net.add(name + "/weights", inputs * outputs, inputs * outputs, aggregated=aggregated)
    net.add(name + "/biases", outputs, aggregated=aggregated)


# ---- Inception-v3, as TensorFlow 1's inception-slim builds it ----

class Inception:
    def __init__(self, net):
        self.net, self.aggregated = net, True

    def conv(self, name, height, width, channels_in, channels_out, side):
        """Convolution and normalization without scale; side: of the square output. Returns its channels."""
        self.net.layer()
        conv(self.net, name, (height, width), channels_in, channels_out, side * side, aggregated=self.aggregated)
        self.net.norm(name, channels_out, gamma=False, aggregated=self.aggregated)
        return channels_out

    def chain(self, module, channels, side, steps):
        """Convolutions one after the other: (name, height, width, channels out)."""
        for name, height, width, channels_out in steps:
            channels = self.conv(module + "/" + name, height, width, channels, channels_out, side)
        return channels

    def module_35(self, name, channels, pooled):
        self.chain(name, channels, 35, [("b1x1", 1, 1, 64)])
        self.chain(name, channels, 35, [("b5x5a", 1, 1, 48), ("b5x5b", 5, 5, 64)])
        self.chain(name, channels, 35, [("b3x3a", 1, 1, 64), ("b3x3b", 3, 3, 96), ("b3x3c", 3, 3, 96)])
        self.chain(name, channels, 35, [("pool", 1, 1, pooled)])
        return 64 + 64 + 96 + pooled

    def reduce_17(self, name, channels):
        self.conv(name + "/b3x3", 3, 3, channels, 384, 17)
        self.chain(name, channels, 35, [("dbl_a", 1, 1, 64), ("dbl_b", 3, 3, 96)])
        self.conv(name + "/dbl_c", 3, 3, 96, 96, 17)
        return 384 + 96 + channels

    def module_17(self, name, channels, inner):
        self.chain(name, channels, 17, [("b1x1", 1, 1, 192)])
        self.chain(name, channels, 17, [("b7a", 1, 1, inner), ("b7b", 1, 7, inner), ("b7c", 7, 1, 192)])
        self.chain(name, channels, 17, [("d7a", 1, 1, inner), ("d7b", 7, 1, inner), ("d7c", 1, 7, inner), ("d7d", 7, 1, inner),
                                        ("d7e", 1, 7, 192)])
        self.chain(name, channels, 17, [("pool", 1, 1, 192)])
        return 768

    def auxiliary(self, channels, classes):
        """The second head: distributed like the rest, but its gradients are not aggregated."""
        self.aggregated = False
        self.conv("aux_logits/proj", 1, 1, channels, 128, 5)
        # A 5x5 convolution that leaves one place.
        self.conv("aux_logits/conv", 5, 5, 128, 768, 1)
        dense(self.net, "aux_logits/fc", 768, classes, aggregated=False)
        self.aggregated = True

    def reduce_8(self, name, channels):
        self.conv(name + "/b3a", 1, 1, channels, 192, 17)
        self.conv(name + "/b3b", 3, 3, 192, 320, 8)
        self.chain(name, channels, 17, [("b7a", 1, 1, 192), ("b7b", 1, 7, 192), ("b7c", 7, 1, 192)])
        self.conv(name + "/b7d", 3, 3, 192, 192, 8)
        return 320 + 192 + channels

    def module_8(self, name, channels):
        self.chain(name, channels, 8, [("b1x1", 1, 1, 320)])
        self.chain(name, channels, 8, [("b3a", 1, 1, 384), ("b3b", 1, 3, 384)])
        self.conv(name + "/b3c", 3, 1, 384, 384, 8)
        self.chain(name, channels, 8, [("d3a", 1, 1, 448), ("d3b", 3, 3, 384), ("d3c", 1, 3, 384)])
        self.conv(name + "/d3d", 3, 1, 384, 384, 8)
        self.chain(name, channels, 8, [("pool", 1, 1, 192)])
        return 2048


def inception_v3(net, classes=1001):
    build = Inception(net)
    build.conv("conv0", 3, 3, 3, 32, 149)
    build.conv("conv1", 3, 3, 32, 32, 147)
    build.conv("conv2", 3, 3, 32, 64, 147)
    build.conv("conv3", 1, 1, 64, 80, 73)
    build.conv("conv4", 3, 3, 80, 192, 71)
    channels = build.module_35("mixed_35x35x256a", 192, 32)
    channels = build.module_35("mixed_35x35x288a", channels, 64)
    channels = build.module_35("mixed_35x35x288b", channels, 64)
    channels = build.reduce_17("mixed_17x17x768a", channels)
    for letter, inner in zip("bcde", (128, 160, 160, 192)):
        channels = build.module_17("mixed_17x17x768" + letter, channels, inner)
    build.auxiliary(channels, classes)
    channels = build.reduce_8("mixed_8x8x1280a", channels)
    channels = build.module_8("mixed_8x8x2048a", channels)
    channels = build.module_8("mixed_8x8x2048b", channels)
    dense(net, "logits", channels, classes)


# ---- VGG ----

def vgg(net, per_block, side, classes, norm):
    """3x3 convolutions in five blocks, each followed by a pooling that halves the side. norm: or else biases."""
    channels = 3
    for block, (count, width) in enumerate(zip(per_block, (64, 128, 256, 512, 512)), 1):
        for i in range(1, count + 1):
            name = f"conv{block}_{i}"
            net.layer()
            conv(net, name, (3, 3), channels, width, side * side)
            if norm:
                net.norm(name, width, gamma=False)
            else:
                net.add(name + "/biases", width)
            channels = width
        side //= 2
    dense(net, "fc6", channels * side * side, 4096)
    dense(net, "fc7", 4096, 4096)
    dense(net, "fc8", 4096, classes)


# ---- AlexNet: two groups in the second, fourth and fifth convolution ----

def alexnet(net):
    for name, kernel, channels_in, channels_out, side, groups in (
            ("conv1", 11, 3, 96, 55, 1), ("conv2", 5, 96, 256, 27, 2), ("conv3", 3, 256, 384, 13, 1),
            ("conv4", 3, 384, 384, 13, 2), ("conv5", 3, 384, 256, 13, 2)):
        net.layer()
        conv(net, name, (kernel, kernel), channels_in, channels_out, side * side, groups)
        net.add(name + "/biases", channels_out)
    dense(net, "fc6", 256 * 6 * 6, 4096)
    dense(net, "fc7", 4096, 4096)
    dense(net, "fc8", 4096, 1000)


# ---- residual networks ----

def resnet_v2(net, units, classes=1001):
    """
    Full pre-activation: normalization before the first convolution of a unit, shortcuts and the last convolution with biases.
    The 3x3 convolution of a block's first unit halves the side.
    """
    net.layer()
    conv(net, "conv1", (7, 7), 3, 64, 112 * 112)
    net.add("conv1/biases", 64)
    channels, side = 64, 56
    for block, (count, width) in enumerate(zip(units, (64, 128, 256, 512)), 1):
        for unit in range(1, count + 1):
            name = f"block{block}/unit_{unit}"
            out_side = side // 2 if block > 1 and unit == 1 else side
            net.layer()
            net.norm(name + "/preact", channels)
            if unit == 1:
                conv(net, name + "/shortcut", (1, 1), channels, 4 * width, out_side * out_side)
                net.add(name + "/shortcut/biases", 4 * width)
                net.layer()
            conv(net, name + "/conv1", (1, 1), channels, width, side * side)
            net.norm(name + "/conv1", width)
            net.layer()
            conv(net, name + "/conv2", (3, 3), width, width, out_side * out_side)
            net.norm(name + "/conv2", width)
            net.layer()
            conv(net, name + "/conv3", (1, 1), width, 4 * width, out_side * out_side)
            net.add(name + "/conv3/biases", 4 * width)
            channels, side = 4 * width, out_side
    net.layer()
    net.norm("postnorm", channels)
    net.add("logits/weights", channels * classes, channels * classes)
    net.add("logits/biases", classes)


def resnet_v1(net, units, classes=1000):
    """Normalization behind every convolution; the 3x3 convolution of a block's first unit halves the side."""
    net.layer()
    conv(net, "conv1", (7, 7), 3, 64, 112 * 112)
    net.norm("conv1", 64)
    channels, side = 64, 56
    for block, (count, width) in enumerate(zip(units, (64, 128, 256, 512)), 1):
        for unit in range(1, count + 1):
            name = f"block{block}/unit_{unit}"
            out_side = side // 2 if block > 1 and unit == 1 else side
            for part, kernel, c_in, c_out, area in (("conv1", 1, channels, width, side * side),
                                                    ("conv2", 3, width, width, out_side * out_side),
                                                    ("conv3", 1, width, 4 * width, out_side * out_side)):
                net.layer()
                conv(net, f"{name}/{part}", (kernel, kernel), c_in, c_out, area)
                net.norm(f"{name}/{part}", c_out)
            if unit == 1:
                net.layer()
                conv(net, name + "/shortcut", (1, 1), channels, 4 * width, out_side * out_side)
                net.norm(name + "/shortcut", 4 * width)
            channels, side = 4 * width, out_side
    dense(net, "logits", channels, classes)
