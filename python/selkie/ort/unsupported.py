"""Names of onnxruntime's that Selkie has nothing for: classes and functions that may be imported, and that refuse to be used."""
from __future__ import annotations

from typing import Any, NoReturn

from selkie.ort.exceptions import NotImplemented

# Of the package and of its extension module.
CLASSES = {
    "AdapterFormat": "LoRA adapters in onnxruntime's format are not read",
    "LoraAdapter": "LoRA adapters in onnxruntime's format are not read",
    "ModelCompiler": "it makes ONNX models with compiled subgraphs; selkie.compile(…).save(path) keeps what Selkie compiles",
    "OrtEpContextData": "there are no compiled subgraphs in ONNX models",
    "OrtEpContextDataBuffer": "there are no compiled subgraphs in ONNX models",
    "OrtSyncStream": "there are no streams on the CPU",
    "SparseTensor": "there are no sparse values",
    "SparseBlockSparseView": "there are no sparse values",
    "SparseCooView": "there are no sparse values",
    "SparseCsrView": "there are no sparse values",
}
FUNCTIONS = {
    "get_all_operator_schema": "operators are listed by `selkie ops`",
    "get_all_opkernel_def": "operators are listed by `selkie ops`",
    "get_registered_ep_kernel_defs": "operators are listed by `selkie ops`",
    "get_compatibility_info_from_model": "there are no compiled subgraphs in ONNX models",
    "get_compatibility_info_from_model_bytes": "there are no compiled subgraphs in ONNX models",
    "get_hardware_device_ep_incompatibility_details": "there is no execution provider but the CPU's",
    "get_model_compatibility_for_ep_devices": "there are no compiled subgraphs in ONNX models",
    "pack_fp4_weights_for_cuda_moe_gemm": "models are not quantized here",
    "quantize_matmul_2bits": "models are not quantized here",
    "quantize_matmul_4bits": "models are not quantized here",
    "quantize_matmul_8bits": "models are not quantized here",
    "quantize_matmul_bnb4": "models are not quantized here",
    "quantize_qdq_matmul_2bits": "models are not quantized here",
    "quantize_qdq_matmul_4bits": "models are not quantized here",
    "register_execution_provider_library": "execution providers are code for onnxruntime, which Selkie cannot run",
    "unregister_execution_provider_library": "execution providers are code for onnxruntime, which Selkie cannot run",
}


def _refusal(name: str, reason: str) -> Any:
    def refuse(*_: Any, **__: Any) -> NoReturn:
        raise NotImplemented.of(f"{name}: {reason}")

    return refuse


def _class(name: str, reason: str) -> type:
    """Also its class methods refuse: whatever is looked up in it."""
    refuse = _refusal(name, reason)
    meta = type("Refused", (type,), {"__getattr__": lambda cls, member: _refused_member(name, member, reason)})
    return meta(name, (), {"__init__": refuse, "__doc__": f"Not in Selkie: {reason}."})


def _refused_member(name: str, member: str, reason: str) -> Any:
    if member.startswith("__"):
        raise AttributeError(member)
    return _refusal(f"{name}.{member}", reason)


NAMES = {name: _class(name, reason) for name, reason in CLASSES.items()}
NAMES.update({name: _refusal(name, reason) for name, reason in FUNCTIONS.items()})
