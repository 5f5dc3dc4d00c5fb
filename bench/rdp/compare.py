"""Compares how many dims of intermediate tensors Selkie, ONNX and ONNX Runtime resolve, over the zoo.

A dim is resolved when it is a constant or an expression of the dims of the model's inputs. All tools see the same copy
of a model, without stored shapes, and share one denominator: a tensor has as many dims as the tool that knows most
says, or one. Models are also run on their examples; a dim that a run contradicts is wrong, not resolved."""

import argparse
import json
import math
import os
import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import zoo
from prepare import Tensor, prepare
from zoo.export import Model

ROOT = Path(__file__).resolve().parents[2]
CACHE = ROOT / ".cache/bench"
LIMIT_S = 120
RESOLVED, BOUNDED, UNKNOWN, WRONG = KINDS = "resolved", "bounded", "unknown", "wrong"
PEERS = ("onnx", "ort")


@dataclass
class Answer:
    """What one tool says: the kind of each dim per tensor; tensors it knows no rank of are missing."""

    kinds: dict[str, list[str]] = field(default_factory=dict)
    dims: dict[str, list[int | str | None]] = field(default_factory=dict)  # as the tool wrote them
    text: dict[str, str] = field(default_factory=dict)
    others: set[str] = field(default_factory=set)  # values that are sequences, optionals or maps
    bounded: set[str] = field(default_factory=set)  # tensors of unknown rank whose number of elements has a bound
    dead: set[str] = field(default_factory=set)  # tensors of arms that are never entered
    error: str | None = None
    classes: dict[str, int] = field(default_factory=dict)
    foreign: set[str] = field(default_factory=set)  # symbols in resolved dims that are no input's


def output_of(command):
    """The JSON a command prints, or why there is none."""
    try:
        # What ONNX Runtime finds depends on the order of Python's sets; a fixed seed makes the figures repeatable.
        environment = os.environ | {"PYTHONHASHSEED": "0"}
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, env=environment)
    except subprocess.TimeoutExpired:
        return None, f"no answer within {LIMIT_S} s"
    except OSError as error:
        return None, error.strerror
    if done.returncode != 0:
        said = done.stderr.strip().splitlines() or ["no message"]
        return None, f"exit code {done.returncode}: {said[-1][:200]}"
    try:
        return json.loads(done.stdout), None
    except json.JSONDecodeError as error:
        return None, f"no JSON: {error}"


def symbols_of(expression):
    """The identifiers of an expression that are not called as functions."""
    return set(re.findall(r"[A-Za-z_]\w*(?!\w|\s*\()", expression))


def ask_peer(tool, model, symbols):
    said, error = output_of([sys.executable, str(Path(__file__).parent / "peers.py"), tool, str(model)])
    if error:
        return Answer(error=error)
    answer = Answer(others=set(said["others"]), error=said["error"])
    for name, dims in said["shapes"].items():
        known = [d is not None and (isinstance(d, int) or symbols_of(d) <= symbols) for d in dims]
        answer.kinds[name] = [RESOLVED if k else UNKNOWN for k in known]
        answer.dims[name] = dims
        answer.text[name] = "[" + ", ".join("?" if d is None else str(d) for d in dims) + "]"
    return answer


def ask_selkie(binary, model, symbols):
    said, error = output_of([binary, "explain", str(model), "--json"])
    if error:
        return Answer(error=error)
    kinds = {"constant": RESOLVED, "symbolic": RESOLVED, "bounded": BOUNDED, "unknown": UNKNOWN}
    answer = Answer(classes=said["summary"]["classes"])
    for node in said["nodes"]:
        for result in node["results"]:
            answer.text[result["name"]] = result["type"]
            if node["entry"] == "never":
                answer.dead.add(result["name"])
            if result["dims"] is None:
                if result["most_elements"] is not None:  # arms of different ranks, each of them bounded
                    answer.bounded.add(result["name"])
                continue
            answer.kinds[result["name"]] = [kinds[d["kind"]] for d in result["dims"]]
            answer.dims[result["name"]] = [d["expr"] for d in result["dims"]]
            for dim in result["dims"]:
                if dim["kind"] == "symbolic":
                    answer.foreign |= symbols_of(dim["expr"]) - symbols
    return answer


FUNCTIONS = {
    "floor": math.floor, "ceiling": math.ceil, "Max": max, "Min": min, "Mod": lambda a, b: a % b,
    "max": max, "min": min,
    "mod": lambda a, b: a % b, "floordiv": lambda a, b: a // b, "ceildiv": lambda a, b: -(-a // b),
}  # fmt: skip


def differs(dim, size, symbols):
    """Whether a dim stands for another size than the one seen; one with symbols of its own cannot be told."""
    try:
        return (dim if isinstance(dim, int) else eval(dim, {"__builtins__": {}}, FUNCTIONS | symbols)) != size
    except (NameError, SyntaxError):
        return False


def refute(answer, seen):
    """Marks as wrong the dims that differ from a shape seen in a run, and lists them."""
    refuted = []
    for name, shapes in seen["shapes"].items():
        kinds, dims = answer.kinds.get(name, []), answer.dims.get(name)
        for shape in shapes if dims is not None else []:
            for i, kind in enumerate(kinds):
                if kind == RESOLVED and (len(shape) != len(dims) or differs(dims[i], shape[i], seen["symbols"])):
                    kinds[i] = WRONG
                    refuted.append(f"{name} is {answer.text[name]}, but {shape} in a run with {seen['symbols']}")
    return refuted


@dataclass
class Row:
    """One model's figures; a pair is for the main graph and for nested graphs."""

    model: Model
    nodes: int
    tensors: list[Tensor]
    ranks: dict[str, int]
    answers: dict[str, Answer]
    merged: bool  # whether ONNX Runtime's better answer was the one with auto_merge
    refuted: dict[str, list[str]]
    runs: int

    def kinds(self, tool, tensor):
        """The kind of each dim of a tensor; what the tool is silent about is unknown."""
        found = self.answers[tool].kinds.get(tensor.name, [])
        answer = self.answers[tool]
        silent = BOUNDED if tensor.name in answer.bounded else UNKNOWN
        # What is never computed needs no bound.
        if tensor.name in answer.dead:
            silent, found = BOUNDED, [BOUNDED if kind == UNKNOWN else kind for kind in found]
        return [found[i] if i < len(found) else silent for i in range(self.ranks[tensor.name])]

    def count(self, tool, kind):
        pair = [0, 0]
        for tensor in self.tensors:
            pair[tensor.nested] += self.kinds(tool, tensor).count(kind)
        return pair

    def dims(self):
        return [sum(self.ranks[t.name] for t in self.tensors if t.nested == nested) for nested in (False, True)]

    def better_peers(self):
        """The peers that resolve more than Selkie, in the main graph or nested."""
        own = self.count("selkie", RESOLVED)
        return [p for p in PEERS if any(theirs > ours for theirs, ours in zip(self.count(p, RESOLVED), own))]


def measure(model, binary):
    source = zoo.ensure(model, CACHE / "zoo")
    target = CACHE / "prepared" / source.name
    target.parent.mkdir(parents=True, exist_ok=True)
    shared = prepare(source, target)

    answers = {tool: ask_peer(tool, target, shared.symbols) for tool in ("onnx", "ort", "ort_merge")}
    answers["selkie"] = ask_selkie(binary, target, shared.symbols) if binary else Answer()
    observer = str(Path(__file__).parent / "observe.py")
    runs = [output_of([sys.executable, observer, str(target), str(e)])[0] for e in zoo.examples(source)]
    runs = [seen for seen in runs if seen and seen["shapes"]]
    refuted = {tool: [line for seen in runs for line in refute(a, seen)] for tool, a in answers.items()}
    others = set().union(*(a.others for a in answers.values()))
    tensors = [t for t in shared.tensors if t.name not in others]
    ranks = {
        t.name: max((len(a.kinds[t.name]) for a in answers.values() if t.name in a.kinds), default=1) for t in tensors
    }
    row = Row(model, shared.nodes, tensors, ranks, answers, False, refuted, len(runs))
    row.merged = sum(row.count("ort_merge", RESOLVED)) > sum(row.count("ort", RESOLVED))
    merge = answers.pop("ort_merge")
    if row.merged:
        answers["ort"] = merge
        refuted["ort"] = refuted["ort_merge"]
    del refuted["ort_merge"]
    return row


HEADER = ("model", "nodes", "EDO nodes", "dims", "onnx %", "ort %", "selkie %", "selkie bounded %", "unknown %")


def cells(row, with_selkie):
    dims = row.dims()

    def share(tool, kind):
        if tool == "selkie" and not with_selkie:
            return "–"
        parts = [f"{100 * n / d:.1f}" if d else "–" for n, d in zip(row.count(tool, kind), dims)]
        return " / ".join(parts) if dims[1] else parts[0]

    return (
        f"{row.model.id} {row.model.name}",
        str(row.nodes),
        str(row.answers["selkie"].classes.get("EDO", "–")),
        " / ".join(map(str, dims)) if dims[1] else str(dims[0]),
        share("onnx", RESOLVED) + ("!" if row.answers["onnx"].error else ""),
        share("ort", RESOLVED) + ("*" if row.merged else "") + ("!" if row.answers["ort"].error else ""),
        share("selkie", RESOLVED) + ("!" if row.answers["selkie"].error else ""),
        share("selkie", BOUNDED),
        share("selkie", UNKNOWN),
    )


def print_table(rows, with_selkie):
    table = [HEADER, *(cells(row, with_selkie) for row in rows)]
    widths = [max(len(line[i]) for line in table) for i in range(len(HEADER))]
    for n, line in enumerate(table):
        first, *rest = (cell.ljust(w) if i == 0 else cell.rjust(w) for i, (cell, w) in enumerate(zip(line, widths)))
        print("| " + " | ".join([first, *rest]) + " |")
        if n == 0:
            print("|" + "|".join("-" * (w + 1) + ("-" if i == 0 else ":") for i, w in enumerate(widths)) + "|")
    print("\nFigures: main graph / nested graphs. * with auto_merge, which resolves more. ! stopped early:")
    for row in rows:
        for tool, answer in row.answers.items():
            if answer.error:
                print(f"  {row.model.id} {tool}: {answer.error}")
    print("\nDims that a run refutes, which do not count as resolved:")
    for row in rows:
        for tool, lines in row.refuted.items():
            if lines:
                print(f"  {row.model.id} {tool}: {len(lines)}, first: {lines[0]}")
    print("Never run: " + (" ".join(row.model.id for row in rows if not row.runs) or "none"))


def verdicts(rows):
    """Each requirement with the models that miss it, and why."""
    behind, incomplete, unbounded, wrong = {}, {}, {}, {}
    for row in rows:
        answer, dims = row.answers["selkie"], row.dims()
        if peers := row.better_peers():
            behind[row.model.id] = f"behind {' and '.join(peers)}"
        decided = answer.classes and not answer.classes["EDO"] and not answer.classes["ISVDOS"]
        if decided and row.count("selkie", RESOLVED) != dims:
            incomplete[row.model.id] = "has neither EDO nor ISVDOS nodes, yet not all dims are resolved"
        if answer.error or any(row.count("selkie", UNKNOWN)):
            unbounded[row.model.id] = answer.error or f"{sum(row.count('selkie', UNKNOWN))} dims without a bound"
        if row.refuted["selkie"]:
            wrong[row.model.id] = f"{len(row.refuted['selkie'])} dims, first: {row.refuted['selkie'][0]}"
    return {
        "Selkie resolves at least as much as both peers, on every model": behind,
        "Selkie resolves all dims of models without EDO and ISVDOS nodes": incomplete,
        "every other dim has a bound": unbounded,
        "no dim that Selkie resolves is refuted by a run": wrong,
    }


def print_unresolved(row, most=20):
    """The first tensors that fall short; where a peer knows more comes first, the merely bounded last."""

    def weight(tensor):
        own = row.kinds("selkie", tensor)
        beaten = any(row.kinds(p, tensor).count(RESOLVED) > own.count(RESOLVED) for p in PEERS)
        return 0 if beaten else 1 if UNKNOWN in own else 2

    short = [t for t in row.tensors if set(row.kinds("selkie", t)) - {RESOLVED}]
    print(f"\n{row.model.id}: {len(short)} tensors not resolved in full")
    for tensor in sorted(short, key=weight)[:most]:
        said = {tool: row.answers[tool].text.get(tensor.name, "nothing") for tool in ("selkie", *PEERS)}
        place = "nested " if tensor.nested else ""
        print(f"  {tensor.name} ({place}{tensor.op} {tensor.node}): " + ", ".join(f"{t} {s}" for t, s in said.items()))


def print_verdicts(rows):
    failed = set()
    print()
    for requirement, misses in verdicts(rows).items():
        print(("FAIL" if misses else "PASS") + f"  {requirement}")
        for model, why in misses.items():
            print(f"      {model}: {why}")
        failed |= set(misses)
    for row in rows:
        if row.answers["selkie"].foreign:
            names = ", ".join(sorted(row.answers["selkie"].foreign)[:10])
            print(f"note  {row.model.id}: symbolic dims use symbols that no input has: {names}")
    for row in rows:
        if row.model.id in failed and not row.answers["selkie"].error:
            print_unresolved(row)
    return not failed


def as_json(row):
    return {
        "id": row.model.id,
        "name": row.model.name,
        "nodes": row.nodes,
        "classes": row.answers["selkie"].classes,
        "dims": row.dims(),
        "counts": {t: {k: row.count(t, k) for k in KINDS} for t in row.answers},
        "errors": {t: a.error for t, a in row.answers.items() if a.error},
        "refuted": row.refuted,
        "runs": row.runs,
        "ort_auto_merge": row.merged,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", help="ids, separated by commas; c1 stands for all c1_…; all models unless given")
    parser.add_argument("--json", type=Path, help="also write the figures here")
    parser.add_argument("--no-selkie", action="store_true", help="run the peers only")
    options = parser.parse_args()
    binary = None if options.no_selkie else os.environ.get("SELKIE", str(ROOT / "build/release/bin/selkie"))

    rows, broken = [], []
    for model in zoo.select(options.models.split(",")) if options.models else zoo.models().values():
        print(f"{model.id} {model.name}", file=sys.stderr, flush=True)
        try:
            rows.append(measure(model, binary))
        except Exception as error:  # one model that cannot be made must not hide the others
            broken.append(f"{model.id}: {type(error).__name__}: {error}")
    print_table(rows, binary is not None)
    passed = print_verdicts(rows) if binary else True
    for line in broken:
        print("FAIL  could not be made: " + line)
    if options.json:
        options.json.write_text(json.dumps([as_json(row) for row in rows], indent=1) + "\n")
    sys.exit(0 if passed and not broken else 1)


main()
