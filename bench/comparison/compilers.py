"""Peers that compile a model before they run it: torch.compile, IREE, TVM and tract. `worker.py` runs them as the others."""

import subprocess
import sys
import tempfile
from pathlib import Path


def declared(path):
    """Names of the model's inputs, in order, and of its outputs."""
    import onnx

    graph = onnx.load(path, load_external_data=False).graph
    weights = {weight.name for weight in graph.initializer}
    return [v.name for v in graph.input if v.name not in weights], [v.name for v in graph.output]


def as_list(results):
    return list(results) if isinstance(results, (list, tuple)) else [results]


class Tract:
    package = "tract"

    def __init__(self):
        import tract

        self.module = tract

    def load(self, path, threads):
        if threads != 1:
            raise RuntimeError("its Python package runs on one thread")
        self.names = declared(path)[0]
        self.model = self.module.onnx().load(str(path)).into_model().into_runnable()

    def bind(self, inputs):
        self.given = [inputs[name] for name in self.names]

    def run(self):
        self.results = self.model.run(self.given)

    def outputs(self):
        return [result.to_numpy() for result in self.results]


class Iree:
    package = "iree-base-runtime"

    def __init__(self):
        import iree.compiler
        import iree.runtime

        self.compiler, self.runtime = iree.compiler, iree.runtime

    def compiled(self, path):
        with tempfile.TemporaryDirectory(prefix="selkie-compare-") as folder:
            text = Path(folder) / "model.mlir"
            command = [sys.executable, "-m", "iree.compiler.tools.import_onnx", str(path), "-o", str(text)]
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode != 0:
                raise RuntimeError((done.stderr.strip().splitlines() or ["no message"])[-1])
            options = ["--iree-llvmcpu-target-cpu=host"]
            return self.compiler.compile_file(
                str(text), target_backends=["llvm-cpu"], input_type="onnx", extra_args=options
            )

    def load(self, path, threads):
        self.names = declared(path)[0]
        code = self.compiled(path)
        if threads > 1:
            self.runtime.flags.parse_flags(f"--task_topology_group_count={threads}")
        config = self.runtime.Config("local-sync" if threads == 1 else "local-task")
        self.context = self.runtime.SystemContext(config=config)
        module = self.runtime.VmModule.copy_buffer(self.context.instance, code)
        self.context.add_vm_module(module)
        found = [n for n in module.function_names if not n.startswith("__") and not n.endswith("$async")]
        self.call = self.context.modules[module.name][found[0]]
        self.device = config.device

    def bind(self, inputs):
        self.given = [self.runtime.asdevicearray(self.device, inputs[name]) for name in self.names]

    def run(self):
        self.results = as_list(self.call(*self.given))

    def outputs(self):
        return [result.to_host() for result in self.results]


class Tvm:
    package = "apache-tvm"

    def __init__(self):
        import tvm
        import tvm.relax.frontend.onnx

        self.module = tvm

    def load(self, path, threads):
        import onnx

        tvm, relax = self.module, self.module.relax
        self.names = declared(path)[0]
        module = relax.frontend.onnx.from_onnx(onnx.load(path), keep_params_in_input=False)
        module = relax.get_pipeline("zero")(module)
        device = tvm.cpu()
        tvm.get_global_func("runtime.config_threadpool")(-1, threads)
        code = tvm.compile(module, target=tvm.target.Target.from_device(device))
        self.call = relax.VirtualMachine(code, device)["main"]

    def bind(self, inputs):
        self.given = [self.module.runtime.tensor(inputs[name]) for name in self.names]

    def run(self):
        self.results = self.call(*self.given)

    def outputs(self):
        alone = hasattr(self.results, "numpy")
        return [result.numpy() for result in ([self.results] if alone else self.results)]


COMPILERS = {"iree": Iree, "tvm": Tvm, "tract": Tract}
