"""Devices, memory and execution providers as onnxruntime describes them: Selkie has the CPU and its memory."""
from __future__ import annotations

import enum
import platform
from dataclasses import dataclass, field
from typing import Any

PROVIDERS = ["CPUExecutionProvider"]


class NamedNumber(enum.IntEnum):
    """A number that prints by its name."""

    __str__ = enum.Enum.__str__


class OrtAllocatorType(NamedNumber):
    INVALID = -1
    ORT_DEVICE_ALLOCATOR = 0
    ORT_ARENA_ALLOCATOR = 1


class OrtMemType(NamedNumber):
    CPU_INPUT = -2
    CPU_OUTPUT = -1
    CPU = -1
    DEFAULT = 0


class OrtDeviceMemoryType(NamedNumber):
    DEFAULT = 0
    HOST_ACCESSIBLE = 5


class OrtHardwareDeviceType(NamedNumber):
    CPU = 0
    GPU = 1
    NPU = 2


class OrtMemoryInfoDeviceType(NamedNumber):
    CPU = 0
    GPU = 1
    NPU = 3
    FPGA = 2


class OrtExecutionProviderDevicePolicy(NamedNumber):
    DEFAULT = 0
    PREFER_CPU = 1
    PREFER_NPU = 2
    PREFER_GPU = 3
    MAX_PERFORMANCE = 4
    MAX_EFFICIENCY = 5
    MIN_OVERALL_POWER = 6


class OrtDeviceVendorId(NamedNumber):
    NONE = 0x0000
    AMD = 0x1002
    NVIDIA = 0x10DE
    ARM = 0x13B5
    MICROSOFT = 0x1414
    HUAWEI = 0x19E5
    QUALCOMM = 0x5143
    INTEL = 0x8086


# Numbers of kinds of devices, and the vendors that names of them stand for.
_DEVICE_TYPES = {"cpu": 0, "cuda": 1, "gpu": 1, "webgpu": 1, "cann": 3, "npu": 3, "dml": 4}
_VENDORS = {"cuda": OrtDeviceVendorId.NVIDIA, "dml": OrtDeviceVendorId.MICROSOFT, "cann": OrtDeviceVendorId.HUAWEI,
            "webgpu": OrtDeviceVendorId.NONE}


def get_ort_device_type(device_type: str) -> int:
    if device_type not in _DEVICE_TYPES:
        raise Exception(f"Unsupported device type: {device_type}")  # noqa: TRY002: this is onnxruntime's
    return _DEVICE_TYPES[device_type]


def get_vendor_id_for_device_type(device_type: str) -> OrtDeviceVendorId | None:
    return _VENDORS.get(device_type)


class NativeDevice:
    """`OrtDevice` of onnxruntime's extension module: numbers. Devices may be described that Selkie does not run on."""

    def __init__(self, device_type: int, mem_type: int, *vendor_and_id: int) -> None:
        self._numbers = (device_type, mem_type, *((0, *vendor_and_id) if len(vendor_and_id) == 1 else vendor_and_id))

    def device_type(self) -> int:
        return self._numbers[0]

    def mem_type(self) -> int:
        return self._numbers[1]

    def vendor_id(self) -> int:
        return self._numbers[2]

    def device_id(self) -> int:
        return self._numbers[3]

    default_memory = cpu = staticmethod(lambda: 0)
    cuda = gpu = webgpu = staticmethod(lambda: 1)
    fpga = staticmethod(lambda: 2)
    cann = npu = staticmethod(lambda: 3)
    dml = staticmethod(lambda: 4)


class OrtDevice:
    """A device by its name.

    >>> from selkie import ort
    >>> ort.OrtDevice.make("cpu", 0).device_type()
    0
    """

    def __init__(self, c_ort_device: NativeDevice) -> None:
        if not isinstance(c_ort_device, NativeDevice):
            raise ValueError("an OrtDevice is made by OrtDevice.make, or of the extension module's OrtDevice")
        self._ort_device = c_ort_device

    @staticmethod
    def make(ort_device_name: str, device_id: int, vendor_id: int = -1) -> "OrtDevice":
        vendor = _VENDORS.get(ort_device_name, 0) if vendor_id < 0 else vendor_id
        return OrtDevice(NativeDevice(get_ort_device_type(ort_device_name), 0, int(vendor), device_id))

    def _get_c_device(self) -> NativeDevice:
        return self._ort_device

    def device_type(self) -> int:
        return self._ort_device.device_type()

    def device_id(self) -> int:
        return self._ort_device.device_id()

    def device_mem_type(self) -> int:
        return self._ort_device.mem_type()

    def device_vendor_id(self) -> int:
        return self._ort_device.vendor_id()


def check_cpu(device_type: str, device_id: int = 0, vendor_id: int = -1) -> None:
    """Values lie in the CPU's memory: other devices are refused."""
    if OrtDevice.make(device_type, device_id, vendor_id).device_type() != NativeDevice.cpu():
        raise RuntimeError(f"there is no memory of a device '{device_type}': Selkie runs on the CPU")


@dataclass
class OrtMemoryInfo:
    """Where a value lies."""

    name: str
    allocator_type: OrtAllocatorType
    device_id: int
    mem_type: OrtMemType
    device_mem_type: OrtDeviceMemoryType = OrtDeviceMemoryType.DEFAULT
    device_vendor_id: int = 0

    @staticmethod
    def create_v2(name: str, device_type: OrtMemoryInfoDeviceType, vendor_id: int, device_id: int,
                  mem_type: OrtDeviceMemoryType, alignment: int, allocator_type: OrtAllocatorType) -> "OrtMemoryInfo":
        return OrtMemoryInfo(name, allocator_type, device_id, OrtMemType.DEFAULT, mem_type, vendor_id)


CPU_MEMORY = OrtMemoryInfo("Cpu", OrtAllocatorType.ORT_ARENA_ALLOCATOR, 0, OrtMemType.DEFAULT)


class OrtArenaCfg:
    """Numbers for an arena, which Selkie needs none of."""

    max_mem = 0
    arena_extend_strategy = initial_chunk_size_bytes = max_dead_bytes_per_chunk = -1
    initial_growth_chunk_size_bytes = max_power_of_two_extend_bytes = -1

    def __init__(self, *numbers: Any) -> None:
        """Of a dict, or of the first four."""
        names = ("max_mem", "arena_extend_strategy", "initial_chunk_size_bytes", "max_dead_bytes_per_chunk")
        given = numbers[0] if numbers and isinstance(numbers[0], dict) else dict(zip(names, numbers, strict=True))
        for name, number in given.items():
            if not hasattr(OrtArenaCfg, name):
                raise RuntimeError(f"Invalid OrtArenaCfg option: {name}")
            setattr(self, name, number)


@dataclass
class OrtHardwareDevice:
    type: OrtHardwareDeviceType
    vendor_id: int
    vendor: str
    device_id: int
    metadata: dict[str, str] = field(default_factory=dict)


@dataclass
class OrtEpDevice:
    """An execution provider on a device."""

    ep_name: str
    ep_vendor: str
    device: OrtHardwareDevice
    ep_metadata: dict[str, str] = field(default_factory=dict)
    ep_options: dict[str, str] = field(default_factory=dict)

    def memory_info(self, memory_type: OrtDeviceMemoryType) -> OrtMemoryInfo | None:
        """The CPU has none but main memory, which needs no description."""

    def create_sync_stream(self) -> Any:
        raise RuntimeError("ep_device does not use DEFAULT memory of a non-CPU device.")


CPU_DEVICE = OrtEpDevice("CPUExecutionProvider", "Selkie",
                         OrtHardwareDevice(OrtHardwareDeviceType.CPU, 0, platform.machine(), 0))


def get_ep_devices() -> list[OrtEpDevice]:
    return [CPU_DEVICE]


def get_hardware_devices() -> list[OrtHardwareDevice]:
    return [CPU_DEVICE.device]


@dataclass(frozen=True)
class OrtEpAssignedNode:
    name: str
    domain: str
    op_type: str


@dataclass(frozen=True)
class OrtEpAssignedSubgraph:
    """What one execution provider runs."""

    ep_name: str
    nodes: tuple[OrtEpAssignedNode, ...]

    def get_nodes(self) -> list[OrtEpAssignedNode]:
        return list(self.nodes)
