// SPDX-License-Identifier: Apache-2.0
#include "rewire/vm/packed_function.h"

#include <utility>

#include "rewire/base/message.h"

namespace rewire {
namespace {

thread_local KernelError t_error;

}  // namespace

void SetKernelError(const char* kind, const char* message) {
  t_error.kind = kind != nullptr ? kind : "";
  t_error.message = message != nullptr ? message : "";
}

KernelError TakeKernelError() { return std::exchange(t_error, {}); }

std::string TakeErrorText(const PackedFunction& function) {
  KernelError error =
      function.take_error != nullptr ? function.take_error(function.error_context) : TakeKernelError();
  if (error.kind.empty() && error.message.empty()) return "it failed without setting an error";
  if (error.kind.empty()) return std::move(error.message);
  return Format("{}: {}", error.kind, error.message);
}

}  // namespace rewire
