"""Changes to the bytes of an ONNX model that need no protobuf library: other initializers, other sizes of inputs."""
from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

# Fields of ONNX's messages by their numbers (onnx.proto).
MODEL_GRAPH = 7
GRAPH_NODE, GRAPH_INITIALIZER, GRAPH_INPUT = 1, 5, 11
NODE_NAME, NODE_OPERATOR, NODE_DOMAIN = 3, 4, 7
VALUE_TYPE, TYPE_TENSOR, TENSOR_SHAPE, SHAPE_DIM = 2, 1, 2, 1
DIM_VALUE, DIM_DENOTATION = 1, 3
TENSOR_DIMS, TENSOR_TYPE, TENSOR_NAME, TENSOR_RAW, TENSOR_EXTERNAL, TENSOR_LOCATION = 1, 2, 8, 9, 13, 14
ENTRY_KEY, ENTRY_VALUE = 1, 2

Edit = Callable[[memoryview], bytes | None]


def _varint(data: memoryview, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


def _number(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def fields(data: memoryview) -> Iterator[tuple[int, Any, memoryview]]:
    """(number, value, the whole field) of each field: a number, or the bytes of a string or message."""
    at = 0
    while at < len(data):
        start = at
        tag, at = _varint(data, at)
        value: Any = None
        if tag & 7 == 0:
            value, at = _varint(data, at)
        elif tag & 7 == 2:
            size, at = _varint(data, at)
            value, at = data[at : at + size], at + size
        elif tag & 7 in (1, 5):
            at += 8 if tag & 7 == 1 else 4
        else:
            raise ValueError(f"fields of kind {tag & 7} are not ONNX's")
        yield tag >> 3, value, data[start:at]


def numbers(data: memoryview) -> Iterator[int]:
    """Those of a packed field."""
    at = 0
    while at < len(data):
        value, at = _varint(data, at)
        yield value


def sized(number: int, content: bytes) -> bytes:
    """A field that holds a string or a message."""
    return _number(number << 3 | 2) + _number(len(content)) + content


def rewritten(data: memoryview, edits: Mapping[int, Edit]) -> bytes:
    """A message in which fields of some numbers hold what `edits` make of them, or are left out."""
    parts: list[Any] = []
    for number, value, whole in fields(data):
        made = edits[number](value) if number in edits else None
        if number not in edits:
            parts.append(whole)
        elif made is not None:
            parts.append(sized(number, made))
    return b"".join(parts)


def first(data: memoryview, number: int, default: Any = None) -> Any:
    return next((value for found, value, _ in fields(data) if found == number), default)


def text(data: memoryview, number: int) -> str:
    return bytes(first(data, number, b"")).decode()


def tensor(name: str, element_type: int, dims: Any, raw: bytes) -> bytes:
    """A TensorProto."""
    sizes = b"".join(_number(TENSOR_DIMS << 3) + _number(dim) for dim in dims)
    kind = _number(TENSOR_TYPE << 3) + _number(element_type)
    return sizes + kind + sized(TENSOR_NAME, name.encode()) + sized(TENSOR_RAW, raw)


def array_bytes(array: np.ndarray) -> bytes:
    """As raw_data has them: dense and in little endian."""
    return np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<"), copy=False).tobytes()


def external_place(initializer: memoryview) -> dict[str, str] | None:
    """Location, offset and length of an initializer whose elements lie in another file, otherwise None."""
    if first(initializer, TENSOR_LOCATION, 0) != 1:
        return None
    entries = [value for number, value, _ in fields(initializer) if number == TENSOR_EXTERNAL]
    return {text(entry, ENTRY_KEY): text(entry, ENTRY_VALUE) for entry in entries}


def sizes_of(initializer: memoryview) -> list[int]:
    dims = [value for number, value, _ in fields(initializer) if number == TENSOR_DIMS]
    return [size for dim in dims for size in ([dim] if isinstance(dim, int) else numbers(dim))]


def nodes(model: memoryview) -> Iterator[tuple[str, str, str]]:
    """Name, domain and operator of each node."""
    for number, value, _ in fields(first(model, MODEL_GRAPH, memoryview(b""))):
        if number == GRAPH_NODE:
            yield text(value, NODE_NAME), text(value, NODE_DOMAIN), text(value, NODE_OPERATOR)


def with_initializers(model: memoryview, edit: Edit) -> bytes:
    return rewritten(model, {MODEL_GRAPH: lambda graph: rewritten(graph, {GRAPH_INITIALIZER: edit})})


def with_sizes(model: memoryview, by_denotation: Mapping[str, int]) -> bytes:
    """Dims of inputs that are denoted by some names get numbers."""
    def dim(data: memoryview) -> bytes:
        size = by_denotation.get(text(data, DIM_DENOTATION))
        return bytes(data) if size is None else _number(DIM_VALUE << 3) + _number(size)

    def within(edits: Mapping[int, Edit]) -> Edit:
        return lambda message: rewritten(message, edits)

    edit: Edit = dim
    for number in (SHAPE_DIM, TENSOR_SHAPE, TYPE_TENSOR, VALUE_TYPE, GRAPH_INPUT):
        edit = within({number: edit})
    return rewritten(model, {MODEL_GRAPH: edit})
