"""The exceptions that onnxruntime raises, under its names. Each is also a `selkie.Error`."""
from selkie.errors import Error


class OrtError(Error):
    """A number and a name, as they begin onnxruntime's messages."""

    code = 1
    label = "FAIL"

    @classmethod
    def of(cls, text: object) -> "OrtError":
        return cls(f"[ONNXRuntimeError] : {cls.code} : {cls.label} : {text}")


def _kind(name: str, code: int, label: str) -> type[OrtError]:
    module = "onnxruntime.capi.onnxruntime_pybind11_state"
    return type(name, (OrtError,), {"code": code, "label": label, "__module__": module})


Fail = _kind("Fail", 1, "FAIL")
InvalidArgument = _kind("InvalidArgument", 2, "INVALID_ARGUMENT")
NoSuchFile = _kind("NoSuchFile", 3, "NO_SUCHFILE")
NoModel = _kind("NoModel", 4, "NO_MODEL")
EngineError = _kind("EngineError", 5, "ENGINE_ERROR")
RuntimeException = _kind("RuntimeException", 6, "RUNTIME_EXCEPTION")
InvalidProtobuf = _kind("InvalidProtobuf", 7, "INVALID_PROTOBUF")
ModelLoaded = _kind("ModelLoaded", 8, "MODEL_LOADED")
NotImplemented = _kind("NotImplemented", 9, "NOT_IMPLEMENTED")
InvalidGraph = _kind("InvalidGraph", 10, "INVALID_GRAPH")
EPFail = _kind("EPFail", 11, "EP_FAIL")
NotFound = _kind("NotFound", 15, "NOT_FOUND")
__all__ = NAMES = ["Fail", "InvalidArgument", "NoSuchFile", "NoModel", "EngineError", "RuntimeException", "InvalidProtobuf",
         "ModelLoaded", "NotImplemented", "InvalidGraph", "EPFail", "NotFound"]
