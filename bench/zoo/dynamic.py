"""Models of full size whose path depends on the input, and what else group C has at full size but BERT and GPT-2: for the
suite, and for `compare.py --section flow` and `paths`.

`write` leaves beside the ONNX file the inputs of the cases that are timed (`cases`), found by calibration, and for nets
written in torch the module itself, `<id>.pt`: it runs eagerly, with Python's control flow, and shows the path of an input."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

from .caption import resnet101, resnext
from .decisions import calibrate_exits, calibrate_gates, observe
from .exits import RaNet, pooled_head, sdn_mobilenet, sdn_resnet56, sdn_vgg16bn, sdn_wrn32_4, with_exits
from .export import Model, calibrated, export, integers, normal
from .full import lstm, series
from .gated import Basic, BlockDrop, ConvGate, DgNet, DualGated, GatedNet, PooledGate, RecurrentNet
from .nets import MobileNetV2
from .packaged import RATE, VAD, packaged, zeros
from .recurrent import (
    balanced_tree, dag_rnn, lstm_loop, lstm_scan, mamba, mv_rnn, node_inputs, recursive, tree, tree_fc, tree_gru,
    tree_lstm_scatter, tree_lstm_sequence, tree_rnn,
)  # fmt: skip
from .sequence import Berxit, Gpt2, Greedy, HoiPairs, Moe
from .vision import HW, DynConv, NmsDetector, images

CALIBRATION = 256


@dataclass(frozen=True)
class DynamicModel(Model):
    """`draw(random)` makes one random input; sizes differ where they may."""

    draw: Callable[[np.random.Generator], dict[str, np.ndarray]]


@dataclass(frozen=True)
class Case:
    """Inputs that are timed; `work` are the multiplications on their path, where these are known."""

    inputs: dict[str, np.ndarray]
    work: int = 0


def cases_file(path):
    return path.with_suffix(".cases.npz")


def save_cases(path, cases):
    flat = {f"{name}/{key}": value for name, case in cases.items() for key, value in case.inputs.items()}
    np.savez(cases_file(path), **flat, **{f"{name}//work": case.work for name, case in cases.items()})


def load_cases(path):
    """Name → Case, in the order in which they were saved."""
    found = {}
    for key, value in np.load(cases_file(path)).items():
        name, _, part = key.partition("/")
        found.setdefault(name, {})[part] = value
    works = {name: int(parts.pop("/work")) for name, parts in found.items()}
    return {name: Case(parts, works[name]) for name, parts in found.items()}


def module_file(path):
    return path.with_suffix(".pt")


def load_module(path):
    """The eager module of a written model, or None where there is none."""
    file = module_file(path)
    return torch.load(file, weights_only=False).eval() if file.exists() else None


def save(path, net, cases, axes, outputs=("out",), script=True):
    """Everything that `write` leaves."""
    save_cases(path, cases)
    export(path, lambda: net, [case.inputs for case in cases.values()][:2], axes, outputs, script)


def strength_of(example):
    return float(np.abs(example["image"]).mean())


def picture(random, height, width):
    """Coarse patches and noise, of a contrast that differs widely: nets of random weights tell such images apart."""
    coarse = random.standard_normal((3, 4, 4)).repeat(-(-height // 4), axis=1).repeat(-(-width // 4), axis=2)
    image = coarse[:, :height, :width] + 0.5 * random.standard_normal((3, height, width))
    return {"image": (image * 2 ** random.uniform(-2, 2))[None].astype(np.float32)}


def pictures(sides):
    """A drawer of images; each side is one of `sides`."""
    return lambda random: picture(random, *random.choice(sides, 2)) if len(sides) > 1 else picture(random, sides[0], sides[0])


def drawn(draw, count=CALIBRATION, seed=1):
    random = np.random.default_rng(seed)
    return [draw(random) for _ in range(count)]


def made(make, *example):
    torch.manual_seed(0)
    return calibrated(make(), *example).eval()


def image_axes(sides):
    return HW if len(sides) > 1 else {}


def middle_image(side):
    """An image of middling contrast, on which batch norms are set."""
    example = picture(np.random.default_rng(0), side, side)
    return torch.from_numpy(example["image"]).div(strength_of(example))


def exiting(make, sides=(256,), side=256, count=CALIBRATION):
    """A net with early exits; its cases are the exits, at images of side by side."""

    def write(path):
        net = made(make, middle_image(side))
        examples = drawn(pictures((side,)), count)
        taken = calibrate_exits(net, examples)
        cases = {}
        for k in sorted(set(taken)):
            example = examples[taken.index(k)]
            cases[f"exit {k + 1}" if k < max(taken) else "full"] = Case(example, observe(net, example).work)
        save(path, net, cases, image_axes(sides))

    return write


def blocks_on(one):
    return sum(one.outcomes.values())


def gated(make, sides=(32,), side=32):
    """A net that skips blocks; its cases are the paths with the fewest, about half, and the most blocks."""

    def write(path):
        net = made(make, middle_image(side))
        examples = drawn(pictures((side,)))
        seen = calibrate_gates(net, examples, [strength_of(example) for example in examples])
        order = sorted(range(len(seen)), key=lambda i: blocks_on(seen[i]))
        total = len(seen[0].outcomes)
        half = min(order, key=lambda i: abs(blocks_on(seen[i]) - total / 2))
        chosen = {"few": order[0], "half": half, "all": order[-1]}
        cases = {
            f"{name} ({blocks_on(seen[i])} of {total})": Case(examples[i], seen[i].work) for name, i in chosen.items()
        }
        save(path, net, cases, image_axes(sides))

    return write


def exit_mobilenet():
    """MobileNetV2 with exits after its stages of 24, 32 and 96 channels."""
    plain = MobileNetV2()
    layers, channels = list(plain.layers), [32, 16, 24, 24, 32, 32, 32, 64, 64, 64, 64, 96, 96, 96, 160, 160, 160, 320, 1280]
    return with_exits(layers, channels, [3, 6, 13], pooled_head(1280, 1000), 1000, 0.5, pooled_head)


def spread_channels(net, examples):
    """Biases of DGNet's gates: a channel is kept for a share of the examples drawn for it, and half of all places."""
    random, xs = np.random.default_rng(0), [torch.from_numpy(example["image"]) for example in examples]
    with torch.inference_mode():
        for layer in net.layers:
            if isinstance(layer, DualGated):
                scores = torch.cat([layer.channels(x.mean(dim=(2, 3))) for x in xs])
                shares = random.uniform(0.2, 0.8, scores.shape[1])
                quantiles = [torch.quantile(scores[:, i], share) for i, share in enumerate(shares)]
                layer.channels.bias -= torch.stack(quantiles)
                layer.places.bias -= torch.cat([layer.places(x).flatten() for x in xs]).median()
            xs = [layer(x) for x in xs]


def dgnet(make=DgNet, sides=(96, 128)):
    def write(path):
        net, examples = made(make, middle_image(sides[-1])), drawn(pictures(sides), 64)
        spread_channels(net, examples)
        order = np.argsort([strength_of(example) for example in examples])
        cases = {name: Case(examples[order[i]]) for name, i in (("weak", 0), ("middle", 32), ("strong", 63))}
        save(path, net, cases, HW, script=False)

    return write


def first_ends(texts, steps):
    """For each word, after how many steps each text has it for the first time, `steps` where it has not."""
    words = {word for text in texts for word in text}
    return {word: [text.index(word) + 1 if word in text else steps for text in texts] for word in words}


def livelier_end(texts, steps):
    """The word whose use as the end gives the most different lengths."""
    lengths = first_ends(texts, steps)
    return max(sorted(lengths), key=lambda word: (len(set(lengths[word])), -lengths[word].count(steps)))


def centre(layer, rows):
    """Makes the mean of the layer's results 0 and their deviation 1 over these rows: of a random net, rows hardly differ."""
    with torch.no_grad():
        layer.bias.zero_()
        results = layer(rows)
        mean, scale = results.mean(dim=0), 1 / (results - results.mean(dim=0)).std()
        layer.weight.mul_(scale)
        layer.bias.copy_(-mean * scale)


def favoured(words, by, count=40):
    """A bias that makes some words likelier, as words of a text are: one of them ends texts after differing lengths."""
    bias = torch.zeros(words)
    bias[torch.randperm(words)[:count]] = by
    return bias


def captions(make, sides=(256,), side=256):
    def write(path):
        net, examples = made(make, middle_image(side)), drawn(pictures((side,)), 64)
        with torch.inference_mode():
            features = torch.cat([net.encode(torch.from_numpy(e["image"])).flatten(2).transpose(1, 2) for e in examples])
        for layer in (net.first_h, net.first_c):
            centre(layer, features.mean(dim=1))
        centre(net.from_image, features.flatten(0, 1))
        with torch.no_grad():
            net.out.weight.mul_(5)
            net.out.bias.copy_(favoured(net.out.out_features, 1.5))
        net.end = -1
        texts = [observe(net, example).outputs[0].argmax(dim=1).tolist() for example in examples]
        net.end = livelier_end(texts, net.most)
        lengths = first_ends(texts, net.most)[net.end]
        cases = {f"{n} steps": Case(examples[lengths.index(n)]) for n in sorted(set(lengths))}
        save(path, net, cases, image_axes(sides), ("trace",))

    return write


def greedy_input(random, tokens=32):
    return {"ids": random.integers(0, 50257, (1, int(random.integers(1, 17)))), "most": np.array([tokens])}


def gpt2_greedy(path):
    """Layers are enlarged against the embeddings: else a word follows itself."""
    torch.manual_seed(0)
    step = Gpt2()
    with torch.no_grad():
        for embedding in (step.words, step.positions):
            embedding.weight.normal_(std=768**-0.5)
        for layer in step.layers:
            for part in (layer.mlp[0], layer.mlp[2], layer.attention.qkv, layer.attention.out):
                part.weight.mul_(2)
    step.no_bias.copy_(favoured(50257, 3.0))
    net, random = Greedy(step, 12, 12, 64, end=-1).eval(), np.random.default_rng(1)
    examples = [greedy_input(random) for _ in range(24)]
    texts = [observe(net, e).outputs[0][0, e["ids"].shape[1] :].tolist() for e in examples]
    net.end = livelier_end(texts, 32)
    lengths = first_ends(texts, 32)[net.end]
    cases = {f"{n} tokens": Case(examples[lengths.index(n)]) for n in (max(lengths), min(lengths))}
    save(path, net, cases, {"ids": {1: "S"}}, ("text",))


def sentence(random):
    length = int(random.integers(8, 129))
    return {"ids": random.integers(1000, 30522, (1, length)), "mask": np.ones((1, length), np.int64)}


def berxit(make=Berxit, draw=sentence):
    def write(path):
        torch.manual_seed(0)
        net, examples = make().eval(), drawn(draw, 64)
        taken = calibrate_exits(net, examples)
        cases = {f"exit {k + 1}": Case(examples[taken.index(k)]) for k in sorted(set(taken))}
        save(path, net, cases, {"ids": {1: "S"}, "mask": {1: "S"}})

    return write


def logits_of(net, example):
    """The largest logit of a class that the detector's head gives anywhere."""
    with torch.inference_mode():
        x = net.head.stem(net.body(torch.from_numpy(example["image"])))
        return float(net.head.scores(net.head.cls(x)).max())


def least_gap(net, example, least=0.25):
    """Between scores of one class that count, and of any to the least that does: rounding may swap boxes that are nearer."""
    with torch.inference_mode():
        _, scores = net.head(net.body(torch.from_numpy(example["image"])))
    gaps = [float((scores - least).abs().min())]
    for of_class in scores[0].T:
        ordered = of_class[of_class > least].sort().values
        gaps += [float((ordered[1:] - ordered[:-1]).min())] if len(ordered) > 1 else []
    return min(gaps)


def nms_detector(path):
    """The bias of the scores is such that a fifth of the images have no box. The one with the most boxes is one in which
    no two scores are so near that rounding decides their order."""
    net, examples = made(NmsDetector, middle_image(320)), drawn(pictures((320,)), 64)
    highest = sorted((logits_of(net, example), i) for i, example in enumerate(examples))
    with torch.no_grad():
        net.head.scores.bias += float(np.log(0.25 / 0.75)) - (highest[12][0] + highest[13][0]) / 2
    clear = [i for i in range(32, 64) if least_gap(net, examples[highest[i][1]]) > 1e-6]
    chosen = {"0 boxes": 0, "few boxes": 24, "many boxes": max(clear)}
    cases = {name: Case(examples[highest[i][1]]) for name, i in chosen.items()}
    save(path, net, cases, HW, ("boxes", "scores", "labels"), script=False)


def tokens(random, count):
    return {"tokens": random.standard_normal((count, 768), dtype=np.float32)}


def any_tokens(random):
    return tokens(random, int(random.integers(1, 129)))


def moe(path):
    torch.manual_seed(0)
    random = np.random.default_rng(1)
    cases = {f"{n} tokens": Case(tokens(random, n)) for n in (16, 0, 1, 128)}
    save(path, Moe().eval(), cases, {"tokens": {0: "T"}}, script=False)


def boxes(random, people=None, things=None):
    people = int(random.integers(0, 9)) if people is None else people
    things = int(random.integers(0, 17)) if things is None else things
    labels = random.permutation(np.r_[np.zeros(people, np.int64), random.integers(1, 80, things)])
    count = people + things
    return {
        "boxes": random.uniform(0, 1, (count, 4)).astype(np.float32), "labels": labels,
        "features": random.standard_normal((count, 256), dtype=np.float32),
    }  # fmt: skip


def hoi_pairs(path):
    torch.manual_seed(0)
    random = np.random.default_rng(1)
    counts = {"4 × 8 pairs": (4, 8), "0 boxes": (0, 0), "0 people": (0, 6), "1 × 1 pairs": (1, 1), "8 × 16 pairs": (8, 16)}
    cases = {name: Case(boxes(random, *count)) for name, count in counts.items()}
    axes = {name: {0: "N"} for name in ("boxes", "labels", "features")}
    save(path, HoiPairs().eval(), cases, axes, ("pairs", "relations"), script=False)


def built(write, cases):
    """A writer for a graph that is not made by torch; cases() are the inputs by name."""

    def both(path):
        write(path)
        save_cases(path, {name: Case(inputs) for name, inputs in cases().items()})

    return both


def lengths():
    return {f"T {n}": series(n) for n in (8, 32, 128)}


def any_series(random):
    return {"x": random.standard_normal((int(random.integers(4, 113)), 1, 300), dtype=np.float32)}


def trees():
    parse = node_inputs(tree(59, 0), 300)
    return {
        "31 nodes, balanced": node_inputs(balanced_tree(16), 300), "127 nodes, balanced": node_inputs(balanced_tree(64), 300),
        "59 leaves, parsed": parse,
    }  # fmt: skip


def any_tree(random):
    return node_inputs(tree(int(random.integers(3, 61)), int(random.integers(1 << 30))), 300, int(random.integers(1 << 30)))


HIDDEN = 256  # of c4


def leaves(pairs, width=HIDDEN, seed=1):
    """States of the leaves; the matrices of `mv_rnn`, which follow a vector, keep the lengths of vectors."""
    x = normal(len(pairs) + 1, width, seed=seed)
    x[:, HIDDEN:] *= HIDDEN**-0.5
    return {"x": x, "children": pairs}


def parses(width=HIDDEN):
    shapes = {"16 leaves, balanced": balanced_tree(16), "64 leaves, balanced": balanced_tree(64), "59 leaves, parsed": tree(59, 0)}
    return {name: leaves(pairs, width) for name, pairs in shapes.items()}


def any_parse(width=HIDDEN):
    return lambda random: leaves(tree(int(random.integers(3, 61)), int(random.integers(1 << 30))), width, int(random.integers(1 << 30)))


def recursion(id, name, cell, state=HIDDEN):
    """A model of c4 over trees."""
    return DynamicModel(id, name, built(recursive(cell, HIDDEN, state), lambda: parses(state)), any_parse(state))


def dag(before, seed=1):
    """Nodes with the numbers of those before each."""
    edges = np.zeros((len(before), len(before)), np.float32)
    for node, numbers in enumerate(before):
        edges[node, numbers] = 1
    return {"x": normal(len(before), HIDDEN, seed=seed), "edges": edges}


def grid(side):
    """Nodes in rows: each follows the one above and the one to its left."""
    places = [(row, column) for row in range(side) for column in range(side)]
    return dag([[side * r + c for r, c in ((row - 1, column), (row, column - 1)) if min(r, c) >= 0] for row, column in places])


def dags():
    return {f"{side} × {side} nodes": grid(side) for side in (4, 10, 16)}


def any_dag(random):
    """Each node follows up to three of those before it."""
    count = int(random.integers(3, 121))
    before = [random.choice(node, min(node, int(random.integers(0, 4))), replace=False) for node in range(1, count)]
    return dag([[], *before], int(random.integers(1 << 30)))


def dyn_conv(path):
    cases = {f"H = W = {side}": Case(images((side, side))[0]) for side in (96, 160, 224, 320)}
    save(path, made(DynConv, middle_image(128)), cases, HW, script=False)


def any_text(random):
    return {"ids": random.integers(0, 1000, (1, int(random.integers(16, 257))))}


def voice(batch):
    return {"input": 0.1 * normal(batch, 576), "state": zeros(2, batch, 128)} | RATE


def any_voice(random):
    batch = int(random.integers(1, 9))
    loudness = 10 ** random.uniform(-3, 0)
    sound = loudness * random.standard_normal((batch, 576), dtype=np.float32)
    rate = np.array(int(random.choice([8000, 16000])))
    if rate == 8000:
        sound = sound[:, :288]
    return {"input": sound, "state": random.standard_normal((2, batch, 128), dtype=np.float32), "sr": rate}


CIFAR = {"block": Basic, "widths": (16, 32, 64), "classes": 10, "small": True}
IMAGE, THUMB, ANY = (256,), (32,), tuple(range(96, 225, 32))

MODELS = [
    DynamicModel("a6", "skipnet", gated(lambda: GatedNet(lambda c: ConvGate(c, 16), first=64), ANY, 128), pictures(ANY)),
    DynamicModel("a7", "dgnet", dgnet(), pictures(ANY)),
    DynamicModel("a8", "convnet_aig", gated(lambda: GatedNet(PooledGate, first=64), ANY, 128), pictures(ANY)),
    DynamicModel("a9", "ranet", exiting(RaNet, ANY, 128), pictures(ANY)),
    DynamicModel("a10", "blockdrop", gated(lambda: BlockDrop(first=64), ANY, 128), pictures(ANY)),
    DynamicModel("b1", "sdn_mobilenet", exiting(sdn_mobilenet), pictures(IMAGE)),
    DynamicModel("b2", "sdn_vgg16bn", exiting(sdn_vgg16bn, count=128), pictures(IMAGE)),
    DynamicModel("b3", "sdn_resnet56", exiting(sdn_resnet56), pictures(IMAGE)),
    DynamicModel("b4", "sdn_wrn32_4", exiting(sdn_wrn32_4, count=128), pictures(IMAGE)),
    DynamicModel("exit_mobilenet", "exit MobileNetV2", exiting(exit_mobilenet, ANY), pictures(ANY)),
    DynamicModel("b5", "skipnet38_rnn", gated(RecurrentNet), pictures(THUMB)),
    DynamicModel("b6", "skipnet38_ff", gated(lambda: GatedNet(ConvGate, depths=(6, 6, 6), **CIFAR)), pictures(THUMB)),
    DynamicModel("b7", "caption_resnext", captions(resnext), pictures(IMAGE)),
    DynamicModel("b8", "caption_resnet101", captions(resnet101), pictures(IMAGE)),
    DynamicModel(
        "b9", "blockdrop110", gated(lambda: BlockDrop(depths=(18, 18, 18), shrink=None, **CIFAR)), pictures(THUMB)
    ),
    DynamicModel("c1_op", "LSTM operator", built(lstm, lengths), any_series),
    DynamicModel("c1_op2", "2 LSTM operators", built(lambda p: lstm(p, layers=2), lengths), any_series),
    DynamicModel("c1_loop", "LSTM as Loop", built(lstm_loop, lengths), any_series),
    DynamicModel("c1_scan", "LSTM as Scan", built(lstm_scan, lengths), any_series),
    DynamicModel("c1_loop2", "2 LSTMs as Loop", built(lambda p: lstm_loop(p, layers=2), lengths), any_series),
    DynamicModel("c1_scan2", "2 LSTMs as Scan", built(lambda p: lstm_scan(p, layers=2), lengths), any_series),
    DynamicModel("c2_scatter", "Tree-LSTM, Scatter", built(tree_lstm_scatter, trees), any_tree),
    DynamicModel("c2_sequence", "Tree-LSTM, sequences", built(tree_lstm_sequence, trees), any_tree),
    recursion("c4_rnn", "tree_rnn", tree_rnn),
    recursion("c4_fc", "tree_fc", tree_fc),
    recursion("c4_gru", "tree_gru", tree_gru),
    recursion("c4_mv", "mv_rnn", mv_rnn, HIDDEN + HIDDEN**2),
    DynamicModel("c4_dag", "dag_rnn", built(dag_rnn, dags), any_dag),
    DynamicModel("c5_greedy", "GPT-2 greedy", gpt2_greedy, greedy_input),
    DynamicModel(
        "c6", "mamba",
        built(
            mamba,
            lambda: {f"T {n}": {"ids": integers(1000, 1, n)} for n in (64, 512)},
        ),
        any_text,
    ),
    DynamicModel("c7", "berxit", berxit(), sentence),
    DynamicModel("c8", "nms_detector", nms_detector, pictures(ANY)),
    DynamicModel("c9", "moe", moe, any_tokens),
    DynamicModel("c10", "hoi_pairs", hoi_pairs, boxes),
    DynamicModel("c11", "dyn_conv", dyn_conv, pictures(ANY)),
    DynamicModel(
        "d1_v5", "Silero VAD v5",
        built(
            packaged(VAD, "dist/silero_vad_v5.onnx", lambda: [voice(1)]),
            lambda: {"batch 1": voice(1), "batch 8": voice(8)},
        ),
        any_voice,
    ),
]  # fmt: skip
