"""Assembles the pages of the documentation site in build/docs: those of docs/, and what is generated from sources: the
references of the command line, of the Python package and of the headers, and pictures of a plan and a model."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import cli_reference
import header_reference
import python_reference

ROOT = Path(__file__).resolve().parents[2]
SELKIE = ROOT / "build/release/bin/selkie"
TARGET = ROOT / "build/docs"
EXAMPLE = "examples/dynamic.onnx"


def picture(name, *command):
    path = TARGET / "images" / name
    said = subprocess.run([str(SELKIE), *command, str(path)], cwd=ROOT, capture_output=True, text=True)
    if said.returncode != 0:
        sys.exit(f"{name}: {said.stderr}")


def contributing():
    """CONTRIBUTING.md as a page: its links lead to the pages beside it."""
    return (ROOT / "CONTRIBUTING.md").read_text().replace("](docs/", "](")


def without_links_outside(page):
    """The text of a page whose links to files outside docs/, which the site does not have, are only their texts."""

    def kept(match):
        place = (page.parent / match[2]).resolve()
        return match[0] if place.is_relative_to(TARGET) or "://" in match[2] else match[1]

    return re.sub(r"\[([^\]]*)\]\(([^)#\s]+)[^)]*\)", kept, page.read_text())


def decisions():
    """A list of the ADRs by their titles."""
    listed = [
        f"- [{path.read_text().splitlines()[0].lstrip('# ')}]({path.name})" for path in sorted((ROOT / "docs/adr").glob("0*.md"))
    ]
    intro = "# Decisions\n\nOne page for each decision that a newcomer would question: context, decision, cost.\n\n"
    return intro + "\n".join(listed) + "\n"


def c_and_cpp():
    """The guide, where there is one, and what the headers say."""
    guide = ROOT / "docs/c_api.md"
    headers = sorted((ROOT / "include/selkie").glob("*.h*"))
    return (guide.read_text() if guide.exists() else "# C and C++\n") + "\n" + header_reference.page(headers)


def main():
    shutil.rmtree(TARGET, ignore_errors=True)
    shutil.copytree(ROOT / "docs", TARGET)
    (TARGET / "reference").mkdir()
    pages = {
        "contributing.md": contributing(),
        "adr/index.md": decisions(),
        "reference/cli.md": cli_reference.page(SELKIE),
        "reference/python.md": python_reference.page(ROOT / "python/selkie"),
        "c_api.md": c_and_cpp(),
    }
    for name, text in pages.items():
        (TARGET / name).write_text(text)
    for page in TARGET.rglob("*.md"):
        page.write_text(without_links_outside(page))
    picture("plan.svg", "plan", EXAMPLE, "--dims", "B=1,S=128", "--svg")
    picture("dynamic.html", "explain", EXAMPLE, "--html")


if __name__ == "__main__":
    main()
