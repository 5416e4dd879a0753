// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <functional>
#include <utility>

#include "rewire/executable_format/code_writer.h"
#include "rewire/tests/executable_format/bad_modules.h"
#include "rewire/tests/executable_format/sample_modules.h"

namespace rewire::test {
namespace {

Constant Parameter(std::string name) {
  Constant constant;
  constant.kind = ConstantKind::kParameter;
  constant.name = std::move(name);
  constant.type = TensorType(kFloat32, {4}).nodes[0];
  return constant;
}

Constant Computed(std::string name) {
  Constant constant = Parameter(std::move(name));
  constant.kind = ConstantKind::kComputed;
  return constant;
}

std::vector<BadModule> BadConstants() {
  return {
      Changed(
          "constant.name", [](Module& m) { m.constants.push_back(m.constants[0]); },
          "two entries of constant have the name 'w'"),
      Changed(
          "constant.type", [](Module& m) { m.constants[0].type = SimpleType(TypeKind::kValue).nodes[0]; },
          "constant 0 ('w') is not of a tensor type"),
      Changed(
          "constant.stored", [](Module& m) { m.constants[0].kind = ConstantKind::kParameter; },
          "constant 0 ('w') has bytes in the file, but its kind is not data"),
      Changed(
          "constant.parameter_name", [](Module& m) { m.constants.push_back(Parameter("")); },
          "constant 1 is a parameter without a name"),
      Changed(
          "constant.parameter_size",
          [](Module& m) {
            m.constants.push_back(Parameter("p"));
            m.constants[1].raw_bytes = 16;
          },
          "constant 1 ('p') is a parameter with a size; its type says all"),
      Changed(
          "symbol.limit/count", [](Module& m) { m.symbol_limits = {4}; },
          "there are 1 symbol limits for 0 symbols"),
      Changed(
          "symbol.limit/negative",
          [](Module& m) {
            m.symbols = {"N"};
            m.symbol_limits = {-2};
          },
          "symbol 'N' is at most -2, which is negative"),
      Changed(
          "constant.static/dim",
          [](Module& m) {
            m.symbols = {"N"};
            m.constants[0].type.dims[0] = SymbolDim(0);
          },
          "constant 0 ('w') has type f32[N]; only a parameter's may leave something open"),
      Changed(
          "constant.static/rank",
          [](Module& m) { m.constants[0].type = UnrankedTensorType(kFloat32).nodes[0]; },
          "constant 0 ('w') has type f32[*]; only a parameter's may leave something open"),
      Changed(
          "constant.static/dtype", [](Module& m) { m.constants[0].type.dtype = kUnknownDType; },
          "constant 0 ('w') has type ?[4]; only a parameter's may leave something open"),
      Changed(
          "constant.static/device", [](Module& m) { m.constants[0].type.device = kAnyDevice; },
          "constant 0 ('w') has type f32[4]@*; only a parameter's may leave something open"),
      Changed(
          "constant.static/computed",
          [](Module& m) {
            m.symbols = {"N"};
            m.constants[0] = Computed("c");
            m.constants[0].type.dims[0] = SymbolDim(0);
          },
          "constant 0 ('c') has type f32[N]; of a computed constant only sizes may be open, as '?'"),
      Changed(
          "constant.computed_size",
          [](Module& m) {
            m.constants[0] = Computed("c");
            m.constants[0].type.dims[0] = kUnknownDim;
            m.constants[0].raw_bytes = 16;
          },
          "constant 0 ('c') has a size in bytes, but its type leaves one open"),
      Changed(
          "constant.bytes", [](Module& m) { m.constants[0].type.dims[0] = 5; },
          "constant 0 ('w') has 16 bytes, its type f32[5] takes 20"),
      Changed(
          "constant.bytes/overflow",
          [](Module& m) {
            m.constants[0].type = TensorType(kFloat32, {1LL << 40, 1LL << 40}).nodes[0];
          },
          "constant 0 ('w') has 16 bytes, its type f32[1099511627776, 1099511627776] takes more than 2^63"),
      Changed(
          "constant.file_bytes",
          [](Module& m) {
            m.constants[0].type.dims[0] = 3;
            m.constants[0].raw_bytes = 12;
          },
          "constant 0 ('w') has 16 bytes in the file, uncompressed it takes 12"),
  };
}

std::vector<BadModule> BadKernels() {
  return {
      Changed(
          "kernel.name", [](Module& m) { m.kernels[0].name.clear(); }, "kernel 0 has an empty name"),
      Changed(
          "kernel.debug_name", [](Module& m) { m.kernels[0].debug_name = "a\tb"; },
          "the name of the debug name of kernel 0 ('k') is not printable UTF-8"),
      Changed(
          "kernel.attribute_name",
          [](Module& m) {
            m.kernels[0].attributes = {{"axis", std::int64_t{0}}, {"axis", std::int64_t{1}}};
          },
          "two entries of attribute of kernel 0 ('k') have the name 'axis'"),
      Changed(
          "kernel.attribute_text",
          [](Module& m) {
            m.kernels[0].attributes = {{"mode", std::string("\xFF")}};
          },
          "attribute 'mode' of kernel 0 ('k') is not UTF-8"),
      Changed(
          "kernel.flags", [](Module& m) { m.kernels[0].flags = 4; }, "kernel 0 ('k') has unknown flags 0x4"),
      Changed(
          "kernel.alignment", [](Module& m) { m.kernels[0].alignment = 48; },
          "kernel 0 ('k') wants an alignment of 48; it is 0 or a power of two up to 4096"),
      Changed(
          "kernel.also_written",
          [](Module& m) {
            m.kernels[0].also_written = {2, 2};
          },
          "kernel 0 ('k') lists written arguments 2 and 2 in this order; they ascend"),
  };
}

}  // namespace

Module GoodModule() {
  Module module;
  module.constants = {DataConstant("w", TensorType(kFloat32, {4}), {1, 2, 3, 4})};
  module.kernels.resize(1);
  module.kernels[0].name = "k";
  module.strings = {"note"};
  const Type vector = TensorType(kFloat32, {4});
  CodeWriter code;
  code.Ret(0);
  Function main;
  main.name = "main";
  main.inputs = {{"x", vector}};
  main.result = vector;
  main.output_names = {"y"};
  main.register_count = 8;
  main.code = *code.Finish();
  Function helper = main;
  helper.name = "helper";
  helper.inputs = {{"a", vector}, {"s", SimpleType(TypeKind::kStorage)}};
  module.functions = {main, helper};
  return module;
}

BadModule Changed(std::string name, const ModuleChange& change, std::string message, FormatLimits limits) {
  BadModule bad{std::move(name), GoodModule(), std::move(message), limits};
  change(bad.module);
  return bad;
}

BadModule Emitted(std::string name, const EmitCode& emit, std::string message, const ModuleChange& change) {
  BadModule bad{std::move(name), GoodModule(), std::move(message)};
  CodeWriter code;
  emit(code);
  code.Ret(0);
  bad.module.functions[0].code = *code.Finish();
  if (change) change(bad.module);
  return bad;
}

FormatLimits Limit(std::uint32_t FormatLimits::*member, std::uint32_t value) {
  FormatLimits limits;
  limits.*member = value;
  return limits;
}

std::vector<BadModule> BadTables() {
  std::vector<BadModule> bad = {
      Changed(
          "limit.constants", [](Module&) {}, "constants: 1, the limit is 0",
          Limit(&FormatLimits::constants, 0)),
      Changed(
          "limit.kernels", [](Module&) {}, "kernels: 1, the limit is 0", Limit(&FormatLimits::kernels, 0)),
      Changed(
          "limit.functions", [](Module&) {}, "functions: 2, the limit is 1",
          Limit(&FormatLimits::functions, 1)),
      Changed(
          "limit.code_words", [](Module&) {}, "words of code: 4, the limit is 3",
          Limit(&FormatLimits::code_words, 3)),
      Changed(
          "name.empty", [](Module& m) { m.symbols = {""}; }, "symbol 0 has an empty name"),
      Changed(
          "name.bytes", [](Module& m) { m.symbols = {"batch"}; },
          "the name of symbol 0 has 5 bytes, the limit is 4", Limit(&FormatLimits::name_bytes, 4)),
      Changed(
          "name.printable/utf8", [](Module& m) { m.symbols = {"\xC3"}; },
          "the name of symbol 0 is not printable UTF-8"),
      Changed(
          "name.printable/control", [](Module& m) { m.symbols = {"a\x1B[2J"}; },
          "the name of symbol 0 is not printable UTF-8"),
      Changed(
          "text.bytes", [](Module&) {}, "string 0 has 4 bytes, the limit is 3",
          Limit(&FormatLimits::text_bytes, 3)),
      Changed(
          "text.utf8", [](Module& m) { m.strings[0] = "\xFF"; }, "string 0 is not UTF-8"),
      Changed(
          "device.host/none", [](Module& m) { m.devices.clear(); }, "device 0 is not the host, {cpu, 0}"),
      Changed(
          "device.host/other", [](Module& m) { m.devices[0].id = 1; }, "device 0 is not the host, {cpu, 0}"),
      Changed(
          "device.values/type",
          [](Module& m) {
            m.devices.push_back({0, 0, ""});
          },
          "device 1 has type 0 and id 0; types start at 1, ids at 0"),
      Changed(
          "device.values/id",
          [](Module& m) {
            m.devices.push_back({2, -1, ""});
          },
          "device 1 has type 2 and id -1; types start at 1, ids at 0"),
      Changed(
          "device.scope",
          [](Module& m) {
            m.devices.push_back({2, 0, "\n"});
          },
          "the name of the memory scope of device 1 is not printable UTF-8"),
      Changed(
          "device.unique",
          [](Module& m) {
            m.devices.push_back({2, 0, ""});
            m.devices.push_back({2, 0, ""});
          },
          "devices 1 and 2 are the same"),
      Changed(
          "symbol.name",
          [](Module& m) {
            m.symbols = {"N", "N"};
          },
          "two entries of symbol have the name 'N'"),
      Changed(
          "metadata.key",
          [](Module& m) {
            m.metadata = {{"producer", "a"}, {"producer", "b"}};
          },
          "two entries of metadata have the name 'producer'"),
      Changed(
          "metadata.value",
          [](Module& m) {
            m.metadata = {{"producer", "\xFF"}};
          },
          "metadata 'producer' is not UTF-8"),
  };
  for (BadModule& more : BadConstants()) bad.push_back(std::move(more));
  for (BadModule& more : BadKernels()) bad.push_back(std::move(more));
  return bad;
}

std::vector<BadModule> BadModules() {
  std::vector<BadModule> all = BadTables();
  for (auto* part : {BadDeviceCode, BadSignatures, BadCode, BadFlow}) {
    for (BadModule& bad : part()) all.push_back(std::move(bad));
  }
  return all;
}

}  // namespace rewire::test
