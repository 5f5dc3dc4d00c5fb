"""Index files are sorted and name what is there."""
import pathlib
import re
import sys


def main() -> int:
    root = pathlib.Path(__file__).resolve().parents[2]
    status = 0
    for name in ("src/ops/ops.def", "src/passes/passes.def"):
        rows = [line for line in (root / name).read_text().splitlines() if line and not line.startswith("//")]
        if rows != sorted(rows) or len(rows) != len(set(rows)):
            print(f"{name}: lines must be sorted and distinct")
            status = 1
        folder = (root / name).parent
        sources = "\n".join(p.read_text() for p in folder.rglob("*.cpp"))
        for kind, suffix in (("OP", "_op"), ("FAMILY", "_family"), ("PASS", "")):
            for entry in (re.match(rf"{kind}\((\w+)", row) for row in rows):
                if entry and not re.search(rf"\b{entry[1]}{suffix}\(", sources):
                    print(f"{name}: nothing defines {entry[1]}{suffix}()")
                    status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
