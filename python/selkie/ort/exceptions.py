"""The exceptions that onnxruntime raises, under its names. Each is also a `selkie.Error`."""
import builtins

from selkie.errors import Error


class OrtError(Error):
    """A number and a name, as they begin onnxruntime's messages."""

    code = 1
    label = "FAIL"

    @classmethod
    def of(cls, text: object) -> "OrtError":
        return cls(f"[ONNXRuntimeError] : {cls.code} : {cls.label} : {text}")


def _kind(name: str, code: int, label: str, *more: type) -> type[OrtError]:
    module = "onnxruntime.capi.onnxruntime_pybind11_state"
    return type(name, (OrtError, *more), {"code": code, "label": label, "__module__": module})


Fail = _kind("Fail", 1, "FAIL")
InvalidArgument = _kind("InvalidArgument", 2, "INVALID_ARGUMENT")
NoSuchFile = _kind("NoSuchFile", 3, "NO_SUCHFILE")
NoModel = _kind("NoModel", 4, "NO_MODEL")
EngineError = _kind("EngineError", 5, "ENGINE_ERROR")
RuntimeException = _kind("RuntimeException", 6, "RUNTIME_EXCEPTION")
InvalidProtobuf = _kind("InvalidProtobuf", 7, "INVALID_PROTOBUF")
ModelLoaded = _kind("ModelLoaded", 8, "MODEL_LOADED")
# What Selkie refuses by name is Python's error of that kind, too.
NotImplemented = _kind("NotImplemented", 9, "NOT_IMPLEMENTED", builtins.NotImplementedError)
InvalidGraph = _kind("InvalidGraph", 10, "INVALID_GRAPH")
EPFail = _kind("EPFail", 11, "EP_FAIL")
ModelLoadCanceled = _kind("ModelLoadCanceled", 12, "MODEL_LOAD_CANCELED")
ModelRequiresCompilation = _kind("ModelRequiresCompilation", 13, "MODEL_REQUIRES_COMPILATION")
NotFound = _kind("NotFound", 14, "NOT_FOUND")
DeviceReset = _kind("DeviceReset", 15, "DEVICE_RESET")
__all__ = NAMES = ["Fail", "InvalidArgument", "NoSuchFile", "NoModel", "EngineError", "RuntimeException", "InvalidProtobuf",
                   "ModelLoaded", "NotImplemented", "InvalidGraph", "EPFail", "ModelLoadCanceled",
                   "ModelRequiresCompilation", "NotFound", "DeviceReset"]
