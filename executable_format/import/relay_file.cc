// SPDX-License-Identifier: Apache-2.0
#include "rewire/executable_format/import/relay_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <unordered_map>

#include "rewire/base/array.h"
#include "rewire/executable_format/import/relay_fields.h"
#include "rewire/executable_format/import/stream.h"
#include "rewire/executable_format/isa.h"

namespace rewire::tvm {
namespace {

constexpr std::uint64_t kRelayMagic = 0xD225DE2F4214151D;  // and of Relax's first version
constexpr std::uint64_t kRelaxMagic = 0xD225DE2F4214151E;  // of its second
// Both versions of Relax call themselves so. Relay writes the version of TVM, which has three parts.
constexpr std::string_view kRelaxVersion = "0.14";

enum class DeviceForm { kScoped, kPlain, kAbsent };

// The differences between versions before the functions.
struct Layout {
  DeviceForm devices;
  bool tagged_constants;

  bool operator==(const Layout&) const = default;
};

// The layout of the release with that version.
Layout ReleasedLayout(std::string_view version) {
  unsigned minor = 0;
  if (version.starts_with("0.")) std::from_chars(version.data() + 2, version.data() + version.size(), minor);
  if (minor >= 14) return {DeviceForm::kScoped, true};
  return minor == 8 ? Layout{DeviceForm::kAbsent, false} : Layout{DeviceForm::kPlain, true};
}

// Every pairing, the releases' first: development builds have the others.
constexpr Layout kLayouts[] = {{DeviceForm::kScoped, true},  {DeviceForm::kPlain, true},
                               {DeviceForm::kAbsent, false}, {DeviceForm::kPlain, false},
                               {DeviceForm::kAbsent, true},  {DeviceForm::kScoped, false}};

// A module saved by itself (`mod.save("x.ro")`) has its length in front.
Span<const std::byte> Unwrapped(Span<const std::byte> file) {
  ByteReader reader(file);
  const auto length = reader.Read<std::uint64_t>();
  return reader.ok() && length == reader.remaining() ? file.subspan(sizeof(length)) : file;
}

std::optional<std::uint64_t> ParseCount(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

Status CheckDeviceIndices(const std::string& what, const Array<std::int64_t>& indices, std::size_t expected,
                          std::size_t devices) {
  if (indices.size() != expected) {
    return Malformed(fmt::format("{} are {} devices, expected {}", what, indices.size(), expected));
  }
  for (std::int64_t index : indices) {
    if (index < 0 || static_cast<std::uint64_t>(index) >= devices) {
      return Malformed(fmt::format("{} name device {}, there are {}", what, index, devices));
    }
  }
  return {};
}

// One attempt at the file under one layout.
class Attempt {
 public:
  Attempt(ByteReader reader, Layout layout) : reader_(reader), layout_(layout) {}

  Result<RelayFile> Run();

 private:
  Status ReadDevices();
  Status ReadConstants();
  Status ReadKernels();
  Status ReadFunction(std::size_t index);
  Status ReadInstructions(RelayFunction& function, std::uint64_t count);
  Result<RelayInstruction> ReadInstruction();
  Status IndexDeviceTypes();
  Status CheckDevices() const;

  ByteReader reader_;
  Layout layout_;
  RelayFile file_;
  Array<std::string> globals_;
};

Status Attempt::ReadDevices() {
  const std::size_t bytes = layout_.devices == DeviceForm::kScoped ? 16 : 8;
  const std::size_t count = reader_.ReadCount<std::uint64_t>(bytes);
  for (std::size_t i = 0; i < count && reader_.ok(); ++i) {
    DeviceEntry device;
    device.type = reader_.Read<std::int32_t>();
    device.id = reader_.Read<std::int32_t>();
    if (layout_.devices == DeviceForm::kScoped) device.memory_scope = ReadString(reader_);
    file_.devices.push_back(std::move(device));
  }
  file_.host_device = static_cast<std::uint32_t>(reader_.Read<std::int32_t>());
  if (!reader_.ok()) return Truncated("the virtual devices");
  if (file_.host_device >= file_.devices.size()) {
    return Malformed(fmt::format("the host is virtual device {}, there are {}",
                                 static_cast<std::int32_t>(file_.host_device), file_.devices.size()));
  }
  return {};
}

Status Attempt::ReadConstants() {
  const auto count = reader_.Read<std::uint64_t>();
  for (std::uint64_t i = 0; i < count && reader_.ok(); ++i) {
    const std::string what = fmt::format("constant {}", i);
    const std::uint32_t tag = layout_.tagged_constants ? reader_.Read<std::uint32_t>() : 0;
    if (tag == 1) {
      file_.constants.emplace_back(ReadString(reader_));
    } else if (tag == 0) {
      Result<ForeignTensor> tensor = ReadTensor(reader_, what);
      if (!tensor) return Forward(tensor);
      file_.constants.emplace_back(std::move(*tensor));
    } else {
      return Malformed(fmt::format("{} has tag {}; 0 is a tensor, 1 a name", what, tag));
    }
  }
  file_.constant_devices = ReadInts(reader_);
  if (!reader_.ok()) return Truncated("the constants");
  return {};
}

Status Attempt::ReadKernels() {
  file_.kernels = ReadStrings(reader_);
  // Attributes of kernels: what the compiler noted for its profiler. They are passed over.
  const auto annotated = reader_.Read<std::uint64_t>();
  for (std::uint64_t i = 0; i < annotated && reader_.ok(); ++i) {
    const auto kernel = reader_.Read<std::uint64_t>();
    if (reader_.ok() && kernel >= file_.kernels.size()) {
      return Malformed(fmt::format("there are attributes for kernel {}, there are {} kernels", kernel,
                                   file_.kernels.size()));
    }
    const auto attributes = reader_.Read<std::uint64_t>();
    for (std::uint64_t j = 0; j < attributes && reader_.ok(); ++j) {
      ReadString(reader_);
      ReadString(reader_);
    }
  }
  if (!reader_.ok()) return Truncated("the kernels");
  return {};
}

Result<RelayInstruction> Attempt::ReadInstruction() {
  Array<std::int64_t> words = ReadInts(reader_);
  if (!reader_.ok()) return Truncated("an instruction");
  if (words.size() < 2)
    return Malformed(fmt::format("an instruction of {} words; it has 2 or more", words.size()));
  const std::int64_t hash = words[0];
  const std::int64_t code = words[1];
  if (code < 0 || code >= std::int64_t{kRelayOpcodes}) {
    return Malformed(fmt::format("opcode {} is none of TVM's", code));
  }
  RelayInstruction instruction{static_cast<RelayOpcode>(code), {words.begin() + 2, words.end()}};
  if (RelayInstructionHash(code, instruction.fields) != hash) {
    return Malformed("the instruction's hash does not match its fields: the file is damaged");
  }
  if (Status fields = CheckFieldCount(instruction); !fields) return Forward(fields);
  return instruction;
}

Status Attempt::ReadInstructions(RelayFunction& function, std::uint64_t count) {
  constexpr std::size_t kSmallest = 3 * sizeof(std::int64_t);  // a list of two words
  if (count > reader_.remaining() / kSmallest) {
    return Malformed(fmt::format("function '{}' claims {} instructions, more than the file can hold",
                                 function.name, count));
  }
  function.instructions.reserve(count);
  for (std::uint64_t pc = 0; pc < count; ++pc) {
    Result<RelayInstruction> instruction = ReadInstruction();
    if (!instruction) return Forward(instruction, fmt::format("{}@{}", function.name, pc));
    function.instructions.push_back(std::move(*instruction));
  }
  return {};
}

Status Attempt::ReadFunction(std::size_t index) {
  const Array<std::string> head = ReadStrings(reader_);
  if (!reader_.ok()) return Truncated(fmt::format("function {}", index));
  if (head.size() != 3) {
    return Malformed(fmt::format("function {} has {} header entries, expected 3", index, head.size()));
  }
  RelayFunction function;
  function.name = head[0];
  if (function.name != globals_[index]) {
    return Malformed(
        fmt::format("function {} is '{}', the globals call it '{}'", index, function.name, globals_[index]));
  }
  const std::optional<std::uint64_t> registers = ParseCount(head[1]);
  const std::optional<std::uint64_t> instructions = ParseCount(head[2]);
  if (!registers || !instructions || *registers >= kNone) {
    return Malformed(fmt::format("function '{}' has '{}' registers and '{}' instructions", function.name,
                                 head[1], head[2]));
  }
  function.register_count = *registers;
  function.parameters = ReadStrings(reader_);
  function.parameter_devices = ReadInts(reader_);
  if (!reader_.ok()) return Truncated("the parameters of '" + function.name + "'");
  if (function.parameters.size() > function.register_count) {
    return Malformed(fmt::format("function '{}' has {} parameters in {} registers", function.name,
                                 function.parameters.size(), function.register_count));
  }
  if (Status read = ReadInstructions(function, *instructions); !read) return read;
  file_.functions.push_back(std::move(function));
  return {};
}

Status Attempt::IndexDeviceTypes() {
  file_.devices = {DeviceEntry{}};
  std::unordered_map<std::int64_t, std::int64_t> indices = {{file_.devices[0].type, 0}};
  std::string bad;
  const auto index_of = [&](std::int64_t& type) {
    if (type < 1 || type > INT32_MAX) {
      bad = fmt::format("{} is not a device type", type);
      return;
    }
    const auto [found, is_new] = indices.emplace(type, static_cast<std::int64_t>(file_.devices.size()));
    if (is_new) file_.devices.push_back({static_cast<std::int32_t>(type), 0, ""});
    type = found->second;
  };
  for (std::int64_t& type : file_.constant_devices) index_of(type);
  for (RelayFunction& function : file_.functions) {
    for (std::int64_t& type : function.parameter_devices) index_of(type);
    for (RelayInstruction& instruction : function.instructions) {
      ForEachDeviceField(instruction, index_of);
    }
  }
  return bad.empty() ? Status{} : Malformed(bad);
}

Status Attempt::CheckDevices() const {
  Status constants = CheckDeviceIndices("the constants", file_.constant_devices, file_.constants.size(),
                                        file_.devices.size());
  if (!constants) return constants;
  for (const RelayFunction& function : file_.functions) {
    Status parameters =
        CheckDeviceIndices(fmt::format("the parameters of '{}'", function.name), function.parameter_devices,
                           function.parameters.size(), file_.devices.size());
    if (!parameters) return parameters;
  }
  return {};
}

Result<RelayFile> Attempt::Run() {
  reader_.Read<std::uint64_t>();  // the magic, which is known to be right
  file_.version = ReadString(reader_);
  if (layout_.devices != DeviceForm::kAbsent) {
    if (Status devices = ReadDevices(); !devices) return Forward(devices);
  }
  globals_ = ReadStrings(reader_);
  if (!reader_.ok()) return Truncated("the names of the functions");
  if (Status constants = ReadConstants(); !constants) return Forward(constants);
  if (Status kernels = ReadKernels(); !kernels) return Forward(kernels);
  const auto count = reader_.Read<std::uint64_t>();
  if (!reader_.ok()) return Truncated("the functions");
  if (count != globals_.size()) {
    return Malformed(fmt::format("the file has {} functions and {} names for them", count, globals_.size()));
  }
  for (std::size_t i = 0; i < globals_.size(); ++i) {
    if (Status function = ReadFunction(i); !function) return Forward(function);
  }
  if (layout_.devices == DeviceForm::kAbsent) {
    if (Status indexed = IndexDeviceTypes(); !indexed) return Forward(indexed);
  }
  if (Status devices = CheckDevices(); !devices) return Forward(devices);
  return std::move(file_);
}

}  // namespace

std::int64_t RelayInstructionHash(std::int64_t opcode, Span<const std::int64_t> fields) {
  auto key = static_cast<std::uint64_t>(opcode);
  for (std::int64_t field : fields) {
    key ^= static_cast<std::uint64_t>(field) + 0x9e3779b9 + (key << 6) + (key >> 2);
  }
  return static_cast<std::int64_t>(key);
}

Status RefuseRelax() {
  return Fail(
      StatusCode::kUnsupported,
      "this is a Relax executable of a current TVM; only Relay VM executables (TVM 0.8 to 0.19) are "
      "read. Compile the model from its source with vm-compile; kernels that TVM compiles can be used "
      "as they are");
}

bool IsVmExecutable(Span<const std::byte> bytes) {
  const auto magic = ByteReader(Unwrapped(bytes)).Read<std::uint64_t>();
  return magic == kRelayMagic || magic == kRelaxMagic;
}

Result<RelayFile> ReadRelayFile(Span<const std::byte> file) {
  const Span<const std::byte> bytes = Unwrapped(file);
  ByteReader reader(bytes);
  const auto magic = reader.Read<std::uint64_t>();
  const std::string version = ReadString(reader);
  if (magic == kRelaxMagic || (magic == kRelayMagic && version == kRelaxVersion)) return RefuseRelax();
  if (magic != kRelayMagic) {
    return Malformed(
        fmt::format("not a Relay VM executable: it starts with {:#x} instead of {:#x}", magic, kRelayMagic));
  }
  const Layout released = ReleasedLayout(version);
  std::optional<Error> error;
  for (Layout layout : kLayouts) {
    Result<RelayFile> file = Attempt(ByteReader(bytes), layout).Run();
    if (file) return file;
    // The error worth reading of a damaged file is the one under the layout that it most likely has.
    if (layout == released) error = file.error();
  }
  return Fail(error->AddContext("Relay VM executable"));
}

}  // namespace rewire::tvm
