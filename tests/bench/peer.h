// SPDX-License-Identifier: Apache-2.0
// Another runtime as the benchmark of models sees it: what peers.cc measures beside vm-run.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "rewire/executable_format/tensor_files/host_tensor.h"

namespace rewire::bench {

// Tensors by the names that they have in the ONNX model. A peer reads inputs from this memory and writes
// outputs to it; it stays as long as the process.
using NamedTensors = std::map<std::string, HostTensor>;

struct PeerSettings {
  std::string library;  // path of its shared library
  std::string model;    // path of the ONNX file
  int threads = 1;
  // Words that the peer knows: how it loads the model. models.py says what each means.
  std::string setting;
};

// Made by loading a model. All functions throw std::runtime_error with the peer's own message.
class Peer {
 public:
  Peer() = default;
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;
  virtual ~Peer() = default;
  virtual void Bind(const NamedTensors& inputs, const NamedTensors& outputs) = 0;
  virtual void Run() = 0;
};

// "all": optimized as the library can. "none": as it is, for a model that was optimized when it was saved.
std::unique_ptr<Peer> LoadOnnxRuntime(const PeerSettings& settings);
// "f32" or "bf16": with the shapes of `inputs`. "f32-dynamic": with the shapes that the model has.
std::unique_ptr<Peer> LoadOpenVino(const PeerSettings& settings, const NamedTensors& inputs);

}  // namespace rewire::bench
