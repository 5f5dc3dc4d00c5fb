"""Holds what Selkie claims about shapes against runs of every zoo model on each of its examples."""

import argparse
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import zoo

ROOT = Path(__file__).resolve().parents[2]
CACHE = ROOT / ".cache/bench"


def check(binary, model, example, folder):
    """The number of facts that held in one run, or what went wrong."""
    command = [binary, "run", str(model), "--target", "ref", "--facts"]
    for name, value in np.load(example, allow_pickle=False).items():
        file = Path(folder) / f"{len(command)}.npy"
        np.save(file, value)
        command += ["--input", f"{name}={file}"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    except subprocess.TimeoutExpired:
        return "no answer within 600 s"
    found = re.search(r"^facts: (\d+)", done.stdout, re.M)
    return int(found[1]) if done.returncode == 0 and found else done.stderr.strip()[:500]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", default="", help="ids, separated by commas; all by default")
    arguments = parser.parse_args()
    binary = os.environ.get("SELKIE", str(ROOT / "build/release/bin/selkie"))
    total = runs = 0
    failed = []
    for model in zoo.select(arguments.models.split(",")) if arguments.models else zoo.models().values():
        source = zoo.ensure(model, CACHE / "zoo")
        for example in zoo.examples(source):
            with tempfile.TemporaryDirectory() as folder:
                result = check(binary, source, example, folder)
            runs += 1
            if isinstance(result, int):
                total += result
            else:
                failed.append(f"{model.id} on {Path(example).name}: {result}")
            print(f"{model.id} {Path(example).name}: {result}", flush=True)
    print(f"{runs} runs, {total} facts held, {len(failed)} failed")
    for line in failed:
        print("FAIL", line)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
