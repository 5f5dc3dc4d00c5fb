"""Nets with early exits: a9 and b1 to b4 (batch 1). An exit's `If` holds the rest of the net."""

import torch
import torch.nn.functional as F
from torch import nn

from .decisions import Below
from .gated import Basic, Residual, shortcut


def grid(x):
    """Cells of equal size, 4 by 4, as adaptive pooling has them when 4 divides H and W; ONNX has no adaptive pooling."""
    n, c, h, w = x.shape
    return x.reshape(n, c, 4, h // 4, 4, w // 4)


class InternalClassifier(nn.Module):
    """A learned mix of max and average pooling to 4 by 4, then a linear layer (shallow-deep nets)."""

    def __init__(self, c, classes):
        super().__init__()
        self.mix = nn.Parameter(torch.rand(1))
        self.out = nn.Linear(16 * c, classes)

    def forward(self, x):
        cells = grid(x)
        y = self.mix * cells.amax(dim=(3, 5)) + (1 - self.mix) * cells.mean(dim=(3, 5))
        return self.out(y.flatten(1))


class Exit(nn.Module):
    """Layers, a classifier after them, and the rest of the net, run unless the classifier is sure."""

    def __init__(self, body, classify, rest, threshold):
        super().__init__()
        self.body, self.classify, self.rest, self.unsure = body, classify, rest, Below(threshold)

    def forward(self, x):
        x = self.body(x)
        out = self.classify(x)
        if self.unsure(torch.softmax(out, dim=1).max()):
            out = self.rest(x)
        return out


class Final(nn.Module):
    def __init__(self, body, head):
        super().__init__()
        self.body, self.head = body, head

    def forward(self, x):
        return self.head(self.body(x))


def with_exits(layers, channels, after, head, classes, threshold, classifier=InternalClassifier):
    """A chain of the layers with an exit after each one numbered in `after`; channels[i] is the width after layer i."""
    start = after[-1] + 1 if after else 0
    chain = Final(nn.Sequential(*layers[start:]), head)
    for previous, last in zip([-1, *after[:-1]][::-1], after[::-1]):
        body = nn.Sequential(*layers[previous + 1 : last + 1])
        chain = Exit(body, classifier(channels[last], classes), chain, threshold)
    return chain


def pooled_head(c, classes):
    return nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(c, classes))


class GridHead(nn.Module):
    """The average of each cell, then a linear layer."""

    def __init__(self, c, classes):
        super().__init__()
        self.out = nn.Linear(16 * c, classes)

    def forward(self, x):
        return self.out(grid(torch.relu(x)).mean(dim=(3, 5)).flatten(1))


def after_stem(blocks):
    """The layers of these blocks, counted from 0, where layer 0 is the stem."""
    return [block + 1 for block in blocks]


def separable(cin, cout, stride):
    return nn.Sequential(
        nn.Conv2d(cin, cin, 3, stride, 1, groups=cin, bias=False), nn.BatchNorm2d(cin), nn.ReLU(),
        nn.Conv2d(cin, cout, 1, bias=False), nn.BatchNorm2d(cout), nn.ReLU(),
    )  # fmt: skip


def sdn_mobilenet(width=64, classes=1000, exits=(2, 4, 6, 8, 11), threshold=0.5):
    plan = [(2, 1), (4, 2), (4, 1), (8, 2), (8, 1), (16, 2), *[(16, 1)] * 5, (32, 2), (32, 1)]
    layers = [nn.Sequential(nn.Conv2d(3, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU())]
    channels = [width]
    for m, stride in plan:
        layers.append(separable(channels[-1], m * width, stride))
        channels.append(m * width)
    return with_exits(layers, channels, after_stem(exits), pooled_head(channels[-1], classes), classes, threshold)


def sdn_vgg16bn(width=64, side=256, classes=1000, exits=(1, 3, 5, 6, 8, 9), threshold=0.9):
    """The fully connected head fixes the image to side by side."""
    layers, channels, cin = [], [], 3
    for level, (m, depth) in enumerate(((1, 2), (2, 2), (4, 3), (8, 3), (8, 3))):
        for i in range(depth):
            layer = [nn.Conv2d(cin, m * width, 3, 1, 1), nn.BatchNorm2d(m * width), nn.ReLU()]
            cin = m * width
            layers.append(nn.Sequential(*layer, nn.MaxPool2d(2)) if i == depth - 1 else nn.Sequential(*layer))
            channels.append(cin)
    flat = cin * (side // 32) ** 2
    head = nn.Sequential(
        nn.Flatten(),
        nn.Linear(flat, 32 * width),
        nn.ReLU(),
        nn.Linear(32 * width, 16 * width),
        nn.ReLU(),
        nn.Linear(16 * width, classes),
    )
    return with_exits(layers, channels, list(exits), head, classes, threshold)


class BeforeRelu(nn.Module):
    """A basic block that takes the ReLU of its input, so that an exit reads the sum before its ReLU."""

    def __init__(self, cin, cout, stride):
        super().__init__()
        self.branch, self.skip = Basic(cin, cout, stride), shortcut(cin, cout, stride)

    def forward(self, x):
        x = torch.relu(x)
        return self.skip(x) + self.branch(x)


class PreActivated(nn.Module):
    """A wide block: normalise and activate first, convolutions with bias, the stride in the second."""

    def __init__(self, cin, cout, stride):
        super().__init__()
        self.branch = nn.Sequential(
            nn.BatchNorm2d(cin), nn.ReLU(), nn.Conv2d(cin, cout, 3, 1, 1),
            nn.BatchNorm2d(cout), nn.ReLU(), nn.Conv2d(cout, cout, 3, stride, 1),
        )  # fmt: skip
        self.skip = nn.Conv2d(cin, cout, 1, stride) if cin != cout or stride != 1 else nn.Identity()

    def forward(self, x):
        return self.skip(x) + self.branch(x)


def sdn_residual(block, widths, depths, classes, exits, threshold, stem_width, stem_stride):
    layers = [nn.Conv2d(3, stem_width, 3, stem_stride, 1)]
    channels = [stem_width]
    for level, (width, depth) in enumerate(zip(widths, depths)):
        for i in range(depth):
            layers.append(block(channels[-1], width, 2 if level > 0 and i == 0 else 1))
            channels.append(width)
    return with_exits(layers, channels, after_stem(exits), GridHead(widths[-1], classes), classes, threshold)


def sdn_resnet56(widths=(16, 32, 64), depths=(9, 9, 9), classes=1000, exits=(3, 7, 11, 15, 19, 23), threshold=0.9):
    return sdn_residual(BeforeRelu, widths, depths, classes, exits, threshold, widths[0], 2)


def sdn_wrn32_4(widths=(64, 128, 256), depths=(5, 5, 5), classes=1000, exits=(2, 4, 6, 8, 10, 12), threshold=0.9):
    return sdn_residual(PreActivated, widths, depths, classes, exits, threshold, 16, 1)


class RaNetStage(nn.Module):
    """One sub-network of RANet: the image at its scale, joined by the features of the scale below, then an exit."""

    def __init__(self, width, below, depth, scale, classes):
        super().__init__()
        self.scale: float = scale
        self.stem = nn.Sequential(nn.Conv2d(3, width, 3, 2, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU())
        self.join = nn.Conv2d(width + below, width, 1)
        self.body = nn.Sequential(*(Residual(Basic(width, width, 1), nn.Identity()) for _ in range(depth)))
        self.head = nn.Linear(width, classes)

    def forward(self, image, below):
        small = F.interpolate(image, scale_factor=self.scale, mode="bilinear", align_corners=False)
        x = self.stem(small)
        grown = F.interpolate(below, size=(x.shape[2], x.shape[3]), mode="bilinear", align_corners=False)
        x = self.body(self.join(torch.cat([x, grown], dim=1)))
        return x, self.head(x.mean(dim=(2, 3)))


class RaNetExit(nn.Module):
    def __init__(self, stage, rest, threshold):
        super().__init__()
        self.stage, self.rest, self.unsure = stage, rest, Below(threshold)

    def forward(self, image, below):
        x, out = self.stage(image, below)
        if self.unsure(torch.softmax(out, dim=1).max()):
            out = self.rest(image, x)
        return out


class RaNetLast(nn.Module):
    def __init__(self, stage):
        super().__init__()
        self.stage = stage

    def forward(self, image, below):
        return self.stage(image, below)[1]


class RaNet(nn.Module):
    """Sub-networks from low to high resolution, an exit after each; stages are traced, only exits scripted."""

    def __init__(self, widths=(64, 128, 256), depth=8, classes=1000, threshold=0.7):
        super().__init__()
        self.below = [3, *widths[:-1]]
        stages = [
            RaNetStage(width, below, depth, 0.5 ** (len(widths) - 1 - i), classes)
            for i, (width, below) in enumerate(zip(widths, self.below))
        ]
        self.chain = RaNetLast(stages[-1])
        for stage in stages[-2::-1]:
            self.chain = RaNetExit(stage, self.chain, threshold)

    def trace_parts(self):
        link = self.chain
        for below in self.below:
            link.stage = torch.jit.trace(link.stage, (torch.zeros(1, 3, 64, 64), torch.zeros(1, below, 8, 8)))
            link = getattr(link, "rest", None)

    def forward(self, image):
        return self.chain(image, image)
