// SPDX-License-Identifier: Apache-2.0
//
// Settings of a server and of its models, from one file in TOML (docs/serving.md has the keys).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "rewire/base/status.h"
#include "rewire/serve/core/description.h"
#include "rewire/serve/tls/tls_context.h"

namespace rewire::serve {

struct ModelSettings {
  std::string file;  // a file or a folder of versions; empty: it is found in the folders that are served
  std::uint32_t instances = 0;          // runs at once; 0: one per core
  std::int32_t threads = 1;             // of one run
  std::vector<std::string> parameters;  // files of parameters; models that name the same file share it
  std::vector<std::string> kernels;     // libraries of kernels, as LibraryFile gives them
  BatchSettings batching;
  SequenceSettings sequence;
  GeneratorSettings generator;
  SandboxSettings sandbox;
  std::uint32_t max_queue_size = 0;    // 0: no limit
  std::uint64_t timeout_us = 0;        // of requests that have none; 0: none
  std::uint64_t memory_bytes = 0;      // of one run, beside inputs and outputs; 0: no limit
  std::uint64_t steps = 0;             // of one run; 0: no limit
  std::uint32_t depth = 0;             // calls that are active at once in one run; 0: the usual limit
  std::vector<std::int64_t> versions;  // the versions to load; empty: the newest `newest`
  std::uint32_t newest = 1;            // 0: all
};

struct ServeSettings {
  std::vector<std::string> paths;  // folders and files
  std::string http = "127.0.0.1:8000";
  std::uint32_t loops = 0;         // 0: one per core
  std::uint32_t busy_poll_us = 0;  // how long a loop looks for events before it sleeps
  TlsFiles tls;                    // of the server; empty: no TLS
  bool let_clients_load = false;
  // The folder in which executables of models of ONNX are kept, so that each is compiled once
  // (CompileOptions::cache); empty: none.
  std::string cache;
  std::string trace_file;  // requests can be traced into it; empty: they cannot
  ModelSettings defaults;
  std::map<std::string, ModelSettings> models;

  const ModelSettings& Of(const std::string& model) const {
    const auto found = models.find(model);
    return found == models.end() ? defaults : found->second;
  }
};

// Reads a file of settings over `settings`. Paths in it begin at its folder. Errors: kNotFound, kIo.
// kInvalidFile, with line and column, for text that is no TOML. kInvalidArgument for a key that does not
// exist, with similar ones, and for a value of another kind or out of range.
Status ReadSettings(const std::string& path, ServeSettings* settings);

// The library that a setting or an option names: a file of this folder, if there is one of this name, or else
// one that KernelSet::AddLibrary searches.
std::string LibraryFile(const std::string& folder, const std::string& name);

// Fails with kInvalidArgument if settings contradict each other.
Status CheckSettings(const std::string& model, const ModelSettings& settings);

}  // namespace rewire::serve
