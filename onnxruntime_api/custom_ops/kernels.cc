// SPDX-License-Identifier: Apache-2.0
//
// Kernels of custom operators as packed functions: a factory for each name, which makes a kernel of each
// node.
#include <algorithm>
#include <exception>
#include <map>
#include <string>
#include <utility>

#include "rewire/onnxruntime_api/custom_ops/custom_op.h"
#include "rewire/onnxruntime_api/custom_ops/kernel_context.h"
#include "rewire/onnxruntime_api/custom_ops/kernel_info.h"
#include "rewire/onnxruntime_api/custom_ops/kernel_name.h"
#include "rewire/onnxruntime_api/custom_ops/operator_traits.h"
#include "rewire/onnxruntime_api/status.h"
#include "rewire/vm/c_api/program.h"
#include "rewire/vm/packed_function.h"

namespace rewire::onnxruntime_api {
namespace {

// The kernel of one node. Its code may lie in a library that is closed behind it.
struct NodeKernel {
  const OrtCustomOp* op = nullptr;
  std::shared_ptr<const OrtKernelInfo> info;
  void* kernel = nullptr;
  std::vector<std::shared_ptr<void>> libraries;

  ~NodeKernel() {
    if (kernel != nullptr) op->KernelDestroy(kernel);
  }
};

// The operators of one name.
struct Factory {
  std::vector<const OrtCustomOp*> ops;
  std::vector<std::shared_ptr<void>> libraries;
  std::map<std::string, std::string> config;
};

// Operators may throw. Returns -1 with the error set if `work` throws or returns a status.
template <typename Work>
int CallOperator(Work&& work) noexcept {
  OrtStatus* status = nullptr;
  try {
    status = work();
  } catch (const std::exception& error) {
    SetKernelError("RuntimeError", error.what());
    return -1;
  } catch (...) {
    SetKernelError("RuntimeError", "the custom operator threw what is no std::exception");
    return -1;
  }
  if (status == nullptr) return 0;
  SetKernelError("RuntimeError", status->message.c_str());
  delete status;
  return -1;
}

int Compute(void* handle, const RewireFFIAny* args, std::int32_t count, RewireFFIAny* result) {
  const NodeKernel& node = *static_cast<const NodeKernel*>(handle);
  return CallOperator([&]() -> OrtStatus* {
    OrtKernelContext context(*node.info);
    if (const Status read = context.Read(args, count); !read) return FromError(read.error());
    if (ComputesWithStatus(*node.op)) {
      if (OrtStatus* const failed = node.op->KernelComputeV2(node.kernel, &context); failed != nullptr)
        return failed;
    } else {
      node.op->KernelCompute(node.kernel, &context);
    }
    return context.Return(result) == 0 ? nullptr : MakeStatus(ORT_FAIL, TakeKernelError().message);
  });
}

bool TakesNode(const OrtCustomOp& op, const OrtKernelInfo& info) {
  if (!ServesVersion(op, info.version)) return false;
  const std::size_t listed = op.GetInputTypeCount(&op);
  for (std::size_t i = 0; i < info.inputs.size(); ++i) {
    if (info.inputs[i].name.empty() || listed == 0) continue;
    const ONNXTensorElementDataType type = op.GetInputType(&op, std::min(i, listed - 1));
    if (type != ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED && type != info.inputs[i].type.tensor.type)
      return false;
  }
  return true;
}

int MakeNodeKernel(const Factory& factory, const RewireFFIAny* args, std::int32_t count,
                   RewireFFIAny* result) {
  auto node = std::make_unique<NodeKernel>();
  node->libraries = factory.libraries;
  Result<std::shared_ptr<OrtKernelInfo>> info = ReadKernelInfo(args, count);
  if (!info) {
    SetKernelError("ValueError", info.error().message().c_str());
    return -1;
  }
  (*info)->config = factory.config;
  node->info = *std::move(info);
  for (const OrtCustomOp* op : factory.ops) {
    if (node->op == nullptr && TakesNode(*op, *node->info)) node->op = op;
  }
  if (node->op == nullptr) {
    SetKernelError("ValueError", ("no custom operator '" + node->info->domain + "." + node->info->type +
                                  "' takes the types and the version of node '" + node->info->name + "'")
                                     .c_str());
    return -1;
  }
  const OrtApi* const api = OrtGetApiBase()->GetApi(REWIRE_ORT_API_VERSION);
  const int failed = CallOperator([&]() -> OrtStatus* {
    if (CreatesWithStatus(*node->op))
      return node->op->CreateKernelV2(node->op, api, node->info.get(), &node->kernel);
    node->kernel = node->op->CreateKernel(node->op, api, node->info.get());
    return nullptr;
  });
  if (failed != 0) return failed;
  const auto destroy = [](void* of) { delete static_cast<NodeKernel*>(of); };
  return rewire_kernel_api()->new_function(node.release(), Compute, destroy, result);
}

}  // namespace

void AddKernels(const CustomOps& custom_ops, const std::map<std::string, std::string>& config,
                KernelSet* kernels) {
  std::map<std::string, std::shared_ptr<Factory>> factories;
  for (const OrtCustomOpDomain* domain : custom_ops.domains) {
    for (const OrtCustomOp* op : domain->operators) {
      std::shared_ptr<Factory>& factory = factories[KernelName(domain->name, op->GetName(op))];
      if (factory == nullptr) factory = std::make_shared<Factory>();
      factory->ops.push_back(op);
      factory->libraries = custom_ops.libraries;
      factory->config = config;
    }
  }
  for (const auto& [name, factory] : factories) {
    PackedFunction function;
    function.handle = factory.get();
    function.owner = factory;
    function.call = [](void* handle, const RewireFFIAny* args, std::int32_t count, RewireFFIAny* result) {
      try {
        return MakeNodeKernel(*static_cast<const Factory*>(handle), args, count, result);
      } catch (const std::exception& error) {
        SetKernelError("MemoryError", error.what());
        return -1;
      }
    };
    kernels->AddFunction(name, std::move(function));
  }
}

}  // namespace rewire::onnxruntime_api
