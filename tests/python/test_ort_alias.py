"""selkie.ort under the name onnxruntime: in programs that cannot be changed, and in the processes that they start."""
import os
import pathlib
import subprocess
import sys

import numpy as np
import onnx
import pytest

import models

PROGRAM = """
import sys
import numpy as np
import importlib.metadata
import onnxruntime as ort
from onnxruntime.capi.onnxruntime_pybind11_state import InvalidArgument
import onnxruntime.capi._pybind_state
session = ort.InferenceSession(sys.argv[1], ort.SessionOptions(), providers=ort.get_available_providers())
try:
    session.run(None, {"x": np.zeros((1, 1), np.float32)})
except InvalidArgument:
    print(ort.package_name, importlib.metadata.version("onnxruntime") == ort.__version__, session.run(None, {"x": np.ones(1, np.float32)})[0])
"""

CHILDREN = """
import multiprocessing
import subprocess
import sys
import numpy as np

def run(path):
    import onnxruntime
    return onnxruntime.package_name + str(onnxruntime.InferenceSession(path).run(None, {"x": np.ones(1, np.float32)})[0])

if __name__ == "__main__":
    if sys.argv[1] == "subprocess":
        import os
        # The program is somewhere else, and is started without any help.
        print(subprocess.run([sys.executable, "-c", "import onnxruntime; print(onnxruntime.package_name, end='')"],
                             cwd=os.sep, capture_output=True, text=True).stdout, end="")
    else:
        with multiprocessing.get_context(sys.argv[1]).Pool(1) as pool:
            print(pool.map(run, [sys.argv[2]])[0], end="")
"""


def run(folder, *arguments, **more):
    paths = [*more.values(), *filter(None, [os.environ.get("PYTHONPATH")])]
    done = subprocess.run([sys.executable, "-m", "selkie.ort", *arguments], cwd=folder, capture_output=True, text=True,
                          env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)})
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("how", [["program.py"], ["-m", "program"]])
def test_alias(tmp_path, how):
    onnx.save(models.one_node(), tmp_path / "m.onnx")
    (tmp_path / "program.py").write_text(PROGRAM)
    assert run(tmp_path, *how, "m.onnx") == "selkie True [1.]\n"


@pytest.mark.parametrize("how", [["program.py"], ["-m", "program"]])
@pytest.mark.parametrize(("start", "says"), [("spawn", "selkie[1.]"), ("forkserver", "selkie[1.]"), ("fork", "selkie[1.]"),
                                             ("subprocess", "selkie")])
def test_processes_that_a_program_starts(tmp_path, how, start, says):
    onnx.save(models.one_node(), tmp_path / "m.onnx")
    (tmp_path / "program.py").write_text(CHILDREN)
    assert run(tmp_path, *how, start, str(tmp_path / "m.onnx")) == says


def test_parts_of_onnxruntime_in_python_alone(tmp_path):
    """Where onnxruntime is installed, its own packages are found, and work with Selkie's sessions."""
    real = tmp_path / "real" / "onnxruntime"
    (real / "tools").mkdir(parents=True)
    (real / "__init__.py").write_text("raise ImportError('this is onnxruntime itself')")
    (real / "tools" / "__init__.py").write_text("from onnxruntime import InferenceSession, package_name")
    (tmp_path / "program.py").write_text("""
import importlib.util
import onnxruntime
from onnxruntime.tools import package_name
import onnxruntime.backend as backend
from onnxruntime.backend.backend import prepare
import onnx
print(package_name, importlib.util.find_spec("onnxruntime.training"), importlib.util.find_spec("onnxruntime").name)
print(backend.run(onnx.load("m.onnx"), [__import__("numpy").ones(2, "float32")])[0], backend.supports_device("CPU"))
""")
    onnx.save(models.one_node(), tmp_path / "m.onnx")
    assert run(tmp_path, "program.py", path=str(tmp_path / "real")) == "selkie None onnxruntime\n[1. 1.] True\n"


def test_other_pythons_find_what_they_have(tmp_path):
    """As if in an environment without Selkie, which the program starts."""
    (tmp_path / "onnxruntime.py").write_text("print('this is onnxruntime itself')")
    (tmp_path / "program.py").write_text("""
import os, subprocess, sys
only_here = os.pathsep.join(os.environ["PYTHONPATH"].split(os.pathsep)[:2])
child = subprocess.run([sys.executable, "-S", "-c", "import onnxruntime"], capture_output=True, text=True,
                       env={**os.environ, "PYTHONPATH": only_here})
print(child.stdout, child.stderr)
""")
    assert "this is onnxruntime itself" in run(tmp_path, "program.py", path=str(tmp_path))
    (tmp_path / "onnxruntime.py").unlink()
    assert "No module named 'onnxruntime'" in run(tmp_path, "program.py", path=str(tmp_path))


def test_backend_with_options():
    from selkie import ort
    from selkie.ort import backend

    x = np.array([-1, 2], np.float32)
    model = models.one_node()
    session = ort.InferenceSession(model.SerializeToString())
    for source in (model, model.SerializeToString(), session, backend.prepare(session)):
        assert backend.run(source, [x], intra_op_num_threads=1, no_option=3)[0].tolist() == [0, 2]
    for name in ("enable_profiling", "optimized_model_filepath", "terminate"):
        with pytest.raises(RuntimeError, match=f"'{name}' is not permitted"):
            backend.run(model, x, **{name: True})
    with pytest.raises(RuntimeError, match="CUDA"):
        backend.prepare(model, "CUDA")
    with pytest.raises(RuntimeError, match="expect 1 inputs"):
        backend.run(model, [])


def test_modules_without_the_alias():
    from selkie.ort.capi._pybind_state import InferenceSession as Inner
    from selkie.ort.capi.onnxruntime_inference_collection import InferenceSession
    from selkie.ort.capi.onnxruntime_pybind11_state import InvalidArgument

    from selkie import ort

    assert InvalidArgument is ort.InvalidArgument and InferenceSession is ort.InferenceSession
    options = ort.SessionOptions()
    inner = Inner(options, models.one_node().SerializeToString(), False, False)
    inner.initialize_session([], [], set())
    assert [i.name for i in inner.inputs_meta] == ["x"] and pathlib.Path(ort.__file__).name == "__init__.py"
