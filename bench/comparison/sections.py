"""A whole comparison: which models, engines and sections are asked for, and each in its turn."""

import importlib.metadata
import os

import zoo
from zoo import dynamic, full

from . import correct, costs, flow, growth, orders, paths_taken, peaks, pinned, plans, steady
from .cases import CASES, is_product
from .engines import ENGINES, ROOT, SELKIE, Engine
from .report import Report, head, progress
from .worker import PEERS

PLAIN = ("steady", "matmul", "memory", "newshape", "compile", "static", "correct")
OF_DYNAMIC = ("flow", "paths")
OF_SMALL = ("correct", "peaks", "ablation")
SECTIONS = (*PLAIN, "peaks", "ablation", *OF_DYNAMIC, "growth")
FEW_ROWS = (1, 2, 3, 5, 8, 13, 24, 31, 64, 128, 512)


class Settings:
    def __init__(self, given):
        self.quick, self.limit = given.quick, given.limit
        self.rounds = 3 if given.quick else 7
        self.seconds = given.seconds or (0.3 if given.quick else 2)
        self.new_shapes = 8 if given.quick else 200
        self.threads = [int(n) for n in (given.threads or ("1" if given.quick else "1,2")).split(",")]
        self.all_cores = len(os.sched_getaffinity(0))
        self.engines = chosen("engine", given.engines, ENGINES)
        self.sections = chosen("section", given.section, SECTIONS)
        Engine.by_processor_time = given.processor_time

    def shapes(self, model, few=False):
        """All shapes of a model; in a quick run, or if `few` suffice, only some of the many of a matrix product."""
        found = CASES[model.id].shapes
        if not ((self.quick or few) and is_product(model.id)):
            return found
        return {name: sizes for name, sizes in found.items() if sizes[0] in FEW_ROWS}

    def budget(self, model):
        """Seconds for one engine at one shape; products are short, and have many shapes."""
        return self.seconds / 10 if is_product(model.id) else self.seconds


def chosen(kind, names, known):
    names = names.split(",")
    for name in names:
        if name not in known:
            raise SystemExit(f"no {kind} {name}; there are: {' '.join(known)}")
    return names


def chosen_models(names, models):
    """Those whose ids begin with these names; all if none is given."""
    return [model for model in models if not names or any(model.id.startswith(name) for name in names)]


def check_names(names, known):
    for name in names or []:
        if not any(id.startswith(name) for id in known):
            raise SystemExit(f"no model {name}; there are: {' '.join(known)}")


def exported(models, report):
    """The models that could be made, and where they are."""
    paths = {}
    for model in models:
        progress(f"exporting {model.name}")
        try:
            paths[model.id] = zoo.ensure(model, ROOT / ".cache/bench/full")
        except Exception as error:  # one model that cannot be made must not hide the others
            report.missed.append(f"{model.name} could not be made: {type(error).__name__}: {error}")
    return [model for model in models if model.id in paths], paths


def run(given):
    """The exit code: 1 if a bar is missed."""
    settings, report = Settings(given), Report()
    if "selkie" in settings.engines and not os.access(SELKIE, os.X_OK):
        raise SystemExit(f"there is no {SELKIE}; ./dev build release selkie kernels_bench makes it")
    names = given.models.split(",") if given.models else None
    plain = full.MODELS if any(section in PLAIN for section in settings.sections) else []
    branching = dynamic.MODELS if any(section in OF_DYNAMIC for section in settings.sections) else []
    small = zoo.models() if any(section in OF_SMALL for section in settings.sections) else {}
    check_names(names, [*(model.id for model in [*plain, *branching]), *small])
    models, paths = exported(chosen_models(names, plain), report)
    branching, branching_paths = exported(chosen_models(names, branching), report)
    packages = [PEERS[name].package for name in settings.engines if name in PEERS]
    head(report, {name: importlib.metadata.version(name) for name in packages}, settings.threads)
    nets = [model for model in models if not is_product(model.id)]
    products = [model for model in models if is_product(model.id)]
    without_torch = [name for name in settings.engines if name != "torch"]

    def section(name, title, models, function, engines, *more):
        if name in settings.sections and models:
            report.section(title)
            function(report, models, paths, engines, settings, *more)

    for threads in settings.threads:
        text = steady.threads_text(threads)
        section("steady", f"Steady state, {text}", nets, steady.compare, without_torch, threads)
        section("matmul", f"Matrix products, {text}", products, steady.compare, settings.engines, threads)
    section("memory", "Memory", nets, costs.memory, without_torch)
    if "peaks" in settings.sections and "selkie" in settings.engines:
        report.section("Peak memory of dynamic networks")
        peaks.compare(report, names, settings)
    if "ablation" in settings.sections and "selkie" in settings.engines:
        report.section("What planning saves of memory")
        plans.ablation(report, names)
        orders.compare(report, names, settings)
    section("newshape", "New shapes", [m for m in nets if CASES[m.id].new], costs.new_shapes, without_torch)
    if "static" in settings.sections and "selkie" in settings.engines and models:
        report.section("Dynamic and pinned, 1 thread")
        pinned.compare(report, models, paths, settings, 1)
    if "correct" in settings.sections and "selkie" in settings.engines:
        report.section("Answers")
        correct.compare(report, models, paths, names, settings)
    section("compile", "Compile and load", nets, costs.compile_times, without_torch)
    if "flow" in settings.sections and branching:
        report.section("Paths of dynamic models, 1 thread")
        flow.compare(report, branching, branching_paths, settings.engines, settings)
    if "paths" in settings.sections and branching:
        report.section("Answers on all paths")
        paths_taken.compare(report, branching, branching_paths, settings)
    if "growth" in settings.sections:
        report.section("Growth with the number of regions")
        growth.compare(report, settings)
    report.finish()
    report.write(given.markdown, given.json)
    return 1 if report.missed else 0
