// SPDX-License-Identifier: Apache-2.0
#include <functional>
#include <string>
#include <utility>

#include "rewire/executable_format/code_writer.h"
#include "rewire/tests/executable_format/bad_modules.h"
#include "rewire/tests/executable_format/sample_modules.h"

namespace rewire::test {
namespace {

BadModule BadDevice(std::string name, const ModuleChange& change, std::string message) {
  BadModule bad{std::move(name), GoodModule(), std::move(message)};
  AddDeviceCode(bad.module);
  change(bad.module);
  return bad;
}

// The same with a change of the kernel, whose messages begin with its name.
BadModule BadDeviceKernel(std::string name, const std::function<void(DeviceKernelEntry&)>& change,
                          const std::string& message) {
  return BadDevice(
      std::move(name), [&](Module& m) { change(m.device_kernels[0]); },
      "device kernel 0 ('test.scale')" + message);
}

BadModule InMemory(BadModule bad) {
  bad.in_memory_only = true;
  return bad;
}

BadModule Limited(std::uint32_t FormatLimits::*member, std::string name, std::string message) {
  BadModule bad = BadDevice(
      std::move(name), [](Module&) {}, std::move(message));
  bad.limits.*member = 0;
  return bad;
}

Array<std::int64_t> Words(std::initializer_list<std::int64_t> words) {
  return std::vector<std::int64_t>(words);
}

BadModule BadSize(const std::string& variant, Array<std::int64_t> words, const std::string& fault) {
  return BadDeviceKernel(
      "device_kernel.size/" + variant, [&](DeviceKernelEntry& k) { k.groups[1].words = words; },
      ": its number of groups " + fault);
}

std::vector<BadModule> BadBlobs() {
  return {
      Limited(&FormatLimits::device_code, "limit.device_code", "blobs of device code: 1, the limit is 0"),
      Limited(&FormatLimits::device_kernels, "limit.device_kernels", "device kernels: 1, the limit is 0"),
      BadDevice(
          "device_code.name", [](Module& m) { m.device_code[0].name = "\n"; },
          "the name of device code 0 is not printable UTF-8"),
      BadDevice(
          "device_code.form", [](Module& m) { m.device_code[0].form = 7; },
          "device code 0 ('test') has form 7; forms are 1 to 6"),
      BadDevice(
          "device_code.form/zero", [](Module& m) { m.device_code[0].form = 0; },
          "device code 0 ('test') has form 0; forms are 1 to 6"),
      BadDevice(
          "device_code.architecture", [](Module& m) { m.device_code[0].architecture = "\n"; },
          "the name of the architecture of device code 0 ('test') is not printable UTF-8"),
      BadDevice(
          "device_code.architecture/cubin", [](Module& m) { m.device_code[0].form = 5; },
          "device code 0 ('test') is machine code without an architecture"),
      BadDevice(
          "device_code.constant", [](Module& m) { m.device_code[0].constant = 2; },
          "device code 0 ('test') names constant 2, there are 2"),
      BadDevice(
          "device_code.constant/type", [](Module& m) { m.device_code[0].constant = 0; },
          "device code 0 ('test') is in constant 0, which is not u8[n] with data"),
      BadDevice(
          "device_code.constant/kind",
          [](Module& m) {
            m.constants[1].kind = ConstantKind::kParameter;
            m.constants[1].stored = {};
            m.constants[1].raw_bytes = 0;
          },
          "device code 0 ('test') is in constant 1, which is not u8[n] with data"),
      BadDevice(
          "device_code.load",
          [](Module& m) {
            CodeWriter code;
            code.LoadConst(1, 1);
            code.Ret(0);
            m.functions[0].code = *code.Finish();
          },
          "main@0 (%1 = load_const code): constant 1 is device code, which cannot be loaded"),
  };
}

std::vector<BadModule> BadDeviceKernels() {
  return {
      BadDevice(
          "device_kernel.name", [](Module& m) { m.device_kernels[0].name = ""; },
          "device kernel 0 has an empty name"),
      BadDevice(
          "device_kernel.name/twice", [](Module& m) { m.device_kernels.push_back(m.device_kernels[0]); },
          "two device kernels have the name 'test.scale'"),
      BadDevice(
          "device_kernel.symbol", [](Module& m) { m.device_kernels[0].symbol = ""; },
          "the symbol of device kernel 0 ('test.scale') has an empty name"),
      BadDeviceKernel(
          "device_kernel.code", [](DeviceKernelEntry& k) { k.code = "tests"; },
          " is in device code 'tests', which does not exist"),
      BadDeviceKernel(
          "device_kernel.parameters", [](DeviceKernelEntry& k) { k.outputs = 0; },
          " has 2 parameters and writes 0; it may have 16, and writes at least 1"),
      InMemory(BadDeviceKernel(
          "device_kernel.parameters/outputs", [](DeviceKernelEntry& k) { k.outputs = 3; },
          " has 2 parameters and writes 3; it may have 16, and writes at least 1")),
      BadDeviceKernel(
          "device_kernel.parameters/many",
          [](DeviceKernelEntry& k) { k.parameters = Array<DeviceParameter>(17, k.parameters[0]); },
          " has 17 parameters and writes 1; it may have 16, and writes at least 1"),
      BadDevice(
          "device_kernel.parameter_name", [](Module& m) { m.device_kernels[0].parameters[1].name = "\t"; },
          "the name of a parameter of device kernel 0 ('test.scale') is not printable UTF-8"),
      BadDevice(
          "device_kernel.parameter_name/twice",
          [](Module& m) { m.device_kernels[0].parameters[1].name = "x"; },
          "two parameters of device kernel 0 ('test.scale') have the name 'x'"),
      InMemory(BadDevice(
          "device_kernel.parameter_type",
          [](Module& m) { m.device_kernels[0].parameters[0].type = SimpleType(TypeKind::kValue).nodes[0]; },
          "parameter 'x' of device kernel 0 ('test.scale') is not a tensor")),
      BadDevice(
          "device_kernel.parameter_type/dtype",
          [](Module& m) { m.device_kernels[0].parameters[0].type.dtype = kUnknownDType; },
          "parameter 'x' of device kernel 0 ('test.scale') has no dtype or no rank"),
      BadDevice(
          "device_kernel.parameter_type/rank",
          [](Module& m) {
            m.device_kernels[0].parameters[0].type = UnrankedTensorType(kFloat32, 1).nodes[0];
          },
          "parameter 'x' of device kernel 0 ('test.scale') has no dtype or no rank"),
      BadDevice(
          "device_kernel.parameter_type/symbol",
          [](Module& m) { m.device_kernels[0].parameters[0].type.dims[0] = SymbolDim(5); },
          "parameter 'x' of device kernel 0 ('test.scale') names symbol 5, there are 1"),
      BadDevice(
          "device_kernel.device", [](Module& m) { m.device_kernels[0].parameters[1].type.device = 0; },
          "parameter 'y' of device kernel 0 ('test.scale') is not on the one device of the kernel"),
      BadDevice(
          "device_kernel.device/any",
          [](Module& m) {
            for (DeviceParameter& each : m.device_kernels[0].parameters) each.type.device = kAnyDevice;
          },
          "parameter 'x' of device kernel 0 ('test.scale') is not on the one device of the kernel"),
      BadDeviceKernel(
          "device_kernel.arguments",
          [](DeviceKernelEntry& k) { k.arguments = Array<DeviceArgument>(65, k.arguments[0]); },
          " has 65 arguments; the limit is 64"),
      BadDeviceKernel(
          "device_kernel.argument", [](DeviceKernelEntry& k) { k.arguments[0].parameter = 2; },
          ": argument 0 is parameter 2, there are 2"),
      InMemory(BadDeviceKernel(
          "device_kernel.argument/integer", [](DeviceKernelEntry& k) { k.arguments[3].dtype = kFloat32; },
          ": argument 3 is not an integer of 8 to 64 bits, or a float of 32 or 64")),
      InMemory(BadDeviceKernel(
          "device_kernel.argument/real", [](DeviceKernelEntry& k) { k.arguments[2].dtype = kInt32; },
          ": argument 2 is not an integer of 8 to 64 bits, or a float of 32 or 64")),
      BadSize("empty", {}, "is not one value"),
      BadSize("two", Words({0, 1, 0, 1}), "is not one value"),
      BadSize("operation", Words({10, 1}), "has an operation that does not exist"),
      BadSize("negative", Words({-1, 1}), "has an operation that does not exist"),
      BadSize("values", Words({0, 1, 2}), "has an operation without two values"),
      BadSize("end", Words({0}), "ends inside an operation"),
      BadSize("words", Array<std::int64_t>(129), "has more than 128 words"),
      BadSize("depth", Array<std::int64_t>(34), "is nested more than 16 deep"),
      BadDeviceKernel(
          "device_kernel.size/threads", [](DeviceKernelEntry& k) { k.threads[2].words = {}; },
          ": its number of threads is not one value"),
      BadDeviceKernel(
          "device_kernel.size/shared", [](DeviceKernelEntry& k) { k.shared_bytes.words = {}; },
          ": its shared memory is not one value"),
      BadDeviceKernel(
          "device_kernel.size/argument", [](DeviceKernelEntry& k) { k.arguments[3].value.words = {}; },
          ": argument 3 is not one value"),
      BadDeviceKernel(
          "device_kernel.size/local",
          [](DeviceKernelEntry& k) {
            k.arguments[3].kind = DeviceArgumentKind::kLocalMemory;
            k.arguments[3].value.words = {};
          },
          ": argument 3 is not one value"),
      BadDeviceKernel(
          "device_kernel.size_symbol",
          [](DeviceKernelEntry& k) {
            k.groups[0].words = Words({1, 1});
          },
          ": its number of groups uses symbol 1, which is in no parameter's shape"),
      BadDeviceKernel(
          "device_kernel.size_symbol/negative",
          [](DeviceKernelEntry& k) {
            k.groups[0].words = Words({1, -1});
          },
          ": its number of groups uses symbol -1, which is in no parameter's shape"),
  };
}

}  // namespace

std::vector<BadModule> BadDeviceCode() {
  std::vector<BadModule> bad = BadBlobs();
  for (BadModule& each : BadDeviceKernels()) bad.push_back(std::move(each));
  return bad;
}

}  // namespace rewire::test
