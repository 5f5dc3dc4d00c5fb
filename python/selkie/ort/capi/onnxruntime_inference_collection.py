"""What onnxruntime has in Python over its extension module."""
from selkie.ort.capi import _pybind_state as C  # noqa: N812: onnxruntime's name
from selkie.ort.devices import OrtDevice, OrtDeviceVendorId, get_ort_device_type, get_vendor_id_for_device_type
from selkie.ort.session import InferenceSession, check_and_normalize_provider_args
from selkie.ort.unsupported import NAMES as _UNSUPPORTED
from selkie.ort.values import IOBinding, OrtValue, copy_tensors

Session = InferenceSession
AdapterFormat, ModelCompiler, SparseTensor = (_UNSUPPORTED[name] for name in ("AdapterFormat", "ModelCompiler", "SparseTensor"))
