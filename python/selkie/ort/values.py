"""OrtValue and IOBinding: values with a place, which is always the CPU's memory here."""
from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from selkie.ort import exceptions
from selkie.ort.devices import NativeDevice, OrtMemoryInfo, check_cpu

# ONNX's number and onnxruntime's name of each of NumPy's types, and of those of ml_dtypes with their bytes.
ELEMENTS = {
    "float32": (1, "float"), "uint8": (2, "uint8"), "int8": (3, "int8"), "uint16": (4, "uint16"), "int16": (5, "int16"),
    "int32": (6, "int32"), "int64": (7, "int64"), "object": (8, "string"), "bool": (9, "bool"), "float16": (10, "float16"),
    "float64": (11, "double"), "uint32": (12, "uint32"), "uint64": (13, "uint64"), "complex64": (14, "complex64"),
    "complex128": (15, "complex128"), "bfloat16": (16, "bfloat16"), "float8_e4m3fn": (17, "float8e4m3fn"),
    "float8_e4m3fnuz": (18, "float8e4m3fnuz"), "float8_e5m2": (19, "float8e5m2"),
    "float8_e5m2fnuz": (20, "float8e5m2fnuz"), "uint4": (21, "uint4"), "int4": (22, "int4"),
    "float4_e2m1fn": (23, "float4e2m1"), "float8_e8m0fnu": (24, "float8e8m0"), "uint2": (25, "uint2"), "int2": (26, "int2"),
}
_BY_NUMBER = {number: (numpy_name, name) for numpy_name, (number, name) in ELEMENTS.items()}
_STRING, _FIRST_OF_ML_DTYPES = 8, 16


def element_of(dtype: np.dtype) -> tuple[int, str]:
    return (_STRING, "string") if dtype.kind in "USOT" else ELEMENTS.get(dtype.name, (0, dtype.name))


def dtype_of(element_type: Any) -> np.dtype:
    """From NumPy's type or ONNX's number; bits for what NumPy has no type for, if ml_dtypes is not there."""
    if not isinstance(element_type, int):
        dtype = np.dtype(element_type)
        return np.dtype(object) if dtype.kind in "US" else dtype
    if element_type not in _BY_NUMBER:
        raise RuntimeError(f"tensor type {element_type} is not supported")
    name = _BY_NUMBER[element_type][0]
    if element_type < _FIRST_OF_ML_DTYPES:
        return np.dtype(name)
    try:
        import ml_dtypes

        return np.dtype(getattr(ml_dtypes, name))
    except (ImportError, AttributeError):
        return np.dtype(np.uint16 if name == "bfloat16" else np.uint8)


def _at(address: int, dtype: np.dtype, shape: Any) -> np.ndarray:
    """An array over memory of the caller's."""
    if dtype == object:
        raise RuntimeError("Only binding non-string Tensors is supported: texts have no address")
    count = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    if count == 0:
        return np.empty(shape, dtype)
    memory = (ctypes.c_byte * count).from_address(address)
    return np.frombuffer(memoryview(memory), np.uint8).view(dtype).reshape(shape)


class _Capsule:
    """A capsule of DLPack's for NumPy, which takes what makes one."""

    def __init__(self, capsule: Any) -> None:
        self._capsule = capsule

    def __dlpack__(self, **_: Any) -> Any:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0


def is_dlpack_uint8_tensor(capsule: Any) -> bool:
    """Of a capsule that nobody has taken yet."""
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    # Address, kind and number of the device, rank, then the type: code (1 for unsigned), bits, lanes.
    type_at = pointer(capsule, b"dltensor") + 20
    return bytes((ctypes.c_uint8 * 4).from_address(type_at)) == bytes([1, 8, 1, 0])


class OrtValue:
    """An array, or a list for a sequence. Arrays are not copied.

    >>> import numpy as np
    >>> from selkie import ort
    >>> x = np.array([1, 2], np.float32)
    >>> value = ort.OrtValue.ortvalue_from_numpy(x)
    >>> value.data_type(), value.shape(), value.data_ptr() == x.ctypes.data
    ('tensor(float)', [2], True)
    >>> value.update_inplace(np.array([3, 4], np.float32))
    >>> x.tolist()
    [3.0, 4.0]
    """

    _value: Any
    _element: int | None  # ONNX's number, where NumPy's type does not say it

    def __init__(self, ortvalue: "OrtValue", numpy_obj: Any = None, session: Any = None) -> None:
        if not isinstance(ortvalue, OrtValue):
            raise ValueError("an OrtValue is made by OrtValue.ortvalue_from_numpy and its kin, or of another one")
        self._value, self._element = ortvalue._value, ortvalue._element

    @classmethod
    def _of(cls, value: Any, element: int | None = None) -> "OrtValue":
        made = cls.__new__(cls)
        made._value, made._element = value, element
        return made

    @property
    def _ortvalue(self) -> "OrtValue":
        """What onnxruntime's wraps: there is one kind here."""
        return self

    def _get_c_value(self) -> "OrtValue":
        return self

    @classmethod
    def ortvalue_from_numpy(cls, numpy_obj: np.ndarray, /, device_type: Any = "cpu", device_id: int = 0,
                            vendor_id: int = -1) -> "OrtValue":
        _check_place(device_type, device_id, vendor_id)
        if not isinstance(numpy_obj, np.ndarray):
            raise RuntimeError("Creation of OrtValues is currently only supported from numpy arrays")
        return cls._of(np.ascontiguousarray(numpy_obj).reshape(numpy_obj.shape))

    @classmethod
    def ortvalue_from_numpy_with_onnx_type(cls, data: np.ndarray, /, onnx_element_type: int) -> "OrtValue":
        """Bits of elements that NumPy has no type for."""
        dtype = dtype_of(onnx_element_type)
        if data.dtype.itemsize != dtype.itemsize:
            raise RuntimeError(f"Items size in the incoming array: {data.dtype.itemsize} specified by onnxtype: {dtype.itemsize}")
        return cls._of(data.view(dtype), onnx_element_type)

    @classmethod
    def ortvalue_from_shape_and_type(cls, shape: Sequence[int], element_type: Any, device_type: Any = "cpu",
                                     device_id: int = 0, vendor_id: int = -1,
                                     memory_info: OrtMemoryInfo | None = None) -> "OrtValue":
        _check_place(device_type, device_id, vendor_id)
        if any(size < 0 for size in shape):
            raise RuntimeError("Tensor shape.Size() must be >= 0")
        return cls._of(np.zeros(shape, dtype_of(element_type)), element_type if isinstance(element_type, int) else None)

    ortvalue_from_shape_and_onnx_type = ortvalue_from_shape_and_type

    @classmethod
    def ortvalue_from_shape_and_type_for_memory_info(cls, shape: Sequence[int], element_type: Any,
                                                     memory_info: OrtMemoryInfo) -> "OrtValue":
        return cls.ortvalue_from_shape_and_type(shape, element_type)

    ortvalue_from_shape_and_onnx_type_for_memory_info = ortvalue_from_shape_and_type_for_memory_info

    @classmethod
    def from_dlpack(cls, data: Any, is_bool: bool = False, /) -> "OrtValue":
        """Of an array of another library, or a capsule, without a copy."""
        array = np.from_dlpack(data if hasattr(data, "__dlpack__") else _Capsule(data))
        return cls._of(array.view(np.bool_) if is_bool else array)

    @classmethod
    def ort_value_from_sparse_tensor(cls, sparse_tensor: Any) -> "OrtValue":
        raise exceptions.NotImplemented.of("OrtValue.ort_value_from_sparse_tensor: there are no sparse values")

    def as_sparse_tensor(self) -> Any:
        raise exceptions.NotImplemented.of("OrtValue.as_sparse_tensor: there are no sparse values")

    def _array(self) -> np.ndarray:
        if not isinstance(self._value, np.ndarray):
            raise RuntimeError("Only OrtValues that are Tensors are currently supported")
        return self._value

    def numpy(self) -> np.ndarray:
        return self._array()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        array = self._array()
        if copy:
            return np.array(array, dtype=dtype)
        if copy is False and dtype is not None and array.dtype != dtype:
            raise ValueError("the elements are of another type, so that a copy is needed")
        return array if dtype is None else np.asarray(array, dtype=dtype)

    def update_inplace(self, data: "np.ndarray | OrtValue") -> None:
        """Elements are copied to where they lie, which stays the same."""
        if not isinstance(data, (np.ndarray, OrtValue)):
            raise TypeError("data must be a numpy.ndarray or an OrtValue.")
        given, own = np.asarray(data), self._array()
        if given.size != own.size:
            raise RuntimeError("The input size of numpy arrays does not match the size of the OrtValue.")
        if given.dtype != own.dtype:
            raise RuntimeError(f"the OrtValue has elements of {own.dtype}, but those given are of {given.dtype}")
        own[...] = given.reshape(own.shape)

    def shape(self) -> list[int]:
        return list(self._array().shape)

    def data_ptr(self) -> int:
        return self._array().ctypes.data

    def device_name(self) -> str:
        return "cpu"

    def _element_of(self) -> tuple[int, str]:
        if self._element is not None:
            return self._element, _BY_NUMBER[self._element][1]
        inside = self._value[0] if self.is_tensor_sequence() and self._value else self._value
        return element_of(inside.dtype) if isinstance(inside, np.ndarray) else ELEMENTS["float32"]

    def element_type(self) -> int:
        return self._element_of()[0]

    def data_type(self) -> str:
        inside = f"tensor({self._element_of()[1]})"
        return f"seq({inside})" if self.is_tensor_sequence() else inside

    def tensor_size_in_bytes(self) -> int:
        return self._array().nbytes

    def has_value(self) -> bool:
        return self._value is not None

    def is_tensor(self) -> bool:
        return isinstance(self._value, np.ndarray)

    def is_tensor_sequence(self) -> bool:
        return isinstance(self._value, list)

    def is_sparse_tensor(self) -> bool:
        return False

    def _is_webgpu_buffer(self) -> bool:
        return False

    def __dlpack__(self, **options: Any) -> Any:
        return self._array().__dlpack__(**options)

    def to_dlpack(self) -> Any:
        """A capsule, as onnxruntime's inner value has it."""
        return self.__dlpack__()

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0


def _check_place(device: Any, device_id: int, vendor_id: int) -> None:
    """By a name, or as onnxruntime's inner functions have it."""
    if isinstance(device, str):
        check_cpu(device, device_id, vendor_id)
    elif device.device_type() != NativeDevice.cpu():
        raise RuntimeError("there is only the CPU's memory")


class OrtValueVector(list):
    """A list of OrtValues under the names that onnxruntime's extension module has for it."""

    push_back = list.append

    def push_back_batch(self, tensors: Sequence[Any], data_ptrs: Sequence[int], element_types: Sequence[Any],
                        shapes: Sequence[Sequence[int]], devices: Sequence[Any]) -> None:
        """Over memory of the caller's, which `tensors` keep alive."""
        for address, element_type, shape, device in zip(data_ptrs, element_types, shapes, devices):
            _check_place(device, 0, -1)
            self.append(OrtValue._of(_at(address, dtype_of(element_type), shape)))

    def reserve(self, count: int) -> None:
        """Lists grow by themselves."""

    def shrink_to_fit(self) -> None:
        """See reserve."""

    def dlpack_at(self, index: int) -> Any:
        return self[index].to_dlpack()

    def element_type_at(self, index: int) -> int:
        return self[index].element_type()

    def bool_tensor_indices(self) -> list[int]:
        return [index for index, value in enumerate(self) if value.data_type() == "tensor(bool)"]

    def to_dlpacks(self, to_tensor: Callable[[Any], Any] | None) -> list[Any]:
        capsules = [value.to_dlpack() for value in self]
        return capsules if to_tensor is None else [to_tensor(capsule) for capsule in capsules]


def copy_tensors(src: Sequence[OrtValue], dst: Sequence[OrtValue], stream: Any = None) -> None:
    if len(src) != len(dst):
        raise RuntimeError("Invalid arguments provided to CopyTensors.")
    for source, target in zip(src, dst):
        target.update_inplace(source)


class SessionIOBinding:
    """Inputs and outputs of runs by name, as onnxruntime's extension module has it."""

    def __init__(self, session: Any) -> None:
        self._session = session
        self._inputs: dict[str, Any] = {}
        self._outputs: dict[str, OrtValue | None] = {}
        self._results: dict[str, OrtValue] = {}

    def bind_input(self, name: str, place: Any, element_type: Any = None, shape: Any = None,
                   buffer_ptr: int | None = None) -> None:
        """An array, or a device and what lies there."""
        if isinstance(place, NativeDevice):
            _check_place(place, 0, -1)
            place = _at(buffer_ptr or 0, dtype_of(element_type), shape)
        elif not isinstance(place, np.ndarray):
            raise RuntimeError("Unable to create OrtValue from the given python object")
        self._bind_input(name, place)

    def bind_ortvalue_input(self, name: str, ortvalue: OrtValue) -> None:
        self._bind_input(name, ortvalue._value)

    def _bind_input(self, name: str, value: Any) -> None:
        ports = [*self._session.inputs_meta, *self._session.overridable_initializers]
        if all(name != port.name for port in ports):
            raise RuntimeError(f"Error when binding input: Failed to find input name in the mapping: {name}")
        self._inputs[name] = value

    def bind_output(self, name: str, device: NativeDevice, element_type: Any = None, shape: Any = None,
                    buffer_ptr: int | None = None) -> None:
        """Where a device and memory are given, results are written there."""
        _check_place(device, 0, -1)
        self._outputs[name] = None if buffer_ptr is None else OrtValue._of(_at(buffer_ptr, dtype_of(element_type), shape))

    def bind_ortvalue_output(self, name: str, ortvalue: OrtValue) -> None:
        self._outputs[name] = ortvalue

    def synchronize_inputs(self) -> None:
        """Nothing is under way on the CPU."""

    def synchronize_outputs(self) -> None:
        """See synchronize_inputs."""

    def clear_binding_inputs(self) -> None:
        self._inputs.clear()

    def clear_binding_outputs(self) -> None:
        self._outputs.clear()
        self._results.clear()

    def get_outputs(self) -> OrtValueVector:
        return OrtValueVector(self._results[name] for name in self._outputs if name in self._results)

    def copy_outputs_to_cpu(self) -> list[Any]:
        return [value._value for value in self.get_outputs()]

    def run(self, options: Any = None) -> None:
        """By the session."""
        if not self._outputs:
            raise RuntimeError("At least one output should be requested.")
        names = list(self._outputs)
        for name, result in zip(names, self._session.run(names, self._inputs, options)):
            given = self._outputs[name]
            if given is not None and (given.shape() != list(result.shape) or given.numpy().dtype != result.dtype):
                raise RuntimeError(f"output '{name}' is {result.dtype}{list(result.shape)}, but the memory bound to it is "
                                   f"{given.numpy().dtype}{given.shape()}")
            if given is None:
                given = OrtValue._of(result)
            else:
                given.update_inplace(result)
            self._results[name] = given


class IOBinding:
    """Inputs and outputs of a run by name. Outputs that have memory of their own are written there.

    >>> import numpy as np
    >>> from selkie import ort
    >>> session = ort.InferenceSession("examples/dynamic.onnx")
    >>> binding = session.io_binding()
    >>> binding.bind_cpu_input("ids", np.zeros((2, 12), np.int64))
    >>> binding.bind_output("probabilities")
    >>> session.run_with_iobinding(binding)
    >>> binding.get_outputs()[0].shape()
    [2, 4]
    """

    def __init__(self, session: Any) -> None:
        self._session = session._sess
        self._iobinding = SessionIOBinding(session._sess)

    def bind_cpu_input(self, name: str, arr_on_cpu: np.ndarray) -> None:
        self._iobinding.bind_input(name, arr_on_cpu)

    def bind_input(self, name: str, device_type: str, device_id: int, element_type: Any, shape: Any, buffer_ptr: int) -> None:
        check_cpu(device_type, device_id)
        self._iobinding.bind_input(name, _CPU, element_type, shape, buffer_ptr)

    def bind_ortvalue_input(self, name: str, ortvalue: OrtValue) -> None:
        self._iobinding.bind_ortvalue_input(name, ortvalue)

    def bind_output(self, name: str, device_type: str = "cpu", device_id: int = 0, element_type: Any = None,
                    shape: Any = None, buffer_ptr: int | None = None) -> None:
        check_cpu(device_type, device_id)
        if buffer_ptr is not None and (element_type is None or shape is None):
            raise ValueError("`element_type` and `shape` are to be provided if pre-allocated memory is provided")
        self._iobinding.bind_output(name, _CPU, element_type, shape, buffer_ptr)

    def bind_ortvalue_output(self, name: str, ortvalue: OrtValue) -> None:
        self._iobinding.bind_ortvalue_output(name, ortvalue)

    def synchronize_inputs(self) -> None:
        self._iobinding.synchronize_inputs()

    def synchronize_outputs(self) -> None:
        self._iobinding.synchronize_outputs()

    def clear_binding_inputs(self) -> None:
        self._iobinding.clear_binding_inputs()

    def clear_binding_outputs(self) -> None:
        self._iobinding.clear_binding_outputs()

    def get_outputs(self) -> list[OrtValue]:
        return list(self._iobinding.get_outputs())

    def get_outputs_as_ortvaluevector(self) -> OrtValueVector:
        return self._iobinding.get_outputs()

    def copy_outputs_to_cpu(self) -> list[Any]:
        return self._iobinding.copy_outputs_to_cpu()


_CPU = NativeDevice(NativeDevice.cpu(), NativeDevice.default_memory(), 0)
