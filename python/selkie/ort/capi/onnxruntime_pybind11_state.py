"""What onnxruntime's extension module has."""
from selkie.ort.devices import NativeDevice as OrtDevice
from selkie.ort.devices import (OrtAllocatorType, OrtArenaCfg, OrtDeviceMemoryType, OrtEpAssignedNode, OrtEpAssignedSubgraph,
                                OrtEpDevice, OrtExecutionProviderDevicePolicy, OrtHardwareDevice, OrtHardwareDeviceType,
                                OrtMemoryInfo, OrtMemoryInfoDeviceType, OrtMemType, get_ep_devices, get_hardware_devices)
from selkie.ort.exceptions import *  # noqa: F403
from selkie.ort.module import (ArenaExtendStrategy, OrtCompileApiFlags, OrtCompiledModelCompatibility,
                               OrtDeviceEpIncompatibilityReason, OrtExternalInitializerInfo, OrtSparseFormat,
                               SessionObjectInitializer, create_and_register_allocator, create_and_register_allocator_v2,
                               disable_telemetry_events, enable_telemetry_events, get_all_providers, get_available_providers,
                               get_build_info, get_default_session_options, get_device, get_session_initializer,
                               get_version_string, has_collective_ops, set_default_logger_severity,
                               set_default_logger_verbosity, set_global_thread_pool_sizes)
from selkie.ort.native import ModelMetadata, NodeArg, set_seed
from selkie.ort.native import NativeSession as InferenceSession
from selkie.ort.settings import ExecutionMode, ExecutionOrder, GraphOptimizationLevel, RunOptions, SessionOptions
from selkie.ort.unsupported import NAMES as _UNSUPPORTED
from selkie.ort.values import OrtValue, OrtValueVector, SessionIOBinding, copy_tensors, is_dlpack_uint8_tensor

kNextPowerOfTwo = ArenaExtendStrategy.kNextPowerOfTwo  # noqa: N816: onnxruntime's names
kSameAsRequested = ArenaExtendStrategy.kSameAsRequested  # noqa: N816
globals().update(_UNSUPPORTED)
