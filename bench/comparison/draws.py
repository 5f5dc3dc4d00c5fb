"""Random inputs for any model of the zoo, small or of full size: sizes drawn per named dim, elements like those of the
model's examples."""

import numpy as np
from zoo import examples
from zoo.recurrent import tree

import onnx

# First, last and step of a size, by its name in the model; `id.name` is for one model, or all whose ids begin so.
SIZES = {
    "B": (1, 3, 1), "N": (1, 2, 1), "S": (1, 48, 1), "T": (1, 40, 1), "P": (0, 20, 1), "L": (2, 30, 1), "V": (1, 20, 1),
    "H": (32, 120, 8), "W": (32, 120, 8), "M": (1, 64, 1), "batch": (1, 4, 1), "image_width": (32, 200, 1),
    "sequence_length": (1, 12, 1), "unk__214": (1, 4, 1),
    "a2.P": (1, 16, 1), "a3.T": (50, 160, 1), "conformer.T": (50, 200, 1), 
    "a5.H": (64, 160, 32), "a5.W": (64, 160, 32),
    "b1.H": (64, 256, 64), "b1.W": (64, 256, 64), "b3.H": (64, 256, 64),
    "b3.W": (64, 256, 64), "b4.H": (64, 256, 64), "b4.W": (64, 256, 64), "c10.N": (1, 14, 1), "bert_base.B": (1, 2, 1),
    "yolox_s.H": (64, 224, 32), "yolox_s.W": (64, 224, 32),
    "resnet50.H": (48, 224, 1), "resnet50.W": (48, 224, 1),
    "mobilenet_v2.H": (48, 224, 1), "mobilenet_v2.W": (48, 224, 1),
    "gpt2.P": (0, 200, 1), "matmul.M": (1, 512, 1), "lstm.T": (1, 128, 1),
    "d2.p2o.DynamicDimension.0": (1, 2, 1), "d2.p2o.DynamicDimension.1": (32, 160, 32),
    "d2.p2o.DynamicDimension.2": (32, 160, 32), "d2_cls.p2o.DynamicDimension.1": (48, 160, 16), "d2_rec.p2o.DynamicDimension.1": (16, 200, 1),
    "ppocr.p2o.DynamicDimension.0": (1, 2, 1), "ppocr.p2o.DynamicDimension.1": (32, 320, 32),
    "ppocr.p2o.DynamicDimension.2": (32, 320, 32), "ppocr_rec.p2o.DynamicDimension.1": (16, 400, 1),
}  # fmt: skip

# Dims without a name in the file, and which of them are the same size.
NAMES = {"input_0": "batch", "state_1": "batch"}


def range_of(id, name):
    """The most special one there is; None where the examples' size is to be kept."""
    special = [key for key in SIZES if "." in key and key.endswith(f".{name}") and id.startswith(key[: -len(name) - 1])]
    return SIZES[max(special, key=len)] if special else SIZES.get(name)


def dag(random, sizes):
    return {"edges": np.tril(random.integers(0, 2, (sizes["V"], sizes["V"])), -1).astype(np.float32)}


def children(random, sizes):
    return {"children": tree(sizes["L"], int(random.integers(1 << 30)))}


def image_size(random, sizes):
    return {"size": random.integers(16, 80, 2)}


# Inputs whose elements are no independent numbers, by the beginnings of ids.
STRUCTURES = {"a2": image_size, "c2": children, "c4_dag": dag, "c4": children}


class Draws:
    """Draws of the inputs of one model, the same ones for the same seed."""

    def __init__(self, id, path, seed=0):
        self.id, self.random = id, np.random.default_rng(seed)
        self.examples = [dict(np.load(example)) for example in examples(path)]
        graph = onnx.load(path, load_external_data=False).graph
        self.inputs = {v.name: v.type.tensor_type.shape.dim for v in graph.input if v.name in self.examples[0]}

    def size(self, dim, name, axis, sizes, pick):
        """Of one dim; the first one of a name decides."""
        if dim.HasField("dim_value"):
            return dim.dim_value
        symbol = dim.dim_param or NAMES.get(f"{name}_{axis}", f"{name}_{axis}")
        if symbol not in sizes:
            found = range_of(self.id, symbol)
            kept = self.examples[0][name].shape[axis]
            sizes[symbol] = int(pick(range(found[0], found[1] + 1, found[2]))) if found else kept
        return sizes[symbol]

    def elements(self, name, shape):
        """Normal floats; integers from the range of the examples."""
        values = np.concatenate([example[name].ravel() for example in self.examples])
        if values.dtype.kind == "f":
            return self.random.standard_normal(shape).astype(values.dtype)
        return self.random.integers(values.min(), values.max() + 1, shape).astype(values.dtype)

    def draw(self):
        """(inputs, sizes by name)."""
        return self.picked(self.random.choice)

    def at(self, share):
        """The same with every size at this share of its range, from 0 to 1."""
        return self.picked(lambda sizes: sizes[round(share * (len(sizes) - 1))])

    def picked(self, pick):
        sizes = {}
        shapes = {
            name: tuple(self.size(dim, name, axis, sizes, pick) for axis, dim in enumerate(dims))
            for name, dims in self.inputs.items()
        }
        drawn = {name: self.elements(name, shape) for name, shape in shapes.items()}
        structure = next((make for id, make in STRUCTURES.items() if self.id.startswith(id)), None)
        return drawn | (structure(self.random, sizes) if structure else {}), sizes
