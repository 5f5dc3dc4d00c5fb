"""Becomes selkie.ort: this folder is first on the path of processes that programs start under `python -m selkie.ort`."""
import os
import sys

try:
    from selkie.ort import alias
except ImportError:  # another Python, which has no Selkie: it finds what it would find without this folder
    here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    sys.path[:] = [place for place in sys.path if os.path.abspath(place or os.getcwd()) != here]
    del sys.modules["onnxruntime"]
    import onnxruntime
else:
    alias.install()
