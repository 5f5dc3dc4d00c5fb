"""OrtValue, OrtDevice and IOBinding: values with a place, which is always the CPU's memory here."""
from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from selkie.ort.exceptions import InvalidArgument

# ONNX's number and onnxruntime's name of each of NumPy's types.
ELEMENTS = {
    "float32": (1, "float"), "uint8": (2, "uint8"), "int8": (3, "int8"), "uint16": (4, "uint16"), "int16": (5, "int16"),
    "int32": (6, "int32"), "int64": (7, "int64"), "object": (8, "string"), "bool": (9, "bool"), "float16": (10, "float16"),
    "float64": (11, "double"), "uint32": (12, "uint32"), "uint64": (13, "uint64"), "complex64": (14, "complex64"),
    "complex128": (15, "complex128"), "bfloat16": (16, "bfloat16"), "float8_e4m3fn": (17, "float8e4m3fn"),
    "float8_e4m3fnuz": (18, "float8e4m3fnuz"), "float8_e5m2": (19, "float8e5m2"),
    "float8_e5m2fnuz": (20, "float8e5m2fnuz"), "uint4": (21, "uint4"), "int4": (22, "int4"),
}


def element_of(dtype: np.dtype) -> tuple[int, str]:
    return (8, "string") if dtype.kind in "USOT" else ELEMENTS.get(dtype.name, (0, dtype.name))


def dtype_of(element_type: Any) -> np.dtype:
    """From NumPy's type or ONNX's number."""
    if isinstance(element_type, int):
        for name, (number, _) in ELEMENTS.items():
            if number == element_type:
                if number < 16:
                    return np.dtype(name)
                import ml_dtypes

                return np.dtype(getattr(ml_dtypes, name))
        raise InvalidArgument.of(f"unknown element type {element_type}")
    return np.dtype(element_type)


def _at(address: int, dtype: np.dtype, shape: Any) -> np.ndarray:
    """An array over memory of the caller's."""
    count = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    if count == 0:
        return np.empty(shape, dtype)
    memory = (ctypes.c_byte * count).from_address(address)
    return np.frombuffer(memory, np.uint8).view(dtype).reshape(shape)


def check_cpu(device_type: str) -> None:
    if str(device_type).lower() not in ("cpu", "cpu_pinned"):
        raise InvalidArgument.of(f"there is no device '{device_type}': Selkie runs on the CPU")


class OrtDevice:
    def __init__(self, device_type: str = "cpu", device_id: int = 0, *_: Any) -> None:
        self._type, self._id = device_type, device_id

    @staticmethod
    def make(ort_device_name: str, device_id: int, *_: Any) -> "OrtDevice":
        check_cpu(ort_device_name)
        return OrtDevice(ort_device_name, device_id)

    @staticmethod
    def cpu() -> int:
        return 0

    @staticmethod
    def default_memory() -> int:
        return 0

    def device_type(self) -> str:
        return self._type

    def device_id(self) -> int:
        return self._id

    def device_mem_type(self) -> int:
        return 0

    def device_vendor_id(self) -> int:
        return 0


class OrtValue:
    """An array, or a list for a sequence."""

    def __init__(self, value: Any) -> None:
        self._value = value

    @classmethod
    def ortvalue_from_numpy(cls, numpy_obj: np.ndarray, device_type: str = "cpu", device_id: int = 0, *_: Any) -> "OrtValue":
        check_cpu(device_type)
        return cls(np.ascontiguousarray(numpy_obj).reshape(numpy_obj.shape))

    @classmethod
    def ortvalue_from_numpy_with_onnx_type(cls, data: np.ndarray, onnx_element_type: int) -> "OrtValue":
        return cls(data.view(dtype_of(onnx_element_type)))

    @classmethod
    def ortvalue_from_shape_and_type(cls, shape: Any, element_type: Any, device_type: str = "cpu", device_id: int = 0,
                                     *_: Any) -> "OrtValue":
        check_cpu(device_type)
        return cls(np.zeros(shape, dtype_of(element_type)))

    @classmethod
    def from_dlpack(cls, data: Any, *_: Any) -> "OrtValue":
        return cls(np.from_dlpack(data))

    def numpy(self) -> Any:
        return self._value

    def update_inplace(self, np_arr: np.ndarray) -> None:
        self._value[...] = np_arr

    def shape(self) -> list[int]:
        return list(self._value.shape)

    def data_ptr(self) -> int:
        return self._value.ctypes.data

    def device_name(self) -> str:
        return "cpu"

    def element_type(self) -> int:
        return element_of(self._value.dtype)[0]

    def data_type(self) -> str:
        if isinstance(self._value, list):
            inside = element_of(self._value[0].dtype)[1] if self._value else "float"
            return f"seq(tensor({inside}))"
        return f"tensor({element_of(self._value.dtype)[1]})"

    def tensor_size_in_bytes(self) -> int:
        return self._value.nbytes

    def has_value(self) -> bool:
        return self._value is not None

    def is_tensor(self) -> bool:
        return isinstance(self._value, np.ndarray)

    def is_tensor_sequence(self) -> bool:
        return isinstance(self._value, list)

    def is_sparse_tensor(self) -> bool:
        return False

    def __dlpack__(self, **options: Any) -> Any:
        return self._value.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._value.__dlpack_device__()


class IOBinding:
    """Inputs and outputs of a run by name. Outputs that have memory of their own are written there."""

    def __init__(self, session: Any) -> None:
        self._session = session
        self._inputs: dict[str, Any] = {}
        self._outputs: dict[str, OrtValue | None] = {}
        self._results: dict[str, OrtValue] = {}

    def bind_cpu_input(self, name: str, arr_on_cpu: np.ndarray) -> None:
        self._inputs[name] = arr_on_cpu

    def bind_input(self, name: str, device_type: str, device_id: int, element_type: Any, shape: Any, buffer_ptr: int) -> None:
        check_cpu(device_type)
        self._inputs[name] = _at(buffer_ptr, dtype_of(element_type), shape)

    def bind_ortvalue_input(self, name: str, ortvalue: OrtValue) -> None:
        self._inputs[name] = ortvalue.numpy()

    def bind_output(self, name: str, device_type: str = "cpu", device_id: int = 0, element_type: Any = None,
                    shape: Any = None, buffer_ptr: int | None = None) -> None:
        check_cpu(device_type)
        has_memory = buffer_ptr is not None and shape is not None
        self._outputs[name] = OrtValue(_at(buffer_ptr, dtype_of(element_type), shape)) if has_memory else None

    def bind_ortvalue_output(self, name: str, ortvalue: OrtValue) -> None:
        self._outputs[name] = ortvalue

    def synchronize_inputs(self) -> None:
        """Nothing is under way on the CPU."""

    synchronize_outputs = synchronize_inputs

    def clear_binding_inputs(self) -> None:
        self._inputs.clear()

    def clear_binding_outputs(self) -> None:
        self._outputs.clear()
        self._results.clear()

    def get_outputs(self) -> list[OrtValue]:
        return [self._results[name] for name in self._outputs if name in self._results]

    def copy_outputs_to_cpu(self) -> list[Any]:
        return [value.numpy() for value in self.get_outputs()]

    def run(self) -> None:
        """Called by the session."""
        names = list(self._outputs)
        for name, result in zip(names, self._session.run(names or None, self._inputs)):
            given = self._outputs[name]
            if given is None:
                self._results[name] = OrtValue(result)
                continue
            if given.numpy().shape != result.shape or given.numpy().dtype != result.dtype:
                raise InvalidArgument.of(f"output '{name}' is {result.dtype}{list(result.shape)}, but the memory bound to "
                                         f"it is {given.numpy().dtype}{list(given.numpy().shape)}")
            given.update_inplace(result)
            self._results[name] = given


SessionIOBinding = IOBinding
