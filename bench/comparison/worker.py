"""A peer in its own process: `python -m comparison.worker ENGINE MODEL THREADS` takes the commands of `selkie bench --worker`."""

import importlib.metadata
import json
import os
import sys
import time
from pathlib import Path

import numpy as np

from .compilers import COMPILERS


class OnnxRuntime:
    package = "onnxruntime"

    def __init__(self):
        import onnxruntime

        self.module = onnxruntime

    def load(self, path, threads):
        options = self.module.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
        self.session = self.module.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])

    def bind(self, inputs):
        self.inputs, self.results = inputs, None
        self.binding = self.session.io_binding()
        for name, value in inputs.items():
            self.binding.bind_cpu_input(name, value)
        for output in self.session.get_outputs():
            self.binding.bind_output(output.name, "cpu")

    def run(self):
        if self.results is None:
            try:
                self.session.run_with_iobinding(self.binding)
                return
            except RuntimeError:  # bound outputs must have the rank that the file declares, also where that is wrong
                pass
        self.results = self.session.run(None, self.inputs)

    def outputs(self):
        return self.binding.copy_outputs_to_cpu() if self.results is None else self.results


class OpenVino:
    package = "openvino"

    def __init__(self):
        sys.modules["openvino_telemetry"] = None  # it would send reports, in a process that outlives this one
        import openvino

        self.module = openvino

    def load(self, path, threads):
        settings = {
            "PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": threads,
        }  # fmt: skip
        self.model = self.module.Core().compile_model(str(path), "CPU", settings)
        self.request = self.model.create_infer_request()

    def bind(self, inputs):
        self.tensors = {name: self.module.Tensor(value, shared_memory=True) for name, value in inputs.items()}
        for name, tensor in self.tensors.items():
            self.request.set_tensor(name, tensor)

    def run(self):
        self.request.infer(share_outputs=True)

    def outputs(self):
        return [self.request.get_output_tensor(i).data for i in range(len(self.model.outputs))]


class Mnn:
    package = "mnn"

    def __init__(self):
        import MNN.expr
        import MNN.nn

        self.module = MNN

    def load(self, path, threads):
        description = json.loads(path.with_suffix(".names.json").read_text())
        self.names = description["inputs"]
        settings = {"backend": "CPU", "precision": "high", "numThread": threads}
        runtime = self.module.nn.create_runtime_manager((settings,))
        self.net = self.module.nn.load_module_from_file(
            str(path), self.names, description["outputs"], runtime_manager=runtime, shape_mutable=True
        )
        if self.net is None:
            raise RuntimeError("MNN cannot load the model that it converted")

    def bind(self, inputs):
        kinds = {np.dtype(np.float32): self.module.expr.float, np.dtype(np.int32): self.module.expr.int}
        self.variables = []
        for name in self.names:
            value = inputs[name]
            value = np.ascontiguousarray(value.astype(np.int32) if value.dtype == np.int64 else value)
            variable = self.module.expr.const(value, value.shape, self.module.expr.NCHW, kinds[value.dtype])
            self.variables.append(variable)

    def run(self):
        self.results = self.net.onForward(self.variables)
        for result in self.results:
            result.read()  # waits for it

    def outputs(self):
        expr = self.module.expr
        return [expr.convert(r, expr.NCHW).read() for r in self.results]


class Torch:
    """Eager torch: a module of the zoo (`<model>.pt` beside the ONNX file), or a model that is one matrix product."""

    package = "torch"

    def __init__(self):
        import torch

        self.module = torch

    def load(self, path, threads):
        self.module.set_num_threads(threads)
        self.call = self.saved(path) if path.with_suffix(".pt").exists() else self.product(path)

    def saved(self, path):
        sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # where the module's classes are
        return self.module.load(path.with_suffix(".pt"), weights_only=False).eval()

    def product(self, path):
        import onnx

        graph = onnx.load(path).graph
        if [node.op_type for node in graph.node] != ["MatMul"]:
            raise RuntimeError("there is no torch module of this model")
        weight = self.module.from_numpy(onnx.numpy_helper.to_array(graph.initializer[0]).copy())
        return lambda x: self.module.mm(x, weight)

    def bind(self, inputs):
        self.given = [self.module.from_numpy(value) for value in inputs.values()]

    def run(self):
        with self.module.inference_mode():
            self.result = self.call(*self.given)

    def outputs(self):
        return [value.numpy() for value in (self.result if isinstance(self.result, tuple) else (self.result,))]


class TorchCompile(Torch):
    """The same module through torch.compile, for dynamic shapes; it compiles in the first run, and in later ones if it
    finds that it has to."""

    def load(self, path, threads):
        super().load(path, threads)
        self.call = self.module.compile(self.call, dynamic=True)


PEERS = {"ort": OnnxRuntime, "openvino": OpenVino, "mnn": Mnn, "torch": Torch, "compile": TorchCompile, **COMPILERS}


class Worker:
    def __init__(self, engine, path, threads):
        self.engine, self.path, self.threads, self.inputs, self.bound = engine, path, threads, {}, False

    def load(self, _):
        start = time.perf_counter()
        self.engine.load(self.path, self.threads)
        return {"load_ms": 1000 * (time.perf_counter() - start)}

    def input(self, text):
        name, path = text.split("=", 1)
        self.inputs[name], self.bound = np.load(path), False
        return {}

    def run(self, text):
        if not self.bound:
            self.engine.bind(self.inputs)
            self.bound = True
        times, run, now = [], self.engine.run, time.perf_counter_ns
        for _ in range(int(text)):
            begin = now()
            run()
            times.append(now() - begin)
        return {"ns": times}

    def outputs(self, folder):
        values = self.engine.outputs()
        for i, value in enumerate(values):
            np.save(Path(folder) / f"{i}.npy", value)
        return {"outputs": len(values)}


def first_words(error):
    """Of the error's text, without the lines that only say where in its sources a peer noticed it."""
    lines = [line.strip() for line in str(error).splitlines()]
    telling = [line for line in lines if line and not line.startswith(("Exception from", "FrontEnd API", "Check 'false'"))]
    return f"{type(error).__name__}: {' '.join(telling)}"[:300]


def main(name, path, threads):
    # Libraries print to standard output as they like: that goes to standard error, and answers to where it was.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    worker = Worker(PEERS[name](), Path(path), int(threads))

    def say(answer):
        print(json.dumps(answer), file=answers, flush=True)

    say({"version": importlib.metadata.version(PEERS[name].package)})
    for line in sys.stdin:
        command, _, rest = line.rstrip("\n").partition(" ")
        try:
            say(getattr(worker, command)(rest))
        except Exception as error:  # a peer that fails is a result
            say({"error": first_words(error)})


if __name__ == "__main__":
    main(*sys.argv[1:])
