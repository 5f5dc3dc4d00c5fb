"""Runs other people's ONNX test corpora and holds the result against ledgers.

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


def main() -> int:
    update = "--update" in sys.argv
    status = 0
    for name, folders in CORPORA.items():
        ledger = pathlib.Path(__file__).with_name(f"{name}.ledger")
        command = [str(ROOT / "build/release/bin/selkie"), "verify", "--json", "--timeout", "300", *folders]
        run = subprocess.run(command, capture_output=True, text=True)
        if run.returncode not in (0, 1) or not run.stdout:
            print(f"{name}: selkie verify ended with {run.returncode}: {run.stderr}")
            return 1
        result = json.loads(run.stdout)
        failures = {f["case"]: f["reason"].splitlines()[0] for f in result["failures"]}
        expected, listed = read_ledger(ledger)
        share = result["passed"] / max(result["total"], 1)
        print(f"{name}: {result['total']} cases, {result['passed']} passed ({share:.2%}), "
              f"{result['differs']} differ, {result['errors']} errors; bar {BAR:.0%}; "
              f"{result['facts']} facts of the shape analysis held")
        if update:
            lines = [f"# {name}: every case that does not pass, and why. tests/corpus/check.py holds the corpus against this.",
                     f"cases: {result['total']}"]
            lines += [f"{case}: {listed.get(case, reason)}" for case, reason in sorted(failures.items())]
            ledger.write_text("\n".join(lines) + "\n")
            continue
        problems = [f"{case} fails and is not in the ledger: {reason}" for case, reason in failures.items() if case not in listed]
        problems += [f"{case} is in the ledger, but passes" for case in listed if case not in failures]
        if result["total"] < max(expected, 1):
            problems.append(f"the corpus has {result['total']} cases, but the ledger says {expected}")
        if share < BAR:
            problems.append(f"{share:.2%} is below the bar")
        for problem in problems:
            print(f"{name}: {problem}")
        status |= bool(problems)
    return status


if __name__ == "__main__":
    sys.exit(main())
