"""A run of the suite: every subject in its turn, collected into one record that becomes JSON, tables and pictures."""

import datetime
import importlib.metadata
import os
import shlex
import sys
import time

import zoo
from comparison.engines import ENGINES, ROOT, SELKIE, TITLES
from comparison.report import machine, number, output_of
from comparison.worker import PEERS

from .bar import Bar
from .budget import Budget
from .footprint import footprints
from .messages import shortened
from .subjects import GROUPS, QUICK_LEAVES_OUT, subjects
from .visit import visit

QUICK_SECONDS = 520  # of ten minutes; the rest is for starting, a last row that takes longer than it should, and the report
SPARE_SECONDS = 60  # after which nothing is waited for
BROAD_WEIGHT = 5
OUT_OF_TIME = "not run: the time of this run was spent"


class Settings:
    def __init__(self, given):
        self.quick = given.quick
        self.rounds = 3 if given.quick else 7
        self.seconds = given.seconds or (0.3 if given.quick else 1.0)
        self.limit = given.limit or (30 if given.quick else 120)
        self.new_shapes = 6 if given.quick else 30
        self.path_inputs = 24 if given.quick else 100
        cores = len(os.sched_getaffinity(0))
        asked = [int(n) for n in given.threads.split(",")] if given.threads else [n for n in (1, 2) if n <= cores]
        self.threads = sorted(asked)
        self.engines = [name for name in ENGINES if name in chosen(given.engines.split(",") if given.engines else ENGINES)]
        self.total = given.minutes * 60 if given.minutes else QUICK_SECONDS if given.quick else None
        self.last_end = None if self.total is None else time.monotonic() + self.total + SPARE_SECONDS


def chosen(names):
    for name in names:
        if name not in ENGINES:
            raise SystemExit(f"no engine {name}; there are: {' '.join(ENGINES)}")
    return names


def versions(engines):
    found = {}
    for name in [name for name in engines if name in PEERS]:
        try:
            found[PEERS[name].package] = importlib.metadata.version(PEERS[name].package)
        except importlib.metadata.PackageNotFoundError:
            found[PEERS[name].package] = "not installed"
    return found


def command(given):
    """The command, without where it wrote to."""
    flags = ["--quick"] if given.quick else []
    for name in ("models", "engines", "threads", "seconds", "minutes", "limit"):
        if (value := getattr(given, name)) is not None:
            flags += [f"--{name}", str(value)]
    return shlex.join(["./dev", "bench", *given.groups, *flags])


def head(given, settings, groups):
    return {
        "machine": machine(), "selkie": output_of(SELKIE, "--version"),
        "commit": output_of("git", "-C", str(ROOT), "describe", "--always", "--dirty"),
        "versions": versions(settings.engines), "engines": settings.engines, "threads": settings.threads, "groups": groups,
        "quick": settings.quick, "seconds_each": settings.seconds, "limit_s": settings.limit,
        "left_out": sorted(QUICK_LEAVES_OUT) if settings.quick else [], "command": command(given),
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
    }  # fmt: skip


def times_line(subject, results):
    """The fastest case's times in one line, for someone who watches."""
    parts = []
    for record in results:
        timed = [case["p50_ms"] for case in record["cases"].values() if case["p50_ms"] and case["right"]]
        if record["threads"] == results[0]["threads"] and timed:
            parts.append(f"{TITLES[record['engine']]} {number(min(timed))}")
    return f"{subject.title}: " + (", ".join(parts) + " ms" if parts else "no times")


def run(given):
    settings = Settings(given)
    if not os.access(SELKIE, os.X_OK):
        raise SystemExit("build/release/bin/selkie is missing: ./dev build release selkie makes it")
    groups = [name.lower() for name in given.groups] or list(GROUPS)
    for name in groups:
        if name not in GROUPS:
            raise SystemExit(f"no group {name}; there are: {' '.join(GROUPS)}")
    rows = subjects(groups, settings.quick, given.models.split(",") if given.models else None)
    data = head(given, settings, groups) | {"subjects": [], "results": []}
    data["footprint"] = [{"engine": name} | record for name, record in footprints(settings.engines)]
    bar, budget = Bar(len(rows)), Budget(settings.total, [BROAD_WEIGHT if s.broad else 1 for s in rows])
    try:
        for subject in rows:
            take_row(subject, settings, budget, bar, data)
    except KeyboardInterrupt:
        print("interrupted; the report has what is finished", file=sys.stderr)
    data["seconds"] = round(bar.seconds)
    return data


def take_row(subject, settings, budget, bar, data):
    """Adds the subject's results, or why there are none: one model must not hide the others."""
    record = {"id": subject.id, "group": subject.group, "title": subject.title, "message": None}
    end, results = budget.next_row(), []
    data["subjects"].append(record)
    if budget.left is not None and budget.left <= 0:
        record["message"] = OUT_OF_TIME
    else:
        try:
            bar.show(f"{subject.title}: exporting")
            path = zoo.ensure(subject.model, subject.folder)
            results, facts = visit(subject, path, settings, end, lambda text: bar.show(f"{subject.title}: {text}"))
            record |= facts
        except Exception as error:
            record["message"] = shortened(f"{type(error).__name__}: {error}")
    data["results"] += results
    bar.finish_row(record["message"] and f"{subject.title}: {record['message']}" or times_line(subject, results))
