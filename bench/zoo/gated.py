"""Residual nets that skip blocks by a gate: a6, a7, a8, a10, b5, b6, b9 (batch 1). Defaults are the full sizes."""

import torch
import torch.nn.functional as F
from torch import nn

from .decisions import Above, Kept


class Basic(nn.Module):
    """The residual branch of a basic block."""

    def __init__(self, cin, cout, stride):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(cin, cout, 3, stride, 1, bias=False), nn.BatchNorm2d(cout), nn.ReLU(),
            nn.Conv2d(cout, cout, 3, 1, 1, bias=False), nn.BatchNorm2d(cout),
        )  # fmt: skip

    def forward(self, x):
        return self.body(x)


class Bottleneck(nn.Module):
    """The residual branch of a bottleneck block."""

    def __init__(self, cin, cout, stride):
        super().__init__()
        mid = cout // 4
        self.body = nn.Sequential(
            nn.Conv2d(cin, mid, 1, bias=False), nn.BatchNorm2d(mid), nn.ReLU(),
            nn.Conv2d(mid, mid, 3, stride, 1, bias=False), nn.BatchNorm2d(mid), nn.ReLU(),
            nn.Conv2d(mid, cout, 1, bias=False), nn.BatchNorm2d(cout),
        )  # fmt: skip

    def forward(self, x):
        return self.body(x)


def shortcut(cin, cout, stride):
    if cin == cout and stride == 1:
        return nn.Identity()
    return nn.Sequential(nn.Conv2d(cin, cout, 1, stride, bias=False), nn.BatchNorm2d(cout))


def stages(block, widths, depths, wrap, cin=None):
    """The blocks of a residual net in order, each made by wrap(branch, shortcut, input channels).

    `cin` is the width of the stem, that of the first stage unless given."""
    blocks, cin = [], cin or widths[0]
    for level, (width, depth) in enumerate(zip(widths, depths)):
        for i in range(depth):
            stride = 2 if level > 0 and i == 0 else 1
            blocks.append(wrap(block(cin, width, stride), shortcut(cin, width, stride), cin))
            cin = width
    return nn.ModuleList(blocks)


def stem(width, small):
    if small:
        return nn.Sequential(nn.Conv2d(3, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU())
    return nn.Sequential(
        nn.Conv2d(3, width, 7, 2, 3, bias=False), nn.BatchNorm2d(width), nn.ReLU(), nn.MaxPool2d(3, 2, 1)
    )


class PooledGate(nn.Module):
    """Global pool, two-layer perceptron, and the score of keeping the block (AIG)."""

    def __init__(self, c, hidden=16):
        super().__init__()
        self.mlp = nn.Sequential(nn.Linear(c, hidden), nn.ReLU(), nn.Linear(hidden, 2))

    def forward(self, x):
        y = self.mlp(x.mean(dim=(2, 3)))
        return y[0, 1] - y[0, 0]


class ConvGate(nn.Module):
    """SkipNet's feed-forward gate: convolutions, pool and a two-way softmax. `mid` is their width, the input's unless given."""

    def __init__(self, c, mid=None):
        super().__init__()
        mid = mid or c
        self.body = nn.Sequential(
            nn.MaxPool2d(2), nn.Conv2d(c, mid, 3, 1, 1), nn.BatchNorm2d(mid), nn.ReLU(),
            nn.Conv2d(mid, mid, 3, 2, 1), nn.BatchNorm2d(mid), nn.ReLU(),
        )  # fmt: skip
        self.out = nn.Conv2d(mid, 2, 1)

    def forward(self, x):
        y = self.out(self.body(x).mean(dim=(2, 3), keepdim=True))
        return torch.softmax(y.flatten(1), dim=1)[0, 1] - 0.5


class Gated(nn.Module):
    def __init__(self, branch, skip, gate):
        super().__init__()
        self.branch, self.skip, self.gate, self.decide = branch, skip, gate, Above(0.0)

    def forward(self, x):
        y = self.skip(x)
        if self.decide(self.gate(x)):
            y = y + self.branch(x)
        return torch.relu(y)


class GatedNet(nn.Module):
    """`first` is the width of the stem, that of the first stage unless given."""

    def __init__(
        self, gate, block=Bottleneck, widths=(256, 512, 1024, 2048), depths=(3, 4, 6, 3), classes=1000, small=False, first=None
    ):  # fmt: skip
        super().__init__()
        first = first or widths[0]
        self.stem = stem(first, small)
        self.blocks = stages(block, widths, depths, lambda branch, skip, c: Gated(branch, skip, gate(c)), first)
        self.head = nn.Linear(widths[-1], classes)

    def forward(self, image):
        x = self.stem(image)
        for block in self.blocks:
            x = block(x)
        return self.head(x.mean(dim=(2, 3)))


class RecurrentGated(nn.Module):
    """A block that has run before its gate decides whether its result is used; all blocks share the gate's LSTM."""

    def __init__(self, branch, skip, c):
        super().__init__()
        self.branch, self.skip, self.squeeze, self.decide = branch, skip, nn.Conv2d(c, 10, 1), Above(0.5)

    def forward(self, x, keep):
        y = self.skip(x)
        full = torch.relu(y + self.branch(x))
        if self.decide(keep):
            y = full
        return y


class RecurrentGate(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell, self.out = nn.LSTM(10, 10), nn.Linear(10, 1)

    def forward(self, x, h, c):
        y, (h, c) = self.cell(x, (h, c))
        return torch.sigmoid(self.out(y)), h, c


class RecurrentNet(nn.Module):
    def __init__(self, widths=(16, 32, 64), depths=(6, 6, 6), classes=10):
        super().__init__()
        self.stem = stem(widths[0], True)
        self.blocks = stages(Basic, widths, depths, RecurrentGated)
        self.gate = RecurrentGate()
        self.head = nn.Linear(widths[-1], classes)

    def trace_parts(self):
        zero = torch.zeros(1, 1, 10)
        self.gate = torch.jit.trace(self.gate, (zero, zero, zero))

    def forward(self, image):
        x = self.stem(image)
        h, c = torch.zeros(1, 1, 10), torch.zeros(1, 1, 10)
        for block in self.blocks:
            features = block.squeeze(x.mean(dim=(2, 3), keepdim=True))
            keep, h, c = self.gate(features.reshape(1, 1, 10), h, c)
            x = block(x, keep)
        return self.head(x.mean(dim=(2, 3)))


class PolicyBlock(nn.Module):
    def __init__(self, branch, skip):
        super().__init__()
        self.branch, self.skip, self.decide = branch, skip, Above(0.5)

    def forward(self, x, keep):
        y = self.skip(x)
        if self.decide(keep):
            y = torch.relu(y + self.branch(x))
        return y


class Residual(nn.Module):
    def __init__(self, branch, skip):
        super().__init__()
        self.branch, self.skip = branch, skip

    def forward(self, x):
        return torch.relu(self.skip(x) + self.branch(x))


class Resized(nn.Module):
    def __init__(self, side):
        super().__init__()
        self.side: int = side

    def forward(self, image):
        return F.interpolate(image, size=[self.side, self.side], mode="bilinear", align_corners=False)


class BlockDrop(nn.Module):
    """A policy net decides once for all blocks; `shrink` is the side length of its input, that of the image unless given, and
    `policy` are the widths of its stages. `first` is as for GatedNet."""

    def __init__(
        self,
        block=Bottleneck,
        widths=(256, 512, 1024, 2048),
        depths=(3, 4, 23, 3),
        classes=1000,
        small=False,
        shrink=112,
        first=None,
        policy=(16, 32, 64),
    ):
        super().__init__()
        first = first or widths[0]
        self.policy = nn.Sequential(
            Resized(shrink) if shrink else nn.Identity(), stem(policy[0], True),
            *stages(Basic, policy, (1, 1, 1), lambda branch, skip, _: Residual(branch, skip)),
            nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(policy[-1], sum(depths)), nn.Sigmoid(),
        )  # fmt: skip
        self.stem = stem(first, small)
        self.blocks = stages(block, widths, depths, lambda branch, skip, _: PolicyBlock(branch, skip), first)
        self.head = nn.Linear(widths[-1], classes)

    def forward(self, image):
        policy = self.policy(image)
        x = self.stem(image)
        for i, block in enumerate(self.blocks):
            x = block(x, policy[0, i])
        return self.head(x.mean(dim=(2, 3)))


class PlainConv(torch.autograd.Function):
    """Conv with a kernel whose channel counts are only known when it runs, which torch's exporter refuses."""

    @staticmethod
    def forward(ctx, x, kernel):
        return F.conv2d(x, kernel, padding=1)

    @staticmethod
    def symbolic(g, x, kernel):
        return g.op("Conv", x, kernel, kernel_shape_i=[3, 3], pads_i=[1, 1, 1, 1])


class DualGated(nn.Module):
    """A basic block that computes only the kept channels of its middle, and masks positions of its output (DGNet)."""

    def __init__(self, c):
        super().__init__()
        self.channels, self.kept = nn.Linear(c, c), Kept()
        self.places = nn.Conv2d(c, 1, 3, padding=1)
        self.first, self.second = (nn.Parameter(torch.randn(c, c, 3, 3) / (3 * c**0.5)) for _ in range(2))

    def forward(self, x):
        kept = self.kept(self.channels(x.mean(dim=(2, 3)))[0])
        middle = torch.relu(PlainConv.apply(x, self.first.index_select(0, kept)))
        y = PlainConv.apply(middle, self.second.index_select(1, kept))
        place = (self.places(x) > 0).flatten()
        rows = torch.nonzero(place)[:, 0]
        flat = y.flatten(2)[0].t()
        y = torch.zeros_like(flat).index_put((rows,), flat[rows]).t().reshape(y.shape)
        return torch.relu(x + y)


class DgNet(nn.Module):
    def __init__(self, widths=(64, 128, 256, 512), depths=(3, 4, 6, 3), classes=1000):
        super().__init__()
        layers, cin = [stem(widths[0], False)], widths[0]
        for width, depth in zip(widths, depths):
            if width != cin:
                layers.append(nn.Sequential(nn.Conv2d(cin, width, 3, 2, 1), nn.BatchNorm2d(width), nn.ReLU()))
            layers += [DualGated(width) for _ in range(depth)]
            cin = width
        self.layers, self.head = nn.Sequential(*layers), nn.Linear(cin, classes)

    def forward(self, image):
        return self.head(self.layers(image).mean(dim=(2, 3)))
