"""Runs other people's ONNX test corpora on both targets and holds the results against ledgers.

A ledger lists every case that does not pass, with the reason. The check fails if a listed case passes, an unlisted one
fails, the corpus has fewer cases than the ledger says, or fewer than 98 % pass. --update rewrites the ledgers' lines;
their reasons are then the tool's own messages, to be read and edited.
"""
import glob
import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
BAR = 0.98
CORPORA = {
    "onnx-1.22.0": glob.glob(str(ROOT / ".venv/lib/python3*/site-packages/onnx/backend/test/data")),
    "debian-1.12": ["/usr/share/libonnx-testdata/data"],
}


def read_ledger(path: pathlib.Path) -> tuple[int, dict[str, str]]:
    cases, listed = 0, {}
    for line in path.read_text().splitlines() if path.exists() else []:
        if line.startswith("cases: "):
            cases = int(line.removeprefix("cases: "))
        elif line and not line.startswith("#"):
            name, _, reason = line.partition(": ")
            listed[name] = reason
    return cases, listed


def verify(target: str, folders: list[str]) -> dict:
    command = [str(ROOT / "build/release/bin/selkie"), "verify", "--json", "--target", target, "--timeout", "300", *folders]
    run = subprocess.run(command, capture_output=True, text=True)
    if run.returncode not in (0, 1) or not run.stdout:
        sys.exit(f"selkie verify --target {target} ended with {run.returncode}: {run.stderr}")
    return json.loads(run.stdout)


def problems_of(result: dict, failures: dict[str, str], expected: int, listed: dict[str, str]) -> list[str]:
    problems = [f"{case} fails and is not in the ledger: {reason}" for case, reason in failures.items() if case not in listed]
    problems += [f"{case} is in the ledger, but passes" for case in listed if case not in failures]
    if result["total"] < max(expected, 1):
        problems.append(f"the corpus has {result['total']} cases, but the ledger says {expected}")
    if result["passed"] < BAR * result["total"]:
        problems.append(f"{result['passed']} of {result['total']} is below the bar")
    return problems


def main() -> int:
    update = "--update" in sys.argv
    status = 0
    for name, folders in CORPORA.items():
        ledger = pathlib.Path(__file__).with_name(f"{name}.ledger")
        expected, listed = read_ledger(ledger)
        for target in ("ref",) if update else ("ref", "cpu"):
            result = verify(target, folders)
            failures = {f["case"]: f["reason"].splitlines()[0] for f in result["failures"]}
            share = result["passed"] / max(result["total"], 1)
            facts = f"; {result['facts']} facts of the shape analysis held" if target == "ref" else ""
            print(f"{name}, target {target}: {result['total']} cases, {result['passed']} passed ({share:.2%}), "
                  f"{result['differs']} differ, {result['errors']} errors; bar {BAR:.0%}{facts}")
            if update:
                lines = [f"# {name}: every case that does not pass, and why. tests/corpus/check.py holds the corpus against this.",
                         f"cases: {result['total']}"]
                lines += [f"{case}: {listed.get(case, reason)}" for case, reason in sorted(failures.items())]
                ledger.write_text("\n".join(lines) + "\n")
                continue
            problems = problems_of(result, failures, expected, listed)
            for problem in problems:
                print(f"{name}, target {target}: {problem}")
            status |= bool(problems)
    return status


if __name__ == "__main__":
    sys.exit(main())
