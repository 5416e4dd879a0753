// SPDX-License-Identifier: Apache-2.0
//
// --record and --replay: a call in a folder, to be run again and compared. docs/vm-run.md.
//
//   call.json       the model with its hash, the function, settings, inputs and outputs
//   input-0.npy     a tensor of an input; of a tree "input-0.1.0.npy"
//   output-0.npy    likewise
//
// Inputs and outputs stand in call.json as --input and --expect take them, with files of the folder.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "rewire/base/span.h"
#include "rewire/base/status.h"
#include "rewire/executable_format/module.h"
#include "rewire/tools/run/outputs.h"
#include "rewire/tools/run/run_options.h"

namespace rewire::tools {

class CallRecord {
 public:
  // Makes the folder. Errors: as MakeNewFolder; kIo if the model cannot be read.
  static Result<CallRecord> Make(const RunOptions& options);

  Status AddInputs(const Function& function, Span<const Value> inputs);
  Status AddOutputs(const std::vector<Output>& outputs);
  // Writes call.json, the last of the files: without it, a folder holds no call. A call that failed is kept
  // with its error.
  Status Finish(const Status& outcome);

 private:
  explicit CallRecord(std::string folder) : folder_(std::move(folder)) {}
  // Writes the tensors of a value, and returns it as --input takes it. `name` begins the names of files.
  Result<std::string> Keep(const Value& value, const std::string& name);

  std::string folder_;
  nlohmann::ordered_json call_;
};

struct RecordedCall {
  struct File {
    std::string path;
    std::string hash;  // when it was recorded; empty for a library that is found by its name
  };
  std::vector<File> files;  // those that the options take from the record: model, parameters, kernels
  std::string error;        // the message if the call failed; else empty
};

// Files that have other bytes now, or are gone.
std::vector<std::string> ChangedFiles(const RecordedCall& call);

// Reads a call, and puts its model, function, settings, inputs and outputs into the options, except where
// these have a model, kernels, parameters or threads of their own. Errors: kNotFound and kIo; kInvalidFile if
// call.json is none.
Result<RecordedCall> ReadCall(const std::string& folder, RunOptions* options);

}  // namespace rewire::tools
