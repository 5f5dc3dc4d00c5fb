"""Tiny variants of the models of groups A, B and C with inputs on different paths and their right outputs, for tests without
torch: `python -m zoo.smoke FOLDER` writes them as ONNX test cases. Outputs are torch's; of graphs that are not torch's, and of
detectors, whose suppression torch lacks, they are onnxruntime's."""

import shutil
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnxruntime
import torch

import onnx
from onnx import numpy_helper

from . import models
from .caption import resnet101, resnext
from .dynamic import (
    Case, berxit, captions, cases_file, dgnet, exiting, gated, load_cases, load_module, made, middle_image, picture, save,
)  # fmt: skip
from .exits import RaNet, sdn_mobilenet, sdn_resnet56, sdn_vgg16bn, sdn_wrn32_4
from .export import normal
from .gated import Basic, BlockDrop, ConvGate, DgNet, GatedNet, PooledGate, RecurrentNet
from .graphs import subgraphs
from .sequence import (
    BOXES, BS, PAST, PEOPLE, STARTS, STEPS, Berxit, Bert, Conformer, Gpt2, HoiPairs, Moe, small_greedy, text,
)  # fmt: skip
from .vision import HW, NHW, POINTS, DynConv, NmsDetector, SamDecoder, SdEncoder, YoloV6, images, prompts

SMALL = {"widths": (8, 16), "depths": (2, 1), "classes": 10}
THUMBS = {"block": Basic, "widths": (4, 8, 8), "depths": (2, 2, 2), "classes": 10, "small": True}
POLICY = (4, 8, 8)
SIDES, SIDE = (32, 40), 32
MOST_INPUTS = 5
MOST_BYTES = 2_000_000


def plain(make, examples, axes, outputs=("out",), script=False):
    """A writer of a net without calibrated decisions."""

    def write(path):
        torch.manual_seed(0)
        save(path, make().eval(), {str(i): Case(e) for i, e in enumerate(examples)}, axes, outputs, script)

    return write


def norms(make, side=SIDE):
    """A maker of a net over images whose batch norms are set."""
    return lambda: made(make, middle_image(side))


def shorter_names(graph, names=None):
    """Renames what is inside a graph to numbers: the exporter's names, of whole paths of modules, are a third of a file."""
    names = {} if names is None else names
    kept = {value.name for value in [*graph.input, *graph.output]} if not names else set()
    names |= {name: name for name in kept}

    def short(name):
        return names.setdefault(name, f"v{len(names)}") if name else name

    for value in [*graph.initializer, *graph.input, *graph.output]:
        value.name = short(value.name)
    for node in graph.node:
        node.name = ""
        node.input[:], node.output[:] = map(short, node.input), map(short, node.output)
        for inner in subgraphs(node):
            shorter_names(inner, names)


def short_text(random):
    length = int(random.integers(3, 20))
    return {"ids": random.integers(2, 100, (1, length)), "mask": np.ones((1, length), np.int64)}


def frames(batch, length):
    return {"frames": normal(batch, length, 80)}


def gated_images(make):
    return gated(make, SIDES, SIDE)


TEXTS, SHAPED = [text(1, 8), text(3, 21)], images((16, 16), (24, 16))
WRITERS = {
    "a1": plain(lambda: SdEncoder(2, 2), SHAPED, NHW, ("mean", "logvar")),
    "a2": plain(lambda: SamDecoder(16, 8, 2, 32), [prompts(3, 10, 15), prompts(7, 16, 12)], POINTS, ("masks", "iou")),
    "a3": plain(lambda: Conformer(80, 8, 2, 2, 7, 30), [frames(1, 20), frames(2, 33)], {"frames": {0: "B", 1: "T"}}),
    "a4": plain(lambda: Bert(100, 16, 2, 2, pad=1, positions=64), TEXTS, BS, ("states", "pooled")),
    "a5": plain(norms(lambda: YoloV6(1, 1, 5), 32), images((32, 32), (32, 64)), NHW, ("kept", "boxes", "scores")),
    "a6": gated_images(lambda: GatedNet(ConvGate, **SMALL)),
    "a7": dgnet(lambda: DgNet((8, 16), (2, 1), 10), SIDES),
    "a8": gated_images(lambda: GatedNet(PooledGate, **SMALL)),
    "a9": exiting(lambda: RaNet((4, 8, 8), 1, 10), SIDES, SIDE, 64),
    "a10": gated_images(lambda: BlockDrop(**SMALL, shrink=SIDE, policy=POLICY)),
    "b1": exiting(lambda: sdn_mobilenet(1, 10, (2, 4, 6, 8)), (SIDE,), SIDE, 64),
    "b2": exiting(lambda: sdn_vgg16bn(1, SIDE, 10, (1, 3, 5, 6, 8)), (SIDE,), SIDE, 64),
    "b3": exiting(lambda: sdn_resnet56((4, 8, 8), (2, 2, 2), 10, (0, 2, 4)), (SIDE,), SIDE, 64),
    "b4": exiting(lambda: sdn_wrn32_4((4, 8, 8), (2, 2, 2), 10, (1, 3)), (SIDE,), SIDE, 64),
    "b5": gated(lambda: RecurrentNet((4, 8, 8), (2, 2, 2))),
    "b6": gated(lambda: GatedNet(ConvGate, **THUMBS)),
    "b7": captions(lambda: resnext(8, (8, 16), (1, 1), 2, 2, width=8, words=20), (SIDE,), SIDE),
    "b8": captions(lambda: resnet101(8, (8, 16, 32), (1, 1, 1), 2, 20, width=8), (SIDE,), SIDE),
    "b9": gated(lambda: BlockDrop(**THUMBS, shrink=None, policy=POLICY)),
    "c3": plain(lambda: Bert(100, 16, 2, 2, positions=64), TEXTS, BS, ("states", "pooled")),
    "c5": plain(lambda: Gpt2(50, 16, 2, 2, 32), STEPS, PAST, ("logits", "k", "v")),
    "c5_greedy": plain(lambda: small_greedy(32), STARTS, {"ids": {1: "S"}}, ("text",), script=True),
    "c7": berxit(lambda: Berxit(100, 8, 2, 3), short_text),
    "c8": plain(norms(lambda: NmsDetector(8, 5)), SHAPED, NHW, ("boxes", "scores", "labels")),
    "c9": plain(lambda: Moe(12, 4, 2), [{"tokens": normal(n, 12)} for n in (9, 30, 0)], {"tokens": {0: "T"}}),
    "c10": plain(lambda: HoiPairs(8, 16, 5), PEOPLE, BOXES, ("pairs", "relations")),
    "c11": plain(norms(lambda: DynConv(8, 2, 10)), SHAPED, HW),
}  # fmt: skip

# Calibrated at one size of the image, though all sizes are allowed.
SIZES_DIFFER = ("a6", "a7", "a8", "a9", "a10")
SUPPRESSING = ("a5", "c8")


def graphs():
    """The models that are written with onnx.helper."""
    return [id for id in models() if id[0] == "c" and id not in WRITERS]


def inputs_of(id, path):
    if not cases_file(path).exists():
        return [dict(np.load(file)) for file in sorted(path.parent.glob(f"{id}.[0-9].npz"))]
    found = [case.inputs for case in load_cases(path).values()][:MOST_INPUTS]
    return found + ([picture(np.random.default_rng(0), 40, 32)] if id in SIZES_DIFFER else [])


def answers_of_torch(path, inputs):
    net = load_module(path)
    with torch.inference_mode():
        for given in inputs:
            outputs = net(*(torch.from_numpy(value) for value in given.values()))
            yield [value.numpy() for value in (outputs if isinstance(outputs, tuple) else (outputs,))]


def answers_of_onnxruntime(path, inputs):
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    return [session.run(None, given) for given in inputs]


def write_tensors(folder, kind, names, arrays):
    for i, (name, array) in enumerate(zip(names, arrays)):
        (folder / f"{kind}_{i}.pb").write_bytes(numpy_helper.from_array(array, name).SerializeToString())


def write_case(id, work, folder):
    """The model and its data in the layout of ONNX's own test cases. `work` is a folder for what the export leaves."""
    path = work / f"{id}.onnx"
    (WRITERS[id] if id in WRITERS else models()[id].write)(path)
    inputs = inputs_of(id, path)
    by_torch = id in WRITERS and id not in SUPPRESSING
    answers = (answers_of_torch if by_torch else answers_of_onnxruntime)(path, inputs)
    model = onnx.load(path)
    graph = model.graph
    shorter_names(graph)
    (folder / id).mkdir(parents=True)
    onnx.save(model, folder / id / "model.onnx")
    for i, (given, outputs) in enumerate(zip(inputs, answers)):
        data = folder / id / f"test_data_set_{i}"
        data.mkdir()
        names = [value.name for value in graph.input if value.name in given]
        write_tensors(data, "input", names, [given[name] for name in names])
        write_tensors(data, "output", [value.name for value in graph.output], outputs)
    return len(inputs)


def size(folder):
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def main(target):
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as work:
        made_in = Path(work) / "models"
        for id in [*WRITERS, *graphs()]:
            count = write_case(id, Path(work), made_in)
            print(f"{id}: {count} inputs, {size(made_in / id):,} bytes", flush=True)
        if size(made_in) > MOST_BYTES:
            raise SystemExit(f"{size(made_in):,} bytes are more than {MOST_BYTES:,}")
        for old in [entry for entry in target.glob("*") if entry.is_dir()]:
            shutil.rmtree(old)
        shutil.copytree(made_in, target, dirs_exist_ok=True)
    print(f"{size(target):,} bytes in {target}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
