"""What an engine takes on disk: the files of its package, without the packages that it needs, and its largest library."""

import importlib.metadata
import zipfile
from pathlib import Path

from comparison.engines import ROOT, SELKIE
from comparison.worker import PEERS


def is_library(name):
    return ".so" in Path(name).suffixes


def of_package(name):
    try:
        package = importlib.metadata.distribution(name)
    except importlib.metadata.PackageNotFoundError:
        return None
    sizes = {str(file): path.stat().st_size for file in package.files or [] if (path := Path(file.locate())).is_file()}
    return {
        "what": f"{name} {package.version}, installed", "bytes": sum(sizes.values()),
        "library_bytes": max((size for file, size in sizes.items() if is_library(file)), default=None),
    }  # fmt: skip


def of_wheel(path):
    with zipfile.ZipFile(path) as archive:
        sizes = {info.filename: info.file_size for info in archive.infolist()}
    return {
        "what": f"{path.name.split('-cp')[0]} (wheel of ./dev wheel), installed", "bytes": sum(sizes.values()),
        "library_bytes": max((size for file, size in sizes.items() if is_library(file)), default=None),
    }  # fmt: skip


def own():
    found = [of_wheel(path) for path in sorted((ROOT / "dist").glob("selkie-*.whl"))[-1:]]
    program = Path(SELKIE)
    return [*found, {"what": "the command `selkie`, not stripped", "bytes": program.stat().st_size, "library_bytes": None}]


def footprints(engines):
    """(engine, record) of each that is installed; torch.compile is torch's package."""
    found = [("selkie", record) for record in own()] if "selkie" in engines else []
    packages = {PEERS[name].package: name for name in reversed(engines) if name in PEERS}
    if "iree" in engines:
        packages["iree-base-compiler"] = "iree"
    return found + [(name, record) for package, name in packages.items() if (record := of_package(package))]
