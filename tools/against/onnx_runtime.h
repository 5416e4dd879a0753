// SPDX-License-Identifier: Apache-2.0
//
// ONNX Runtime, which computes values of an ONNX model for --against. It runs in a process of its own: a
// Python that has the packages onnx and onnxruntime. So the tools need neither to be built nor to start.
#pragma once

#include <sys/types.h>

#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "rewire/base/span.h"
#include "rewire/base/status.h"
#include "rewire/executable_format/tensor_files/host_tensor.h"

namespace rewire::tools {

// The program that the Python runs: onnx_runtime.py.
extern const char* const kOnnxRuntimeScript;

// A model's nodes in an order in which they can run. Of each If there are the nodes of the branch that the
// run takes.
struct OnnxGraph {
  struct Node {
    std::string name, type;
    std::vector<std::string> inputs;  // also what its bodies read
    std::vector<std::string> outputs;
  };
  std::vector<Node> nodes;
  std::vector<std::string> inputs, constants, outputs;
};

class OnnxRuntime {
 public:
  // Starts `python`, which is looked up in PATH, and gives it the inputs. Errors: kNotFound if there is no
  // such program or it lacks a package, with what to install; kRuntimeFailed with what ONNX Runtime says.
  static Result<std::unique_ptr<OnnxRuntime>> Start(const std::string& python, const std::string& model,
                                                    Span<const NamedTensor> inputs);
  // Ends the process.
  ~OnnxRuntime();
  OnnxRuntime(const OnnxRuntime&) = delete;
  OnnxRuntime& operator=(const OnnxRuntime&) = delete;

  const OnnxGraph& graph() const { return graph_; }

  // The values of these names. Left out is what is no tensor of numbers, or what ONNX Runtime cannot give
  // out.
  Result<std::map<std::string, HostTensor>> Values(const std::vector<std::string>& names);

 private:
  OnnxRuntime(std::string python, std::string model) : python_(std::move(python)), model_(std::move(model)) {}
  Status Spawn();
  // How the process has ended, when it does not answer.
  Status Ended();
  // If the process has gone, the next Receive says so. A Python that lacks a package answers before it reads.
  void SendBytes(Span<const std::byte> bytes);
  void Send(const nlohmann::ordered_json& message);
  Status ReceiveBytes(SharedBytes* bytes);
  Result<nlohmann::ordered_json> Receive();

  const std::string python_, model_;
  pid_t child_ = -1;
  int socket_ = -1;
  OnnxGraph graph_;
};

}  // namespace rewire::tools
