"""The report of the benchmark suite, made of the figures of a small run that are written down here."""

import sys
import xml.etree.ElementTree as xml

from suite.messages import shortened
from suite.page import text_of


def case(ms, right=True):
    return {"p50_ms": ms, "least_ms": ms, "first_ms": 2 * ms, "runs": 3, "error": 1e-6, "right": right, "message": None}


def result(engine, cases, message=None):
    return {
        "subject": "b1", "engine": engine, "threads": 1, "message": message, "cases": cases, "load_s": 0.5, "peak_bytes": 3 << 20,
        "new": {"shapes": 2, "median": 1.1, "most": 1.2, "slowest_ms": 4.0},
    }  # fmt: skip


NAMES = ["S 1", "S 10", "S 100"]
DATA = {
    "machine": "a machine", "selkie": "selkie 0", "commit": "abc", "versions": {"onnxruntime": "1"}, "quick": True,
    "engines": ["selkie", "ort", "mnn", "tvm"], "threads": [1], "groups": ["a", "b"], "seconds_each": 0.3, "limit_s": 30,
    "command": "./dev bench b --quick", "date": "today", "seconds": 61,
    "subjects": [
        {"id": "a1", "group": "a", "title": "a1 first", "message": "could not be made"},
        {
            "id": "b1", "group": "b", "title": "b1 second", "message": None, "cases": NAMES, "onnx_bytes": 1 << 20,
            "selkie_bytes": 2 << 20, "plan": {"none": 100, "fusion": 60, "reuse": 40, "order": 40, "offsets": 30, "bound": 30},
            "paths": {
                "inputs": 8, "different": 2, "error": 1e-6, "paths": 5, "decisions": "3 of 5", "torch_different": None, "message": None,
            },
            "judged": {"message": None, "moved": 0.01, "bar": 0.02, "engines": {
                "selkie": {"judged": "parts", "error": 1e-7, "inside": 0.0, "message": None, "whole": 0.01},
                "ort": {"judged": "whole", "error": None, "inside": None, "message": "has no parts", "whole": 0.0},
            }},
        },
    ],
    "results": [
        result("selkie", {name: case(ms) for name, ms in zip(NAMES, (1, 2, 8))}),
        result("ort", {name: case(ms) for name, ms in zip(NAMES, (2, 3, 4))}),
        result("mnn", {name: case(0.5, right=False) for name in NAMES}),
        result("tvm", {}, "no such <operator>"),
    ],
    "footprint": [{"engine": "selkie", "what": "a wheel", "bytes": 5 << 20, "library_bytes": None}],
}  # fmt: skip
EXPECTED = {
    "the machine": "- Machine: a machine",
    "the command": "`./dev bench b --quick`",
    "a row with the ratio to the best peer that is right": "| b1 second, S 1 | 1.00 | 2.00 | (0.500) | † | 2.00 (ORT) |",
    "a loss": "| b1 second, S 100 | 1 | ORT | 4.00 | 8.00 | 0.500 (0.500) |",
    "a model that is missing": "a1 first: could not be made",
    "a failure with its message": "**TVM**, b1: `no such <operator>`",
    "a wrong peer": "| MNN | 1 | 0 | 1 |",
    "paths and other final answers": "| b1 second | 8 | 5 | 3 of 5 | 2 of 8 (25 %) | 1e-06 | · |",
    "a model judged by its parts": "| Selkie | parts and whole | 1e-07 | 0e+00 | 1e-02 |",
    "an engine that does not take the parts": "| ONNX Runtime | whole only | † | † | 0e+00 |",
}


def main():
    pictures = {}

    def keep(name, svg):
        pictures[name] = xml.fromstring(svg)
        return ""

    text = text_of(DATA, keep)
    missing = [f"report: {what} is not there: {line}" for what, line in EXPECTED.items() if line not in text]
    if shortened("no: [04:18:31] :220: Op") != shortened("no: [23:59:01] :220: Op"):
        missing.append("report: messages differ by the time of day")
    if set(pictures) != {"latency_b", "memory", "planning"}:
        missing.append(f"report: pictures are {sorted(pictures)}")
    print("\n".join(missing) or "report: tables and pictures are as they should be")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
