#!/usr/bin/env python3
"""Compares Selkie with onnxruntime, OpenVINO, MNN and torch on models of full size, in one run.

Build first: `./dev build release selkie kernels_bench`. The first call installs the peers into .venv-bench."""

import argparse
import os
import subprocess
import sys
from pathlib import Path

BENCH = Path(__file__).resolve().parent


def options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", help="ids or beginnings of ids, separated by commas; all unless given")
    parser.add_argument("--engines", default="selkie,ort,openvino,mnn,torch", help="default: %(default)s")
    parser.add_argument("--threads", help="default: 1,2; with --quick 1")
    parser.add_argument("--section", default="steady,matmul,memory,peaks,ablation,newshape,compile,static,correct", help="also: flow, paths, growth; default: %(default)s")
    parser.add_argument("--quick", action="store_true", help="fewer rounds and shapes: does it run, not how fast it is")
    parser.add_argument("--seconds", type=float, help="per engine and shape; default: 2; with --quick 0.3")
    parser.add_argument(
        "--limit", type=float, default=60, help="seconds that one command may take; default: %(default)s"
    )
    parser.add_argument(
        "--processor-time", action="store_true", help="count an engine's processor time, for a machine that others use, too"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures here")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="also write the report here")
    return parser.parse_args()


def enter_environment():
    """Goes on in the environment of the pinned peers."""
    files = [str(BENCH / "rdp/requirements.txt"), str(BENCH / "requirements.txt")]
    made = subprocess.run([str(BENCH / "environment"), *files], stdout=subprocess.PIPE, text=True)
    if made.returncode != 0:
        raise SystemExit("the environment of the peers could not be made")
    python = made.stdout.strip()
    if Path(sys.prefix).resolve() != Path(python).parents[1].resolve():
        os.execv(python, [python, *sys.argv])


if __name__ == "__main__":
    given = options()
    enter_environment()
    from comparison.sections import run

    sys.exit(run(given))
