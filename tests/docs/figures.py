"""Finds figures in README and docs that no command beside them reproduces: times, sizes and shares that were measured.

A table row, a list item or a paragraph that has such a figure must also name a command in backticks. Bounds are no
measurements: a figure after 'at most', 'at least', 'under', 'over' or 'bar of' needs none, nor does one that is a setting.
docs/benchmarks.md names its command at the top; docs/ops.md has no figures."""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
UNITS = r"(?:ms|µs|ns|s|seconds?|minutes?|[KMG]i?B(?:/s)?|GFLOP/s|%|times|×|million)"
FIGURE = re.compile(rf"(?<![\w.^/-])(?<!@ )\d[\d.,–]*\s?{UNITS}(?![\w/×])")
BOUND = re.compile(r"(at most|at least|under|over|bar of|until|limit of|every|unrolled \d or)\s+$")
COMMAND = re.compile(r"`(?:\./dev|bench/|tests/|build/|selkie |\.venv/bin/python |\w+_bench)[^`]*`|_bench\b")
EXCEPT = ("docs/ops.md", "docs/benchmarks.md")


def without_code(text):
    return re.sub(r"^ *```.*?^ *```$", lambda m: "\n" * m[0].count("\n"), text, flags=re.DOTALL | re.MULTILINE)


def items(text):
    """(line, text) of paragraphs, list items and table rows."""
    start, lines = 1, []
    for number, line in enumerate([*text.splitlines(), ""], 1):
        begins = not line.strip() or re.match(r"\s*([-*|]|\d+\.|#)", line)
        if begins and lines:
            yield start, "\n".join(lines)
            lines = []
        if line.strip():
            start = start if lines else number
            lines.append(line)


def unproven(item):
    """The figures of an item that need a command which it does not name."""
    if COMMAND.search(item):
        return []
    return [m[0] for m in FIGURE.finditer(item) if not BOUND.search(item[: m.start()].replace("\n", " "))]


def main():
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
    failures = [
        f"{path.relative_to(ROOT)}:{line}: {', '.join(found)}: no command here reproduces it"
        for path in pages
        if str(path.relative_to(ROOT)) not in EXCEPT
        for line, item in items(without_code(path.read_text()))
        if (found := unproven(item))
    ]
    print("\n".join(failures) or f"figures: every one in {len(pages)} pages names its command")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
