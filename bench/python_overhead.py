"""What a call from Python costs on a model of one node: Selkie's, onnxruntime's, and Selkie's from C++.

Run by bench/with_wheel bench/python_overhead.py. The exit code is 1 if a bar is missed: 3 us over the C++ call, and
below onnxruntime.
"""
import argparse
import re
import subprocess
import sys
import time

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper

import selkie

MOST_MICROSECONDS = 3


def one_node() -> bytes:
    graph = helper.make_graph([helper.make_node("Add", ["x", "one"], ["y"])], "g",
                              [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N"])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N"])],
                              [helper.make_tensor("one", TensorProto.FLOAT, [], [1])])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10).SerializeToString()


def least_microseconds(calls: dict, rounds: int = 200, times: int = 500) -> dict[str, float]:
    """The best of many rounds in which all take turns."""
    best = dict.fromkeys(calls, float("inf"))
    for _ in range(rounds):
        for name, call in calls.items():
            begin = time.perf_counter()
            for _ in range(times):
                call()
            best[name] = min(best[name], (time.perf_counter() - begin) / times * 1e6)
    return best


def from_cpp(program: str) -> float:
    text = subprocess.run([program], capture_output=True, text=True).stdout
    found = re.search(r"one addition\s+([\d.]+)", text)
    return float(found[1]) if found else float("nan")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cpp", help="driver_bench, which prints what the call takes in C++")
    options = parser.parse_args()
    content = one_node()
    x = np.ones(1, np.float32)
    model = selkie.compile(content, threads=1)
    bound = selkie.compile(content, threads=1, dims={"N": "1..512"})
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(content, settings, providers=["CPUExecutionProvider"])
    from selkie import ort
    alike = ort.InferenceSession(content, ort.SessionOptions())
    feeds = {"x": x}
    out = np.empty(1, np.float32)
    times = least_microseconds({
        "selkie: model(x)": lambda: model(x), "selkie: model(x), with facts about N": lambda: bound(x),
        "selkie: model({'x': x})": lambda: model(feeds), "selkie: model(x, out=y)": lambda: model(x, out=out),
        "selkie.ort: session.run(None, feeds)": lambda: alike.run(None, feeds),
        "onnxruntime: session.run(None, feeds)": lambda: session.run(None, feeds), "an empty call": lambda: None})
    for name, value in times.items():
        print(f"{name:40} {value:7.3f} us")
    passed = times["selkie: model(x)"] < times["onnxruntime: session.run(None, feeds)"]
    print(f"below onnxruntime: {'pass' if passed else 'FAIL'}")
    if options.cpp:
        cpp = min(from_cpp(options.cpp) for _ in range(2))
        over = times["selkie: model(x)"] - cpp
        print(f"{'selkie from C++':40} {cpp:7.3f} us; Python adds {over:.3f} us, bar {MOST_MICROSECONDS}: "
              f"{'pass' if over <= MOST_MICROSECONDS else 'FAIL'}")
        passed = passed and over <= MOST_MICROSECONDS
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
