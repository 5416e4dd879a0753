// SPDX-License-Identifier: Apache-2.0
#include "rewire/tests/hostile/program.h"

#include <map>
#include <utility>

#include "rewire/tests/hostile/device_records.h"

namespace rewire::hostile {
namespace {

constexpr std::size_t kDataAlignment = 64;
// More dimensions than any file has; a lie about the rank must not make this reader build a huge list.
constexpr std::int32_t kMostDims = 1 << 16;

// Sizes and checksums of constants stand in one section, bytes in another.
struct StoredSize {
  std::uint64_t bytes;
  std::uint64_t checksum;
};

}  // namespace

void ReadNode(ByteReader& reader, TypeNode& node) {
  node.kind = reader.Number<std::uint8_t>();
  reader.Zeros(3);
  for (std::uint32_t& word : node.words) word = reader.Number<std::uint32_t>();
  if (node.kind > kValue) reader.Fail();
  if (node.kind != kTensor) return;
  const auto rank = static_cast<std::int32_t>(node.words[1]);
  if (rank < -1 || rank > kMostDims) reader.Fail();
  for (std::int32_t i = 0; reader.ok() && i < rank; ++i) node.dims.push_back(reader.Number<std::int64_t>());
}
void WriteNode(ByteWriter& writer, const TypeNode& node) {
  writer.Number(node.kind);
  writer.Zeros(3);
  for (const std::uint32_t word : node.words) writer.Number(word);
  if (node.kind != kTensor) return;
  for (const std::int64_t dim : node.dims) writer.Number(dim);
}

namespace {

void ReadType(ByteReader& reader, Type& type) {
  reader.List(type, [&](TypeNode& node) { ReadNode(reader, node); });
}
void WriteType(ByteWriter& writer, const Type& type) {
  writer.List(type, [&](const TypeNode& node) { WriteNode(writer, node); });
}

void ReadAttribute(ByteReader& reader, Attribute& attribute) {
  attribute.name = reader.Text();
  attribute.kind = reader.Number<std::uint32_t>();
  switch (attribute.kind) {
    case 0:
    case 1:
      attribute.numbers.push_back(reader.Number<std::uint64_t>());
      return;
    case 2:
      attribute.text = reader.Text();
      return;
    case 3:
    case 4:
      reader.List(attribute.numbers, [&](std::uint64_t& number) { number = reader.Number<std::uint64_t>(); });
      return;
    default:
      reader.Fail();
  }
}
void WriteAttribute(ByteWriter& writer, const Attribute& attribute) {
  writer.Text(attribute.name);
  writer.Number(attribute.kind);
  if (attribute.kind < 2) {
    writer.Number(attribute.numbers.empty() ? std::uint64_t{0} : attribute.numbers[0]);
  } else if (attribute.kind == 2) {
    writer.Text(attribute.text);
  } else {
    writer.List(attribute.numbers, [&](std::uint64_t number) { writer.Number(number); });
  }
}

void ReadKernel(ByteReader& reader, Kernel& kernel) {
  kernel.name = reader.Text();
  kernel.debug_name = reader.Text();
  reader.List(kernel.attributes, [&](Attribute& attribute) { ReadAttribute(reader, attribute); });
  kernel.flags = reader.Number<std::uint32_t>();
  kernel.alignment = reader.Number<std::uint32_t>();
  reader.List(kernel.also_written,
              [&](std::uint32_t& position) { position = reader.Number<std::uint32_t>(); });
}
void WriteKernel(ByteWriter& writer, const Kernel& kernel) {
  writer.Text(kernel.name);
  writer.Text(kernel.debug_name);
  writer.List(kernel.attributes, [&](const Attribute& attribute) { WriteAttribute(writer, attribute); });
  writer.Number(kernel.flags);
  writer.Number(kernel.alignment);
  writer.List(kernel.also_written, [&](std::uint32_t position) { writer.Number(position); });
}

void ReadConstant(ByteReader& reader, Constant& constant, std::vector<StoredSize>& sizes) {
  constant.kind = reader.Number<std::uint8_t>();
  reader.Zeros(3);
  constant.name = reader.Text();
  ReadNode(reader, constant.type);
  constant.codec = reader.Number<std::uint32_t>();
  constant.raw_bytes = reader.Number<std::uint64_t>();
  const auto bytes = reader.Number<std::uint64_t>();
  sizes.push_back({bytes, reader.Number<std::uint64_t>()});
  if (constant.kind > kComputed) reader.Fail();
}
void WriteConstant(ByteWriter& writer, const Constant& constant) {
  writer.Number(constant.kind);
  writer.Zeros(3);
  writer.Text(constant.name);
  WriteNode(writer, constant.type);
  writer.Number(constant.codec);
  writer.Number(constant.raw_bytes);
  writer.Number(constant.stored_bytes.value_or(constant.stored.size()));
  writer.Number(constant.checksum.value_or(Checksum(constant.stored)));
}

void ReadFunction(ByteReader& reader, Function& function) {
  function.name = reader.Text();
  reader.List(function.inputs, [&](std::pair<std::string, Type>& input) {
    input.first = reader.Text();
    ReadType(reader, input.second);
  });
  ReadType(reader, function.result);
  reader.List(function.outputs, [&](std::string& name) { name = reader.Text(); });
  function.registers = reader.Number<std::uint32_t>();
  function.word_count = reader.Number<std::uint32_t>();
}
void WriteFunction(ByteWriter& writer, const Function& function, std::size_t words) {
  writer.Text(function.name);
  writer.List(function.inputs, [&](const std::pair<std::string, Type>& input) {
    writer.Text(input.first);
    WriteType(writer, input.second);
  });
  WriteType(writer, function.result);
  writer.List(function.outputs, [&](const std::string& name) { writer.Text(name); });
  writer.Number(function.registers);
  writer.Number(function.word_count.value_or(static_cast<std::uint32_t>(words)));
}

bool SplitData(const Bytes& data, const std::vector<StoredSize>& sizes, Program& program) {
  std::size_t end = 0;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i].bytes == 0) continue;
    const std::size_t start = (end + kDataAlignment - 1) / kDataAlignment * kDataAlignment;
    if (start > data.size() || sizes[i].bytes > data.size() - start) return false;
    const std::string_view padding = std::string_view(data).substr(end, start - end);
    if (padding.find_first_not_of('\0') != std::string_view::npos) return false;
    program.constants[i].stored = data.substr(start, sizes[i].bytes);
    end = start + sizes[i].bytes;
  }
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i].checksum != Checksum(program.constants[i].stored))
      program.constants[i].checksum = sizes[i].checksum;
  }
  return end == data.size();
}

bool SplitCode(const Bytes& bytes, Program& program) {
  ByteReader reader(bytes);
  for (Function& function : program.functions) {
    std::vector<std::uint32_t> words;
    for (std::uint32_t i = *function.word_count; reader.ok() && i > 0; --i)
      words.push_back(reader.Number<std::uint32_t>());
    function.word_count.reset();
    if (!DecodeWords(words, &function.code)) {
      function.code.clear();
      function.words = std::move(words);
    }
  }
  return reader.ok() && reader.at_end();
}

}  // namespace

std::optional<Program> ParseProgram(const Container& container) {
  Program program;
  std::vector<StoredSize> sizes;
  Bytes code, data;
  std::map<std::uint32_t, const Section*> sections;
  for (const Section& section : container.sections) {
    if (!sections.emplace(section.id, &section).second) return std::nullopt;
    if (section.flags != FlagsOf(section.id)) return std::nullopt;
  }
  const auto read = [&](std::uint32_t id, auto&& records) {
    const auto found = sections.find(id);
    if (found == sections.end()) return true;
    ByteReader reader(found->second->bytes);
    records(reader);
    return reader.ok() && reader.at_end();
  };
  const auto texts = [](ByteReader& reader, std::vector<std::string>& list) {
    reader.List(list, [&](std::string& text) { text = reader.Text(); });
  };
  bool good = read(kMetadata, [&](ByteReader& reader) {
    reader.List(program.metadata, [&](std::pair<std::string, std::string>& entry) {
      entry.first = reader.Text();
      entry.second = reader.Text();
    });
  });
  good = good && read(kDevices, [&](ByteReader& reader) {
           reader.List(program.devices, [&](Device& device) {
             device.type = reader.Number<std::int32_t>();
             device.id = reader.Number<std::int32_t>();
             device.scope = reader.Text();
           });
         });
  good = good && read(kSymbols, [&](ByteReader& reader) { texts(reader, program.symbols); });
  good = good && read(kSymbolLimits, [&](ByteReader& reader) {
           reader.List(program.symbol_limits,
                       [&](std::int64_t& limit) { limit = reader.Number<std::int64_t>(); });
         });
  good = good && read(kStrings, [&](ByteReader& reader) { texts(reader, program.strings); });
  good = good && read(kConstants, [&](ByteReader& reader) {
           reader.List(program.constants, [&](Constant& constant) { ReadConstant(reader, constant, sizes); });
         });
  good = good && read(kKernels, [&](ByteReader& reader) {
           reader.List(program.kernels, [&](Kernel& kernel) { ReadKernel(reader, kernel); });
         });
  good = good && read(kDeviceCode, [&](ByteReader& reader) { ReadDeviceCode(reader, program); });
  good = good && read(kFunctions, [&](ByteReader& reader) {
           reader.List(program.functions, [&](Function& function) { ReadFunction(reader, function); });
         });
  good = good && read(kNotes, [&](ByteReader& reader) {
           for (Function& function : program.functions) {
             reader.List(function.notes, [&](std::pair<std::uint32_t, std::string>& note) {
               note.first = reader.Number<std::uint32_t>();
               note.second = reader.Text();
             });
           }
         });
  good = good && read(kCode, [&](ByteReader& reader) {
           while (reader.ok() && !reader.at_end()) code += reader.Raw(1);
         });
  good = good && read(kData, [&](ByteReader& reader) {
           while (reader.ok() && !reader.at_end()) data += reader.Raw(1);
         });
  if (!good || !SplitCode(code, program) || !SplitData(data, sizes, program)) return std::nullopt;
  return program;
}

Container ToContainer(const Program& program) {
  std::map<std::uint32_t, ByteWriter> sections;
  const auto texts = [](ByteWriter& writer, const std::vector<std::string>& list) {
    writer.List(list, [&](const std::string& text) { writer.Text(text); });
  };
  if (!program.metadata.empty()) {
    sections[kMetadata].List(program.metadata, [&](const std::pair<std::string, std::string>& entry) {
      sections[kMetadata].Text(entry.first);
      sections[kMetadata].Text(entry.second);
    });
  }
  if (!program.devices.empty()) {
    sections[kDevices].List(program.devices, [&](const Device& device) {
      sections[kDevices].Number(device.type);
      sections[kDevices].Number(device.id);
      sections[kDevices].Text(device.scope);
    });
  }
  if (!program.symbols.empty()) texts(sections[kSymbols], program.symbols);
  if (!program.symbol_limits.empty()) {
    sections[kSymbolLimits].List(program.symbol_limits,
                                 [&](std::int64_t limit) { sections[kSymbolLimits].Number(limit); });
  }
  if (!program.strings.empty()) texts(sections[kStrings], program.strings);
  if (!program.constants.empty()) {
    sections[kConstants].List(
        program.constants, [&](const Constant& constant) { WriteConstant(sections[kConstants], constant); });
  }
  for (const Constant& constant : program.constants) {
    if (constant.stored.empty()) continue;
    sections[kData].Align(kDataAlignment);
    sections[kData].Raw(constant.stored);
  }
  if (!program.kernels.empty()) {
    sections[kKernels].List(program.kernels,
                            [&](const Kernel& kernel) { WriteKernel(sections[kKernels], kernel); });
  }
  if (!program.device_blobs.empty() || !program.device_kernels.empty())
    WriteDeviceCode(sections[kDeviceCode], program);
  bool has_notes = false;
  std::vector<std::size_t> sizes;
  for (const Function& function : program.functions) {
    const std::vector<std::uint32_t> words =
        function.words.empty() ? EncodeWords(function.code) : function.words;
    sizes.push_back(words.size());
    for (const std::uint32_t word : words) sections[kCode].Number(word);
    has_notes = has_notes || !function.notes.empty();
  }
  if (!program.functions.empty()) {
    std::size_t index = 0;
    sections[kFunctions].List(program.functions, [&](const Function& function) {
      WriteFunction(sections[kFunctions], function, sizes[index++]);
    });
  }
  if (has_notes) {
    for (const Function& function : program.functions) {
      sections[kNotes].List(function.notes, [&](const std::pair<std::uint32_t, std::string>& note) {
        sections[kNotes].Number(note.first);
        sections[kNotes].Text(note.second);
      });
    }
  }
  Container container;
  for (const std::uint32_t id : SectionOrder()) {
    const auto found = sections.find(id);
    if (found == sections.end() || found->second.size() == 0) continue;
    Section& section = container.sections.emplace_back();
    section.id = id;
    section.flags = FlagsOf(id);
    section.bytes = found->second.bytes();
  }
  return container;
}

std::optional<Program> ParseFile(std::string_view file) {
  std::optional<Container> container = ParseContainer(file);
  if (container) container = Decompressed(*std::move(container));
  return container ? ParseProgram(*container) : std::nullopt;
}

Bytes WriteFile(const Program& program) { return WriteContainer(ToContainer(program)); }

}  // namespace rewire::hostile
