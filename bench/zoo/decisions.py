"""Decisions of nets that skip blocks or exit early: what an `If` asks, which outcomes an input has, and how thresholds are
found such that every outcome is some input's."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import nn


class Above(nn.Module):
    """Whether a score is above a threshold. A module of its own, so that a hook sees the score and the outcome."""

    def __init__(self, threshold: float):
        super().__init__()
        self.threshold: float = threshold

    def forward(self, score):
        return bool(score > self.threshold)


class Below(nn.Module):
    def __init__(self, threshold: float):
        super().__init__()
        self.threshold: float = threshold

    def forward(self, score):
        return bool(score < self.threshold)


class Kept(nn.Module):
    """The numbers of the channels whose scores are above 0: a decision for each."""

    def forward(self, scores):
        return torch.nonzero(scores > 0)[:, 0]


def decisions(net):
    return {name: module for name, module in net.named_modules() if isinstance(module, (Above, Below))}


def multiplications(layer, result):
    """Of a convolution or linear layer that gave this result; 0 for others."""
    if isinstance(layer, nn.Conv2d):
        return result.numel() * layer.weight[0].numel()
    return result.numel() * layer.in_features if isinstance(layer, nn.Linear) else 0


@dataclass
class Observed:
    """One run: scores and outcomes in the order of the decisions, and multiplications by the layer's name."""

    scores: dict[str, float]
    outcomes: dict[str, bool]
    layers: dict[str, int]
    outputs: tuple

    @property
    def path(self):
        """What tells two ways apart: the outcomes; of nets without decisions, which route rows or loop, the work of each layer."""
        return tuple((self.outcomes or self.layers).items())

    @property
    def work(self):
        """Multiplications that the outcome needs: a branch that is computed and then not taken does not count."""
        left = [name.rpartition(".")[0] + ".branch." for name, taken in self.outcomes.items() if not taken]
        return sum(n for name, n in self.layers.items() if not any(name.startswith(prefix) for prefix in left))


def observe(net, example, forced=None):
    """Runs the net on one example, {name: array}. `forced(name)` gives outcomes in place of the net's own."""
    scores, outcomes, layers, hooks = {}, {}, {}, []

    def decided(name):
        def hook(module, inputs, outcome):
            scores[name] = float(inputs[0])
            outcomes[name] = outcome if forced is None else forced(name)
            return outcomes[name]

        return hook

    def kept(name):
        def hook(module, inputs, numbers):
            outcomes.update({f"{name}.{i}": on for i, on in enumerate((inputs[0] > 0).tolist())})

        return hook

    def ran(name):
        def hook(module, inputs, result):
            layers[name] = layers.get(name, 0) + multiplications(module, result)

        return hook

    for name, module in net.named_modules():
        if isinstance(module, (Above, Below)):
            hooks.append(module.register_forward_hook(decided(name)))
        elif isinstance(module, Kept):
            hooks.append(module.register_forward_hook(kept(name)))
        elif isinstance(module, (nn.Conv2d, nn.Linear)):
            hooks.append(module.register_forward_hook(ran(name)))
    try:
        with torch.inference_mode():
            outputs = net(*(torch.from_numpy(value) for value in example.values()))
    finally:
        for hook in hooks:
            hook.remove()
    return Observed(scores, outcomes, layers, outputs if isinstance(outputs, tuple) else (outputs,))


def split(scores, share):
    """A threshold with about this share of the scores below it, in the widest gap nearby: far from rounding errors."""
    ordered = np.sort(np.asarray(scores))
    middle, reach = share * len(ordered), max(1, len(ordered) // 20)
    first, last = int(max(1, middle - reach)), int(min(len(ordered) - 1, middle + reach))
    at = max(range(first, last + 1), key=lambda i: ordered[i] - ordered[i - 1])
    return float((ordered[at] + ordered[at - 1]) / 2)


def calibrate_exits(net, examples):
    """Thresholds such that each exit, and none, is taken by an equal share of the examples. Returns each one's exit."""
    seen = [observe(net, example, forced=lambda name: True).scores for example in examples]
    names, found = list(seen[0]), decisions(net)
    left, taken = list(range(len(examples))), [len(names)] * len(examples)
    for k, name in enumerate(names):
        found[name].threshold = split([seen[i][name] for i in left], 1 - 1 / (len(names) + 1 - k))
        for i in [i for i in left if seen[i][name] >= found[name].threshold]:
            taken[i] = k
            left.remove(i)
    return taken


def replace(net, name, module):
    parent, _, last = name.rpartition(".")
    setattr(net.get_submodule(parent), last, module)


def is_balanced(seen, name, least=0.05):
    """Whether each outcome of a decision is that of some of the examples, of more than a few."""
    share = sum(one.outcomes[name] for one in seen) / len(seen)
    return least <= share <= 1 - least


def calibrate_gates(net, examples, strength, passes=2, most_passes=5, lowest=0.15, highest=0.85):
    """Thresholds such that gate t is on for a share of the examples that is drawn per gate. A gate whose score falls with the
    examples' strength is turned round: of weak examples few gates are on, of strong ones all. What a gate sees depends
    on the gates before it, so that thresholds are found in several passes, the first with the outcomes that are wanted, and
    in more while some gate has one outcome for nearly all examples. Returns what was observed last."""
    rank = np.argsort(np.argsort(strength)) / len(examples)
    names = list(decisions(net))
    shares = dict(zip(names, np.random.default_rng(0).uniform(lowest, highest, len(names))))
    seen = [observe(net, example, lambda name, r=r: bool(r > shares[name])) for example, r in zip(examples, rank)]
    for step in range(1, most_passes + 1):
        for name in names:
            scores = [one.scores[name] for one in seen]
            rises = np.corrcoef(scores, rank)[0, 1] >= 0
            share = shares[name] if rises else 1 - shares[name]
            replace(net, name, (Above if rises else Below)(split(scores, share)))
        seen = [observe(net, example) for example in examples]
        if step >= passes and all(is_balanced(seen, name) for name in names):
            break
    return seen
