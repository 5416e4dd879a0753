// SPDX-License-Identifier: Apache-2.0
// The registers of one function: which number each name has.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "rewire/executable_format/module.h"
#include "rewire/executable_format/text/cursor.h"

namespace rewire::text {

// Inputs have the numbers 0, 1, ...; other names get the next free number where they first appear. Numbers
// that the text writes itself (%7) are never given to a name.
class Registers {
 public:
  // `cursor` stands at the start of the body, which is looked through for numbers; it is not moved.
  Registers(const Function& function, Cursor cursor);

  enum class Use { kRead, kWrite };
  std::optional<std::uint32_t> Take(Cursor& cursor, Use use);

  // Registers of the frame so far.
  std::uint32_t count() const { return count_; }

  // Reports names that are read and never written: misspelt, most likely. Numbers are left to the verifier.
  void ReportUnwritten(Diagnostics& diagnostics) const;

 private:
  struct Named {
    std::uint32_t number;
    bool written;
    Position first;
  };
  std::map<std::string, Named, std::less<>> names_;
  std::set<std::uint32_t> numbered_;
  std::uint32_t next_;
  std::uint32_t count_;
};

}  // namespace rewire::text
