// SPDX-License-Identifier: Apache-2.0
//
// The options of vm-run, after its command line is parsed.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rewire/tools/run/compare.h"
#include "rewire/tools/run/input_values.h"
#include "rewire/vm/limits.h"

namespace rewire::tools {

struct RunOptions {
  bool verify_data = false;
  std::string file;      // any model that OpenModel takes
  std::string model;     // of a bundle; empty: the only one
  std::string map;       // of vm-strip: names for a stripped executable; may be empty
  std::string function;  // empty: the entry
  bool list = false;
  bool explain_outputs = false;
  bool devices = false;  // print the devices that are there, and do not run

  InputOptions inputs;
  std::vector<std::string> outputs;          // --output
  std::vector<std::string> expects;          // --expect
  std::string load_state;                    // a file: inputs of an earlier call
  std::string save_state;                    // a file that the inputs are written to after the last run
  std::vector<std::string> carries;          // --carry OUTPUT=INPUT
  std::optional<double> relative, absolute;  // --rtol, --atol; the defaults depend on what is compared

  std::vector<std::string> kernels;  // --kernels: shared libraries
  bool trust_device_code = false;
  std::vector<std::string> parameters;  // --params: files of tensors by name
  std::int32_t threads = 0;             // of kernels; 0: one per core

  std::uint32_t repeat = 1;
  std::uint32_t warmup = 1;                          // runs before the measured ones when repeat > 1
  std::optional<std::chrono::nanoseconds> duration;  // of all measured runs; with repeat, what ends first
  bool histogram = false;                            // of their times
  bool trace = false;
  bool profile = false;
  std::string timeline;        // --profile-trace: a file
  std::string report;          // a file: the page that shows time and memory
  std::string dump_values;     // a folder for every value of the run; of one run alone
  std::string record;          // a folder that keeps the call
  bool record_device = false;  // the runs replay a recording of the device's work
  std::string replay;          // a folder of such a call, which is run again
  std::string against;         // an .onnx file that ONNX Runtime runs, too
  std::string python;          // that has ONNX Runtime; empty: the usual one
  bool json = false;

  Limits limits;
  std::optional<std::chrono::nanoseconds> deadline;  // of each run
};

}  // namespace rewire::tools
