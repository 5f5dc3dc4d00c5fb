"""The modules of onnxruntime.capi by their names there."""
