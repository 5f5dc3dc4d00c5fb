"""Recurrences over time and trees: c1, c2, c4, c6. Defaults are the full sizes; `MODELS` are small ones."""

import numpy as np
from torch import nn

from .builder import BOOL, FLOAT, INT64, Builder, sequence
from .export import Model, export, integers, normal


class Lstm(nn.Module):
    def __init__(self, width=300, hidden=512, layers=1):
        super().__init__()
        self.cell = nn.LSTM(width, hidden, layers)

    def forward(self, x):
        y, (h, c) = self.cell(x)
        return y, h, c


def series_examples(width):
    return [{"x": normal(5, 1, width)}, {"x": normal(9, 3, width)}]


def lstm_op(layers, width=300, hidden=512):
    def write(path):
        export(path, lambda: Lstm(width, hidden, layers), series_examples(width), {"x": {0: "T", 1: "B"}}, ("y", "h", "c"))

    return write


def lstm_cell(b, x, h, c, width, hidden):
    """One step of an LSTM; returns the new h and c."""
    gates = b.op("Add", b.linear(x, width, 4 * hidden), b.op("MatMul", h, b.weight(hidden, 4 * hidden)))
    i, f, o, g = b.op("Split", gates, b.const([hidden] * 4), results=4, axis=-1)
    kept = b.op("Mul", b.op("Sigmoid", f), c)
    c = b.op("Add", kept, b.op("Mul", b.op("Sigmoid", i), b.op("Tanh", g)))
    return b.op("Mul", b.op("Sigmoid", o), b.op("Tanh", c)), c


def dim(b, x, axis):
    """The extent of one axis as a tensor of one element."""
    return b.op("Gather", b.op("Shape", x), b.const([axis]))


def zero_states(b, x, axis, hidden):
    shape = b.op("Concat", dim(b, x, axis), b.const([hidden]), axis=0)
    return b.op("ConstantOfShape", shape)


def lstm_loop(path, width=300, hidden=512, layers=1):
    b = Builder()
    y = b.input("x", FLOAT, ["T", "B", width])
    trips = b.op("Squeeze", dim(b, y, 0))
    for layer in range(layers):
        zero = zero_states(b, y, 1, hidden)
        body = b.nest()
        step, go = body.input(f"step_{layer}", INT64, []), body.input(f"go_{layer}", BOOL, [])
        h, c = body.input(f"h_{layer}", FLOAT), body.input(f"c_{layer}", FLOAT)
        h2, c2 = lstm_cell(body, body.op("Gather", y, step), h, c, width if layer == 0 else hidden, hidden)
        outputs = [(body.op("Identity", go), BOOL), (h2, FLOAT), (c2, FLOAT), (body.op("Identity", h2), FLOAT)]
        h, c, y = b.op("Loop", trips, b.const(True, np.bool_), zero, zero, results=3, body=body.graph("body", outputs))
    b.write(path, [(y, FLOAT, 3), (h, FLOAT, 2), (c, FLOAT, 2)], series_examples(width))


def lstm_scan(path, width=300, hidden=512, layers=1):
    b = Builder()
    y = b.input("x", FLOAT, ["T", "B", width])
    for layer in range(layers):
        zero = zero_states(b, y, 1, hidden)
        body = b.nest()
        h, c, x = (body.input(f"{name}_{layer}", FLOAT) for name in ("h", "c", "x"))
        h2, c2 = lstm_cell(body, x, h, c, width if layer == 0 else hidden, hidden)
        outputs = [(h2, FLOAT), (c2, FLOAT), (body.op("Identity", h2), FLOAT)]
        h, c, y = b.op("Scan", zero, zero, y, results=3, num_scan_inputs=1, body=body.graph("body", outputs))
    b.write(path, [(y, FLOAT, 3), (h, FLOAT, 2), (c, FLOAT, 2)], series_examples(width))


def silu(b, x):
    return b.op("Mul", x, b.op("Sigmoid", x))


def mamba_block(b, x, i, width, inner, state, rank, kernel):
    """Project, causal depthwise convolution, selective scan over time, gate, project; x is [B, T, width]."""
    mean = b.op("ReduceMean", b.op("Mul", x, x), axes=[-1], keepdims=1)
    root = b.op("Sqrt", b.op("Add", mean, b.const(1e-5, np.float32)))
    y = b.op("Mul", b.op("Div", x, root), b.weight(width))
    u, gate = b.op("Split", b.op("MatMul", y, b.weight(width, 2 * inner)), b.const([inner] * 2), results=2, axis=-1)
    kernels = b.op("Unsqueeze", b.weight(inner, kernel), b.const([1]))
    u = b.op("Conv", b.op("Transpose", u, perm=[0, 2, 1]), kernels, group=inner, pads=[kernel - 1, 0])
    u = silu(b, b.op("Transpose", u, perm=[0, 2, 1]))

    sizes = b.const([rank, state, state])
    delta, into, out = b.op("Split", b.op("MatMul", u, b.weight(inner, rank + 2 * state)), sizes, results=3, axis=-1)
    delta = b.op("Softplus", b.linear(delta, rank, inner))
    decay = b.op("Neg", b.op("Exp", b.weight(inner, state)))
    first = b.op("Concat", dim(b, u, 0), b.const([inner, state]), axis=0)

    body = b.nest()
    h, u_t, delta_t, into_t, out_t = (
        body.input(f"{name}_{i}", FLOAT) for name in ("h", "u_t", "delta_t", "into_t", "out_t")
    )
    last, middle = b.const([2]), b.const([1])
    wide = body.op("Unsqueeze", delta_t, last)
    drive = body.op("Unsqueeze", body.op("Mul", delta_t, u_t), last)
    kept = body.op("Mul", body.op("Exp", body.op("Mul", wide, decay)), h)
    h2 = body.op("Add", kept, body.op("Mul", drive, body.op("Unsqueeze", into_t, middle)))
    y_t = body.op("Squeeze", body.op("MatMul", h2, body.op("Unsqueeze", out_t, last)), last)
    _, y = b.op(
        "Scan", b.op("ConstantOfShape", first), u, delta, into, out, results=2, num_scan_inputs=4,
        scan_input_axes=[1] * 4, scan_output_axes=[1], body=body.graph("body", [(h2, FLOAT), (y_t, FLOAT)]),
    )  # fmt: skip
    y = b.op("Mul", b.op("Add", y, b.op("Mul", u, b.weight(inner))), silu(b, gate))
    return b.op("Add", x, b.op("MatMul", y, b.weight(inner, width)))


def mamba(path, layers=4, width=256, words=1000, state=16, rank=16):
    b = Builder()
    x = b.op("Gather", b.weight(words, width), b.input("ids", INT64, ["B", "T"]))
    for i in range(layers):
        x = mamba_block(b, x, i, width, 2 * width, state, rank, 4)
    examples = [{"ids": integers(words, *shape)} for shape in ((1, 16), (3, 29))]
    b.write(path, [(b.op("MatMul", x, b.weight(width, words)), FLOAT, 3)], examples)


def tree(leaves, seed):
    """A random binary tree: the children of each inner node, in an order where children come first."""
    random, roots, pairs = np.random.default_rng(seed), list(range(leaves)), []
    while len(roots) > 1:
        at = int(random.integers(len(roots) - 1))
        pairs.append((roots[at], roots[at + 1]))
        roots[at : at + 2] = [leaves + len(pairs) - 1]
    return np.array(pairs, dtype=np.int64).reshape(-1, 2)


def tree_examples(width):
    return [{"x": normal(n, width), "children": tree(n, n)} for n in (3, 8)]


def tree_inputs(b, width):
    x, children = b.input("x", FLOAT, ["L", width]), b.input("children", INT64, ["I", 2])
    return x, children, b.op("Squeeze", dim(b, children, 0))


def tree_lstm(path, width=300, hidden=150):
    """Child-sum Tree-LSTM; the states of nodes so far are two sequences, grown by one per trip."""
    b = Builder()
    x, children, trips = tree_inputs(b, width)
    i, o, u = b.op("Split", b.linear(x, width, 3 * hidden), b.const([hidden] * 3), results=3, axis=-1)
    c = b.op("Mul", b.op("Sigmoid", i), b.op("Tanh", u))
    h = b.op("Mul", b.op("Sigmoid", o), b.op("Tanh", c))
    hs, cs = (b.op("SplitToSequence", v, axis=0) for v in (h, c))

    body = b.nest()
    step, go = body.input("step", INT64, []), body.input("go", BOOL, [])
    body.inputs += [sequence("hs"), sequence("cs")]
    left, right = body.op("Split", body.op("Gather", children, step), results=2, axis=0)
    pick = [body.op("Squeeze", side) for side in (left, right)]
    h1, h2 = (body.op("SequenceAt", "hs", p) for p in pick)
    c1, c2 = (body.op("SequenceAt", "cs", p) for p in pick)
    gates = body.linear(body.op("Add", h1, h2), hidden, 3 * hidden)
    i, o, u = body.op("Split", gates, b.const([hidden] * 3), results=3, axis=-1)
    forget = b.weight(hidden, hidden)
    kept = [body.op("Mul", body.op("Sigmoid", body.op("MatMul", hk, forget)), ck) for hk, ck in ((h1, c1), (h2, c2))]
    new = body.op("Mul", body.op("Sigmoid", i), body.op("Tanh", u))
    c = body.op("Sum", new, *kept)
    h = body.op("Mul", body.op("Sigmoid", o), body.op("Tanh", c))
    go = body.op("Identity", go)
    hs2, cs2 = body.op("SequenceInsert", "hs", h), body.op("SequenceInsert", "cs", c)
    graph = body.graph("body", [(go, BOOL)])
    graph.output.extend([sequence(hs2), sequence(cs2)])
    hs, cs = b.op("Loop", trips, b.const(True, np.bool_), hs, cs, results=2, body=graph)
    b.write(path, [(b.op("SequenceAt", hs, b.const(-1)), FLOAT, 2)], tree_examples(width))


def balanced_tree(leaves):
    """As `tree`, with all leaves at one depth, or at two."""
    level, pairs = list(range(leaves)), []
    while len(level) > 1:
        joined = [tuple(level[i : i + 2]) for i in range(0, len(level) - 1, 2)]
        rest = level[2 * len(joined) :]
        level = [leaves + len(pairs) + i for i in range(len(joined))] + rest
        pairs += joined
    return np.array(pairs, dtype=np.int64).reshape(-1, 2)


def node_inputs(pairs, width, seed=1):
    """An input for every node, and the rows of its children's states: row 0 is no child's, node i's is i + 1."""
    leaves = len(pairs) + 1
    rows = np.concatenate([np.zeros((leaves, 2), np.int64), pairs.reshape(-1, 2) + 1])
    return {"x": normal(len(rows), width, seed=seed), "children": rows}


def node_cell(b, x, hs, cs, width, hidden):
    """One node of a child-sum Tree-LSTM; hs and cs hold a row per child. Returns the new h and c, of one row each."""
    rows = b.const([0])
    total = b.op("ReduceSum", hs, rows, keepdims=1)
    gates = b.op("Add", b.linear(x, width, 3 * hidden), b.op("MatMul", total, b.weight(hidden, 3 * hidden)))
    i, o, u = b.op("Split", gates, b.const([hidden] * 3), results=3, axis=-1)
    forget = b.op("Add", b.linear(x, width, hidden), b.op("MatMul", hs, b.weight(hidden, hidden)))
    kept = b.op("ReduceSum", b.op("Mul", b.op("Sigmoid", forget), cs), rows, keepdims=1)
    c = b.op("Add", b.op("Mul", b.op("Sigmoid", i), b.op("Tanh", u)), kept)
    return b.op("Mul", b.op("Sigmoid", o), b.op("Tanh", c)), c


def node_loop(width):
    """The builders outside and inside of a loop over all nodes of a tree: (b, body, trips, step, go, x, pair)."""
    b = Builder()
    x, children = b.input("x", FLOAT, ["V", width]), b.input("children", INT64, ["V", 2])
    trips, body = b.op("Squeeze", dim(b, x, 0)), b.nest()
    step, go = body.input("step", INT64, []), body.input("go", BOOL, [])
    own = body.op("Gather", x, body.op("Unsqueeze", step, b.const([0])))
    return b, body, trips, step, go, own, body.op("Gather", children, step)


def tree_lstm_scatter(path, width=300, hidden=150):
    """States are rows of two tensors; a node gathers its children's rows and scatters its own."""
    b, body, trips, step, go, x, pair = node_loop(width)
    count = b.op("Concat", b.op("Add", b.op("Unsqueeze", trips, b.const([0])), b.const([1])), b.const([hidden]), axis=0)
    zero = b.op("ConstantOfShape", count)
    hs, cs = body.input("hs", FLOAT), body.input("cs", FLOAT)
    h, c = node_cell(body, x, body.op("Gather", hs, pair), body.op("Gather", cs, pair), width, hidden)
    at = body.op("Reshape", body.op("Add", step, b.const(1)), b.const([1, 1]))
    outputs = [(body.op("Identity", go), BOOL)]
    outputs += [(body.op("ScatterND", rows, at, new), FLOAT) for rows, new in ((hs, h), (cs, c))]
    hs, _ = b.op("Loop", trips, b.const(True, np.bool_), zero, zero, results=2, body=body.graph("body", outputs))
    b.write(path, [(b.op("Gather", hs, b.const([-1])), FLOAT, 2)], [node_inputs(tree(n, n), width) for n in (3, 8)])


def tree_lstm_sequence(path, width=300, hidden=150):
    """States are items of two sequences, grown by one per node."""
    b, body, trips, step, go, x, pair = node_loop(width)
    zero = b.const(np.zeros((1, hidden)), np.float32)
    first = [b.op("SequenceConstruct", zero) for _ in range(2)]
    body.inputs += [sequence("hs"), sequence("cs")]
    sides = [body.op("Squeeze", side) for side in body.op("Split", pair, results=2, axis=0)]
    rows = [body.op("Concat", *(body.op("SequenceAt", s, side) for side in sides), axis=0) for s in ("hs", "cs")]
    h, c = node_cell(body, x, *rows, width, hidden)
    go, grown = body.op("Identity", go), [body.op("SequenceInsert", s, new) for s, new in (("hs", h), ("cs", c))]
    graph = body.graph("body", [(go, BOOL)])
    graph.output.extend(sequence(name) for name in grown)
    hs, _ = b.op("Loop", trips, b.const(True, np.bool_), *first, results=2, body=graph)
    b.write(path, [(b.op("SequenceAt", hs, b.const(-1)), FLOAT, 2)], [node_inputs(tree(n, n), width) for n in (3, 8)])


def tree_rnn(b, x, y, hidden):
    return b.op("Tanh", b.linear(b.op("Concat", x, y, axis=-1), 2 * hidden, hidden))


def tree_fc(b, x, y, hidden):
    return b.op("Relu", b.op("Add", b.linear(x, hidden, hidden), b.linear(y, hidden, hidden)))


def tree_gru(b, x, y, hidden):
    both = b.op("Concat", x, y, axis=-1)
    update, reset = (b.op("Sigmoid", b.linear(both, 2 * hidden, hidden)) for _ in range(2))
    total = b.op("Add", x, y)
    new = b.op("Tanh", b.linear(b.op("Mul", reset, total), hidden, hidden))
    return b.op("Add", new, b.op("Mul", update, b.op("Sub", total, new)))


def mv_rnn(b, x, y, hidden):
    """Rows hold a vector and a matrix: each child's matrix acts on the other's vector."""
    sizes = b.const([hidden, hidden * hidden])
    vectors, matrices = zip(*(b.op("Split", v, sizes, results=2, axis=-1) for v in (x, y)))
    square, column = b.const([hidden, hidden]), b.const([hidden, 1])
    m1, m2 = (b.op("Reshape", m, square) for m in matrices)
    v1, v2 = (b.op("Reshape", v, column) for v in vectors)
    crossed = b.op("Concat", b.op("MatMul", m2, v1), b.op("MatMul", m1, v2), axis=0)
    left, right = (b.weight(hidden, 2 * hidden, inner=2 * hidden) for _ in range(2))
    vector = b.op("Tanh", b.op("MatMul", left, crossed))
    matrix = b.op("MatMul", right, b.op("Concat", m1, m2, axis=0))
    flat = b.const([-1])
    return b.op("Concat", b.op("Reshape", vector, flat), b.op("Reshape", matrix, flat), axis=0)


def recursive(cell, hidden=256, state=None, width=None):
    """A writer for a tree model whose states are rows of one tensor that grows by a row per trip. A row has `state` elements,
    as many as are hidden unless given; leaves have `width`, which are their states unless it differs."""
    state = state or hidden
    width = width or state

    def write(path):
        b = Builder()
        x, children, trips = tree_inputs(b, width)
        leaves = x if width == state else b.linear(x, width, state)
        body = b.nest()
        step, go = body.input("step", INT64, []), body.input("go", BOOL, [])
        rows = body.input("rows", FLOAT)
        pair = body.op("Gather", rows, body.op("Gather", children, step))
        first, second = (body.op("Gather", pair, b.const(i)) for i in (0, 1))
        new = body.op("Unsqueeze", cell(body, first, second, hidden), b.const([0]))
        outputs = [(body.op("Identity", go), BOOL), (body.op("Concat", rows, new, axis=0), FLOAT)]
        rows = b.op("Loop", trips, b.const(True, np.bool_), leaves, body=body.graph("body", outputs))
        b.write(path, [(b.op("Gather", rows, b.const(-1)), FLOAT, 1)], tree_examples(width))

    return write


def dag_rnn(path, hidden=256):
    """Nodes of a DAG in topological order; a node sums the states of its predecessors, a row of the mask `edges`."""
    b = Builder()
    x, edges = b.input("x", FLOAT, ["V", hidden]), b.input("edges", FLOAT, ["V", "V"])
    trips = b.op("Squeeze", dim(b, x, 0))
    zero = b.op("ConstantOfShape", b.op("Shape", x))
    body = b.nest()
    step, go, states = body.input("step", INT64, []), body.input("go", BOOL, []), body.input("states", FLOAT)
    before = body.op("MatMul", body.op("Gather", edges, step), states)
    own = body.linear(body.op("Gather", x, step), hidden, hidden)
    new = body.op("Tanh", body.op("Add", own, body.linear(before, hidden, hidden)))
    at = body.op("Reshape", step, b.const([1, 1]))
    states2 = body.op("ScatterND", states, at, body.op("Unsqueeze", new, b.const([0])))
    outputs = [(body.op("Identity", go), BOOL), (states2, FLOAT)]
    states = b.op("Loop", trips, b.const(True, np.bool_), zero, body=body.graph("body", outputs))
    examples = [{"x": normal(n, hidden), "edges": np.tril(integers(2, n, n), -1).astype(np.float32)} for n in (4, 9)]
    b.write(path, [(states, FLOAT, 2)], examples)


SMALL = {"width": 6, "hidden": 8}
MODELS = [
    Model("c1_op1", "lstm1", lstm_op(1, **SMALL)),
    Model("c1_op2", "lstm2", lstm_op(2, **SMALL)),
    Model("c1_loop", "lstm2 as Loop", lambda path: lstm_loop(path, **SMALL, layers=2)),
    Model("c1_scan", "lstm2 as Scan", lambda path: lstm_scan(path, **SMALL, layers=2)),
    Model("c2", "tree_lstm", lambda path: tree_lstm(path, 6, 4)),
    Model("c4_rnn", "tree_rnn", recursive(tree_rnn, 4, width=6)),
    Model("c4_fc", "tree_fc", recursive(tree_fc, 4, width=6)),
    Model("c4_gru", "tree_gru", recursive(tree_gru, 4, width=6)),
    Model("c4_mv", "mv_rnn", recursive(mv_rnn, 3, 12)),
    Model("c4_dag", "dag_rnn", lambda path: dag_rnn(path, 4)),
    Model("c6", "mamba", lambda path: mamba(path, layers=2, width=8, words=30, state=4, rank=2)),
]
