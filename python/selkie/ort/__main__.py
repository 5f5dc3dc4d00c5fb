"""python -m selkie.ort SCRIPT ARGUMENTS… or -m MODULE ARGUMENTS…: runs a program with Selkie in onnxruntime's place."""
import os
import runpy
import sys

from selkie.ort import alias


def main() -> None:
    arguments = sys.argv[1:]
    is_module = arguments[:1] == ["-m"]
    if is_module:
        arguments = arguments[1:]
    if not arguments or arguments[0] in ("-h", "--help"):
        sys.exit(__doc__)
    alias.install()
    sys.argv = arguments
    sys.path[0] = os.getcwd() if is_module else os.path.dirname(os.path.abspath(arguments[0]))
    alias.install_for_children()
    if is_module:
        runpy.run_module(arguments[0], run_name="__main__", alter_sys=True)
    else:
        runpy.run_path(arguments[0], run_name="__main__")


main()
