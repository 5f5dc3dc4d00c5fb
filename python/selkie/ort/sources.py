"""What a session compiles: a model with other initializers or sizes in it, if its options say so."""
from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import numpy as np

from selkie import _core
from selkie.errors import Error
from selkie.ort import exceptions, protobuf
from selkie.ort.settings import FOLDER_ENTRY, SessionOptions, log
from selkie.ort.values import element_of

_FORMAT_MARK = slice(4, 8), b"ORTM"


@dataclass
class Source:
    """A path, or bytes and the folder of weights that lie beside them."""

    path: str
    content: bytes | None
    folder: str
    header: dict[str, Any]

    @property
    def model(self) -> Any:
        return self.path if self.content is None else self.content

    def bytes(self) -> memoryview:
        if self.content is not None:
            return memoryview(self.content)
        with open(self.path, "rb") as file:
            return memoryview(file.read())


def read(model: str | bytes, options: SessionOptions) -> Source:
    if isinstance(model, bytes):
        source, place = Source("", model, options._entries.get(FOLDER_ENTRY, "."), {}), ""
    else:
        place = f"Load model from {model} failed:"
        if not os.path.exists(model):
            raise exceptions.NoSuchFile.of(f"{place}Load model {model} failed. File doesn't exist")
        source = Source(model, None, os.path.dirname(model) or ".", {})
        if os.path.isfile(model) and _core.is_artifact(model):
            if options._changes_model or options._sizes or options.optimized_model_filepath:
                raise exceptions.NotImplemented.of(f"{place}other initializers and sizes come too late for a compiled model")
            return source
    if options._is_canceled:
        raise exceptions.ModelLoadCanceled.of("Loading was canceled")
    _refuse_other_formats(source, place)
    if options._changes_model:
        source.content = _patched(source, options)
        source.path = ""
    try:
        source.header = _core.header(source.path, source.content)
    except Error as error:
        raise exceptions.InvalidProtobuf.of(f"{place}Protobuf parsing failed: {error}") from None
    return source


def _refuse_other_formats(source: Source, place: str) -> None:
    if os.path.isdir(source.path):
        raise exceptions.InvalidProtobuf.of(f"{place}Protobuf parsing failed.")
    if source.content is None:
        with open(source.path, "rb") as file:
            start = file.read(_FORMAT_MARK[0].stop)
    else:
        start = source.content[: _FORMAT_MARK[0].stop]
    if not start:
        raise exceptions.InvalidArgument.of(f"{place}No graph was found in the protobuf.")
    if start[_FORMAT_MARK[0]] == _FORMAT_MARK[1]:
        raise exceptions.NotImplemented.of(f"{place}Selkie reads ONNX models, not those in ORT's own format")


def _patched(source: Source, options: SessionOptions) -> bytes:
    """The model with its options' initializers and sizes."""
    missing = set(options._external_initializers)

    def initializer(tensor: memoryview) -> bytes:
        missing.discard(protobuf.text(tensor, protobuf.TENSOR_NAME))
        return _initializer(tensor, options)

    try:
        model = protobuf.with_sizes(source.bytes(), options._sizes_by_denotation)
        content = protobuf.with_initializers(memoryview(model), initializer)
    except (IndexError, ValueError, TypeError) as error:
        raise exceptions.InvalidProtobuf.of(f"Protobuf parsing failed: {error}") from None
    if missing:
        raise exceptions.Fail.of(f"Failed to find existing initializer with name {min(missing)}.")
    return content


def _initializer(given: memoryview, options: SessionOptions) -> bytes:
    """What stands for one of the model's initializers."""
    name, element_type = protobuf.text(given, protobuf.TENSOR_NAME), protobuf.first(given, protobuf.TENSOR_TYPE, 0)
    place = protobuf.external_place(given)
    array = options._initializers.get(name)
    if array is None and name in options._external_initializers:
        if place is None:
            raise exceptions.Fail.of(f"Trying to replace non-external initializer with external data: {name}")
        array = options._external_initializers[name]
        if element_of(array.dtype)[0] != element_type or list(array.shape) != protobuf.sizes_of(given):
            raise exceptions.Fail.of(f"Replacement tensor's data type or dimensions do not match: {name}")
    if array is not None:
        return _tensor_of(name, element_type, array)
    if place is None or not options._external_files:
        return bytes(given)
    location = place.get("location", "")
    if location not in options._external_files:
        raise exceptions.Fail.of(f"External file: {location} not found from the table user provided.")
    return _inlined(given, place, options._external_files[location])


def _inlined(given: memoryview, place: dict[str, str], content: bytes) -> bytes:
    """An initializer with the elements that lie somewhere in another file."""
    name, element_type = protobuf.text(given, protobuf.TENSOR_NAME), protobuf.first(given, protobuf.TENSOR_TYPE, 0)
    offset = int(place.get("offset", 0))
    end = offset + int(place["length"]) if "length" in place else len(content)
    if end > len(content):
        raise exceptions.Fail.of(f"External initializer: {name} offset: {offset} size to read: {end - offset} given "
                                 f"file_length: {len(content)} are out of bounds or can not be read in full.")
    return protobuf.tensor(name, element_type, protobuf.sizes_of(given), content[offset:end])


def without_initializers(source: Source, names: frozenset[str]) -> Source:
    """Those, which are inputs, too, have no values of their own."""
    def kept(tensor: memoryview) -> bytes | None:
        return None if protobuf.text(tensor, protobuf.TENSOR_NAME) in names else bytes(tensor)

    return Source("", protobuf.with_initializers(source.bytes(), kept), source.folder, source.header)


def _tensor_of(name: str, element_type: int, array: np.ndarray) -> bytes:
    given, label = element_of(array.dtype)
    if given != element_type:
        raise exceptions.InvalidArgument.of(f"initializer {name} has elements of ONNX's type {element_type}, but those given "
                                            f"are {label}")
    if array.dtype == object or array.dtype.name in ("int4", "uint4", "int2", "uint2", "float4_e2m1fn"):
        raise exceptions.NotImplemented.of(f"add_initializer: elements of type {label} ({name})")
    return protobuf.tensor(name, element_type, array.shape, protobuf.array_bytes(array))


def write(source: Source, path: str) -> None:
    """For `optimized_model_filepath`: the model as it was given, since what Selkie makes of it is no ONNX, with its weights."""
    def with_elements(tensor: memoryview) -> bytes:
        place = protobuf.external_place(tensor)
        if place is None:
            return bytes(tensor)
        with open(os.path.join(source.folder, place.get("location", "")), "rb") as file:
            return _inlined(tensor, place, file.read())

    try:
        content = protobuf.with_initializers(source.bytes(), with_elements)
        with open(path, "wb") as file:
            file.write(content)
    except OSError as error:
        raise exceptions.InvalidArgument.of(f"optimized_model_filepath: {error}") from None
    log.warning("'%s' is the model as it was given: what Selkie optimises is not written as ONNX", path)
