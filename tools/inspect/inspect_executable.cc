// SPDX-License-Identifier: Apache-2.0
#include "rewire/tools/inspect/inspect_executable.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "rewire/base/hash.h"
#include "rewire/base/mapped_file.h"
#include "rewire/executable_format/constant_data.h"
#include "rewire/executable_format/layout.h"
#include "rewire/executable_format/writer.h"
#include "rewire/tools/inspect/listing.h"
#include "rewire/tools/io/table_text.h"
#include "rewire/tools/io/units.h"

namespace rewire::tools {
namespace {

using Json = nlohmann::ordered_json;

std::string ConstantName(const Module& module, std::size_t index) {
  const std::string& name = module.constants[index].name;
  return name.empty() ? fmt::format("#{}", index) : name;
}

SectionReport ReportSection(Span<const std::byte> file, const SectionEntry& entry) {
  const SectionInfo* info = FindSection(entry.id);
  SectionReport section;
  section.id = entry.id;
  section.name = info != nullptr ? std::string(info->name) : fmt::format("section {}", entry.id);
  section.flags = entry.flags;
  section.offset = entry.offset;
  section.size = entry.size;
  section.checksum = entry.checksum;
  section.own_checksums = (entry.flags & kSectionOwnChecksums) != 0;
  section.inside = entry.offset <= file.size() && entry.size <= file.size() - entry.offset;
  section.whole = section.inside &&
                  (section.own_checksums || Hash64(file.subspan(entry.offset, entry.size)) == entry.checksum);
  return section;
}

struct Item {
  std::string what;
  std::uint64_t bytes;
};

// Lists what the file's bytes are spent on, the most first: constants and functions one by one, the rest by
// section. Functions count with section `compressed`, if there is one.
std::vector<Item> SizeReport(const Inspection& inspection) {
  std::vector<Item> items;
  std::uint64_t accounted = 0;
  const Module& module = inspection.executable->module();
  for (std::size_t i = 0; i < module.constants.size(); ++i) {
    const std::uint64_t bytes = module.constants[i].stored.view.size();
    if (bytes > 0) items.push_back({"constant " + ConstantName(module, i), bytes});
  }
  if (!module.compressed) {
    for (const Function& function : module.functions) {
      items.push_back({"code of " + function.name, function.code.size() * sizeof(std::uint32_t)});
    }
  }
  for (const SectionReport& section : inspection.sections) {
    const bool itemized = section.id == static_cast<std::uint32_t>(SectionId::kData) ||
                          section.id == static_cast<std::uint32_t>(SectionId::kCode);
    if (!itemized) items.push_back({"section " + section.name, section.size});
  }
  for (const Item& item : items) accounted += item.bytes;
  const std::uint64_t rest = inspection.file_size - std::min(inspection.file_size, accounted);
  items.push_back({"header and padding", rest});
  std::stable_sort(items.begin(), items.end(),
                   [](const Item& a, const Item& b) { return a.bytes > b.bytes; });
  return items;
}

std::string StateText(const SectionReport& section) {
  if (!section.inside) return "outside the file";
  if (section.own_checksums) return "by item";
  return section.whole ? fmt::format("{:016x}", section.checksum) : "DAMAGED";
}

std::string SizesText(const Inspection& inspection) {
  constexpr std::size_t kShown = 12;
  const std::vector<Item> items = SizeReport(inspection);
  std::vector<std::vector<std::string>> rows;
  std::uint64_t others = 0;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (i >= kShown) {
      others += items[i].bytes;
      continue;
    }
    const double share =
        100.0 * static_cast<double>(items[i].bytes) / static_cast<double>(inspection.file_size);
    rows.push_back({items[i].what, BytesText(items[i].bytes), fmt::format("{:.1f} %", share)});
  }
  if (items.size() > kShown) {
    rows.push_back({fmt::format("{} smaller ones", items.size() - kShown), BytesText(others), ""});
  }
  return "\nwhat takes room:\n" + TableText(rows, {1, 2});
}

std::string CheckText(const Inspection& inspection) {
  std::string text = "\ncheck:\n";
  for (const SectionReport& section : inspection.sections) {
    if (!section.whole) text += fmt::format("  section {} is damaged\n", section.name);
  }
  for (const std::string& what : inspection.damaged_constants) text += fmt::format("  {}\n", what);
  if (!inspection.executable) text += "  " + inspection.executable.error().message() + "\n";
  if (inspection.whole()) {
    text += fmt::format("  {} sections and {} constants are whole, and the verifier accepts the program\n",
                        inspection.sections.size(), inspection.executable->module().constants.size());
  }
  return text;
}

}  // namespace

bool Inspection::whole() const {
  const bool sections_whole =
      std::all_of(sections.begin(), sections.end(), [](const SectionReport& s) { return s.whole; });
  return executable && sections_whole && damaged_constants.empty();
}

Result<std::vector<SectionReport>> ReadSections(Span<const std::byte> file) {
  FileHeader header{};
  if (file.size() < sizeof(header)) {
    return Fail(StatusCode::kInvalidFile,
                fmt::format("the file has {} bytes, the header of an executable takes {}", file.size(),
                            sizeof(header)));
  }
  std::memcpy(&header, file.data(), sizeof(header));
  const std::size_t room = (file.size() - sizeof(header)) / sizeof(SectionEntry);
  if (header.section_count > kMaxSections || header.section_count > room) {
    return Fail(StatusCode::kInvalidFile,
                fmt::format("the header names {} sections, the file has room for {}", header.section_count,
                            std::min<std::size_t>(room, kMaxSections)));
  }
  std::vector<SectionReport> sections;
  for (std::size_t i = 0; i < header.section_count; ++i) {
    SectionEntry entry;
    std::memcpy(&entry, file.data() + sizeof(header) + i * sizeof(entry), sizeof(entry));
    sections.push_back(ReportSection(file, entry));
  }
  return sections;
}

Result<Inspection> InspectExecutable(const std::string& path, bool check) {
  const Result<SharedBytes> bytes = ReadFile(path);
  if (!bytes) return Forward(bytes);
  Inspection inspection;
  inspection.path = path;
  inspection.file_size = bytes->view.size();
  inspection.checked = check;
  inspection.executable = Executable::FromBytes(*bytes);
  const bool is_ours = bytes->view.size() >= sizeof(FileHeader) &&
                       std::memcmp(bytes->view.data(), kMagic.data(), kMagic.size()) == 0;
  if (!is_ours) return Forward(inspection.executable, path);
  FileHeader header{};
  std::memcpy(&header, bytes->view.data(), sizeof(header));
  inspection.major = header.major;
  inspection.minor = header.minor;
  // A file of another major version may be divided in another way.
  if (header.major != kMajorVersion) return Forward(inspection.executable, path);
  Result<std::vector<SectionReport>> sections = ReadSections(bytes->view);
  if (!sections) return Forward(sections, path);
  inspection.sections = *std::move(sections);
  if (inspection.executable && inspection.executable->module().compressed) {
    const auto content = SerializeWithoutData(inspection.executable->module());
    if (!content) return Forward(content, path);
    Result<std::vector<SectionReport>> inside = ReadSections(*content);
    if (!inside) return Forward(inside, path);
    inspection.compressed = *std::move(inside);
  }
  if (!check || !inspection.executable) return inspection;
  const Module& module = inspection.executable->module();
  for (std::size_t i = 0; i < module.constants.size(); ++i) {
    if (module.constants[i].kind != ConstantKind::kData) continue;
    if (Status whole = CheckConstantData(module.constants[i]); !whole) {
      inspection.damaged_constants.push_back(
          fmt::format("constant {}: {}", ConstantName(module, i), whole.error().message()));
    }
  }
  return inspection;
}

namespace {

std::string SectionsText(const Inspection& inspection) {
  std::vector<std::vector<std::string>> rows = {{"section", "offset", "size", "checksum"}};
  for (const SectionReport& section : inspection.sections) {
    rows.push_back(
        {section.name, std::to_string(section.offset), BytesText(section.size), StateText(section)});
  }
  std::string text = "\nsections:\n" + TableText(rows, {1, 2});
  if (!inspection.compressed.empty()) {
    rows = {{"section", "size"}};
    for (const SectionReport& section : inspection.compressed)
      rows.push_back({section.name, BytesText(section.size)});
    text += "\nin section compressed:\n" + TableText(rows, {1});
  }
  return text;
}

}  // namespace

std::string InspectionText(const Inspection& inspection, bool all) {
  std::string text = fmt::format("{}: Rewire executable, format {}.{}, {}\n", inspection.path,
                                 inspection.major, inspection.minor, BytesText(inspection.file_size));
  if (inspection.executable) {
    const Module& module = inspection.executable->module();
    text += MetadataText(module) + "\n" + (all ? ListingText(module) : InterfaceText(module));
  }
  if (all || !inspection.whole()) text += SectionsText(inspection);
  if (all && inspection.executable) text += SizesText(inspection);
  if (inspection.checked || !inspection.whole()) text += CheckText(inspection);
  return text;
}

Json InspectionJson(const Inspection& inspection) {
  Json sections = Json::array();
  for (const SectionReport& section : inspection.sections) {
    sections.push_back(
        {{"id", section.id},
         {"name", section.name},
         {"flags", section.flags},
         {"offset", section.offset},
         {"bytes", section.size},
         {"checksum", section.own_checksums ? Json(nullptr) : Json(fmt::format("{:016x}", section.checksum))},
         {"whole", section.whole}});
  }
  Json json = {{"file", inspection.path},
               {"kind", "executable"},
               {"format", fmt::format("{}.{}", inspection.major, inspection.minor)},
               {"bytes", inspection.file_size},
               {"sections", std::move(sections)},
               {"whole", inspection.whole()}};
  if (!inspection.executable) {
    json["problem"] = inspection.executable.error().message();
    return json;
  }
  const Module& module = inspection.executable->module();
  if (!inspection.compressed.empty()) {
    json["compressed"] = Json::array();
    for (const SectionReport& section : inspection.compressed)
      json["compressed"].push_back({{"id", section.id}, {"name", section.name}, {"bytes", section.size}});
  }
  json["metadata"] = MetadataJson(module);
  json["model"] = ModelJson(module);
  json.update(ListingJson(module));
  json["sizes"] = Json::array();
  for (const Item& item : SizeReport(inspection)) {
    json["sizes"].push_back({{"what", item.what}, {"bytes", item.bytes}});
  }
  if (inspection.checked) json["damaged_constants"] = inspection.damaged_constants;
  return json;
}

}  // namespace rewire::tools
