// SPDX-License-Identifier: Apache-2.0
// Strings that a regular expression describes as a whole.
#include <re2/re2.h>

#include <memory>
#include <string>

#include "rewire/kernels/contract/re2.h"
#include "rewire/kernels/cpu/text/text_list.h"
#include "rewire/kernels/re2/registry.h"

namespace rewire::kernel::re2 {
namespace {

using cpu::Checks;

struct FullMatch {
  static constexpr const char* kName = names::kRe2FullMatch;
  std::shared_ptr<const RE2> expression;

  static Status Make(Attributes& attributes, FullMatch* match) {
    attributes.Require("pattern");
    RE2::Options options;
    options.set_log_errors(false);
    match->expression = std::make_shared<const RE2>(attributes.String("pattern", ""), options);
    if (match->expression->ok()) return Status();
    return ValueError("attribute 'pattern' is no expression of RE2: ", match->expression->error());
  }

  Status operator()(TensorView x, TensorView offsets, TensorView bytes, TensorView out) const {
    cpu::Texts texts;
    if (Status s = texts.Open("x", x, offsets, bytes); !s.ok()) return s;
    Checks checks;
    checks.Dense("out", out).Shape("out", out, x.dims());
    if (Status s = checks.Take(); !s.ok()) return s;
    if (!out.Is<bool>()) return cpu::WrongDType(cpu::Bools(), "out", out);
    cpu::Pace pace;
    return texts.ForEach(pace, [&](std::int64_t i, std::string_view text) {
      const bool matches = RE2::FullMatch({text.data(), text.size()}, *expression);
      out.data<std::uint8_t>()[i] = matches ? 1 : 0;
      return Status();
    });
  }
};

}  // namespace

std::span<const cpu::Kernel> MatchKernels() {
  static constexpr cpu::Kernel kKernels[] = {
      cpu::Describe<FullMatch>("x, offsets, bytes -> out", "x, offsets i64; bytes u8; out bool", "pattern",
                               "whether the expression describes the whole string"),
  };
  return kKernels;
}

}  // namespace rewire::kernel::re2
