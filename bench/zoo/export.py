"""What the models of the zoo share: their record, seeded example inputs, and the export of a torch module to ONNX."""

import io
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import nn

import onnx
from onnx import TensorShapeProto

from .decisions import decisions
from .graphs import forget_shapes

OPSET = 17


@dataclass(frozen=True)
class Model:
    """One model of zoo.md; `write(path)` writes the ONNX file and its examples `<stem>.0.npz`, `<stem>.1.npz`, …"""

    id: str
    name: str
    write: Callable[[Path], None]


def normal(*shape, seed=1):
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)


def integers(high, *shape, low=0, seed=1):
    return np.random.default_rng(seed).integers(low, high, shape, dtype=np.int64)


def save_examples(path, examples):
    for i, example in enumerate(examples):
        np.savez(path.with_suffix(f".{i}.npz"), **example)


def honest(model):
    """Drops the shapes that the exporter copied from its one example; outputs keep their rank."""
    ranks = [len(value.type.tensor_type.shape.dim) for value in model.graph.output]
    forget_shapes(model.graph)
    for value, rank in zip(model.graph.output, ranks):
        value.type.tensor_type.shape.dim.extend(TensorShapeProto.Dimension() for _ in range(rank))
    return model


def export(path, make, examples, axes, outputs=("out",), script=False):
    """Seeds, makes the module and exports it with the given names of dynamic input axes, tracing the first example.

    `script` compiles the module instead, which keeps its control flow; `trace_parts()` of a module replaces those of its parts
    that are to be traced nevertheless. The module itself is kept beside the file (`<stem>.pt`), to be run by torch."""
    torch.manual_seed(0)
    module = make().eval()
    torch.save(module, path.with_suffix(".pt"))
    args = tuple(torch.from_numpy(v) for v in examples[0].values())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if script:
            if hasattr(module, "trace_parts"):
                module.trace_parts()
            module = torch.jit.script(module)
        raw = io.BytesIO()
        torch.onnx.export(
            module,
            args,
            raw,
            input_names=list(examples[0]),
            output_names=list(outputs),
            dynamic_axes=axes,
            opset_version=OPSET,
            dynamo=False,
        )
    save_examples(path, examples)
    onnx.save(honest(onnx.load_from_string(raw.getvalue())), path)


def calibrated(module, *example):
    """Sets the statistics of batch norms on one example, so that values stay of order 1; every gate is on for that.

    The norms only scale, all channels alike: a net of random weights maps all inputs to nearly the same values, and
    taking away their mean, or scaling up channels that are almost 0, would leave rounding errors, made large.
    Biases, a tenth of the values' variance, keep deep nets from amplifying such errors; more of them, and the output
    hardly depends on the input."""

    def scale(norm, inputs):
        norm.running_mean.zero_()
        norm.running_var.fill_(inputs[0].square().mean())
        norm.weight.fill_(0.9**0.5)
        norm.bias.normal_(std=0.1**0.5)

    norms = [m for m in module.modules() if isinstance(m, (nn.BatchNorm1d, nn.BatchNorm2d))]
    hooks = [norm.register_forward_pre_hook(scale) for norm in norms]
    hooks += [decide.register_forward_hook(lambda *_: True) for decide in decisions(module).values()]
    with torch.no_grad():
        module.eval()(*example)
    for hook in hooks:
        hook.remove()
    return module
