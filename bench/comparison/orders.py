"""What the order of steps that needs least memory costs in time: each model of the zoo with it and in the order of its nodes."""

from statistics import geometric_mean

import zoo

from .engines import ROOT, Engine, Failed
from .plans import largest_example, plan
from .report import number, progress

PLAIN = "--plain-order"
MOST_OVER_PLAIN = 1.01
# The same for every model and both orders: a count that depended on what was measured would favour one outcome.
ROUNDS, SECONDS = 20, 0.04


def least_times(engines):
    """Seconds of the shortest run of each engine, in turns."""
    least, counts = [float("inf")] * len(engines), [max(1, int(SECONDS / min(e.run(3)))) for e in engines]
    for turn in range(ROUNDS):
        for k in range(len(engines)):
            i = (turn + k) % len(engines)
            least[i] = min(least[i], *engines[i].run(counts[i]))
    return least


def timed(path, inputs, settings):
    """Seconds in the chosen order and in that of the nodes."""
    engines = []
    try:
        for options in ((), (PLAIN,)):
            engines.append(Engine("selkie", path, 1, settings.limit, options))
            engines[-1].load()
            engines[-1].set_inputs(inputs)
        return least_times(engines)
    finally:
        for engine in engines:
            engine.close()


def add_row(report, model, settings):
    """The ratio, and whether both orders are planned alike: then it is noise, and is not judged."""
    path = zoo.ensure(model, ROOT / ".cache/bench/zoo")
    inputs = largest_example(path)
    alike = plan(path, inputs) == plan(path, inputs, PLAIN)
    chosen, plain = timed(path, inputs, settings)
    ratio, verdict = chosen / plain, "noise"
    if not alike:
        passed = report.judge(f"{model.id}, chosen order ÷ plain order", ratio, MOST_OVER_PLAIN, at_most=True)
        verdict = "pass" if passed else "FAIL"
    report.row([
        f"{model.id} {model.name}"[:24], number(1000 * chosen), number(1000 * plain), f"{ratio:.3f}",
        "" if alike else f"{MOST_OVER_PLAIN:g}", verdict,
    ])  # fmt: skip
    report.keep("orders", {"model": model.id, "chosen_ms": 1000 * chosen, "plain_ms": 1000 * plain, "alike": alike})
    return ratio, alike


def summary(name, ratios):
    worst = max(ratios, key=ratios.get)
    return (
        f"{len(ratios)} models {name}: worst {worst} at {ratios[worst]:.3f},"
        f" geometric mean {geometric_mean(ratios.values()):.3f}, least {min(ratios.values()):.3f}."
    )


def compare(report, names, settings):
    report.say(
        "\nTime in the order that needs least memory ÷ time in the order of the nodes: the shortest runs, in turns, one thread."
        " Models whose plan is the same in both orders show how far figures are noise.\n"
    )
    report.table([("model", 24), ("chosen ms", 9), ("plain ms", 9), ("÷", 6), ("bar", 5), ("", 5)])
    ratios = {True: {}, False: {}}
    for model in zoo.models().values():
        if names and not any(model.id.startswith(name) for name in names):
            continue
        progress(f"orders of {model.id}")
        try:
            ratio, alike = add_row(report, model, settings)
            ratios[alike][model.id] = ratio
        except (Failed, ValueError) as failure:
            report.note(f"{model.id}: {failure}")
            report.judge(f"{model.id}, chosen order ÷ plain order", None, MOST_OVER_PLAIN, at_most=True)
    report.end_table()
    for alike, name in ((False, "with another order"), (True, "with the same plan in both orders")):
        if ratios[alike]:
            report.say(summary(name, ratios[alike]))
