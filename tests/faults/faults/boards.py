# SPDX-License-Identifier: Apache-2.0
"""The faults of programs for small machines: files of TensorFlow Lite, C source, state files, weights of 16 bits."""

from .fault import AOT, KERNELS, STATES, TFLITE, Fault

PACKING = ("compiler_packing_test",)

FAULTS = [
    # Models of TensorFlow Lite.
    Fault("boards", "an operator's tensor is one of its subgraph", "tflite_operators.cc",
          "if (index < 0 || «static_cast<std::size_t>(index) >= SizeOf(graph.tensors())») {", "false", TFLITE),
    Fault("boards", "a constant of a file has the bytes of its shape", "tflite_tensors.cc",
          "if («wanted != bytes.size()») {", "false", TFLITE),
    Fault("boards", "a zero point of a file is one of its dtype", "tflite_tensors.cc",
          "if («zero < least || zero > most»)", "false", TFLITE),
    Fault("boards", "scales of a file lie along the operator's channels", "tflite_tensors.cc",
          "if («count > 1 && given->quantized_dimension() != channel_axis») {", "false", TFLITE),
    Fault("boards", "a variable of a file gives on what was stored last", "tflite_variables.cc",
          "«(*variable)->current = *name;»", "", TFLITE),
    Fault("boards", "an activation of bytes ends where its floats do", "node.cc",
          "const std::int64_t most = «range.most == kInfinity ? lowest + 255 : StoredOf(range.most, scale, zero, dtype)»;",
          "lowest + 255", TFLITE),
    Fault("boards", "bytes that only move keep their scale", "movement.cc",
          "if («from.OneScale() == to.OneScale() && from.OneZero() == to.OneZero()») return {};", "true", TFLITE),
    # C source.
    Fault("boards", "what is written over an input is read before", "window.cc",
          "lead = std::max(lead, «at * out.bytes - reads * x.bytes»);", "(at - 8) * out.bytes - reads * x.bytes", AOT),
    Fault("boards", "an input that is of use later is not written over", "memory.cc",
          "if (!given || «live.count(*given) != 0» || fresh_.count(*given) != 0) continue;", "false", AOT),
    Fault("boards", "a resize in C has the scale that the model gives", "vision.cc", "«resized.scale = scales[i];»", "", AOT),
    Fault("boards", "passes of a resize in C have a buffer each", "vision.cc",
          "pass % 2 == 0 ? std::string() : «fmt::format(\" + {}\", buffers.first)»);", "std::string()", AOT),
    # State files.
    Fault("boards", "a state is one of this executable", "state.cc", "if («reader.program != ContentHash(module)») {", "false", STATES),
    Fault("boards", "a tensor of a state has the bytes of its shape", "state.cc",
          "if (!bytes || «*bytes != from.data_bytes») {", "false", STATES),
    Fault("boards", "a state that is refused leaves no input set", "state.cc",
          "«if (Status cleared = TryClearInputs(function.name); !cleared) return Forward(cleared);»", "", STATES),
    Fault("boards", "an integer comes back from a state as one", "state.cc",
          "if («type.kind == TypeKind::kInteger && *dtype == kInt64 && shape.empty()») {", "false", STATES),
    # Weights of 16 bits.
    Fault("boards", "weights that a model has as f16 are packed so", "pack_products.cc",
          "«IsWidenedF16(weights) ? kFloat16 : kFloat32»;", "kFloat32", PACKING),
    Fault("boards", "panels of f16 are read as f16", "packed_matmul.cc",
          "«if (w.Is<Float16>()) product.unit = PanelUnit::kHalf;»", "", KERNELS),
    Fault("boards", "weights that f16 cannot hold stay f32", "edit.cc",
          "if (graph->strict || !IsWidenedF16(origin) || «!FitF16(elements, parts)»)", "false", PACKING),
]
