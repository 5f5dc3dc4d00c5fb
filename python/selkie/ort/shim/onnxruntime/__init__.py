"""Becomes selkie.ort: this folder is first on the path of processes that programs start under `python -m selkie.ort`."""
from selkie.ort import alias

alias.install()
