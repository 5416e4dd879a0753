// SPDX-License-Identifier: Apache-2.0
//
// Lists an executable: first the interface that its users see, then what is inside.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "rewire/executable_format/module.h"

namespace rewire::tools {

// The interface: functions that a host calls, with their inputs and outputs, parameters, device code. A last
// line counts what is inside, and says how to see it.
std::string InterfaceText(const Module& module);
// All of it: every function with the size of its code, parameters, kernels, constants with their sizes.
std::string ListingText(const Module& module);
nlohmann::ordered_json ListingJson(const Module& module);

// "  producer: vm-compile", a line for each entry of the metadata that people read, and for each that the
// ONNX model had.
std::string MetadataText(const Module& module);
// All entries as the file has them.
nlohmann::ordered_json MetadataJson(const Module& module);
// The metadata of the ONNX model.
nlohmann::ordered_json ModelJson(const Module& module);

// "f32[N, 4]" for one node of a type.
std::string NodeText(const TypeNode& node, const Module& module);

// "rewire.conv(pads=[1, 1], group=1)": a kernel with its attributes.
std::string KernelText(const KernelImport& import);

}  // namespace rewire::tools
