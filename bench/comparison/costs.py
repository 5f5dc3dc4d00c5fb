"""What a model costs beside steady runs: memory, the first run at a new shape, and the time until it can run."""

import time
from statistics import median

import onnx
from onnx import numpy_helper

from .cases import CASES
from .engines import Engine, Failed
from .report import number, progress
from .steady import TITLES, started

MIB = 1 << 20
MOST_PASSES = 3
SHORT_PASS = 100  # seconds


def weight_bytes(path):
    """Bytes of the model's constants."""
    graph = onnx.load(path).graph
    total = sum(numpy_helper.to_array(weight).nbytes for weight in graph.initializer)
    for node in graph.node:
        if node.op_type == "Constant":
            total += sum(numpy_helper.to_array(a.t).nbytes for a in node.attribute if a.HasField("t"))
    return total


def memory_of(name, path, inputs, settings, options=()):
    """Bytes above the empty process: after load, after runs on each of these inputs, the most in loading, the most in runs."""
    engine = Engine(name, path, 1, settings.limit, options)
    try:
        engine.load()
        loaded = engine.memory()
        engine.forget_peak()
        for given in inputs:
            engine.set_inputs(given)
            engine.run(2)
        ran = engine.memory()
        arena = engine.ask("statistics")["arena_bytes"] if name == "selkie" else None
        above = {
            "load": loaded["resident"],
            "load_peak": loaded["peak"],
            "run": ran["resident"],
            "run_peak": ran["peak"],
        }
        return {key: value - engine.empty for key, value in above.items()} | {"arena": arena}
    finally:
        engine.close()


def memory(report, models, paths, names, settings):
    report.say("MiB above the empty process, one thread; × is the ratio to the weights.\n")
    report.table([
        ("model", 20), ("weights MiB", 8), ("engine", 7), ("after load", 14), ("most in load", 14),
        ("after a run", 14), ("most in runs", 14), ("arena MiB", 8), ("bar ×", 6), ("", 4),
    ])  # fmt: skip
    for model in models:
        case, path = CASES[model.id], paths[model.id]
        weights = weight_bytes(path)
        largest = list(case.shapes.values())[-1]
        for name in names:
            progress(f"memory of {model.name} in {TITLES[name]}")
            try:
                found = memory_of(name, path, [model.inputs(*largest)], settings)
            except Failed as error:
                report.note(f"{model.name} in {TITLES[name]}: {error}")
                if name == "selkie" and case.bars.memory:
                    report.judge(f"{model.name}, memory", None, case.bars.memory, at_most=True)
                continue
            cells = [
                f"{found[k] / MIB:.0f} ({found[k] / weights:.2f}×)" for k in ("load", "load_peak", "run", "run_peak")
            ]
            bar, verdict = "", ""
            if name == "selkie" and case.bars.memory:
                bar = f"{case.bars.memory:g}"
                value = (max(found["load_peak"], found["run_peak"]) - found["arena"]) / weights
                passed = report.judge(f"{model.name}, peak memory less arena ÷ weights", value, case.bars.memory, True)
                verdict = "pass" if passed else "FAIL"
            arena = "" if found["arena"] is None else f"{found['arena'] / MIB:.1f}"
            report.row([model.name, f"{weights / MIB:.1f}", TITLES[name], *cells, arena, bar, verdict])
            report.keep("memory", {"model": model.id, "engine": name, "weights": weights} | found)
    report.end_table()


def first_and_repeated(engine, model, sizes):
    """Seconds of the first run at a shape, and the median of three repeated ones. While inputs are made, others use the
    engine's core and its caches, which costs a run at a shape that is known as much: so it runs once at the one before."""
    commands = engine.save_inputs(model.inputs(*sizes))
    engine.run()
    for command in commands:
        engine.ask(command)
    first = engine.run()[0]
    return first, median(engine.run(3))


def one_pass(report, model, path, names, settings):
    """(first, repeated) at each new shape per engine. Engines take turns in blocks of shapes, each after a run at a
    shape that is known: within a block the caches hold what the engine itself left there."""
    engines, refused = started(model, path, names, settings, 1)
    sizes = CASES[model.id].new.sizes[: settings.new_shapes]
    found = {name: [] for name in engines}
    block = 10
    for start in range(0, len(sizes), block):
        for name, engine in list(engines.items()):
            progress(f"{model.name} in {TITLES[name]}: new shapes {start} of {len(sizes)}")
            try:
                engine.set_inputs(model.inputs(*next(iter(CASES[model.id].shapes.values()))))
                engine.run()
                for shape in sizes[start : start + block]:
                    found[name].append(first_and_repeated(engine, model, shape))
            except Failed as error:
                refused[name] = str(error)
                del engines[name], found[name]
    for engine in engines.values():
        engine.close()
    for name, message in refused.items():
        report.note(f"{model.name} in {TITLES[name]}: {message}")
    return found


def new_shapes_of(report, model, path, names, settings):
    """The least times of some passes, each in fresh processes: what interrupts one run is no cost of its shape. A model
    whose first pass took long has no other."""
    begin = time.monotonic()
    found = one_pass(report, model, path, names, settings)
    passes = 1
    while passes < MOST_PASSES and time.monotonic() - begin < SHORT_PASS * passes:
        again = one_pass(report, model, path, list(found), settings)
        found = {
            name: [tuple(map(min, pair, other)) for pair, other in zip(found[name], pairs)]
            for name, pairs in again.items()
        }
        passes += 1
    return found, passes


def new_shapes(report, models, paths, names, settings):
    report.say(
        f"{settings.new_shapes} shapes never seen before, one thread: the first run ÷ a repeated run there. Of several"
        " passes, in new processes each, the least times count.\n"
    )
    report.table([
        ("model", 20), ("engine", 7), ("passes", 6), ("median", 7), ("p99", 7), ("first run ms", 9), ("÷ Selkie's", 9), ("bars", 14),
        ("", 4),
    ])  # fmt: skip
    for model in models:
        case = CASES[model.id].new
        found, passes = new_shapes_of(report, model, paths[model.id], names, settings)
        own = found.get("selkie")
        if "selkie" in names and not own:
            report.judge(f"{model.name}, first run at a new shape", None, case.median, at_most=True)
        for name, pairs in found.items():
            ratios = sorted(first / repeated for first, repeated in pairs)
            middle, high = median(ratios), ratios[min(len(ratios) - 1, int(0.99 * len(ratios)))]
            against = median(first / ours for (first, _), (ours, _) in zip(pairs, own)) if own else None
            bar, passed = "", []
            if name == "selkie":
                bar = f"{case.median:g} / {case.p99:g}"
                passed.append(report.judge(f"{model.name}, new shape, median", middle, case.median, at_most=True))
                passed.append(report.judge(f"{model.name}, new shape, p99", high, case.p99, at_most=True))
            elif own and name in case.least:
                bar = f"{case.least[name]:g}"
                label = f"{model.name}, first run at a new shape, {TITLES[name]} ÷ Selkie"
                passed.append(report.judge(label, against, case.least[name]))
            verdict = "" if not passed else "pass" if all(passed) else "FAIL"
            times = number(1000 * median(first for first, _ in pairs))
            report.row([
                model.name, TITLES[name], str(passes), number(middle), number(high), times, number(against), bar, verdict,
            ])  # fmt: skip
            report.keep(
                "newshape", {"model": model.id, "engine": name, "median": middle, "p99": high, "shapes": len(pairs)}
            )
    report.end_table()


def compile_times(report, models, paths, names, settings):
    """Each engine is started twice, so that a cache on disk shows."""
    report.say("Seconds until the model is ready, on all cores, and of its first run; each engine is started twice.\n")
    report.table([
        ("model", 20), ("engine", 7), ("ready s", 8), ("again s", 8), ("first run s", 8), ("import ms", 8),
        ("compile ms", 8), ("bar s", 6), ("", 4),
    ])  # fmt: skip
    for model in models:
        case = CASES[model.id]
        for name in names:
            progress(f"start of {model.name} in {TITLES[name]}")
            bar = case.bars.compile_s if name == "selkie" else None
            try:
                said, again = (start_once(name, model, paths[model.id], settings) for _ in range(2))
            except Failed as error:
                report.note(f"{model.name} in {TITLES[name]}: {error}")
                if bar:
                    report.judge(f"{model.name}, compile time", None, bar, at_most=True)
                continue
            verdict = ""
            if bar:
                passed = report.judge(f"{model.name}, compile time in s", said["seconds"], bar, at_most=True)
                verdict = "pass" if passed else "FAIL"
            own = [f"{said[key]:.0f}" if name == "selkie" else "" for key in ("load_ms", "compile_ms")]
            report.row([
                model.name, TITLES[name], f"{said['seconds']:.2f}", f"{again['seconds']:.2f}",
                "–" if said["first"] is None else f"{said['first']:.3f}", *own, f"{bar:g}" if bar else "", verdict,
            ])  # fmt: skip
            report.keep("compile", {"model": model.id, "engine": name, "first": said, "again": again})
    report.end_table()


def start_once(name, model, path, settings):
    engine = Engine(name, path, settings.all_cores, settings.limit)
    try:
        said = engine.load()
        engine.set_inputs(model.inputs(*next(iter(CASES[model.id].shapes.values()))))
        try:
            return said | {"first": engine.run()[0]}
        except Failed:
            return said | {"first": None}
    finally:
        engine.close()
