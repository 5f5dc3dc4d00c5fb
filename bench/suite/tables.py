"""The tables of a run: one function for each kind of cost, with losses as plain as wins."""

import re
from statistics import geometric_mean, median

from comparison.engines import TITLES
from comparison.report import number

from .messages import NOT_ASKED

MIB = 1 << 20
GROUP_TITLES = {
    "a": "A. Vision, speech and text", "b": "B. Programs with branches", "c": "C. Sequences and structures",
    "d": "D. Trained weights from packages", "matmul": "Matrix products, and one LSTM",
}  # fmt: skip
NAMES = {
    "selkie": "Selkie", "ort": "ONNX Runtime", "openvino": "OpenVINO", "mnn": "MNN", "torch": "torch, eager",
    "compile": "torch.compile(dynamic=True)", "tract": "tract", "iree": "IREE", "tvm": "TVM",
}  # fmt: skip


def table(columns, rows):
    """Markdown; the first column to the left, others to the right."""
    lines = ["| " + " | ".join(columns) + " |", "|" + "|".join(["---", *["--:"] * (len(columns) - 1)]) + "|"]
    return "\n".join(lines + ["| " + " | ".join(str(cell).replace("|", "\\|") for cell in row) + " |" for row in rows])


def natural(id):
    """a2 before a10."""
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", id)]


class Run:
    """The figures of a run, by what tables ask for."""

    def __init__(self, data):
        self.data, self.engines, self.threads = data, data["engines"], data["threads"]
        self.by_key = {(r["subject"], r["engine"], r["threads"]): r for r in data["results"]}

    def subjects(self, group=None):
        """In the order of groups and ids, whatever the order of the run was."""
        found = [s for s in self.data["subjects"] if group in (None, s["group"])]
        return sorted(found, key=lambda s: (self.data["groups"].index(s["group"]), natural(s["id"])))

    def ran(self, group=None):
        return [s for s in self.subjects(group) if not s["message"]]

    def result(self, subject, engine, threads=None):
        return self.by_key.get((subject["id"], engine, threads or self.threads[0]))

    def case(self, subject, engine, case, threads=None):
        """The record of a case, or None where there is no time."""
        found = (self.result(subject, engine, threads) or {"cases": {}})["cases"].get(case)
        return found if found and found["p50_ms"] else None

    def right(self, subject, engine, case, threads=None):
        found = self.case(subject, engine, case, threads)
        return found if found and found["right"] else None

    def best_peer(self, subject, case, threads=None):
        """(engine, ms) of the fastest peer whose answer is right."""
        found = [(self.right(subject, e, case, threads), e) for e in self.engines if e != "selkie"]
        return min(((record["p50_ms"], e) for record, e in found if record), default=None)


def cell(run, subject, engine, case, threads):
    record = run.case(subject, engine, case, threads)
    if record:
        text = number(record["p50_ms"])
        return text if record["right"] else f"({text})"
    result = run.result(subject, engine, threads)
    return "·" if result is None or result["message"] in (None, *NOT_ASKED) else "†"


def latency_rows(run, group, threads):
    for subject in run.ran(group):
        for case in subject["cases"]:
            own, peer = run.right(subject, "selkie", case, threads), run.best_peer(subject, case, threads)
            if not any(case in (run.result(subject, e, threads) or {"cases": {}})["cases"] for e in run.engines):
                continue  # not timed with so many threads
            cells = [cell(run, subject, engine, case, threads) for engine in run.engines]
            ratio = f"{number(peer[0] / own['p50_ms'])} ({TITLES[peer[1]]})" if own and peer else "–"
            yield [f"{subject['title']}, {case}", *cells, ratio]


def latency(run):
    parts = []
    for group in run.data["groups"]:
        for threads in run.threads:
            rows = list(latency_rows(run, group, threads))
            columns = ["model, case", *(f"{TITLES[e]} ms" for e in run.engines), "best peer ÷ Selkie"]
            used = [0] + [i for i in range(1, len(columns)) if any(row[i] != "·" for row in rows)]
            title = f"### {GROUP_TITLES[group]}: {threads} thread{'s' if threads > 1 else ''}\n\n"
            shown = table([columns[i] for i in used], [[row[i] for i in used] for row in rows])
            parts.append(title + (shown if rows else "Nothing was timed."))
            missing = [f"- {s['title']}: {s['message']}" for s in run.subjects(group) if s["message"]]
            if missing and threads == run.threads[0]:
                parts.append("\n".join(missing))
    return "\n\n".join(parts)


def summary_rows(run):
    """Per group and number of threads: how many cases Selkie is fastest in, and means against each peer."""
    for group in run.data["groups"]:
        for threads in run.threads:
            cases = [(s, case) for s in run.ran(group) for case in s["cases"]]
            pairs = [(run.right(s, "selkie", c, threads), run.best_peer(s, c, threads)) for s, c in cases]
            pairs = [(own["p50_ms"], peer[0]) for own, peer in pairs if own and peer]
            means = [mean_against(run, cases, engine, threads) for engine in run.engines if engine != "selkie"]
            if pairs:
                won, ratios = sum(own <= peer for own, peer in pairs), [peer / own for own, peer in pairs]
                worst = min(ratios)
                yield [GROUP_TITLES[group], threads, f"{won} of {len(pairs)}", *means, number(worst)]


def mean_against(run, cases, engine, threads):
    found = [(run.right(s, "selkie", c, threads), run.right(s, engine, c, threads)) for s, c in cases]
    ratios = [peer["p50_ms"] / own["p50_ms"] for own, peer in found if own and peer]
    return f"{number(geometric_mean(ratios))} ({len(ratios)})" if ratios else "–"


def summary(run):
    peers = [f"{TITLES[e]} ÷ Selkie" for e in run.engines if e != "selkie"]
    shown = table(["group", "threads", "Selkie is fastest in", *peers, "worst: best peer ÷ Selkie"], list(summary_rows(run)))
    return (
        "Geometric means of the ratios of times, over as many cases as stand in parentheses: those that both answer right."
        " Below 1, Selkie is slower.\n\n" + shown
    )


def losses(run):
    """Every case in which a peer is faster, the worst first."""
    found = []
    for threads in run.threads:
        for subject in run.ran():
            for case in subject["cases"]:
                own, peer = run.right(subject, "selkie", case, threads), run.best_peer(subject, case, threads)
                if own and peer and peer[0] < own["p50_ms"]:
                    label, ratio = f"{subject['title']}, {case}", peer[0] / own["p50_ms"]
                    least = run.case(subject, peer[1], case, threads)["least_ms"] / own["least_ms"]
                    times = TITLES[peer[1]], number(peer[0]), number(own["p50_ms"])
                    found.append((ratio, label, threads, *times, f"{number(ratio)} ({number(least)})"))
    if not found:
        return "None in this run."
    shown = table(["model, case", "threads", "peer", "peer ms", "Selkie ms", "peer ÷ Selkie"], [row[1:] for row in sorted(found)])
    return f"Ratios of medians, and in parentheses of the least times, which other work on the machine disturbs less.\n\n{shown}"


def new_rows(run):
    for subject in run.ran():
        found = {e: (run.result(subject, e) or {}).get("new") for e in run.engines}
        if any(found.values()):
            shapes = max(record["shapes"] for record in found.values() if record)
            cells = [f"{number(r['median'])} ({number(r['most'])})" if r else "·" for r in found.values()]
            yield [subject["title"], shapes, *cells]


def worst_new(run):
    rows = []
    for engine in run.engines:
        found = [((run.result(s, engine) or {}).get("new"), s["title"]) for s in run.ran()]
        found = [(record["slowest_ms"], title, record["most"]) for record, title in found if record]
        if found:
            ms, title, _ = max(found)
            medians = [r["new"]["median"] for s in run.ran() if (r := run.result(s, engine)) and r.get("new")]
            largest = number(max(most for _, _, most in found))
            rows.append([NAMES[engine], len(medians), number(geometric_mean(medians)), largest, f"{number(ms)} ({title})"])
    return table(["engine", "models", "mean of the medians", "largest ratio", "slowest first run, ms"], rows)


def new_shapes(run):
    rows = list(new_rows(run))
    if not rows:
        return "No model of this run has dynamic shapes."
    columns = ["model", "shapes", *(TITLES[e] for e in run.engines)]
    return (
        "The first run at a shape that the process has not seen ÷ a repeated run there: the median over the shapes, and the"
        f" largest in parentheses; 1 thread.\n\n{worst_new(run)}\n\n{table(columns, rows)}"
    )


def mib(value):
    return "·" if value is None else number(value / MIB)


def memory(run):
    empty = [[r["empty_bytes"] for r in run.data["results"] if r["engine"] == e and r.get("empty_bytes")] for e in run.engines]
    rows = [["(the empty process)", "", *(mib(median(found)) if found else "·" for found in empty)]]
    for subject in run.ran():
        found = [(run.result(subject, e) or {}).get("peak_bytes") for e in run.engines]
        if any(value is not None for value in found):
            rows.append([subject["title"], mib(subject.get("onnx_bytes")), *map(mib, found)])
    return (
        "MiB of peak resident memory (RSS) above the engine's empty process, over load and all runs, at the first number of"
        " threads. The empty process has loaded the engine's libraries, and Python except for Selkie.\n\n"
        + table(["model", "ONNX file MiB", *(TITLES[e] for e in run.engines)], rows)
    )


def seconds(value):
    return "·" if value is None else number(value)


def loading(run):
    rows = []
    for subject in run.ran():
        own = run.result(subject, "selkie") or {}
        cells = []
        for engine in run.engines:
            result = run.result(subject, engine) or {}
            first = next((c["first_ms"] for c in result.get("cases", {}).values() if c["first_ms"]), None)
            ran = "†" if first is None else number(first / 1000)
            cells.append("·" if result.get("load_s") is None else f"{number(result['load_s'])} + {ran}")
        rows.append([subject["title"], *cells, seconds(own.get("load_again_s")), seconds(own.get("load_compiled_s"))])
    columns = ["model", *(TITLES[e] for e in run.engines), "Selkie, cached code", "Selkie, .selkie file"]
    return (
        "Seconds until the model is ready + of its first run, 1 thread. Selkie's first column compiles all kernels; the last"
        " two are later starts. torch.compile compiles in the first run.\n\n" + table(columns, rows)
    )


def footprint(run):
    rows = [[NAMES[r["engine"]], r["what"], mib(r["bytes"]), mib(r["library_bytes"])] for r in run.data["footprint"]]
    files = [
        [s["title"], mib(s.get("onnx_bytes")), s.get("selkie_message") or mib(s.get("selkie_bytes"))] for s in run.ran()
    ]
    return (
        "On disk, without the packages that a package needs.\n\n"
        + table(["engine", "what", "MiB", "largest library MiB"], rows)
        + "\n\nA compiled model beside its ONNX file; it holds weights as the kernels want them, and code.\n\n"
        + table(["model", "ONNX MiB", ".selkie MiB"], files)
    )


def failures(run):
    """Messages by engine; the same one is shown once, with all its models."""
    found = {}
    for record in run.data["results"]:
        if record["message"] and record["message"] not in NOT_ASKED:
            ids = found.setdefault((record["engine"], record["message"]), [])
            if record["subject"] not in ids:
                ids.append(record["subject"])
    lines = [f"- **{NAMES[e]}**, {', '.join(ids)}: {escaped(message)}" for (e, message), ids in found.items()]
    return "\n".join(lines) or "None."


def escaped(message):
    return "`" + message.replace("`", "'") + "`"


def planning(run):
    rows = []
    for subject in run.ran():
        plan = subject.get("plan") or {}
        if plan.get("none"):
            shares = [f"{plan[key] / plan['none']:.3f}" for key in ("fusion", "reuse", "order", "offsets")]
            over = number(plan["offsets"] / plan["bound"]) if plan["bound"] else "–"
            rows.append([subject["title"], mib(plan["none"]), *shares, over])
    return (
        "Bytes of intermediate results, as shares of what they are when each result of a node has memory of its own: with"
        " fusion, with reuse of free places, in the order that needs least (SEP), and with planned offsets (DMP); the last"
        " column is the arena ÷ the lower bound.\n\n"
        + table(["model", "none, MiB", "fusion", "+ reuse", "+ order", "+ offsets", "÷ bound"], rows)
    )
