// SPDX-License-Identifier: Apache-2.0
//
// The activations that kernels of products apply to each element of a result before they store it. The
// attribute `activation` is the stem of the kernel that computes the same, or "none".
#pragma once

#include <initializer_list>
#include <optional>
#include <string_view>

#include "rewire/kernels/contract/elementwise.h"
#include "rewire/kernels/contract/names.h"

namespace rewire::names {

// One row for each: the kernel, and its attributes that become `alpha` and `beta`, with a default where one
// may be left out.
#define REWIRE_ACTIVATIONS(ACTIVATION)   \
  ACTIVATION(Relu)                       \
  ACTIVATION(Clip, {"min"}, {"max"})     \
  ACTIVATION(Sigmoid)                    \
  ACTIVATION(Tanh)                       \
  ACTIVATION(HardSwish)                  \
  ACTIVATION(Gelu)                       \
  ACTIVATION(LeakyRelu, {"alpha", 0.01}) \
  ACTIVATION(Swish)

struct ActivationNumber {
  const char* attribute = nullptr;
  std::optional<double> otherwise = std::nullopt;
};

struct ActivationForm {
  const char* kernel;
  ActivationNumber alpha = {};
  ActivationNumber beta = {};
};
inline constexpr ActivationForm kActivationForms[] = {
#define REWIRE_ACTIVATION_FORM(name, ...) {k##name __VA_OPT__(, ) __VA_ARGS__},
    REWIRE_ACTIVATIONS(REWIRE_ACTIVATION_FORM)
#undef REWIRE_ACTIVATION_FORM
};

// The values of the attribute, in the order of the rows behind "none".
inline const std::initializer_list<std::string_view> kActivations = {
    "none",
#define REWIRE_ACTIVATION_TEXT(name, ...) Stem(k##name),
    REWIRE_ACTIVATIONS(REWIRE_ACTIVATION_TEXT)
#undef REWIRE_ACTIVATION_TEXT
};

}  // namespace rewire::names
