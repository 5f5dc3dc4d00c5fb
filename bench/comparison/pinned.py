"""What it costs that sizes are not known before the run: the model as it is, against the same one compiled with every dim
of its inputs given (`--dims`), at the same shape."""

from statistics import median

import onnx

from .cases import CASES, MOST_OVER_PINNED, TOLERANCE
from .engines import Engine, Failed, error_of
from .report import number, progress
from .steady import threads_text


def sizes_by_name(path, inputs):
    """What each named size of the model's inputs is in these ones."""
    sizes = {}
    for value in onnx.load(path, load_external_data=False).graph.input:
        if value.name not in inputs:
            continue
        for axis, dim in enumerate(value.type.tensor_type.shape.dim):
            if not dim.HasField("dim_value"):
                # A dim without a name gets that of its input and its place there.
                sizes[dim.dim_param or f"{value.name}_{axis}"] = inputs[value.name].shape[axis]
    return sizes


def measure(engines, settings, budget):
    """Seconds of each engine's runs, by turns, the first one of a round being the second of the next."""
    guess = [median(engine.run(3)) for engine in engines]
    times = [[], []]
    rounds = 3 * settings.rounds
    for turn in range(rounds):
        for i in (0, 1) if turn % 2 == 0 else (1, 0):
            times[i] += engines[i].run(max(1, min(2000, int(budget / rounds / guess[i]))))
    return times


def compare_shape(model, path, sizes, settings, threads):
    """Seconds of the dynamic model's runs and of the pinned one's, and how far their answers are from each other."""
    inputs = model.inputs(*sizes)
    dims = [f"--dims={name}={size}" for name, size in sizes_by_name(path, inputs).items()]
    engines = []
    try:
        for given in ([], dims):
            engines.append(Engine("selkie", path, threads, settings.limit, given))
            engines[-1].load()
            engines[-1].set_inputs(inputs)
            engines[-1].run()
        answers = [engine.outputs() for engine in engines]
        return measure(engines, settings, settings.budget(model)), error_of(*answers)
    finally:
        for engine in engines:
            engine.close()


def compare(report, models, paths, settings, threads):
    report.say("Selkie's model for all shapes ÷ the same compiled for this one alone, p50 (and of the least times).\n")
    report.table([("model", 28), ("dynamic ms", 10), ("pinned ms", 10), ("ratio", 14), ("bar", 6), ("error", 8), ("", 4)])
    for model in models:
        for shape, sizes in settings.shapes(model, few=True).items():
            progress(f"{model.name} {shape}, dynamic and pinned")
            label = f"{model.name} {shape}"
            title = f"{label}, {threads_text(threads)}, dynamic ÷ pinned"
            try:
                (dynamic, pinned), error = compare_shape(model, paths[model.id], sizes, settings, threads)
            except Failed as failure:
                report.note(f"{label}: {failure}")
                report.judge(title, None, MOST_OVER_PINNED, at_most=True)
                report.row([label, "†", "†", "–", f"{MOST_OVER_PINNED:g}", "–", "FAIL"])
                continue
            ratio = median(dynamic) / median(pinned)
            passed = report.judge(title, ratio if error <= TOLERANCE else None, MOST_OVER_PINNED, at_most=True)
            report.row([
                label, number(1000 * median(dynamic)), number(1000 * median(pinned)),
                f"{number(ratio)} ({number(min(dynamic) / min(pinned))})", f"{MOST_OVER_PINNED:g}", f"{error:.0e}",
                "pass" if passed else "FAIL",
            ])  # fmt: skip
            report.keep("static", {
                "model": model.id, "shape": shape, "threads": threads, "ratio": ratio, "error": error,
                "dynamic_ms": 1000 * median(dynamic), "pinned_ms": 1000 * median(pinned),
            })  # fmt: skip
    report.end_table()
