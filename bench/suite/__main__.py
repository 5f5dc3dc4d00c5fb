"""`./dev bench`: Selkie and its peers on the zoo, in one run. Groups: a, b, c, d, matmul; all unless given.

Prints tables; --json keeps the figures, and --report makes tables and pictures of figures that were kept."""

import argparse
import json
import sys
from pathlib import Path


def options():
    parser = argparse.ArgumentParser(
        prog="./dev bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("groups", nargs="*", metavar="GROUP", help="a, b, c, d, matmul")
    parser.add_argument("--quick", action="store_true", help="under 10 minutes: small models where full ones are large")
    parser.add_argument("--models", metavar="IDS", help="ids, separated by commas; c1 is also c1_op, c1_loop, …")
    parser.add_argument("--engines", metavar="NAMES", help="selkie,ort,openvino,mnn,torch,compile,tract,iree,tvm")
    parser.add_argument("--threads", metavar="LIST", help="default: 1,2")
    parser.add_argument("--seconds", type=float, help="per engine and shape, at most; default: 1, with --quick 0.3")
    parser.add_argument("--minutes", type=float, help="for the whole run; default: no limit, with --quick 9")
    parser.add_argument("--limit", type=float, help="seconds that one load or run may take; default: 120, with --quick 30")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write tables, and pictures into a folder beside them")
    parser.add_argument("--report", type=Path, metavar="FILE.json", help="do not run: take the figures of that run")
    return parser.parse_args()


def main(given):
    if given.report:
        data = json.loads(given.report.read_text())
    else:
        from .collect import run

        data = run(given)
    if given.json:
        given.json.write_text(json.dumps(data, indent=1) + "\n")
    from .page import text_of, write

    if given.markdown:
        write(data, given.markdown)
        print(f"wrote {given.markdown} and the pictures beside it")
    else:
        print(text_of(data))


if __name__ == "__main__":
    sys.exit(main(options()))
