// SPDX-License-Identifier: Apache-2.0
#include "rewire/tests/executable_format/import/foreign_files.h"

#include <cstring>

#include "rewire/executable_format/instruction.h"
#include "rewire/executable_format/instruction_text.h"

namespace rewire::tvm {

void StreamWriter::String(const std::string& text) {
  Count(text.size());
  bytes_ += text;
}

void StreamWriter::Strings(const std::vector<std::string>& texts) {
  Count(texts.size());
  for (const std::string& text : texts) String(text);
}

void StreamWriter::Ints(const std::vector<std::int64_t>& ints) {
  Count(ints.size());
  for (std::int64_t value : ints) Put(value);
}

void StreamWriter::Tensor(DLDataType dtype, const std::vector<std::int64_t>& shape,
                          const std::string& elements) {
  Put(std::uint64_t{0xDD5E40F096B4A13F});
  Put(std::uint64_t{0});
  Put(DLDevice{kDLCPU, 0});
  Put(static_cast<std::int32_t>(shape.size()));
  Put(dtype);
  for (std::int64_t dim : shape) Put(dim);
  Put(static_cast<std::int64_t>(elements.size()));
  bytes_ += elements;
}

RelaySpec OneFunction(std::vector<RelayWords> code, std::vector<std::string> parameters,
                      std::string registers) {
  RelaySpec spec;
  spec.functions.push_back({"main", std::move(registers), std::move(parameters), std::move(code), ""});
  return spec;
}

RelaySpec::Constant Scalar64(std::int64_t value) {
  RelaySpec::Constant constant;
  constant.elements.assign(reinterpret_cast<const char*>(&value), sizeof(value));
  return constant;
}

std::string WriteRelay(const RelaySpec& spec) {
  StreamWriter out;
  out.Put(std::uint64_t{0xD225DE2F4214151D});
  out.String(spec.version);
  if (spec.form != RelaySpec::Devices::kAbsent) {
    out.Count(spec.devices.size());
    for (const DeviceEntry& device : spec.devices) {
      out.Put(device.type);
      out.Put(device.id);
      if (spec.form == RelaySpec::Devices::kScoped) out.String(device.memory_scope);
    }
    out.Put(spec.host);
  }
  std::vector<std::string> globals = spec.globals;
  for (const RelayFunctionSpec& function : spec.functions) {
    if (spec.globals.empty()) globals.push_back(function.name);
  }
  out.Strings(globals);
  out.Count(spec.constants.size());
  std::vector<std::int64_t> constant_devices;
  for (const RelaySpec::Constant& constant : spec.constants) {
    if (spec.tagged_constants) out.Put(std::uint32_t{constant.name.empty() ? 0u : 1u});
    if (constant.name.empty()) {
      out.Tensor(constant.dtype, constant.shape, constant.elements);
    } else {
      out.String(constant.name);
    }
    constant_devices.push_back(constant.device);
  }
  out.Ints(constant_devices);
  out.Strings(spec.kernels);
  out.Count(spec.kernels.empty() ? 0 : 1);  // attributes of kernel 0
  if (!spec.kernels.empty()) {
    out.Count(0);
    out.Count(1);
    out.String("relay_attrs");
    out.String("hash");
  }
  out.Count(spec.functions.size());
  for (const RelayFunctionSpec& function : spec.functions) {
    const std::string count =
        function.instructions.empty() ? std::to_string(function.code.size()) : function.instructions;
    out.Strings({function.name, function.registers, count});
    out.Strings(function.parameters);
    out.Ints(std::vector<std::int64_t>(function.parameters.size(), spec.parameter_device));
    for (const RelayWords& words : function.code) {
      RelayWords line = {RelayInstructionHash(words[0], {words.data() + 1, words.size() - 1})};
      line.insert(line.end(), words.begin(), words.end());
      out.Ints(line);
    }
  }
  return out.bytes();
}

SharedBytes Share(std::string bytes) {
  auto owner = std::make_shared<const std::string>(std::move(bytes));
  return {{reinterpret_cast<const std::byte*>(owner->data()), owner->size()}, owner};
}

std::string CodeText(const Module& module, std::size_t function) {
  const InstructionPrinter printer(module);
  const Function& of = module.functions[function];
  std::string text;
  for (std::size_t pc = 0; pc < of.code.size(); pc += WordsOf(of.code[pc])) {
    text += printer.Text(of, pc) + "\n";
  }
  return text;
}

}  // namespace rewire::tvm
