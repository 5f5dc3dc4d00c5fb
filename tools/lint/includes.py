"""Who may include whom (design §2): each folder of src/ may include itself and the folders listed for it; `selkie` is
include/selkie."""
import pathlib
import re
import sys

ALLOWED = {
    "base": set(),
    "sym": {"base"},
    "ir": {"base", "sym"},
    "kir": {"base", "sym"},
    "kernels": {"base"},
    "program": {"base", "sym"},
    "runtime": {"base", "sym", "program", "kernels"},
    "ops": {"base", "sym", "ir", "kir"},
    "onnx": {"base", "sym", "ir", "ops"},
    "interp": {"base", "sym", "ir", "ops"},
    "analysis": {"base", "sym", "ir", "ops"},
    "passes": {"base", "sym", "ir", "ops", "interp", "analysis"},
    "plan": {"base", "sym", "ir", "kir", "ops", "analysis"},
    "codegen": {"base", "sym", "ir", "kir", "ops", "analysis", "plan", "program"},
    "driver": {"base", "sym", "ir", "kir", "kernels", "ops", "analysis", "passes", "interp", "codegen", "compiler",
               "program", "runtime"},
    "api": {"selkie", "base", "sym", "ir", "ops", "onnx", "analysis", "interp", "driver", "program", "runtime"},
    "compiler": {"base", "sym", "ir", "kir", "kernels", "ops", "analysis", "passes", "plan", "codegen", "program"},
}


def main() -> int:
    root = pathlib.Path(__file__).resolve().parents[2]
    problems = []
    for path in sorted((root / "src").rglob("*")):
        if path.suffix not in {".h", ".cpp"}:
            continue
        folder = path.relative_to(root / "src").parts[0]
        if folder not in ALLOWED:
            problems.append(f"{path.relative_to(root)}: folder '{folder}' is not listed in {__file__}")
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            match = re.match(r'#include "([a-z_]+)/', line)
            if match and match[1] != folder and match[1] not in ALLOWED[folder]:
                problems.append(f"{path.relative_to(root)}:{number}: {folder} may not include {match[1]}")
    print("\n".join(problems), end="\n" if problems else "")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
