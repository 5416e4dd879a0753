// SPDX-License-Identifier: Apache-2.0
// Public header: <rewire/vm/kernel/attributes.h>.
//
// Attributes: how the factory of a kernel reads the attributes of an import. C++17.
//
//   static Status Make(Attributes& attributes, Pool* pool) {
//     pool->window = attributes.Ints("kernel_shape", {});
//     pool->ceil = attributes.Bool("ceil_mode", false);
//     pool->layout = attributes.Choice("layout", {"NCHW", "NHWC"}, 0);
//     return Status();
//   }
//
// Reading a wrong value does not fail at once. The reader keeps the first error, returns the default value,
// and Finish reports the error. Finish also refuses attributes that were never read, so that a misspelt name
// is found.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "rewire/vm/kernel/packed.h"

namespace rewire::kernel {

class Attributes {
 public:
  // The factory's arguments: names and values in turn. They are borrowed.
  Attributes(const RewireFFIAny* args, std::int32_t num_args);
  ~Attributes();
  Attributes(const Attributes&) = delete;
  Attributes& operator=(const Attributes&) = delete;

  bool Has(std::string_view name) { return Find(name) != nullptr; }

  std::int64_t Int(std::string_view name, std::int64_t fallback,
                   std::int64_t min = std::numeric_limits<std::int64_t>::min(),
                   std::int64_t max = std::numeric_limits<std::int64_t>::max());
  bool Bool(std::string_view name, bool fallback) { return Int(name, fallback ? 1 : 0, 0, 1) != 0; }
  double Float(std::string_view name, double fallback);
  std::string String(std::string_view name, std::string_view fallback);
  // Returns the index of the attribute's value in `choices`.
  int Choice(std::string_view name, std::initializer_list<std::string_view> choices, int fallback);
  std::vector<std::int64_t> Ints(std::string_view name, const std::vector<std::int64_t>& fallback);
  std::vector<double> Floats(std::string_view name, const std::vector<double>& fallback);

  // Fails if the attribute is missing.
  void Require(std::string_view name);

  // Returns the first error. Otherwise fails if there is an attribute that was never read.
  Status Finish();

 private:
  void Keep(Status failure) {
    if (status_.ok()) status_ = std::move(failure);
  }

  const RewireFFIAny* Find(std::string_view name);

  // Returns false if the attribute is absent or has another type.
  template <typename T>
  bool Read(std::string_view name, const char* expected, T* value) {
    const RewireFFIAny* given = Find(name);
    if (given == nullptr) return false;
    if (internal::Reader<T>::Read(*given, value)) return true;
    Keep(
        TypeError("attribute '", name, "': expected ", expected, ", got ", TypeIndexName(given->type_index)));
    return false;
  }

  Status Unknown(std::string_view name) const;
  static std::size_t EditDistance(std::string_view a, std::string_view b);

  std::vector<std::string_view> names_;
  std::vector<const RewireFFIAny*> values_;
  std::vector<std::string_view> asked_;
  Status status_;
};

#ifdef REWIRE_KERNEL_DEFINITIONS
REWIRE_KERNEL_INLINE Attributes::Attributes(const RewireFFIAny* args, std::int32_t num_args) {
  if (num_args % 2 != 0)
    Keep(TypeError("expected attribute names and values in turn, got ", num_args, " arguments"));
  for (std::int32_t i = 0; i + 1 < num_args; i += 2) {
    const std::optional<std::string_view> name = StringOf(args[i]);
    if (!name) {
      Keep(TypeError("argument ", i, ": expected an attribute's name, got ",
                     TypeIndexName(args[i].type_index)));
      continue;
    }
    names_.push_back(*name);
    values_.push_back(&args[i + 1]);
  }
}

REWIRE_KERNEL_INLINE Attributes::~Attributes() = default;

REWIRE_KERNEL_INLINE std::int64_t Attributes::Int(std::string_view name, std::int64_t fallback,
                                                  std::int64_t min, std::int64_t max) {
  std::int64_t value = fallback;
  if (!Read(name, "an int", &value)) return fallback;
  if (value >= min && value <= max) return value;
  const bool bounded = max != std::numeric_limits<std::int64_t>::max();
  Keep(ValueError("attribute '", name, "' is ", value, ", expected at least ", min,
                  bounded ? " and at most " + std::to_string(max) : ""));
  return fallback;
}

REWIRE_KERNEL_INLINE double Attributes::Float(std::string_view name, double fallback) {
  double value = fallback;
  return Read(name, "a float", &value) ? value : fallback;
}

REWIRE_KERNEL_INLINE std::string Attributes::String(std::string_view name, std::string_view fallback) {
  std::string_view value = fallback;
  return std::string(Read(name, "a string", &value) ? value : fallback);
}

REWIRE_KERNEL_INLINE int Attributes::Choice(std::string_view name,
                                            std::initializer_list<std::string_view> choices, int fallback) {
  std::string_view value;
  if (!Read(name, "a string", &value)) return fallback;
  const auto* found = std::find(choices.begin(), choices.end(), value);
  if (found != choices.end()) return static_cast<int>(found - choices.begin());
  std::string known;
  for (std::string_view choice : choices) known += (known.empty() ? "'" : ", '") + std::string(choice) + "'";
  Keep(ValueError("attribute '", name, "' is '", value, "', expected one of ", known));
  return fallback;
}

REWIRE_KERNEL_INLINE std::vector<std::int64_t> Attributes::Ints(std::string_view name,
                                                                const std::vector<std::int64_t>& fallback) {
  ShapeView value;
  if (!Read(name, "a list of ints", &value)) return fallback;
  return std::vector<std::int64_t>(value.begin(), value.end());
}

REWIRE_KERNEL_INLINE std::vector<double> Attributes::Floats(std::string_view name,
                                                            const std::vector<double>& fallback) {
  TensorView value;
  if (!Read(name, "a list of floats", &value)) return fallback;
  if (!value.Is<double>() || value.ndim() != 1) {
    Keep(TypeError("attribute '", name, "': expected a list of floats, got a tensor of another kind"));
    return fallback;
  }
  return std::vector<double>(value.data<double>(), value.data<double>() + value.dim(0));
}

REWIRE_KERNEL_INLINE void Attributes::Require(std::string_view name) {
  if (!Has(name)) Keep(ValueError("attribute '", name, "' is missing"));
}

REWIRE_KERNEL_INLINE Status Attributes::Finish() {
  if (!status_.ok()) return std::move(status_);
  for (std::string_view name : names_) {
    if (std::find(asked_.begin(), asked_.end(), name) == asked_.end()) return Unknown(name);
  }
  return Status();
}

REWIRE_KERNEL_INLINE const RewireFFIAny* Attributes::Find(std::string_view name) {
  if (std::find(asked_.begin(), asked_.end(), name) == asked_.end()) asked_.push_back(name);
  const auto found = std::find(names_.begin(), names_.end(), name);
  return found == names_.end() ? nullptr : values_[static_cast<std::size_t>(found - names_.begin())];
}

REWIRE_KERNEL_INLINE Status Attributes::Unknown(std::string_view name) const {
  std::string known;
  std::string_view nearest;
  std::size_t least = 3;  // names that differ by more edits are not suggested
  for (std::string_view candidate : asked_) {
    known += (known.empty() ? "" : ", ") + std::string(candidate);
    const std::size_t edits = EditDistance(name, candidate);
    if (edits < least && edits < candidate.size()) {
      least = edits;
      nearest = candidate;
    }
  }
  return ValueError("unknown attribute '", name, "'",
                    nearest.empty() ? "" : "; did you mean '" + std::string(nearest) + "'?",
                    known.empty() ? "; it takes none" : " (it takes: " + known + ")");
}

REWIRE_KERNEL_INLINE std::size_t Attributes::EditDistance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t substituted = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substituted});
    }
  }
  return row[b.size()];
}
#endif

}  // namespace rewire::kernel
