// SPDX-License-Identifier: Apache-2.0
// Device code as text: the reverse of device_code_parser.h.
#pragma once

#include <optional>
#include <string>

#include "rewire/executable_format/instruction_text.h"
#include "rewire/executable_format/module.h"
#include "rewire/executable_format/tensor_files/host_tensor.h"
#include "rewire/executable_format/text/type_printer.h"

namespace rewire::text {

// One line each, with its end. `names` and `types` are of the module.
std::string DeviceCodeText(const DeviceCodeEntry& entry, const InstructionPrinter& names);
std::string DeviceKernelText(const DeviceKernelEntry& kernel, TypePrinter& types);

// Source text as `text {...}`, a line each; other code in base64.
std::string CodeDataText(const HostTensor& code);

}  // namespace rewire::text
