"""Vision models of dynamic size: a1, a2, a5, c8, c11. Here and in the other groups, defaults are the full sizes."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from .export import Model, calibrated, export, integers, normal


class ResBlock(nn.Module):
    def __init__(self, cin, cout, groups):
        super().__init__()
        self.body = nn.Sequential(
            nn.GroupNorm(groups, cin), nn.SiLU(), nn.Conv2d(cin, cout, 3, padding=1),
            nn.GroupNorm(groups, cout), nn.SiLU(), nn.Conv2d(cout, cout, 3, padding=1),
        )  # fmt: skip
        self.skip = nn.Conv2d(cin, cout, 1) if cin != cout else nn.Identity()

    def forward(self, x):
        return self.skip(x) + self.body(x)


class SpatialAttention(nn.Module):
    def __init__(self, c, groups):
        super().__init__()
        self.norm = nn.GroupNorm(groups, c)
        self.q, self.k, self.v, self.out = (nn.Conv2d(c, c, 1) for _ in range(4))

    def forward(self, x):
        n, c, h, w = x.shape
        y = self.norm(x)
        q, k, v = (f(y).reshape(n, c, h * w) for f in (self.q, self.k, self.v))
        weights = torch.softmax(q.transpose(1, 2) @ k / math.sqrt(c), dim=-1)
        return x + self.out((v @ weights.transpose(1, 2)).reshape(n, c, h, w))


class Downsample(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.conv = nn.Conv2d(c, c, 3, stride=2)

    def forward(self, x):
        return self.conv(F.pad(x, (0, 1, 0, 1)))


class SdEncoder(nn.Module):
    """The image encoder of Stable Diffusion v1's autoencoder: mean and log-variance of the latent."""

    def __init__(self, width=128, groups=32):
        super().__init__()
        layers, c = [nn.Conv2d(3, width, 3, padding=1)], width
        for level, m in enumerate((1, 2, 4, 4)):
            layers += [ResBlock(c, width * m, groups), ResBlock(width * m, width * m, groups)]
            c = width * m
            if level < 3:
                layers.append(Downsample(c))
        layers += [ResBlock(c, c, groups), SpatialAttention(c, groups), ResBlock(c, c, groups)]
        layers += [nn.GroupNorm(groups, c), nn.SiLU(), nn.Conv2d(c, 8, 3, padding=1), nn.Conv2d(8, 8, 1)]
        self.layers = nn.Sequential(*layers)

    def forward(self, image):
        mean, logvar = self.layers(image).chunk(2, dim=1)
        return mean * 0.18215, logvar.clamp(-30, 20)


class Attention(nn.Module):
    """Multi-head attention between two sequences, with an inner width that may be smaller than the outer."""

    def __init__(self, width, heads, shrink=1):
        super().__init__()
        inner = width // shrink
        self.heads = heads
        self.q, self.k, self.v = (nn.Linear(width, inner) for _ in range(3))
        self.out = nn.Linear(inner, width)

    def split(self, x):
        return x.reshape(x.shape[0], x.shape[1], self.heads, -1).transpose(1, 2)

    def forward(self, q, k, v):
        q, k, v = self.split(self.q(q)), self.split(self.k(k)), self.split(self.v(v))
        y = torch.softmax(q @ k.transpose(2, 3) / math.sqrt(q.shape[-1]), dim=-1) @ v
        return self.out(y.transpose(1, 2).flatten(2))


class TwoWayBlock(nn.Module):
    def __init__(self, width, heads, mlp):
        super().__init__()
        self.self_attention = Attention(width, heads)
        self.to_image, self.to_tokens = Attention(width, heads, 2), Attention(width, heads, 2)
        self.mlp = nn.Sequential(nn.Linear(width, mlp), nn.ReLU(), nn.Linear(mlp, width))
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(4))

    def forward(self, tokens, image, token_pe, image_pe):
        q = tokens + token_pe
        tokens = self.norms[0](tokens + self.self_attention(q, q, tokens))
        tokens = self.norms[1](tokens + self.to_image(tokens + token_pe, image + image_pe, image))
        tokens = self.norms[2](tokens + self.mlp(tokens))
        image = self.norms[3](image + self.to_tokens(image + image_pe, tokens + token_pe, tokens))
        return tokens, image


class SamDecoder(nn.Module):
    """Segment Anything's prompt encoder and mask decoder over ready image embeddings; `size` is the masks' (H, W)."""

    def __init__(self, width=256, grid=64, heads=8, mlp=2048, masks=4):
        super().__init__()
        self.grid, self.masks = grid, masks
        self.register_buffer("gauss", torch.randn(2, width // 2))
        self.labels = nn.Embedding(3, width)  # not a point, background, foreground
        self.no_mask = nn.Parameter(torch.randn(1, width, 1, 1))
        self.tokens = nn.Parameter(torch.randn(1, masks + 1, width))
        self.blocks = nn.ModuleList(TwoWayBlock(width, heads, mlp) for _ in range(2))
        self.final, self.norm = Attention(width, heads, 2), nn.LayerNorm(width)
        self.up1, self.up2 = nn.ConvTranspose2d(width, width // 4, 2, 2), nn.ConvTranspose2d(
            width // 4, width // 8, 2, 2
        )
        self.norm1 = nn.GroupNorm(1, width // 4)
        self.hyper = nn.ModuleList(
            nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width // 8)) for _ in range(masks)
        )
        self.iou = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, masks))

    def encode(self, at):
        angle = 2 * math.pi * ((2 * at - 1) @ self.gauss)
        return torch.cat([angle.sin(), angle.cos()], dim=-1)

    def forward(self, embeddings, points, labels, size):
        pe = self.encode((points + 0.5) / (16 * self.grid))
        pe = torch.where((labels == -1)[..., None], torch.zeros_like(pe), pe) + self.labels(labels + 1)
        tokens = token_pe = torch.cat([self.tokens.expand(pe.shape[0], -1, -1), pe], dim=1)

        at = (torch.arange(self.grid) + 0.5) / self.grid
        y, x = torch.meshgrid(at, at, indexing="ij")
        image_pe = self.encode(torch.stack([x, y], dim=-1)).reshape(1, self.grid * self.grid, -1)
        image = (embeddings + self.no_mask).flatten(2).transpose(1, 2)
        for block in self.blocks:
            tokens, image = block(tokens, image, token_pe, image_pe)
        tokens = self.norm(tokens + self.final(tokens + token_pe, image + image_pe, image))

        grid = image.transpose(1, 2).reshape(1, -1, self.grid, self.grid)
        up = F.gelu(self.up2(F.gelu(self.norm1(self.up1(grid)))))
        weights = torch.stack([f(tokens[:, i + 1]) for i, f in enumerate(self.hyper)], dim=1)
        masks = (weights @ up.flatten(2)).reshape(1, self.masks, 4 * self.grid, 4 * self.grid)
        masks = F.interpolate(masks, size=(size[0], size[1]), mode="bilinear", align_corners=False)
        return masks, self.iou(tokens[:, 0])


class NonMaxSuppression(torch.autograd.Function):
    """The ONNX operator, which torch lacks; run outside an export it keeps the first box."""

    @staticmethod
    def forward(ctx, boxes, scores, most, iou, score):
        return torch.zeros(1, 3, dtype=torch.int64)

    @staticmethod
    def symbolic(g, boxes, scores, most, iou, score):
        return g.op("NonMaxSuppression", boxes, scores, most, iou, score)


def suppress(boxes, scores, most=100, iou=0.45, score=0.25):
    """The kept (batch, class, box) rows of boxes [N, B, 4] and scores [N, B, C], with their boxes and scores."""
    scores = scores.transpose(1, 2)
    kept = NonMaxSuppression.apply(boxes, scores, torch.tensor([most]), torch.tensor([iou]), torch.tensor([score]))
    image, label, box = kept[:, 0], kept[:, 1], kept[:, 2]
    return kept, boxes[image, box], scores[image, label, box]


def conv(cin, cout, k=3, s=1, groups=1, activation=nn.ReLU):
    body = nn.Conv2d(cin, cout, k, s, k // 2, groups=groups, bias=False)
    return nn.Sequential(body, nn.BatchNorm2d(cout), activation())


class Csp(nn.Module):
    """A cross-stage block of `n` re-parameterised (deployed: plain) convolutions."""

    def __init__(self, cin, cout, n):
        super().__init__()
        self.left, self.right = conv(cin, cout // 2, 1), conv(cin, cout // 2, 1)
        self.body = nn.Sequential(*(conv(cout // 2, cout // 2) for _ in range(n)))
        self.out = conv(cout, cout, 1)

    def forward(self, x):
        return self.out(torch.cat([self.body(self.left(x)), self.right(x)], dim=1))


class Sppf(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.reduce, self.out, self.pool = conv(c, c // 2, 1), conv(2 * c, c, 1), nn.MaxPool2d(5, 1, 2)

    def forward(self, x):
        x = self.reduce(x)
        y = self.pool(x)
        z = self.pool(y)
        return self.out(torch.cat([x, y, z, self.pool(z)], dim=1))


class Head(nn.Module):
    """A decoupled head: class scores and box distances per cell, decoded to corners in pixels."""

    def __init__(self, c, classes, stride):
        super().__init__()
        self.stride = stride
        self.stem, self.cls, self.reg = conv(c, c, 1), conv(c, c), conv(c, c)
        self.scores, self.sides = nn.Conv2d(c, classes, 1), nn.Conv2d(c, 4, 1)

    def forward(self, x):
        x = self.stem(x)
        h, w = x.shape[2], x.shape[3]
        y, x0 = torch.meshgrid(torch.arange(h) + 0.5, torch.arange(w) + 0.5, indexing="ij")
        center = torch.stack([x0, y], dim=-1).reshape(1, h * w, 2)
        sides = F.softplus(self.sides(self.reg(x))).flatten(2).transpose(1, 2)
        boxes = torch.cat([center - sides[..., :2], center + sides[..., 2:]], dim=-1) * self.stride
        return boxes, self.scores(self.cls(x)).sigmoid().flatten(2).transpose(1, 2)


class YoloV6(nn.Module):
    def __init__(self, width=64, depth=6, classes=80):
        super().__init__()
        w = width
        self.stem = nn.Sequential(conv(3, w, 3, 2), conv(w, 2 * w, 3, 2), Csp(2 * w, 2 * w, depth))
        self.down3 = nn.Sequential(conv(2 * w, 4 * w, 3, 2), Csp(4 * w, 4 * w, 2 * depth))
        self.down4 = nn.Sequential(conv(4 * w, 8 * w, 3, 2), Csp(8 * w, 8 * w, 3 * depth))
        self.down5 = nn.Sequential(conv(8 * w, 16 * w, 3, 2), Csp(16 * w, 16 * w, depth), Sppf(16 * w))
        self.reduce5, self.reduce4 = conv(16 * w, 4 * w, 1), conv(4 * w, 2 * w, 1)
        self.up5, self.up4 = nn.ConvTranspose2d(4 * w, 4 * w, 2, 2), nn.ConvTranspose2d(2 * w, 2 * w, 2, 2)
        self.top4, self.top3 = Csp(12 * w, 4 * w, depth), Csp(6 * w, 2 * w, depth)
        self.pan3, self.pan4 = conv(2 * w, 2 * w, 3, 2), conv(4 * w, 4 * w, 3, 2)
        self.out4, self.out5 = Csp(4 * w, 4 * w, depth), Csp(8 * w, 8 * w, depth)
        self.heads = nn.ModuleList(Head(c * w, classes, s) for c, s in ((2, 8), (4, 16), (8, 32)))

    def forward(self, image):
        p3 = self.down3(self.stem(image))
        p4 = self.down4(p3)
        r5 = self.reduce5(self.down5(p4))
        r4 = self.reduce4(self.top4(torch.cat([self.up5(r5), p4], dim=1)))
        n3 = self.top3(torch.cat([self.up4(r4), p3], dim=1))
        n4 = self.out4(torch.cat([self.pan3(n3), r4], dim=1))
        n5 = self.out5(torch.cat([self.pan4(n4), r5], dim=1))
        found = [head(x) for head, x in zip(self.heads, (n3, n4, n5))]
        return suppress(torch.cat([b for b, _ in found], dim=1), torch.cat([s for _, s in found], dim=1))


class NmsDetector(nn.Module):
    """A one-level detector: boxes, suppression, and features gathered for the kept boxes."""

    def __init__(self, width=64, classes=20):
        super().__init__()
        self.body = nn.Sequential(conv(3, width, 3, 2), conv(width, width, 3, 2), conv(width, width, 3, 2))
        self.head, self.classify = Head(width, classes, 8), nn.Linear(width, classes)

    def forward(self, image):
        x = self.body(image)
        kept, boxes, scores = suppress(*self.head(x))
        rows = x.flatten(2).transpose(1, 2)[kept[:, 0], kept[:, 2]]
        return boxes, scores, self.classify(rows)


class CondConv(nn.Module):
    """A convolution whose kernel is a mix of `experts` kernels, weighted by the pooled input (batch 1)."""

    def __init__(self, cin, cout, k, experts=4):
        super().__init__()
        self.shape = (cout, cin, k, k)
        self.route = nn.Linear(cin, experts)
        self.kernels = nn.Parameter(torch.randn(experts, cout * cin * k * k) / math.sqrt(cin * k * k))

    def forward(self, x):
        mix = torch.sigmoid(self.route(x.mean(dim=(2, 3))))
        return F.conv2d(x, (mix @ self.kernels).reshape(self.shape), padding=self.shape[2] // 2)


class DynConv(nn.Module):
    def __init__(self, width=64, blocks=6, classes=1000):
        super().__init__()
        self.stem = conv(3, width, 3, 2)
        self.blocks = nn.ModuleList(
            nn.Sequential(CondConv(width, width, 3), nn.BatchNorm2d(width), nn.ReLU()) for _ in range(blocks)
        )
        self.head = nn.Linear(width, classes)

    def forward(self, image):
        x = self.stem(image)
        for block in self.blocks:
            x = x + block(x)
        return self.head(x.mean(dim=(2, 3)))


def images(*sizes, batch=(1, 1)):
    return [{"image": normal(b, 3, h, w)} for b, (h, w) in zip(batch, sizes)]


HW = {"image": {2: "H", 3: "W"}}
NHW = {"image": {0: "N", 2: "H", 3: "W"}}


def sd_encoder(path):
    export(path, lambda: SdEncoder(8, 4), images((64, 64), (72, 96), batch=(1, 2)), NHW, ("mean", "logvar"))


def prompts(points, height, width, channels=16, grid=8):
    """Inputs of SamDecoder; masks are height by width."""
    return {
        "embeddings": normal(1, channels, grid, grid),
        "points": 16 * grid * abs(normal(1, points, 2)),
        "labels": integers(2, 1, points, low=-1),
        "size": integers(1, 2) + [height, width],
    }


POINTS = {"points": {1: "P"}, "labels": {1: "P"}}


def sam_decoder(path):
    examples = [prompts(3, 40, 50), prompts(7, 64, 31)]
    export(path, lambda: SamDecoder(16, 8, 2, 32), examples, POINTS, ("masks", "iou"))


def yolov6(path):
    outputs = ("kept", "boxes", "scores")
    export(path, lambda: calibrated(YoloV6(4, 1, 5), torch.randn(2, 3, 64, 64)), images((64, 64), (96, 128), batch=(1, 2)), NHW, outputs)


def nms_detector(path):
    outputs = ("boxes", "scores", "labels")
    export(path, lambda: calibrated(NmsDetector(8, 5), torch.randn(2, 3, 64, 64)), images((64, 64), (40, 96), batch=(1, 2)), NHW, outputs)


def dyn_conv(path):
    export(path, lambda: calibrated(DynConv(8, 2, 10), torch.randn(1, 3, 32, 32)), images((32, 32), (40, 56)), HW)


MODELS = [
    Model("a1", "sd_encoder", sd_encoder),
    Model("a2", "sam_decoder", sam_decoder),
    Model("a5", "yolov6", yolov6),
    Model("c8", "nms_detector", nms_detector),
    Model("c11", "dyn_conv", dyn_conv),
]
