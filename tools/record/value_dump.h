// SPDX-License-Identifier: Apache-2.0
// --dump-values: every value that a run makes, as files.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "rewire/base/status.h"
#include "rewire/tools/record/nan_maker.h"
#include "rewire/tools/record/value_watcher.h"
#include "rewire/vm/virtual_machine.h"

namespace rewire::tools {

// Writes an .npy file for each tensor, and index.json for all. A file is written when its value is made, so a
// value that is overwritten later is there, too.
class ValueDump : private Observer {
 public:
  // `folder` has been made. The first failure to write cancels the run of `vm`.
  ValueDump(std::string folder, VirtualMachine* vm);

  Observer* observer() { return this; }
  // The first failure to write.
  const Status& status() const { return status_; }
  std::size_t files() const { return files_; }
  // Says which node has made the first NaN: "Log 'take_log' has made the first NaN, in 00002-y.npy". Empty
  // without NaN.
  const std::string& first_nan() const { return first_nan_; }
  // Writes the index, also after a run that failed: then it is not `complete`.
  Status WriteIndex(const std::string& model, const std::string& function, bool complete);

 private:
  bool wants_instructions() const override { return true; }
  void OnInstruction(const Instruction& instruction) override;
  void Take(const MadeValue& made);
  void Write(const MadeValue& made, const ValueLeaf& leaf);

  const std::string folder_;
  VirtualMachine& vm_;
  ValueWatcher watcher_;
  NanMaker nan_maker_;
  std::string first_nan_;
  std::size_t files_ = 0;
  nlohmann::ordered_json entries_ = nlohmann::ordered_json::array();
  Status status_;
};

}  // namespace rewire::tools
