"""What a comparison says: tables as they grow, bars met and missed, and the same as Markdown and JSON."""

import json
import os
import platform
import subprocess
import sys
from pathlib import Path

from .engines import ROOT, SELKIE, Engine, cores_for

PROGRESS = sys.stderr.isatty()


def progress(text=""):
    if PROGRESS:
        print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)


def number(value, digits=3):
    """A figure with as many significant digits as given, none after the point beyond them."""
    if value is None:
        return "–"
    whole = len(str(int(abs(value)))) if abs(value) >= 1 else 0
    return f"{value:.{max(0, digits - whole)}f}"


class Report:
    def __init__(self):
        self.lines, self.notes, self.data, self.missed, self.met = [], [], {}, [], 0

    def say(self, text=""):
        progress()
        print(text, flush=True)
        self.lines.append(text)

    def section(self, title):
        self.say(f"\n## {title}\n")

    def table(self, columns):
        """Starts a table; columns are (title, width), the first ones to the left."""
        self.widths = [max(width, len(title)) for title, width in columns]
        self.row([title for title, _ in columns])
        self.say("|" + "|".join("-" * (w + 1) + ("-" if i == 0 else ":") for i, w in enumerate(self.widths)) + "|")

    def row(self, cells):
        padded = [c.ljust(w) if i == 0 else c.rjust(w) for i, (c, w) in enumerate(zip(cells, self.widths))]
        self.say("| " + " | ".join(padded) + " |")

    def note(self, text):
        """A line below the table; the same one is kept once."""
        if text not in self.notes:
            self.notes.append(text)

    def end_table(self, *remarks):
        self.say()
        for line in [*remarks, *self.notes]:
            self.say(f"- {line}")
        self.notes = []

    def judge(self, name, value, bar, at_most=False):
        """Whether a figure reaches its bar; what has no figure does not."""
        passed = value is not None and (value <= bar if at_most else value >= bar)
        if passed:
            self.met += 1
        else:
            relation = "at most" if at_most else "at least"
            shown = "–" if value is None else f"{value:.3g}"
            self.missed.append(f"{name}: {shown}, must be {relation} {bar:.3g}")
        return passed

    def keep(self, section, record):
        self.data.setdefault(section, []).append(record)

    def finish(self):
        self.section("Bars")
        self.say(f"{self.met} met, {len(self.missed)} missed")
        for line in self.missed:
            self.say(f"- FAIL {line}")

    def write(self, markdown, as_json):
        if markdown:
            markdown.write_text("\n".join(self.lines) + "\n")
        if as_json:
            text = json.dumps(self.data | {"missed": self.missed, "met": self.met}, indent=1)
            as_json.write_text(text + "\n")


def output_of(*command):
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None


def machine():
    facts = {}
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        name, _, value = line.partition(":")
        facts.setdefault(name.strip(), value.strip())
    memory = int(Path("/proc/meminfo").read_text().split()[1]) >> 20
    load = os.getloadavg()[0]
    cpu = facts.get("model name", platform.machine())
    return f"{cpu}, {os.cpu_count()} cores, {memory} GiB; load average {load:.1f} at the start"


def roofs():
    """What src/kernels measures of one core, as it prints it."""
    core = str(next(iter(cores_for(1))))
    return output_of("taskset", "-c", core, str(Path(SELKIE).with_name("kernels_bench")), "roofs")


def head(report, versions, threads):
    commit = output_of("git", "-C", str(ROOT), "describe", "--always", "--dirty")
    report.say("# Selkie and its peers\n")
    report.say(f"- Machine: {machine()}")
    report.say(f"- {output_of(SELKIE, '--version')} at {commit}; " + ", ".join(f"{n} {v}" for n, v in versions.items()))
    clock = " of processor time" if Engine.by_processor_time else ""
    report.say(f"- f32, p50{clock}; engines take turns on the same cores; threads: {', '.join(map(str, threads))}")
    found = roofs()
    report.say("- Roofs of one core:" + ("" if found else " not measured (`./dev build release kernels_bench`)"))
    for line in (found or "").splitlines():
        report.say(f"  - {line}")
    report.data |= {"machine": machine(), "commit": commit, "versions": versions, "roofs": found}
