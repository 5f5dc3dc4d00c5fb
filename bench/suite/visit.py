"""One model in all engines: the same processes tell times at repeated shapes, first runs at new ones, memory, the time
until the model is ready, and whether the answers are right."""

import subprocess
import tempfile
import time
from pathlib import Path
from statistics import median

from comparison import plans
from comparison.engines import ENGINES, ROOT, SELKIE, TITLES, Engine, Failed
from comparison.steady import measure, threads_text
from comparison.views import PICKED
from zoo import dynamic

from .budget import seconds_each
from .judging import judge
from .messages import LEFT_OUT, NO_MODULE, shortened
from .paths import take_paths
from .subjects import new_shapes, shape_of

LONG = ("compile", "tract", "iree", "tvm")  # compile for long, or load few of these models
FEW = ("selkie", "ort", "openvino", "mnn")  # run with more threads than one in a quick run, too
LEAST_LIMIT = 4  # seconds
LEAST_TO_COMPILE = 20  # seconds for the first run in torch.compile
LEAST_NEW = 3  # shapes


def unavailable(engine):
    """Why a peer could not be installed, as its installer said it; None if it could."""
    note = ROOT / f".venv-bench/failed-{engine}"
    return note.read_text().strip() if note.exists() else None


class Visit:
    """A subject's engines with one number of threads. `results` has a record for each engine of this run."""

    def __init__(self, subject, path, threads, settings, end, cache):
        self.subject, self.path, self.threads, self.settings, self.end = subject, path, threads, settings, end
        self.cache, self.engines, self.refused = cache, {}, {}
        self.results = {}

    def limit(self, least=LEAST_LIMIT):
        """Seconds that a command may take: until the end of the row, or a little longer, but not beyond the run's."""
        if self.end is None:
            return self.settings.limit
        now = time.monotonic()
        wanted = max(least, self.end - now)
        return max(1.0, min(self.settings.limit, wanted, self.settings.last_end - now))

    def takes_part(self, name):
        """An engine that compiles for long is asked where there is time; with two threads, those that are used so."""
        if not self.settings.quick:
            return True
        return (self.threads == 1 and (name not in LONG or self.subject.broad)) or name in FEW

    def has_module(self):
        """torch runs the module that a model was exported from; it has no operator that picks boxes."""
        is_product = self.subject.id.startswith("matmul")
        return is_product or (dynamic.module_file(self.path).exists() and self.subject.id not in PICKED)

    def start(self, say):
        for name in [name for name in ENGINES if name in self.settings.engines]:
            record = {"subject": self.subject.id, "engine": name, "threads": self.threads, "message": None, "cases": {}}
            self.results[name] = record
            if why := unavailable(name):
                record["message"] = f"not available: {shortened(why)}"
            elif name in ("torch", "compile") and not self.has_module():
                record["message"] = NO_MODULE
            elif not self.takes_part(name):
                record["message"] = LEFT_OUT
            else:
                say(f"loading {TITLES[name]}, {threads_text(self.threads)}")
                self.start_one(name, record)

    def start_one(self, name, record):
        options, engine = (["--cache-dir", self.cache] if name == "selkie" else []), None
        try:
            engine = Engine(name, self.path, self.threads, self.limit(), options)
            record["load_s"] = engine.load(self.limit())["seconds"]
            record["load_bytes"] = engine.memory()["resident"] - engine.empty
            record["empty_bytes"] = engine.empty
            self.engines[name] = engine
        except Failed as error:
            record["message"] = self.refused[name] = shortened(error)
            if engine:
                engine.close()

    def time_cases(self, cases, say):
        for i, (case, inputs) in enumerate(cases.items()):
            say(f"{case}, {threads_text(self.threads)}")
            cells_left = (len(cases) - i) * max(1, len(self.engines))
            # A part of it is for the first runs and the comparison of answers.
            budget = 0.6 * seconds_each(self.end, self.settings.seconds, cells_left)
            for name, engine in self.engines.items():
                engine.limit = self.limit(LEAST_TO_COMPILE if name == "compile" and i == 0 else LEAST_LIMIT)
            for name, cell in measure(self.engines, self.refused, inputs, self.settings, budget).items():
                self.results[name]["cases"][case] = cell.record()
                if cell.message:
                    self.results[name]["message"] = shortened(cell.message)

    def time_new_shapes(self, cases, say):
        """The first run at shapes that the process has not seen, and a repeated one there."""
        seen = {shape_of(inputs) for inputs in cases.values()}
        shapes = new_shapes(self.subject, self.path, seen, self.settings.new_shapes)
        for name, engine in list(self.engines.items()) if shapes else []:
            say(f"new shapes in {TITLES[name]}")
            pairs = []
            try:
                engine.set_inputs(next(iter(cases.values())))
                engine.run()  # others had the caches
                for inputs in shapes:
                    engine.set_inputs(inputs)
                    pairs.append((engine.run()[0], median(engine.run(3))))
                    if self.end and time.monotonic() > self.end and len(pairs) >= LEAST_NEW:
                        break
            except Failed as error:
                self.results[name]["new_message"] = shortened(error)
                if engine.process.poll() is not None:
                    del self.engines[name]
            if pairs:
                ratios = [first / again for first, again in pairs]
                self.results[name]["new"] = {
                    "shapes": len(pairs), "median": median(ratios), "most": max(ratios),
                    "slowest_ms": 1000 * max(first for first, _ in pairs),
                }  # fmt: skip

    def finish(self):
        for name, engine in self.engines.items():
            memory = engine.memory()
            self.results[name] |= {"peak_bytes": memory["peak"] - engine.empty, "whole_bytes": memory["peak"]}
            engine.close()


def later_starts(subject, path, settings, cache, results):
    """Selkie once more with code from the cache, and from a compiled file; the sizes of both files."""
    record = next((r for r in results if r["engine"] == "selkie" and r["threads"] == 1), None)
    found = {"onnx_bytes": path.stat().st_size}
    if record is None or record["message"]:
        return found
    with tempfile.TemporaryDirectory(prefix="selkie-suite-") as folder:
        file, kept = Path(folder) / "model.selkie", ["--cache-dir", cache]
        record["load_again_s"] = load_seconds(path, settings, kept)
        done = subprocess.run([SELKIE, "compile", str(path), "-o", str(file), *kept], capture_output=True, text=True)
        if done.returncode == 0:
            record["load_compiled_s"] = load_seconds(file, settings, kept)
            found["selkie_bytes"] = file.stat().st_size
        else:
            found["selkie_message"] = shortened(done.stderr)
    return found


def load_seconds(path, settings, options):
    try:
        engine = Engine("selkie", path, 1, settings.limit, options)
    except Failed:
        return None
    try:
        return engine.load()["seconds"]
    except Failed:
        return None
    finally:
        engine.close()


def saved_by_planning(path):
    """Bytes of intermediate results with more and more planning; the message where a model has no plan."""
    try:
        found = plans.stages(path)
    except Exception as error:  # a model without a plan has its other rows
        return {"message": shortened(error)}
    return {key: found[key] for key in ("none", "fusion", "reuse", "order", "offsets", "bound")}


def visit(subject, path, settings, end, say):
    """(results, facts about the files and plans) of one subject."""
    cases, results, taken = subject.cases(path), [], None
    with tempfile.TemporaryDirectory(prefix="selkie-suite-") as cache:
        for threads in settings.threads:
            # Most of the row's time is for the first number of threads, which all engines take part in.
            now = time.monotonic()
            part = end and now + (end - now) * (0.7 if threads != settings.threads[-1] else 1.0)
            one = Visit(subject, path, threads, settings, part, cache)
            try:
                one.start(say)
                timed = cases if threads == settings.threads[0] or not settings.quick else last_of(cases)
                one.time_cases(timed, say)
                if threads == settings.threads[0]:
                    one.time_new_shapes(cases, say)
                    say("paths")
                    taken = take_paths(subject, path, one.engines, settings.path_inputs, part)
            finally:
                one.finish()
            results += one.results.values()
        judged = judge(path, cases, results, settings.limit, say)
        say("plans and files")
        facts = later_starts(subject, path, settings, cache, results)
    if "selkie" in settings.engines and subject.group != "matmul":
        facts["plan"] = saved_by_planning(path)
    return results, facts | {"cases": list(cases), "judged": judged, "paths": taken}


def last_of(cases):
    name = list(cases)[-1]
    return {name: cases[name]}
