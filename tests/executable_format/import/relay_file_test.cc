// SPDX-License-Identifier: Apache-2.0
#include "rewire/executable_format/import/relay_file.h"

#include <catch2/catch.hpp>
#include <set>
#include <string>

#include "rewire/executable_format/isa.h"
#include "rewire/tests/executable_format/import/foreign_files.h"

namespace rewire::tvm {
namespace {

using Catch::Matchers::Contains;

std::string ReadErrorOf(const RelaySpec& spec) {
  const std::string bytes = WriteRelay(spec);
  Result<RelayFile> file = ReadRelayFile(Share(bytes).view);
  REQUIRE_FALSE(file);
  CHECK(file.error().code() == StatusCode::kInvalidFile);
  return file.error().message();
}

// The error of a file whose bytes were changed by hand.
std::string ErrorOfBytes(const std::string& bytes) {
  Result<RelayFile> file = ReadRelayFile(Share(bytes).view);
  REQUIRE_FALSE(file);
  return file.error().message();
}

TEST_CASE("an instruction's hash is the one in a file of TVM 0.14") {
  // load_const %14 of constant 0 on device 0, as TVM 0.19 wrote it.
  CHECK(RelayInstructionHash(1, std::vector<std::int64_t>{0}) ==
        static_cast<std::int64_t>(1 ^ (0x9e3779b9 + (1 << 6))));
}

TEST_CASE("the three layouts and what lies between them are told apart by structure") {
  struct Row {
    RelaySpec::Devices devices;
    bool tagged;
    RelayWords load_const;
    RelayWords alloc_storage;
  };
  const RelayWords old_load = {kLoadConst, 0, 1}, new_load = {kLoadConst, 0, 0, 1};
  const RelayWords old_storage = {kAllocStorage, 1, 64, 2, 32, 1, 0, 2};
  const RelayWords new_storage = {kAllocStorage, 123456789, 0, 2, 32, 1, 0, 2, 2, 4, 5};
  const std::vector<Row> rows = {
      {RelaySpec::Devices::kScoped, true, new_load, new_storage},
      {RelaySpec::Devices::kPlain, true, old_load, old_storage},
      {RelaySpec::Devices::kScoped, true, old_load, old_storage},
      {RelaySpec::Devices::kPlain, true, new_load, new_storage},
      {RelaySpec::Devices::kPlain, false, old_load, old_storage},
      {RelaySpec::Devices::kScoped, false, new_load, new_storage},
  };
  for (const Row& row : rows) {
    RelaySpec spec = OneFunction({row.load_const, row.alloc_storage, {kRet, 0}});
    spec.form = row.devices;
    spec.tagged_constants = row.tagged;
    spec.devices = {DeviceEntry{},
                    DeviceEntry{kDLCUDA, 1, row.devices == RelaySpec::Devices::kScoped ? "texture" : ""}};
    spec.constants = {Scalar64(8), Scalar64(9)};
    Result<RelayFile> file = ReadRelayFile(Share(WriteRelay(spec)).view);
    REQUIRE(file);
    CHECK(file->devices == spec.devices);
    CHECK(file->constants.size() == 2);
    CHECK(file->kernels == spec.kernels);
    REQUIRE(file->functions.size() == 1);
    CHECK(file->functions[0].instructions.size() == 3);
    CHECK(file->functions[0].instructions[1].fields.size() == row.alloc_storage.size() - 1);
  }
}

TEST_CASE("device types of 0.8 become indices of a table") {
  RelaySpec spec = OneFunction({{kLoadConst, 0, 1},
                                {kAllocStorage, 1, 64, 2, 32, 1, kDLCUDA, 2},
                                {kDeviceCopy, 0, kDLCPU, kDLCUDA, 3},
                                {kRet, 3}});
  spec.form = RelaySpec::Devices::kAbsent;
  spec.tagged_constants = false;
  spec.version = "0.8.0";
  spec.constants = {Scalar64(8)};
  spec.constants[0].device = kDLCUDA;
  spec.parameter_device = kDLCPU;
  Result<RelayFile> file = ReadRelayFile(Share(WriteRelay(spec)).view);
  REQUIRE(file);
  CHECK(file->devices == std::vector<DeviceEntry>{{kDLCPU, 0, ""}, {kDLCUDA, 0, ""}});
  CHECK(file->constant_devices == std::vector<std::int64_t>{1});
  CHECK(file->functions[0].parameter_devices == std::vector<std::int64_t>{0});
  CHECK(file->functions[0].instructions[1].fields[5] == 1);
  CHECK(file->functions[0].instructions[2].fields == std::vector<std::int64_t>{0, 0, 1, 3});

  spec.parameter_device = 0;
  CHECK_THAT(ReadErrorOf(spec), Contains("0 is not a device type"));
}

TEST_CASE("a file cut anywhere is refused, and what stands behind it is ignored as TVM does") {
  RelaySpec spec = OneFunction({{kLoadConst, 0, 0, 1}, {kInvokePacked, 1, 2, 1, 0, 1}, {kFatal}, {kRet, 1}});
  spec.constants = {Scalar64(8)};
  spec.constants.push_back({"late", kInt64, {}, "", 0});
  const std::string bytes = WriteRelay(spec);
  std::set<std::string> errors;
  for (std::size_t size = 0; size < bytes.size(); ++size) errors.insert(ErrorOfBytes(bytes.substr(0, size)));
  // Each says which part is cut, in the words of the layout that the version has.
  for (const char* part : {"the virtual devices", "the names of the functions", "constant 0", "the constants",
                           "the kernels", "the functions", "function 0", "the parameters of 'main'"}) {
    INFO(part);
    CHECK(errors.count("Relay VM executable: the file ends inside " + std::string(part)) == 1);
  }
  CHECK(ReadRelayFile(Share(bytes).view));
  CHECK(ReadRelayFile(Share(bytes + "behind").view));
}

TEST_CASE("counts that the file cannot hold are refused before anything is sized by them") {
  RelaySpec spec = OneFunction({{kRet, 0}});
  spec.functions[0].instructions = "1000000000000";
  CHECK(
      ReadErrorOf(spec) ==
      "Relay VM executable: function 'main' claims 1000000000000 instructions, more than the file can hold");
  spec.functions[0].instructions = "-1";
  CHECK(ReadErrorOf(spec) == "Relay VM executable: function 'main' has '64' registers and '-1' instructions");
  spec.functions[0].instructions = "";
  spec.functions[0].registers = "99999999999999999999";
  CHECK_THAT(ReadErrorOf(spec), Contains("registers"));
  spec.functions[0].registers = "0";
  CHECK_THAT(ReadErrorOf(spec), Contains("1 parameters in 0 registers"));
}

TEST_CASE("fields that do not fit their opcode are refused") {
  CHECK_THAT(ReadErrorOf(OneFunction({{kGoto, 1, 2}})), Contains("main@0: goto has 2 fields, expected 1"));
  CHECK_THAT(ReadErrorOf(OneFunction({{kLoadConst, 0}})), Contains("load_const has 1 fields, expected 2"));
  CHECK(ReadErrorOf(OneFunction({{kInvokePacked, 0, -1, 1}})) ==
        "Relay VM executable: main@0: invoke_packed counts -1 list entries and has 3 fields");
  CHECK_THAT(ReadErrorOf(OneFunction({{kInvokePacked, 0, 3, 1, 0}})), Contains("has 4 fields, expected 6"));
  CHECK_THAT(ReadErrorOf(OneFunction({{kAllocTensor, 0, 1, 2, 32, 1, 1LL << 60, 2}})),
             Contains("list entries"));
  CHECK_THAT(ReadErrorOf(OneFunction({{-1, 0}})), Contains("opcode -1"));
  CHECK_THAT(ReadErrorOf(OneFunction({{(1LL << 32) + kRet, 0}})), Contains("opcode 4294967297"));
}

TEST_CASE("messages name each of TVM's opcodes as the instruction that it becomes") {
  // TVM's last opcode, KillRegister, has the code 20. The files here know no other, whatever Rewire has
  // behind it.
  for (std::int64_t code = 0; code <= 20; ++code) {
    RelayWords instruction(61);  // its opcode, and more fields than any opcode has
    instruction[0] = code;
    CHECK_THAT(ReadErrorOf(OneFunction({instruction})),
               Contains("main@0: " + std::string(kOpcodes[static_cast<std::size_t>(code)].mnemonic) +
                        " has 60 fields, expected "));
  }
  for (std::int64_t code = 21; code < 256; ++code) {
    CHECK_THAT(ReadErrorOf(OneFunction({{code, 0}})), Contains("is none of TVM's"));
  }
}

TEST_CASE("a field that was changed does not match the instruction's hash") {
  std::string bytes = WriteRelay(OneFunction({{kRet, 0}}));
  bytes[bytes.size() - 8] = 1;  // the register returned
  CHECK(ErrorOfBytes(bytes) ==
        "Relay VM executable: main@0: the instruction's hash does not match its fields: the file is damaged");
}

TEST_CASE("counts and tags that contradict what follows them are refused") {
  RelaySpec spec = OneFunction({{kRet, 0}});
  spec.constants.push_back({"late", kInt64, {}, "", 0});
  const std::string good = WriteRelay(spec);
  REQUIRE(ReadRelayFile(Share(good).view));
  const auto changed = [&good](std::size_t at, char value) {
    std::string bytes = good;
    bytes[at] = value;
    return ErrorOfBytes(bytes);
  };
  constexpr std::size_t kCount = sizeof(std::uint64_t);
  const std::size_t late = good.find("late");
  CHECK(changed(late - kCount - sizeof(std::uint32_t), 7) ==
        "Relay VM executable: constant 0 has tag 7; 0 is a tensor, 1 a name");
  // Behind the constant stands for how many of them a device is named.
  std::string no_device = good;
  no_device[late + 4] = 0;
  no_device.erase(late + 4 + kCount, kCount);
  CHECK(ErrorOfBytes(no_device) == "Relay VM executable: the constants are 0 devices, expected 1");
  // Behind the kernels: how many have attributes, and which is the first.
  CHECK(changed(good.find("kernel_b") + 8 + kCount, 9) ==
        "Relay VM executable: there are attributes for kernel 9, there are 2 kernels");
  const std::size_t head = good.rfind("main") - 2 * kCount;
  CHECK(changed(head, 2) == "Relay VM executable: function 0 has 2 header entries, expected 3");
  // The instruction is the file's end: a count, its hash, its opcode and a field.
  std::string short_instruction = good;
  short_instruction[good.size() - 4 * kCount] = 1;
  short_instruction.replace(good.size() - 3 * kCount, 3 * kCount, std::string(3 * kCount, '\0'));
  CHECK(ErrorOfBytes(short_instruction) ==
        "Relay VM executable: main@0: an instruction of 1 words; it has 2 or more");
}

TEST_CASE("functions and globals that do not agree are refused") {
  RelaySpec spec = OneFunction({{kRet, 0}});
  spec.globals = {"main", "other"};
  CHECK(ReadErrorOf(spec) == "Relay VM executable: the file has 1 functions and 2 names for them");
  spec.globals = {"other"};
  CHECK_THAT(ReadErrorOf(spec), Contains("function 0 is 'main', the globals call it 'other'"));
}

TEST_CASE("devices that the table does not have are refused") {
  RelaySpec spec = OneFunction({{kRet, 0}});
  spec.parameter_device = 1;
  CHECK_THAT(ReadErrorOf(spec), Contains("the parameters of 'main' name device 1, there are 1"));
  spec.parameter_device = 0;
  spec.host = 1;
  CHECK_THAT(ReadErrorOf(spec), Contains("the host is virtual device 1, there are 1"));
  spec.host = -1;
  CHECK_THAT(ReadErrorOf(spec), Contains("the host is virtual device -1"));
}

TEST_CASE("a file with its length in front is read as without") {
  const std::string plain = WriteRelay(OneFunction({{kRet, 0}}));
  StreamWriter saved;
  saved.String(plain);
  CHECK(IsVmExecutable(Share(saved.bytes()).view));
  REQUIRE(ReadRelayFile(Share(saved.bytes()).view));
  CHECK(ReadRelayFile(Share(saved.bytes()).view)->functions.size() == 1);
  // A length that is not the file's is none.
  CHECK_FALSE(IsVmExecutable(Share(saved.bytes() + "x").view));
  CHECK_FALSE(IsVmExecutable(Share(saved.bytes().substr(0, saved.bytes().size() - 1)).view));
}

TEST_CASE("other files are refused by what they are") {
  StreamWriter relax;
  relax.Put(std::uint64_t{0xD225DE2F4214151E});
  Result<RelayFile> file = ReadRelayFile(Share(relax.bytes()).view);
  REQUIRE_FALSE(file);
  CHECK(file.error().code() == StatusCode::kUnsupported);
  CHECK_THAT(file.error().message(), Contains("Relax executable"));
  // The first version of Relax has Relay's magic; its version is of two parts.
  RelaySpec first = OneFunction({{kRet, 0}});
  first.version = "0.14";
  const Result<RelayFile> refused = ReadRelayFile(Share(WriteRelay(first)).view);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code() == StatusCode::kUnsupported);
  CHECK_THAT(refused.error().message(), Contains("Relax executable"));
  first.version = "0.14.dev273";
  CHECK(ReadRelayFile(Share(WriteRelay(first)).view));
  CHECK_FALSE(ReadRelayFile(Share("").view));
  CHECK(ErrorOfBytes("not a TVM file") ==
        "not a Relay VM executable: it starts with 0x5654206120746f6e instead of 0xd225de2f4214151d");
}

}  // namespace
}  // namespace rewire::tvm
