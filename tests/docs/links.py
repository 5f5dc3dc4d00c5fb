"""Finds links of README and docs that lead nowhere, and pages that the site's navigation leaves out. `./dev docs`, which is
strict about both, needs the builder of the site; this needs nothing."""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LINK = re.compile(r"\]\(([^)\s#]+)(?:#[^)]*)?\)")
# What tools/docs/stage.py makes.
GENERATED = {
    "contributing.md", "adr/index.md", "reference/cli.md", "reference/python.md", "c_api.md", "images/plan.svg", "images/dynamic.html",
}  # fmt: skip


def leads_somewhere(page, target):
    place = (page.parent / target).resolve()
    if place.exists():
        return True
    docs = ROOT / "docs"
    return place.is_relative_to(docs) and str(place.relative_to(docs)) in GENERATED


def broken_links(page):
    text = re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text(), flags=re.DOTALL)
    targets = [target for target in LINK.findall(text) if "://" not in target]
    return [f"{page.relative_to(ROOT)}: {target} leads nowhere" for target in targets if not leads_somewhere(page, target)]


def navigation():
    """Pages of mkdocs.yml that are not there, and pages that it does not name; decisions are listed on a page of their own."""
    named = set(re.findall(r":\s+([\w/]+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE))
    pages = {str(path.relative_to(ROOT / "docs")) for path in (ROOT / "docs").rglob("*.md")} | {
        name for name in GENERATED if name.endswith(".md")
    }
    missing = [f"mkdocs.yml: there is no page {name}" for name in sorted(named - pages)]
    unnamed = [name for name in sorted(pages - named) if not name.startswith("adr/")]
    return missing + [f"mkdocs.yml: no entry for docs/{name}" for name in unnamed]


def main():
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
    found = [line for page in pages for line in broken_links(page)] + navigation()
    print("\n".join(found) or f"links: all of {len(pages)} pages lead somewhere")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
