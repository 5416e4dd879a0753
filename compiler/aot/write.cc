// SPDX-License-Identifier: Apache-2.0
// How a program becomes statements of C.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "rewire/compiler/aot/c_names.h"
#include "rewire/compiler/aot/static_program.h"

namespace rewire::aot {

using Kind = Value::Kind;
using Base = Place::Base;

void StaticProgram::Emit(const std::string& text) { lines_.push_back({text}); }

void StaticProgram::EmitLabel(std::int64_t label) {
  lines_.push_back({{}, label});
  calls_->BeginBlock();
}

void StaticProgram::EmitJump(std::int64_t label, const std::string& indent) {
  lines_.push_back({{}, -1, label, indent});
}

std::int64_t StaticProgram::LabelOf(const Frame* frame, std::uint32_t meeting) {
  return labels_.try_emplace({frame->id, meeting}, static_cast<std::int64_t>(labels_.size())).first->second;
}

std::string StaticProgram::NumberText(const Number& number) {
  if (!number.known) {
    used_variables_.insert(number.variable);
    return fmt::format("n{}", number.variable);
  }
  return number.value == INT64_MIN ? "(-INT64_C(9223372036854775807) - 1)"
                                   : fmt::format("INT64_C({})", number.value);
}

std::string StaticProgram::Address(const Place& place) {
  if (pass_ != Pass::kSource) return {};
  std::string base;
  std::uint64_t offset = place.offset;
  switch (place.base) {
    case Base::kNowhere:
      return "0";
    case Base::kConstant:
      base = literals_->UseConstant(place.index);
      break;
    case Base::kLiteral:
      base = literals_->UseLiteral(place.index);
      break;
    case Base::kInput:
      base = fmt::format("in{}", place.index);
      break;
    case Base::kOutput:
      base = fmt::format("out{}", place.index);
      break;
    case Base::kStorage: {
      const Site& site = sites_[place.index];
      base = "arena";
      if (site.instances > 1 && site.is_used) {
        used_sites_.insert(place.index);
        base = fmt::format("s{}", place.index);
      } else if (site.is_used) {
        offset += site.offsets[0];
      }
      break;
    }
    case Base::kVariable:
      used_variables_.insert(place.index);
      base = fmt::format("p{}", place.index);
      break;
    case Base::kNumber:
      used_variables_.insert(place.index);
      base = fmt::format("(const unsigned char *)&n{}", place.index);
      break;
  }
  return offset == 0 ? base : fmt::format("({} + {})", base, offset);
}

void StaticProgram::EmitFailure(StatusCode code, const std::string& text, const std::string& indent) {
  Emit(fmt::format("{}{}_ON_ERROR({}, {});", indent, Upper(options_.prefix), static_cast<int>(code),
                   CString(text)));
  Emit(fmt::format("{}return {};", indent, static_cast<int>(code)));
}

// The copies set the variables of a place where paths meet, on a path on which the register holds `given`.
void StaticProgram::EmitCopies(Frame* frame, std::uint32_t meeting, std::uint32_t reg, const Value& known,
                               const Value& given, std::vector<Copy>* copies) {
  std::vector<const Value*> values;
  const auto collect = [&](const Value& part) { values.push_back(&part); };
  ForEachPart(given, collect);
  std::uint32_t part = 0;
  const auto visit = [&](const Value& meet) {
    const std::uint32_t place = part++;
    const auto found = variable_numbers_.find({frame->id, meeting, reg, place});
    if (found == variable_numbers_.end()) return;
    const Value& from = *values[place];
    if (meet.place.base == Base::kVariable && meet.place.index == found->second && from.place != meet.place) {
      copies->push_back({Address(meet.place), Address(from.place), found->second});
    }
    if (!meet.number.known && meet.number.variable == found->second && from.number != meet.number) {
      copies->push_back({NumberText(meet.number), NumberText(from.number), found->second});
    }
  };
  ForEachPart(known, visit);
}

// The copies are made at once: none reads what another has set.
void StaticProgram::EmitCopies(std::vector<Copy> copies, const std::string& indent) {
  bool is_mixed = false;
  for (const Copy& copy : copies) {
    for (const Copy& other : copies) {
      is_mixed = is_mixed || (&copy != &other && other.from.find(copy.to) != std::string::npos);
    }
  }
  if (!is_mixed) {
    for (const Copy& copy : copies) Emit(fmt::format("{}{} = {};", indent, copy.to, copy.from));
    return;
  }
  Emit(indent + "{");
  for (const Copy& copy : copies) {
    const Variable& variable = variables_[copy.variable];
    const char* type = !variable.is_pointer ? "int64_t "
                       : variable.is_const  ? "const unsigned char *"
                                            : "unsigned char *";
    Emit(fmt::format("{}  {}new_{} = {};", indent, type, copy.to, copy.from));
  }
  for (const Copy& copy : copies) Emit(fmt::format("{}  {} = new_{};", indent, copy.to, copy.to));
  Emit(indent + "}");
}

// The entry point returns: what was not made in the caller's memory is copied there.
Status StaticProgram::EmitResult(const Value& value) {
  std::uint32_t leaf = 0;
  Status status;
  const auto visit = [&](const Value& part) {
    if (part.kind == Kind::kAdt || !status) return;
    const std::uint32_t output = leaf++;
    if (part.kind == Kind::kInteger) {
      Emit(fmt::format("  {}_store_i{}(out{}, {});", options_.prefix, part.is_narrow ? 32 : 64, output,
                       NumberText(part.number)));
      return;
    }
    const Place own{Base::kOutput, output, 0};
    if (part.place == own || part.bytes == 0) return;
    std::set<std::uint32_t> outputs;
    if (part.place.base == Base::kOutput) outputs.insert(part.place.index);
    if (part.place.base == Base::kVariable) outputs = variables_[part.place.index].outputs;
    const bool may_be_there = outputs.erase(output) != 0;
    if (!outputs.empty()) {
      status = Refuse("an output is returned that lies in another output's memory");
      return;
    }
    const std::string from = Address(part.place);
    if (may_be_there) Emit(fmt::format("  if ({} != out{})", from, output));
    Emit(fmt::format("  {}memcpy(out{}, {}, {});", may_be_there ? "  " : "", output, from, part.bytes));
  };
  ForEachPart(value, visit);
  Emit("  return 0;");
  return status;
}

// The lines without labels that nothing jumps to, and without jumps to the next line.
std::string StaticProgram::JoinedLines() const {
  std::set<std::int64_t> targets;
  std::vector<bool> is_needed(lines_.size(), true);
  for (std::size_t i = 0; i < lines_.size(); ++i) {
    if (lines_[i].jump < 0) continue;
    for (std::size_t next = i + 1; next < lines_.size() && lines_[next].label >= 0; ++next) {
      if (lines_[next].label == lines_[i].jump) is_needed[i] = false;
    }
    if (is_needed[i]) targets.insert(lines_[i].jump);
  }
  std::string text;
  for (std::size_t i = 0; i < lines_.size(); ++i) {
    const Line& line = lines_[i];
    if (line.label >= 0) {
      if (targets.count(line.label) != 0) text += fmt::format("L{}:;\n", line.label);
    } else if (line.jump >= 0) {
      if (is_needed[i]) text += fmt::format("{}goto L{};\n", line.indent, line.jump);
    } else {
      text += line.text + "\n";
    }
  }
  return text;
}

Result<std::string> StaticProgram::Write() {
  pass_ = Pass::kSource;
  lines_.clear();
  if (Status walked = WalkFrame(&root_); !walked) return walked;
  std::string locals;
  for (const std::uint32_t site : used_sites_) locals += fmt::format("  unsigned char *s{} = arena;\n", site);
  for (const std::uint32_t number : used_variables_) {
    const Variable& variable = variables_[number];
    if (variable.is_pointer) {
      locals += fmt::format("  {}unsigned char *p{} = 0;\n", variable.is_const ? "const " : "", number);
    } else {
      locals += fmt::format("  int64_t n{} = 0;\n", number);
    }
  }
  for (const std::uint32_t number : used_variables_) {
    locals += fmt::format("  (void){}{};\n", variables_[number].is_pointer ? "p" : "n", number);
  }
  for (const std::uint32_t site : used_sites_) locals += fmt::format("  (void)s{};\n", site);
  return locals + JoinedLines();
}

}  // namespace rewire::aot
