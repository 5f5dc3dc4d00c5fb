"""Transformers and sets whose length is dynamic: a3, a4, c3, c5, c7, c9, c10. Defaults are the full sizes."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from .decisions import Below
from .export import Model, export, integers, normal


class SelfAttention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x, bias):
        b, s, w = x.shape
        q, k, v = self.qkv(x).reshape(b, s, 3, self.heads, w // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
        weights = torch.softmax(q @ k.transpose(2, 3) / math.sqrt(w / self.heads) + bias, dim=-1)
        return self.out((weights @ v).transpose(1, 2).reshape(b, s, w))


class EncoderLayer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.attention, self.norm1, self.norm2 = SelfAttention(width, heads), nn.LayerNorm(width), nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x, bias):
        x = self.norm1(x + self.attention(x, bias))
        return self.norm2(x + self.mlp(x))


class Embedding(nn.Module):
    """Token and position embeddings; with `pad`, as in RoBERTa, positions count the tokens that are not padding."""

    def __init__(self, words, width, pad=None, most=514):
        super().__init__()
        self.pad = pad
        self.words, self.positions, self.norm = (
            nn.Embedding(words, width),
            nn.Embedding(most, width),
            nn.LayerNorm(width),
        )

    def forward(self, ids):
        if self.pad is None:
            at = torch.arange(ids.shape[1])[None]
        else:
            real = (ids != self.pad).long()
            at = torch.cumsum(real, dim=1) * real + self.pad
        return self.norm(self.words(ids) + self.positions(at))


def mask_bias(mask):
    return (1.0 - mask[:, None, None, :].float()) * -10000.0


class Bert(nn.Module):
    def __init__(self, words=30522, width=768, heads=12, layers=12, pad=None, positions=514):
        super().__init__()
        self.embed = Embedding(words, width, pad, positions)
        self.layers = nn.ModuleList(EncoderLayer(width, heads) for _ in range(layers))
        self.pool = nn.Linear(width, width)

    def forward(self, ids, mask):
        x, bias = self.embed(ids), mask_bias(mask)
        for layer in self.layers:
            x = layer(x, bias)
        return x, torch.tanh(self.pool(x[:, 0]))


class Exit(nn.Module):
    """One encoder layer with its classifier: answers when that is confident, else runs the rest (batch 1)."""

    def __init__(self, layer, width, classes, threshold, rest):
        super().__init__()
        self.layer, self.classify, self.rest, self.unsure = layer, nn.Linear(width, classes), rest, Below(threshold)

    def forward(self, x, bias):
        x = self.layer(x, bias)
        out = self.classify(x[:, 0])
        if self.unsure(torch.softmax(out, dim=-1).max()):
            out = self.rest(x, bias)
        return out


class LastExit(nn.Module):
    def __init__(self, layer, width, classes):
        super().__init__()
        self.layer, self.classify = layer, nn.Linear(width, classes)

    def forward(self, x, bias):
        return self.classify(self.layer(x, bias)[:, 0])


class Berxit(nn.Module):
    """The chain of exits; its layers are traced, so that scripting keeps only the exits as control flow."""

    def __init__(self, words=30522, width=768, heads=12, layers=12, classes=2, threshold=0.7):
        super().__init__()
        self.width: int = width
        self.embed = Embedding(words, width)
        self.chain = LastExit(EncoderLayer(width, heads), width, classes)
        for _ in range(layers - 1):
            self.chain = Exit(EncoderLayer(width, heads), width, classes, threshold, self.chain)

    def trace_parts(self):
        self.embed = torch.jit.trace(self.embed, torch.ones(1, 4, dtype=torch.int64))
        link, example = self.chain, (torch.zeros(1, 4, self.width), torch.zeros(1, 1, 1, 4))
        while link is not None:
            link.layer = torch.jit.trace(link.layer, example)
            link = getattr(link, "rest", None)

    def forward(self, ids, mask):
        return self.chain(self.embed(ids), mask_bias(mask))


class RelativeAttention(nn.Module):
    """Attention with Transformer-XL's relative positions: scores of content plus shifted scores of position."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.width = heads, width
        self.q, self.k, self.v, self.out = (nn.Linear(width, width) for _ in range(4))
        self.position = nn.Linear(width, width, bias=False)
        self.u, self.w = (nn.Parameter(torch.randn(heads, 1, width // heads)) for _ in range(2))

    def split(self, x):
        return x.reshape(x.shape[0], x.shape[1], self.heads, -1).transpose(1, 2)

    def forward(self, x, positions):
        b, t = x.shape[0], x.shape[1]
        q, k, v, p = (
            self.split(self.q(x)),
            self.split(self.k(x)),
            self.split(self.v(x)),
            self.split(self.position(positions)),
        )
        shifted = F.pad((q + self.w) @ p.transpose(2, 3), (1, 0)).reshape(b, self.heads, 2 * t, t)
        shifted = shifted[:, :, 1:].reshape(b, self.heads, t, 2 * t - 1)[..., :t]
        scores = ((q + self.u) @ k.transpose(2, 3) + shifted) / math.sqrt(self.width / self.heads)
        return self.out((torch.softmax(scores, dim=-1) @ v).transpose(1, 2).reshape(b, t, self.width))


class ConformerBlock(nn.Module):
    def __init__(self, width, heads, kernel):
        super().__init__()
        self.first, self.last = (
            nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.SiLU(), nn.Linear(4 * width, width))
            for _ in range(2)
        )
        self.norm, self.attention = nn.LayerNorm(width), RelativeAttention(width, heads)
        self.conv_norm, self.out_norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.conv = nn.Sequential(
            nn.Conv1d(width, 2 * width, 1), nn.GLU(dim=1),
            nn.Conv1d(width, width, kernel, padding=kernel // 2, groups=width),
            nn.BatchNorm1d(width), nn.SiLU(), nn.Conv1d(width, width, 1),
        )  # fmt: skip

    def forward(self, x, positions):
        x = x + 0.5 * self.first(x)
        x = x + self.attention(self.norm(x), positions)
        x = x + self.conv(self.conv_norm(x).transpose(1, 2)).transpose(1, 2)
        return self.out_norm(x + 0.5 * self.last(x))


class Conformer(nn.Module):
    def __init__(self, mels=80, width=256, heads=4, layers=16, kernel=31, words=5000):
        super().__init__()
        self.width = width
        self.subsample = nn.Sequential(nn.Conv2d(1, width, 3, 2), nn.ReLU(), nn.Conv2d(width, width, 3, 2), nn.ReLU())
        self.project = nn.Linear(width * (((mels - 1) // 2 - 1) // 2), width)
        self.blocks = nn.ModuleList(ConformerBlock(width, heads, kernel) for _ in range(layers))
        self.out = nn.Linear(width, words)

    def forward(self, frames):
        x = self.subsample(frames[:, None])
        x = self.project(x.transpose(1, 2).flatten(2))
        t = x.shape[1]
        rates = torch.exp(torch.arange(0, self.width, 2) * (-math.log(10000.0) / self.width))
        angle = torch.arange(t - 1, -t, -1)[:, None] * rates
        positions = torch.stack([angle.sin(), angle.cos()], dim=-1).reshape(1, 2 * t - 1, self.width)
        for block in self.blocks:
            x = block(x, positions)
        return torch.log_softmax(self.out(x), dim=-1)


class CachedAttention(nn.Module):
    """Causal attention of new tokens over the cached keys and values followed by their own."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x, past_k, past_v):
        b, s, w = x.shape
        q, k, v = self.qkv(x).reshape(b, s, 3, self.heads, w // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
        k, v = torch.cat([past_k, k], dim=2), torch.cat([past_v, v], dim=2)
        past, total = past_k.shape[2], k.shape[2]
        seen = torch.arange(total)[None] <= torch.arange(past, total)[:, None]
        scores = torch.where(seen, q @ k.transpose(2, 3) / math.sqrt(w / self.heads), torch.tensor(-1e9))
        return self.out((torch.softmax(scores, dim=-1) @ v).transpose(1, 2).reshape(b, s, w)), k, v


class GptLayer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.norm1, self.norm2, self.attention = nn.LayerNorm(width), nn.LayerNorm(width), CachedAttention(width, heads)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(approximate="tanh"), nn.Linear(4 * width, width))

    def forward(self, x, k, v):
        y, k, v = self.attention(self.norm1(x), k, v)
        x = x + y
        return x + self.mlp(self.norm2(x)), k, v


class Gpt2(nn.Module):
    """One step: logits of the last token, and the grown caches [layers, batch, heads, past + new, width of a head]."""

    def __init__(self, words=50257, width=768, heads=12, layers=12, most=1024):
        super().__init__()
        self.words, self.positions = nn.Embedding(words, width), nn.Embedding(most, width)
        self.layers, self.norm = nn.ModuleList(GptLayer(width, heads) for _ in range(layers)), nn.LayerNorm(width)
        # With a bias the last product is exported as a Gemm of the embedding itself, not of a transposed copy of it.
        self.register_buffer("no_bias", torch.zeros(words))

    def forward(self, ids, past_k, past_v):
        past = past_k.shape[3]
        x = self.words(ids) + self.positions(torch.arange(past, past + ids.shape[1]))
        keys, values = [], []
        for i, layer in enumerate(self.layers):
            x, k, v = layer(x, past_k[i], past_v[i])
            keys.append(k)
            values.append(v)
        logits = F.linear(self.norm(x[:, -1]), self.words.weight, self.no_bias)
        return logits, torch.stack(keys), torch.stack(values)


class Greedy(nn.Module):
    """The whole greedy decoding in the graph: steps until the end token or `most` tokens."""

    def __init__(self, step, layers, heads, width, end=0):
        super().__init__()
        self.step = step
        self.layers: int = layers
        self.heads: int = heads
        self.width: int = width
        self.end: int = end

    def trace_parts(self):
        cache = torch.zeros(self.layers, 1, self.heads, 4, self.width)
        self.step = torch.jit.trace(self.step, (torch.ones(1, 3, dtype=torch.int64), cache, cache))

    def forward(self, ids, most):
        cache = torch.zeros(self.layers, ids.size(0), self.heads, 0, self.width)
        logits, k, v = self.step(ids, cache, cache)
        token = torch.argmax(logits, dim=-1, keepdim=True)
        text = torch.cat([ids, token], dim=1)
        made = torch.ones_like(most)
        while bool(token[0, 0] != self.end) and bool(made < most):
            logits, k, v = self.step(token, k, v)
            token = torch.argmax(logits, dim=-1, keepdim=True)
            text = torch.cat([text, token], dim=1)
            made = made + 1
        return text


class Moe(nn.Module):
    """A Switch layer stack: each token goes to its best expert, by the rows that NonZero finds."""

    def __init__(self, width=768, experts=8, layers=2):
        super().__init__()
        self.routes = nn.ModuleList(nn.Linear(width, experts) for _ in range(layers))
        self.experts = nn.ModuleList(
            nn.ModuleList(
                nn.Sequential(nn.Linear(width, 4 * width), nn.ReLU(), nn.Linear(4 * width, width))
                for _ in range(experts)
            )
            for _ in range(layers)
        )

    def forward(self, tokens):
        x = tokens
        for route, experts in zip(self.routes, self.experts):
            gate, best = torch.softmax(route(x), dim=-1).max(dim=-1)
            out = torch.zeros_like(x)
            for e, expert in enumerate(experts):
                rows = torch.nonzero(best == e)[:, 0]
                out = out.index_put((rows,), expert(x[rows]) * gate[rows][:, None])
            x = x + out
        return x


class HoiPairs(nn.Module):
    """Relations of all (person, object) pairs among the detected boxes; either side may be empty."""

    def __init__(self, features=256, width=512, relations=117):
        super().__init__()
        self.head = nn.Sequential(nn.Linear(2 * features + 8, width), nn.ReLU(), nn.Linear(width, relations))

    def forward(self, boxes, labels, features):
        people, things = torch.nonzero(labels == 0)[:, 0], torch.nonzero(labels != 0)[:, 0]
        p, t = people.shape[0], things.shape[0]
        left, right = people[:, None].expand(p, t).reshape(-1), things[None].expand(p, t).reshape(-1)
        rows = torch.cat([boxes, features], dim=1)
        return torch.stack([left, right], dim=1), self.head(torch.cat([rows[left], rows[right]], dim=1))


def text(batch, length, words=100, seed=1):
    mask = (normal(batch, length, seed=seed) > -1).astype("int64")
    return {"ids": integers(words, batch, length, low=2, seed=seed), "mask": mask}


BS = {"ids": {0: "B", 1: "S"}, "mask": {0: "B", 1: "S"}}


def conformer(path):
    examples = [{"frames": normal(1, 50, 80)}, {"frames": normal(2, 83, 80)}]
    export(path, lambda: Conformer(80, 16, 2, 2, 7, 30), examples, {"frames": {0: "B", 1: "T"}})


def codebert(path):
    export(path, lambda: Bert(100, 16, 2, 2, pad=1), [text(1, 8), text(3, 21)], BS, ("states", "pooled"))


def bert_base(path):
    export(path, lambda: Bert(100, 16, 2, 2), [text(1, 8), text(3, 21)], BS, ("states", "pooled"))


def step(batch, past, new):
    k, v = normal(2, batch, 2, past, 8, seed=2), normal(2, batch, 2, past, 8, seed=3)
    return {"ids": integers(50, batch, new), "past_k": k, "past_v": v}


PAST = {"ids": {0: "B", 1: "S"}, "past_k": {1: "B", 3: "P"}, "past_v": {1: "B", 3: "P"}}
STEPS = [step(2, 5, 3), step(1, 0, 4)]


def gpt2_decode(path):
    export(path, lambda: Gpt2(50, 16, 2, 2), STEPS, PAST, ("logits", "k", "v"))


ENDED = integers(50, 1, 5)  # the end token follows at once: the loop makes no trip
STARTS = [{"ids": integers(50, 1, s), "most": integers(1, 1) + m} for s, m in ((4, 6), (7, 3))]
STARTS.append({"ids": ENDED, "most": integers(1, 1) + 4})


def small_greedy(most=1024):
    model, cache = Gpt2(50, 16, 2, 2, most).eval(), torch.zeros(2, 1, 2, 0, 8)
    end = int(torch.argmax(model(torch.as_tensor(ENDED), cache, cache)[0]))
    return Greedy(model, 2, 2, 8, end)


def gpt2_greedy(path):
    export(path, small_greedy, STARTS, {"ids": {1: "S"}}, ("text",), script=True)


def moe(path):
    export(path, lambda: Moe(16, 4, 2), [{"tokens": normal(9, 16)}, {"tokens": normal(30, 16)}], {"tokens": {0: "T"}})


def people(n, labels):
    return {"boxes": abs(normal(n, 4)), "labels": integers(labels, n), "features": normal(n, 8)}


PEOPLE = [people(6, 3), people(11, 3), people(4, 1)]
BOXES = {name: {0: "N"} for name in ("boxes", "labels", "features")}


def hoi_pairs(path):
    export(path, lambda: HoiPairs(8, 16, 5), PEOPLE, BOXES, ("pairs", "relations"))


MODELS = [
    Model("a3", "conformer", conformer),
    Model("a4", "codebert", codebert),
    Model("c3", "bert_base", bert_base),
    Model("c5", "gpt2_decode", gpt2_decode),
    Model("c5_greedy", "gpt2_greedy", gpt2_greedy),
    Model("c9", "moe", moe),
    Model("c10", "hoi_pairs", hoi_pairs),
]
