"""The tables that say whether answers are right: of all models, of those judged by their parts, and on all paths."""

from .messages import NOT_ASKED
from .tables import NAMES, escaped, table


def correctness(run):
    rows = []
    for engine in run.engines:
        results = [r for r in run.data["results"] if r["engine"] == engine and r["threads"] == run.threads[0]]
        asked = [r for r in results if r["message"] not in NOT_ASKED]
        cases = [case for r in asked for case in r["cases"].values() if case["p50_ms"]]
        wrong = sorted({r["subject"] for r in asked if any(c["p50_ms"] and not c["right"] for c in r["cases"].values())})
        failed = {r["subject"] for r in asked if r["message"] and not any(c["p50_ms"] for c in r["cases"].values())}
        errors = [case["error"] for case in cases if case["right"]]
        rows.append([
            NAMES[engine], len(asked), len(failed), len(wrong), f"{max(errors):.0e}" if errors else "–", ", ".join(wrong) or "–",
        ])  # fmt: skip
    shown = table(["engine", "models asked", "fails", "wrong", "largest error of right answers", "wrong in"], rows)
    return "\n\n".join([shown, *(judged_text(s) for s in run.ran() if s.get("judged"))])


def judged_text(subject):
    """How the answers of a model that quantises at run time were judged, with the figures of each engine."""
    found, rows = subject["judged"], []
    if found["message"]:
        return f"**{subject['title']}** quantises at run time, but was judged as a whole: {escaped(found['message'])}"
    for engine, parts in found["engines"].items():
        by = "parts and whole" if parts["judged"] == "parts" else "whole only"
        shown = ["†" if parts[key] is None else f"{parts[key]:.0e}" for key in ("error", "inside")]
        rows.append([NAMES[engine], by, *shown, f"{parts['whole']:.0e}"])
    refused = [f"- {NAMES[e]}, its parts: {escaped(p['message'])}" for e, p in found["engines"].items() if p["message"]]
    text = (
        f"**{subject['title']}** quantises at run time: a rounding error may move an element by a whole step, and ONNX Runtime's"
        f" own answer moves by {found['moved']:.0e} when inputs move by a millionth. So the parts between the quantised tensors"
        " are each given what ONNX Runtime computed, and held to the bar of all models; the whole answer may differ by twice"
        f" what ONNX Runtime's moves by, {found['bar']:.0e}. Where an engine does not take the parts, only the latter was asked."
        " Of operators that quantise inside, at each step of a sequence, the median over the cases counts."
    )
    columns = ["engine", "judged by", "largest error of parts", "of those that quantise inside", "of the whole"]
    return "\n\n".join([text, table(columns, rows), *refused])


def paths(run):
    rows, failed = [], []
    for subject in run.ran():
        found = subject.get("paths")
        if found and found["inputs"]:
            torch = "·" if found["torch_different"] is None else found["torch_different"]
            rows.append([
                subject["title"], found["inputs"], found["paths"], found["decisions"], share(found["different"], found["inputs"]),
                f"{found['error']:.0e}", torch,
            ])  # fmt: skip
        if found and found["message"]:
            failed.append(f"- {subject['title']}: {escaped(found['message'])}")
    if not rows and not failed:
        return "No model of this run has paths."
    columns = ["model", "inputs", "paths", "both outcomes", "other answers", "largest error", "other answers of torch"]
    return "\n\n".join([
        "Random inputs, as many as there was time for, of different sizes where these are dynamic: how many different paths they"
        " take, and how many of the model's decisions some input takes and another does not. Other answers: inputs for which"
        " Selkie's final answer is not ONNX Runtime's, which is to be none; an answer is integers as they are, and of floats"
        " the place of the largest in each row. The largest error is at the floats themselves: of captions, the logits of all"
        " steps.",
        table(columns, rows), *filter(None, ["\n".join(failed)]),
    ])  # fmt: skip


def share(count, total):
    return f"{count} of {total}" + (f" ({100 * count / total:.0f} %)" if count else "")
