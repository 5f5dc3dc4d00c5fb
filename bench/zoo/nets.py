"""Plain convolutional nets in their published sizes: ResNet-50, MobileNetV2, YOLOX-S."""

import torch
from torch import nn

from .gated import Bottleneck, Residual, stages, stem
from .vision import conv


class ResNet50(nn.Module):
    def __init__(self, classes=1000):
        super().__init__()
        self.stem = stem(64, small=False)
        widths, depths = (256, 512, 1024, 2048), (3, 4, 6, 3)
        self.blocks = stages(Bottleneck, widths, depths, lambda branch, skip, _: Residual(branch, skip), cin=64)
        self.head = nn.Linear(2048, classes)

    def forward(self, image):
        x = self.stem(image)
        for block in self.blocks:
            x = block(x)
        return self.head(x.mean(dim=(2, 3)))


class InvertedResidual(nn.Module):
    """Expand by a 1×1, filter depthwise, project by a linear 1×1; the input is added where shapes agree."""

    def __init__(self, cin, cout, stride, expand):
        super().__init__()
        wide = cin * expand
        self.adds = stride == 1 and cin == cout
        self.body = nn.Sequential(
            *([conv(cin, wide, 1, activation=nn.ReLU6)] if expand > 1 else []),
            conv(wide, wide, 3, stride, groups=wide, activation=nn.ReLU6),
            conv(wide, cout, 1, activation=nn.Identity),
        )

    def forward(self, x):
        return x + self.body(x) if self.adds else self.body(x)


class MobileNetV2(nn.Module):
    def __init__(self, classes=1000):
        super().__init__()
        layers, cin = [conv(3, 32, 3, 2, activation=nn.ReLU6)], 32
        for expand, cout, count, stride in (
            (1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1),
        ):  # fmt: skip
            for i in range(count):
                layers.append(InvertedResidual(cin, cout, stride if i == 0 else 1, expand))
                cin = cout
        self.layers = nn.Sequential(*layers, conv(cin, 1280, 1, activation=nn.ReLU6))
        self.head = nn.Linear(1280, classes)

    def forward(self, image):
        return self.head(self.layers(image).mean(dim=(2, 3)))


def silu(cin, cout, k=3, s=1):
    return conv(cin, cout, k, s, activation=nn.SiLU)


class Pair(nn.Module):
    """A 1×1 and a 3×3 convolution, whose input is added or not."""

    def __init__(self, c, adds):
        super().__init__()
        self.body, self.adds = nn.Sequential(silu(c, c, 1), silu(c, c)), adds

    def forward(self, x):
        return x + self.body(x) if self.adds else self.body(x)


class CrossStage(nn.Module):
    def __init__(self, cin, cout, n, adds):
        super().__init__()
        c = cout // 2
        self.left, self.right, self.out = silu(cin, c, 1), silu(cin, c, 1), silu(cout, cout, 1)
        self.body = nn.Sequential(*(Pair(c, adds) for _ in range(n)))

    def forward(self, x):
        return self.out(torch.cat([self.body(self.left(x)), self.right(x)], dim=1))


class Focus(nn.Module):
    """Every 2×2 patch of the image as channels of one pixel, then a convolution."""

    def __init__(self, cout):
        super().__init__()
        self.conv = silu(12, cout)

    def forward(self, x):
        patches = [x[..., ::2, ::2], x[..., 1::2, ::2], x[..., ::2, 1::2], x[..., 1::2, 1::2]]
        return self.conv(torch.cat(patches, dim=1))


class PyramidPool(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.reduce, self.out = silu(c, c // 2, 1), silu(2 * c, c, 1)
        self.pools = nn.ModuleList(nn.MaxPool2d(k, 1, k // 2) for k in (5, 9, 13))

    def forward(self, x):
        x = self.reduce(x)
        return self.out(torch.cat([x, *(pool(x) for pool in self.pools)], dim=1))


class DecoupledHead(nn.Module):
    """Box, objectness and class scores of one level, [N, 5 + classes, H·W]."""

    def __init__(self, cin, c, classes):
        super().__init__()
        self.stem = silu(cin, c, 1)
        self.cls, self.reg = (nn.Sequential(silu(c, c), silu(c, c)) for _ in range(2))
        self.scores, self.box, self.object = (nn.Conv2d(c, n, 1) for n in (classes, 4, 1))

    def forward(self, x):
        x = self.stem(x)
        box = self.reg(x)
        parts = [self.box(box), self.object(box).sigmoid(), self.scores(self.cls(x)).sigmoid()]
        return torch.cat(parts, dim=1).flatten(2)


class YoloX(nn.Module):
    """YOLOX with `w` channels after the stem (32 is the size S); every cell's row, not decoded, as it is deployed."""

    def __init__(self, w=32, classes=80):
        super().__init__()
        self.dark3 = nn.Sequential(
            Focus(w), silu(w, 2 * w, 3, 2), CrossStage(2 * w, 2 * w, 1, True),
            silu(2 * w, 4 * w, 3, 2), CrossStage(4 * w, 4 * w, 3, True),
        )  # fmt: skip
        self.dark4 = nn.Sequential(silu(4 * w, 8 * w, 3, 2), CrossStage(8 * w, 8 * w, 3, True))
        self.dark5 = nn.Sequential(silu(8 * w, 16 * w, 3, 2), PyramidPool(16 * w), CrossStage(16 * w, 16 * w, 1, False))
        self.reduce5, self.reduce4 = silu(16 * w, 8 * w, 1), silu(8 * w, 4 * w, 1)
        self.up = nn.Upsample(scale_factor=2, mode="nearest")
        self.top4, self.top3 = CrossStage(16 * w, 8 * w, 1, False), CrossStage(8 * w, 4 * w, 1, False)
        self.down3, self.down4 = silu(4 * w, 4 * w, 3, 2), silu(8 * w, 8 * w, 3, 2)
        self.out4, self.out5 = CrossStage(8 * w, 8 * w, 1, False), CrossStage(16 * w, 16 * w, 1, False)
        self.heads = nn.ModuleList(DecoupledHead(c * w, 4 * w, classes) for c in (4, 8, 16))

    def forward(self, image):
        p3 = self.dark3(image)
        p4 = self.dark4(p3)
        r5 = self.reduce5(self.dark5(p4))
        r4 = self.reduce4(self.top4(torch.cat([self.up(r5), p4], dim=1)))
        n3 = self.top3(torch.cat([self.up(r4), p3], dim=1))
        n4 = self.out4(torch.cat([self.down3(n3), r4], dim=1))
        n5 = self.out5(torch.cat([self.down4(n4), r5], dim=1))
        rows = [head(x) for head, x in zip(self.heads, (n3, n4, n5))]
        return torch.cat(rows, dim=2).transpose(1, 2)
