"""Image captioning with attention: b7, b8 (batch 1); the decoder feeds its word back until the end token."""

import torch
from torch import nn

from .gated import Bottleneck, Residual, shortcut, stem


class GroupedBottleneck(nn.Module):
    """The residual branch of a ResNeXt block: 32 groups in the middle convolution."""

    def __init__(self, cin, cout, stride, groups=32):
        super().__init__()
        mid = cout // 2
        self.body = nn.Sequential(
            nn.Conv2d(cin, mid, 1, bias=False), nn.BatchNorm2d(mid), nn.ReLU(),
            nn.Conv2d(mid, mid, 3, stride, 1, groups=groups, bias=False), nn.BatchNorm2d(mid), nn.ReLU(),
            nn.Conv2d(mid, cout, 1, bias=False), nn.BatchNorm2d(cout),
        )  # fmt: skip

    def forward(self, x):
        return self.body(x)


def encoder(block, first, widths, depths, pool):
    layers, cin = [stem(first, False)], first
    for level, (width, depth) in enumerate(zip(widths, depths)):
        for i in range(depth):
            stride = 2 if level > 0 and i == 0 else 1
            layers.append(Residual(block(cin, width, stride), shortcut(cin, width, stride)))
            cin = width
    return nn.Sequential(*layers, nn.AvgPool2d(pool))


class Caption(nn.Module):
    """Encoder, then at most `most` steps of an attending LSTM cell; `trace` are the logits of every step made."""

    def __init__(self, encode, features, width=512, words=2633, most=10, end=0):
        super().__init__()
        self.encode = encode
        self.words = nn.Embedding(words, width)
        self.from_image, self.from_state, self.score = (
            nn.Linear(features, width),
            nn.Linear(width, width),
            nn.Linear(width, 1),
        )
        self.first_h, self.first_c = nn.Linear(features, width), nn.Linear(features, width)
        self.gate, self.cell, self.out = (
            nn.Linear(width, features),
            nn.LSTMCell(width + features, width),
            nn.Linear(width, words),
        )
        self.most: int = most
        self.end: int = end

    def forward(self, image):
        places = self.encode(image).flatten(2).transpose(1, 2)
        keys = self.from_image(places)
        h, c = self.first_h(places.mean(dim=1)), self.first_c(places.mean(dim=1))
        word = torch.ones(1, dtype=torch.int64)
        trace = torch.zeros(0, self.out.out_features)
        made = 0
        while made < self.most and bool(word != self.end):
            weights = torch.softmax(self.score(torch.relu(keys + self.from_state(h)[:, None])), dim=1)
            seen = torch.sigmoid(self.gate(h)) * (weights * places).sum(dim=1)
            h, c = self.cell(torch.cat([self.words(word), seen], dim=1), (h, c))
            logits = self.out(h)
            word = logits.argmax(dim=1)
            trace = torch.cat([trace, logits], dim=0)
            made += 1
        return trace


def resnext(first=64, widths=(256, 512, 1024), depths=(3, 4, 6), groups=32, pool=4, **sizes):
    def block(cin, cout, stride):
        return GroupedBottleneck(cin, cout, stride, groups)

    return Caption(encoder(block, first, widths, depths, pool), widths[-1], **sizes)


def resnet101(first=64, widths=(256, 512, 1024, 2048), depths=(3, 4, 23, 3), pool=4, words=11569, **sizes):
    return Caption(encoder(Bottleneck, first, widths, depths, pool), widths[-1], words=words, **sizes)
