"""Runs the code blocks of pages of documentation, page by page and block by block, each page in a folder of its own.

`python` blocks share one namespace. `sh` blocks are scripts. In `console` blocks each line after `$ ` is a command, and the
lines below are what it prints. A `text` block right behind a `python` or `sh` block is what that prints. `…` stands for
anything. A block whose first line is `# not run in tests: REASON` is not run. Blocks of other languages are only shown."""

import contextlib
import io
import os
import re
import subprocess
import sys
import tempfile
import textwrap
import traceback
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NOT_RUN = "# not run in tests: "
FENCE = re.compile(r"^( *)```(\w*)[^\n]*\n(.*?)^\1```$", re.DOTALL | re.MULTILINE)
LIMIT = 60  # seconds for one command


class Wrong(Exception):
    pass


@dataclass
class Block:
    language: str
    code: str
    line: int
    expected: str | None = None


def blocks(text):
    """Those that are run, with what they should print."""
    found, last_end = [], None
    for match in FENCE.finditer(text):
        language, code = match[2], textwrap.dedent(match[3])
        if language == "text" and last_end is not None and not text[last_end : match.start()].strip():
            found[-1].expected = code
            last_end = None
        elif language in ("python", "sh", "console"):
            found.append(Block(language, code, text.count("\n", 0, match.start()) + 1))
            last_end = match.end()
        else:
            last_end = None
    return found


def matches(expected, said):
    """`…` is anything; space at the ends of lines does not count."""
    expected, said = ("\n".join(line.rstrip() for line in text.strip().splitlines()) for text in (expected, said))
    return re.fullmatch(".*".join(map(re.escape, expected.split("…"))), said, re.DOTALL) is not None


def compare(expected, said):
    if not matches(expected, said):
        raise Wrong(f"printed\n{said}\nbut the page shows\n{expected}")


def run_shell(code, may_fail=False):
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", code], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=LIMIT
    )
    if done.returncode != 0 and not may_fail:
        raise Wrong(f"exit code {done.returncode}:\n{done.stdout}")
    return done.stdout


def run_console(code):
    """A command may fail if the page shows what it says."""
    for part in re.split(r"^\$ ", code, flags=re.MULTILINE)[1:]:
        command, _, expected = part.partition("\n")
        while command.endswith("\\"):
            more, _, expected = expected.partition("\n")
            command = command[:-1] + more
        said = run_shell(command, may_fail=bool(expected.strip()))
        if expected.strip():
            compare(expected, said)


def run_block(block, names):
    if block.language == "console":
        run_console(block.code)
        return
    if block.language == "sh":
        said = run_shell(block.code)
    else:
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(compile(block.code, "page", "exec"), names)
        said = printed.getvalue()
    if block.expected is not None:
        compare(block.expected, said)


def run_page(path):
    """(blocks run, blocks not run, failures)."""
    names, done, skipped, failures = {"__name__": "page"}, 0, 0, []
    with tempfile.TemporaryDirectory(prefix="selkie-docs-") as folder:
        for name in ("examples", "tests", "build", "dev"):
            (Path(folder) / name).symlink_to(ROOT / name)
        os.chdir(folder)
        for block in blocks(path.read_text()):
            if block.code.startswith(NOT_RUN) and len(block.code.splitlines()[0]) > len(NOT_RUN):
                skipped += 1
                continue
            try:
                run_block(block, names)
                done += 1
            except Exception as error:
                text = str(error) if isinstance(error, Wrong) else traceback.format_exc(limit=2)
                failures.append(f"{path.relative_to(ROOT)}:{block.line}: {text}")
        os.chdir(ROOT)
    return done, skipped, failures


def pages(arguments):
    if arguments:
        return [Path(name).resolve() for name in arguments]
    return [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


def main(arguments):
    os.environ["PATH"] = f"{ROOT}/build/release/bin:{Path(sys.executable).parent}:{os.environ['PATH']}"
    failed = []
    for path in pages(arguments):
        done, skipped, failures = run_page(path)
        if done or skipped or failures:
            print(f"{path.relative_to(ROOT)}: {done} blocks run, {skipped} not run, {len(failures)} failed", flush=True)
        failed += failures
    for failure in failed:
        print(f"FAILED {failure}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
