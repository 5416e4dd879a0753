// SPDX-License-Identifier: Apache-2.0
// Damage to the container around the records: sections that are not where, what or as large as they should
// be.
#include <utility>

#include "rewire/tests/hostile/mutator.h"

namespace rewire::hostile {

std::string DamageContainer(Container& container, Dice& dice) {
  std::vector<Section>& sections = container.sections;
  if (sections.empty()) return "";
  const std::size_t at = dice.Below(sections.size());
  Section& section = sections[at];
  switch (dice.Below(18)) {
    case 0:
      std::swap(section, dice.Pick(sections));
      return "sections swapped";
    case 1: {
      Section copy = section;
      sections.push_back(std::move(copy));
      return "section twice";
    }
    case 2:
      sections.erase(sections.begin() + static_cast<std::ptrdiff_t>(at));
      return "section removed";
    case 3:
      section.bytes.resize(dice.Below(section.bytes.size()));
      return "section cut";
    case 4:
      section.bytes.append(dice.Below(70) + 1, dice.OneIn(2) ? '\0' : '\1');
      return "section extended";
    case 5:
      section.at_previous = true;
      return "section over the one before";
    case 6:
      section.move = dice.Interesting();
      return "section elsewhere";
    case 7:
      section.size = static_cast<std::uint64_t>(dice.Interesting());
      return "section's size changed";
    case 8:
      section.flags = static_cast<std::uint32_t>(dice.OneIn(2) ? dice.Below(4) : dice.Interesting());
      return "section's flags changed";
    case 9:
      section.id = static_cast<std::uint32_t>(dice.OneIn(2) ? dice.Below(20) : dice.Interesting());
      return "section's id changed";
    case 10: {
      Section unknown;
      unknown.id = static_cast<std::uint32_t>(14 + dice.Below(1000));
      unknown.flags = static_cast<std::uint32_t>(dice.Below(4));
      unknown.bytes.assign(dice.Below(100), 'u');
      sections.insert(sections.begin() + static_cast<std::ptrdiff_t>(at), std::move(unknown));
      return "unknown section";
    }
    case 11:
      container.minor = static_cast<std::uint16_t>(dice.Next());
      if (dice.OneIn(4)) container.major = static_cast<std::uint16_t>(dice.Below(3));
      return "version changed";
    case 12:
      container.section_count = static_cast<std::uint32_t>(dice.Interesting());
      return "count of sections changed";
    case 13:
      container.file_size = static_cast<std::uint64_t>(dice.Interesting());
      return "size of the file changed";
    case 14:
      container.tail.assign(dice.Below(200), 't');
      return "bytes behind the end";
    case 15:
      section.checksum = dice.Next();
      return "section's checksum changed";
    default:
      for (std::uint64_t i = dice.Below(3) + 1; i > 0 && !section.bytes.empty(); --i) {
        char& byte = section.bytes[dice.Below(section.bytes.size())];
        byte = static_cast<char>(byte ^ 1 << dice.Below(8));
      }
      return "bits of a section changed";
  }
}

}  // namespace rewire::hostile
