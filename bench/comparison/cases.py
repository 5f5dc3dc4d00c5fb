"""What is compared: the shapes of each model, and the bars that Selkie must reach there (peer's time ÷ Selkie's)."""

import random
from dataclasses import dataclass, field

# Answers that differ more from onnxruntime's, relative to the output's scale, do not count.
TOLERANCE = 1e-3

# A model for all shapes may take so many times as long as the same model compiled for one.
MOST_OVER_PINNED = 1.05


@dataclass(frozen=True)
class Bars:
    """Least ratios at one thread; with more threads each is 1."""

    best: float  # the faster of onnxruntime and openvino, at each shape
    mnn: float
    mean: float | None = None  # the geometric mean of `best` over the shapes
    memory: float | None = None  # peak memory is at most this times the weights, plus the arena
    compile_s: float | None = None


@dataclass(frozen=True)
class NewShapes:
    """Never-repeated shapes: the first run at one against a repeated one, and against peers' first runs."""

    sizes: list[tuple]
    median: float = 1.03
    p99: float = 1.3
    least: dict[str, float] = field(default_factory=dict)  # peer's first run ÷ Selkie's


@dataclass(frozen=True)
class Case:
    shapes: dict[str, tuple]
    bars: Bars
    new: NewShapes | None = None


def shuffled(sizes, count=200):
    return random.Random(0).sample(list(sizes), count)


SIDES = [(1, h, w) for h in range(96, 321, 8) for w in range(96, 321, 8)]
CASES = {
    "bert_base": Case(
        {"S 16": (1, 16), "S 64": (1, 64), "S 128": (1, 128), "S 384": (1, 384), "8 × 128": (8, 128)},
        Bars(best=1.0, mean=1.05, mnn=1.1, memory=1.15, compile_s=3),
        NewShapes(shuffled((1, s) for s in range(8, 208))),
    ),
    "minilm": Case({"S 16": (1, 16), "S 64": (1, 64)}, Bars(best=1.1, mnn=1.1)),
    "gpt2": Case({"past 16": (16,), "past 128": (128,), "past 511": (511,)}, Bars(best=1.05, mnn=1.0)),
    "conformer": Case({"T 100": (100,), "T 400": (400,)}, Bars(best=1.1, mnn=1.1)),
    "resnet50": Case(
        {"224²": (1, 224, 224), "320×256": (1, 320, 256), "4 × 224²": (4, 224, 224)},
        Bars(best=1.25, mnn=1.2, memory=1.6, compile_s=3),
    ),
    "mobilenet_v2": Case(
        {"224²": (1, 224, 224), "160×288": (1, 160, 288)}, Bars(best=1.15, mnn=1.2), NewShapes(shuffled(SIDES))
    ),
    "yolox_s": Case({"320²": (1, 320, 320), "416²": (1, 416, 416)}, Bars(best=1.6, mnn=1.3)),
    "ppocr_det": Case({"320²": (320, 320), "480×736": (480, 736)}, Bars(best=1.05, mnn=1.0)),
    "ppocr_rec": Case(
        {"w 160": (160,), "w 320": (320,), "w 501": (501,)},
        Bars(best=1.05, mnn=1.0),
        NewShapes(shuffled((w,) for w in range(64, 640)), least={"ort": 1.1, "openvino": 1.9}),
    ),
    "lstm": Case({"T 8": (8,), "T 32": (32,), "T 128": (128,)}, Bars(best=1.05, mnn=1.2)),
    "matmul_768": Case({f"M {m}": (m,) for m in (*range(1, 65), 128, 512)}, Bars(best=1.0, mnn=1.0)),
    "matmul_3072": Case({f"M {m}": (m,) for m in (*range(1, 65), 128, 512)}, Bars(best=1.0, mnn=1.0)),
}


def is_product(model):
    return model.startswith("matmul")
