// SPDX-License-Identifier: Apache-2.0
//
// A model that is ready to run, shared by all sessions that were made of one file with equal options.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "rewire/onnxruntime_api/sessions/ports.h"
#include "rewire/onnxruntime_api/sessions/session_limits.h"
#include "rewire/onnxruntime_api/sessions/session_options.h"
#include "rewire/onnxruntime_api/vm_memory.h"
#include "rewire/vm/program.h"
#include "rewire/vm/virtual_machine.h"

namespace rewire::onnxruntime_api {

class Model {
 public:
  // Makes the model with initializers as inputs. Empty: it has none that a run may give.
  using MakeOverriding =
      std::function<OrtStatus*(const std::set<std::string>& names, std::shared_ptr<const Model>* model)>;

  Model(Program program, std::uint32_t function, Ports ports, const SessionLimits& limits,
        MakeOverriding make)
      : program_(std::move(program)),
        function_(function),
        ports_(std::move(ports)),
        limits_(limits),
        make_overriding_(std::move(make)) {}
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  const Program& program() const { return program_; }
  std::uint32_t function() const { return function_; }
  const Ports& ports() const { return ports_; }
  // TakeVm gives VMs with the limits of a run.
  const SessionLimits& limits() const { return limits_; }

  // The model where these initializers are inputs, for runs that give them. It is compiled for the first such
  // run, and kept. Statuses as for OpenModel.
  OrtStatus* Overriding(const std::set<std::string>& names, std::shared_ptr<const Model>* model) const;

  // VMs that no run uses are kept here, so that runs of all sessions share their memory.
  std::unique_ptr<VirtualMachine> TakeVm() const;
  void GiveBack(std::unique_ptr<VirtualMachine> vm) const;

 private:
  // Destroyed last: what the program and its VMs free is not kept.
  struct LastOfAll {
    ~LastOfAll() { FreeKeptBlocks(); }
  } last_of_all_;
  Program program_;
  std::uint32_t function_;
  Ports ports_;
  SessionLimits limits_;
  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<VirtualMachine>> idle_;
  MakeOverriding make_overriding_;
  mutable std::mutex overriding_mutex_;
  mutable std::map<std::set<std::string>, std::shared_ptr<const Model>> overriding_;
};

// Opens an ONNX model or an executable. A file that another session uses, by device, inode, size and time, is
// not opened again. Statuses have ONNX Runtime's codes.
OrtStatus* OpenModel(const OrtEnv& env, const std::string& path, const OrtSessionOptions& options,
                     std::shared_ptr<const Model>* model);
OrtStatus* OpenModel(const OrtEnv& env, Span<const std::byte> bytes, const OrtSessionOptions& options,
                     std::shared_ptr<const Model>* model);

// Compiles an ONNX model of a file, or of memory if `path` is empty, and links nothing.
OrtStatus* CompileModelOnly(const OrtEnv& env, const std::string& path, Span<const std::byte> bytes,
                            const OrtSessionOptions& options, std::optional<Executable>* executable);

}  // namespace rewire::onnxruntime_api
