"""The engines that are compared, each a process that takes commands: how one is started, asked, paused and ended."""

import ctypes
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import onnx

ROOT = Path(__file__).resolve().parents[2]
SELKIE = os.environ.get("SELKIE", str(ROOT / "build/release/bin/selkie"))
ENGINES = ("selkie", "ort", "openvino", "mnn", "torch", "compile", "tract", "iree", "tvm")
TITLES = {
    "selkie": "Selkie", "ort": "ORT", "openvino": "OV", "mnn": "MNN", "torch": "torch", "compile": "torch.compile",
    "tract": "tract", "iree": "IREE", "tvm": "TVM",
}  # fmt: skip


class Failed(Exception):
    """An engine that refused, crashed or took too long; the text is what is shown in its place."""


# The converter as it is behind MNN's own command, which would install a package and send a report for each model.
MNN_CONVERT = "import sys, _tools; _tools.mnnconvert(sys.argv)"


def reason_of(done):
    """What a converter that failed said of it."""
    lines = [line for line in (done.stdout + done.stderr).strip().splitlines() if line and line != "Converted Failed!"]
    said = lines[-1] if lines else "no message"
    return f"signal {-done.returncode} after: {said}" if done.returncode < 0 else said


def convert_for_mnn(model):
    """The model in MNN's format, made by its own converter beside the ONNX file, with the names it does not keep."""
    target = model.with_suffix(".mnn")
    if not target.exists() or target.stat().st_mtime < model.stat().st_mtime:
        partial = target.with_suffix(".partial")
        command = [sys.executable, "-c", MNN_CONVERT, "-f", "ONNX", "--bizCode", "selkie"]
        done = subprocess.run(
            [*command, "--modelFile", str(model), "--MNNModel", str(partial)], capture_output=True, text=True
        )
        if done.returncode != 0 or not partial.exists():
            raise Failed(f"does not convert: {reason_of(done)[:200]}")
        graph = onnx.load(model, load_external_data=False).graph
        weights = {w.name for w in graph.initializer}
        names = {
            "inputs": [v.name for v in graph.input if v.name not in weights],
            "outputs": [v.name for v in graph.output],
        }
        target.with_suffix(".names.json").write_text(json.dumps(names))
        os.replace(partial, target)
    return target


def selkie_accepts(option):
    return option in subprocess.run([SELKIE, "bench", "--help"], capture_output=True, text=True).stdout


def command_of(engine, model, threads, options):
    """`options` are of `selkie bench`."""
    if engine == "selkie":
        given = ["--threads", str(threads)] if selkie_accepts("--threads") else []
        return [SELKIE, "bench", str(model), "--worker", *given, *options]
    path = convert_for_mnn(model) if engine == "mnn" else model
    return [sys.executable, "-m", "comparison.worker", engine, str(path), str(threads)]


def cores_for(threads):
    """The cores to run on: the last ones, since the system tends to use the first."""
    cores = sorted(os.sched_getaffinity(0))
    if threads > len(cores):
        raise SystemExit(f"{threads} threads need as many cores; there are {len(cores)}")
    return set(cores[-threads:])


def prepare_process(cores):
    """In the new process: its cores, and an end with its parent's, which one that is paused would not notice."""
    os.sched_setaffinity(0, cores)
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


class Engine:
    """One engine with one model. It is stopped except while it answers, so that its threads cannot disturb others."""

    by_processor_time = False  # of all engines; see `run`

    def __init__(self, name, model, threads, limit, options=()):
        self.name, self.limit, self.folder = name, limit, tempfile.TemporaryDirectory(prefix="selkie-compare-")
        self.log = open(Path(self.folder.name) / "log", "w+")
        cores = cores_for(threads)
        self.process = subprocess.Popen(
            command_of(name, model, threads, options), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log,
            text=True, bufsize=1, process_group=0, preexec_fn=lambda: prepare_process(cores),
            env=os.environ | {"PYTHONPATH": str(Path(__file__).resolve().parents[1])},
        )  # fmt: skip
        self.greeting = self.answer(60)
        self.empty = self.memory()["resident"]

    def answer(self, limit):
        """One line of the process; limit in seconds. The process is paused after it."""
        ready, _, _ = select.select([self.process.stdout], [], [], limit)
        if not ready:
            self.close()
            raise Failed(f"over {limit:.0f} s")
        line = self.process.stdout.readline()
        if not line:
            self.process.wait()
            self.log.seek(0)
            said = self.log.read().strip().splitlines() or ["no message"]
            code = self.process.returncode
            self.close()
            raise Failed(f"{'signal' if code < 0 else 'exit code'} {abs(code)}: {said[-1][:200]}")
        self.process.send_signal(signal.SIGSTOP)
        said = json.loads(line)
        if "error" in said:
            raise Failed(said["error"])
        return said

    def ask(self, command, limit=None):
        if self.process.poll() is not None:
            raise Failed("has ended")
        self.process.send_signal(signal.SIGCONT)
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        return self.answer(limit or self.limit)

    def load(self, limit=None):
        """Its own account, with the seconds that passed."""
        start = time.perf_counter()
        return self.ask("load", limit or max(self.limit, 120)) | {"seconds": time.perf_counter() - start}

    def save_inputs(self, inputs):
        """The commands by which the engine takes them."""
        commands = []
        for i, (name, value) in enumerate(inputs.items()):
            path = Path(self.folder.name) / f"input_{i}.npy"  # names of inputs may hold what paths may not
            np.save(path, value)
            commands.append(f"input {name}={path}")
        return commands

    def set_inputs(self, inputs):
        for command in self.save_inputs(inputs):
            self.ask(command)

    def run(self, count=1):
        """Seconds of each run; by processor time only their mean is known, with what the command itself takes."""
        if not Engine.by_processor_time:
            return [time * 1e-9 for time in self.ask(f"run {count}")["ns"]]
        before = self.processor_time()
        self.ask(f"run {count}")
        return [(self.processor_time() - before) * 1e-9 / count] * count

    def processor_time(self):
        """Nanoseconds that all threads have run."""
        tasks = Path(f"/proc/{self.process.pid}/task").iterdir()
        return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks)

    def outputs(self):
        count = self.ask(f"outputs {self.folder.name}")["outputs"]
        return [np.load(Path(self.folder.name) / f"{i}.npy") for i in range(count)]

    def memory(self):
        """Bytes in memory now, and the most since the last `forget_peak`."""
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        found = {line.split(":")[0]: line.split()[1] for line in lines if line.startswith(("VmRSS", "VmHWM"))}
        return {"resident": 1024 * int(found["VmRSS"]), "peak": 1024 * int(found["VmHWM"])}

    def forget_peak(self):
        Path(f"/proc/{self.process.pid}/clear_refs").write_text("5")

    def close(self):
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)  # with what it has started
            self.process.wait()
        for stream in (self.process.stdin, self.process.stdout, self.log):
            stream.close()
        self.folder.cleanup()


# Of outputs that are smaller at all places nothing is right in f32: they are probabilities that random inputs have, at the
# end of a peer's sigmoid, which is right to 1e-7 in absolute terms only.
LEAST_SCALE = 1e-3


def error_of(values, expected):
    """The largest difference, relative to the largest expected value of the same output; infinite if shapes differ."""
    worst = 0.0
    if len(values) != len(expected):
        return float("inf")
    for value, right in zip(values, expected):
        if value.shape != right.shape or not np.isfinite(value).all():
            return float("inf")
        if right.size:
            scale = max(float(np.abs(right).max()), LEAST_SCALE)
            worst = max(worst, float(np.abs(value.astype(np.float64) - right).max()) / scale)
    return worst
