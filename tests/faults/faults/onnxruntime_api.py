# SPDX-License-Identifier: Apache-2.0
"""The faults of ONNX Runtime's C interface."""

from .fault import Fault

API = ("onnxruntime_api_test",)

FAULTS = [
    Fault("onnxruntime_api", "a version that the table does not have gives null", "table.cc",
          "if (version >= 1 && «version <= REWIRE_ORT_API_VERSION») return &kTable;", "true", API),
    Fault("onnxruntime_api", "ONNX Runtime's code for an invalid argument is told", "status.cc",
          "case StatusCode::kInvalidArgument:\n      return «ORT_INVALID_ARGUMENT»;", "ORT_FAIL", API),
    Fault("onnxruntime_api", "nodes that no operator set has make an invalid graph", "model.cc",
          "MakeStatus(«own_domain ? ORT_INVALID_GRAPH : ORT_FAIL», std::move(text))", "ORT_FAIL", API),
    Fault("onnxruntime_api", "a second session of a file uses the first one's model", "model.cc",
          "if («*model != nullptr») return nullptr;", "false", API),
    Fault("onnxruntime_api", "sizes of free dimensions that the model does not name are ignored", "model_options.cc",
          "if («text.dims.count(name) != 0») compile.dims[name] = size;", "true", API),
    Fault("onnxruntime_api", "a session's limits count for its runs", "model.cc",
          "std::make_unique<VirtualMachine>(program_, «limits_.run»)", "Limits()", API),
    Fault("onnxruntime_api", "a value of a limit that is no number is refused", "session_limits.cc",
          "end != text.data() + text.size() || «read > most»)", "false", API),
    Fault("onnxruntime_api", "the second environment is the first one", "env.cc",
          "if («shared.users == 0») {", "true", API),
    Fault("onnxruntime_api", "messages below the severity are not told", "env.cc",
          "if («level < severity») return;", "false", API),
    Fault("onnxruntime_api", "the second of two outputs of one name is a copy", "run.cc",
          "&& «!bound[found->second]»;", "true", API),
    Fault("onnxruntime_api", "a new output has no memory of an input or of another output", "run_outputs.cc",
          "FromTensor(tensor, «used->Overlaps(view.data(), view.bytes())»)", "false", API),
    Fault("onnxruntime_api", "a run whose options are terminated does not begin", "run.cc",
          "if («under.terminated()») return Terminated();", "false", API),
    Fault("onnxruntime_api", "a profile is written once", "profile.cc",
          "file->clear();\n  const std::lock_guard lock(mutex_);\n  if («finished_») return nullptr;", "false", API),
    Fault("onnxruntime_api", "a run without a profile of its own writes none", "run_options.cc",
          "«options->profile_prefix.clear();»", "", API),
    Fault("onnxruntime_api", "a profile names each kernel call", "run.cc",
          "if («session_ != nullptr») session_->AddKernel(call);", "false", API),
    Fault("onnxruntime_api", "a config value that the buffer has no room for is refused", "session_options.cc",
          "if («given < needed») return InvalidArgument", "false", API),
]
