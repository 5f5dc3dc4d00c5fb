"""The models a1 to a5 of full size, whose shapes are dynamic but whose path is not; for comparisons of memory. The rest
of the groups A and B is in `dynamic.py`. The last example is the largest shape that a model is meant for, the first, a small
one, is what is traced."""

import numpy as np
import torch

from .export import Model, calibrated, export, integers, normal
from .sequence import BS, Bert, Conformer
from .vision import NHW, POINTS, SamDecoder, SdEncoder, YoloV6, images, prompts


def sd_encoder(path):
    export(path, SdEncoder, images((64, 64), (512, 512)), NHW, ("mean", "logvar"))


def sam_decoder(path):
    examples = [prompts(3, 256, 256, 256, 64), prompts(16, 1024, 1024, 256, 64)]
    export(path, SamDecoder, examples, POINTS, ("masks", "iou"))


def conformer(path):
    def make():
        return calibrated(Conformer(layers=18), torch.randn(1, 200, 80))

    export(path, make, [{"frames": normal(1, 100, 80)}, {"frames": normal(1, 1600, 80)}], {"frames": {0: "B", 1: "T"}})


def code(batch, length):
    return {"ids": integers(50265, batch, length, low=2), "mask": np.ones((batch, length), np.int64)}


def codebert(path):
    export(path, lambda: Bert(50265, pad=1), [code(1, 16), code(1, 512)], BS, ("states", "pooled"))


def yolov6(path):
    def make():
        return calibrated(YoloV6(), torch.randn(1, 3, 128, 128))

    export(path, make, images((224, 224), (640, 640)), NHW, ("kept", "boxes", "scores"))


MODELS = [
    Model("a1", "sd_encoder", sd_encoder),
    Model("a2", "sam_decoder", sam_decoder),
    Model("a3", "conformer", conformer),
    Model("a4", "codebert", codebert),
    Model("a5", "yolov6", yolov6),
]
