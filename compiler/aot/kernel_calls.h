// SPDX-License-Identifier: Apache-2.0
//
// How the emitted source calls kernels: one class for each kind of kernels.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "rewire/base/status.h"
#include "rewire/compiler/aot/static_value.h"
#include "rewire/executable_format/module.h"

namespace rewire::aot {

struct CallArgument {
  Value value;  // a tensor or an integer
  // The address of a tensor as an expression of type (const) unsigned char*; an integer's value.
  std::string text;
  bool is_written = false;
  // The elements of a tensor of at most kMostKnown integers, if they are known.
  std::optional<std::vector<std::int64_t>> integers{};
  // The same of floats.
  std::optional<std::vector<double>> floats{};
  static constexpr std::uint64_t kMostKnown = 64;
};

struct KernelCall {
  const KernelImport& import;
  std::uint32_t index = 0;
  std::vector<CallArgument> arguments;
  std::uint32_t outputs = 0;
  // The address of the memory that WorkspaceBytes asks for.
  std::string workspace{};
};

class KernelCalls {
 public:
  virtual ~KernelCalls() = default;

  // An expression that calls the kernel; it is not 0 where the kernel fails. `setup` gets statements that go
  // before it. Errors: kUnsupported, with what is missing.
  virtual Result<std::string> Call(const KernelCall& call, std::string* setup) = 0;
  // Other calls may have run than those before in the text: here paths meet.
  virtual void BeginBlock() {}
  // Bytes of the arena that the kernel needs while it runs.
  virtual std::uint64_t WorkspaceBytes(const KernelCall&) const { return 0; }
  // Whether Call names the argument. A constant that no call names is not in the source.
  virtual bool Reads(const KernelCall&, std::size_t) const { return true; }
  // By how many bytes the first output must begin in front of the first input, so that the kernel may write
  // over it. Nothing if it may not, beyond what the kernel's row says.
  virtual std::optional<std::uint64_t> LeadOf(const KernelCall&) const { return std::nullopt; }
  // Lines of the source in front of the functions.
  virtual std::string Includes() const = 0;
  // The tables that the calls use stand in front of the functions too. They are known when all calls are
  // emitted.
  virtual std::string Tables() const = 0;
  // Lines at the start of each function, whose kernel calls have at most so many arguments.
  virtual std::string Locals(std::uint32_t most_arguments) const = 0;
};

std::unique_ptr<KernelCalls> MakePackedCalls(const Module& module, const std::string& prefix);

std::unique_ptr<KernelCalls> MakeEmbeddedCalls(const Module& module, const std::string& prefix);

// The kernels that these calls know.
std::vector<std::string> EmbeddedKernelNames();

}  // namespace rewire::aot
