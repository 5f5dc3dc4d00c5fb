"""Peak memory of the models that papers on dynamic networks were judged on: load and run at the largest example, in a
fresh process each, above the empty process."""

import math
import re

import zoo
from zoo import full

from .costs import MIB, memory_of
from .engines import ROOT, Failed
from .plans import largest_example
from .report import number, progress
from .steady import TITLES

PEERS = ("ort", "openvino")
MOST, MOST_MEAN = 1.0, 0.7
GROUPS = re.compile(r"[ab]\d+$")


def peak_of(report, model, path, name, settings, options=()):
    """None where an engine does not run the model."""
    progress(f"peak memory of {model.id} in {TITLES[name]}")
    try:
        found = memory_of(name, path, largest_example(path), settings, options)
    except Failed as error:
        report.note(f"{model.id} in {TITLES[name]}: {error}")
        return None
    report.keep("peaks", {"model": model.id, "engine": name, "options": list(options)} | found)
    return max(found["load_peak"], found["run_peak"])


def chosen(names):
    """The models of both groups, of full size where there is one, with their files."""
    sized = {m.id: m for m in full.MODELS if GROUPS.match(m.id)}
    for model in zoo.models().values():
        if GROUPS.match(model.id) and (not names or any(model.id.startswith(name) for name in names)):
            is_full = model.id in sized
            model = sized.get(model.id, model)
            yield model, zoo.ensure(model, ROOT / ".cache/bench" / ("full" if is_full else "zoo")), is_full


def compare(report, names, settings):
    engines = [name for name in ("selkie", *PEERS) if name in settings.engines]
    report.say(
        "MiB above the empty process, the most in load and runs at the largest example, one thread. Selkie compiles all"
        " code; the figure in brackets is that of later starts, which find it in the cache. Small models, which have no"
        " bars, show what engines need whatever the model is.\n"
    )
    report.table([("model", 22), *((TITLES[name], 8) for name in engines), ("÷ smaller peer", 8), ("", 4)])
    ratios, all_are_full = [], True
    for model, path, is_full in chosen(names):
        peaks = {
            name: peak_of(report, model, path, name, settings, ["--no-cache"] if name == "selkie" else ())
            for name in engines
        }
        peak_of(report, model, path, "selkie", settings)  # so that its code is in the cache
        again = peak_of(report, model, path, "selkie", settings)
        peers = [peaks[name] for name in engines if name in PEERS and peaks[name]]
        ratio = peaks["selkie"] / min(peers) if peaks.get("selkie") and peers else None
        verdict = ""
        if peers and is_full:
            passed = report.judge(f"{model.id}, peak memory ÷ smaller peer", ratio, MOST, at_most=True)
            verdict = "pass" if passed else "FAIL"
        if ratio:
            ratios.append((ratio, again / min(peers)))
            all_are_full &= is_full
        cells = ["–" if peaks[name] is None else f"{peaks[name] / MIB:.1f}" for name in engines]
        cells[0] += "" if again is None else f" ({again / MIB:.1f})"
        shown = f"{number(ratio)} ({number(again / min(peers))})" if ratio else "–"
        report.row([f"{model.id} {model.name}", *cells, shown, verdict])
    report.end_table()
    if ratios:
        mean, later = (math.exp(sum(map(math.log, values)) / len(values)) for values in zip(*ratios))
        report.say(f"Geometric mean of {len(ratios)} models: {mean:.2f}× ({later:.2f}×).")
        if all_are_full:
            report.judge("peak memory ÷ smaller peer, geometric mean", mean, MOST_MEAN, at_most=True)
