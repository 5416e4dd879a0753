// SPDX-License-Identifier: Apache-2.0
#include "rewire/tests/kernels/kernel_call.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <functional>

#include "rewire/kernels/cpu/kernels_cpu.h"
#include "rewire/vm/kernel/branches.h"

namespace rewire::test {
namespace {

thread_local std::string last_error;
thread_local bool fail_workspace = false;
thread_local std::int64_t stop_after = -1;
thread_local std::int64_t questions = 0;
thread_local RewireBranch* branch = nullptr;  // that is running

// Blocks handed to the running kernel; kept for the next call, as the VM does. Remembers what was asked for.
class WorkspaceBlocks {
 public:
  ~WorkspaceBlocks() {
    for (const Block& block : blocks_) std::free(block.memory);
  }
  void Restart() {
    used_ = 0;
    asked_.clear();
  }
  const std::vector<std::uint64_t>& asked() const { return asked_; }
  void* Take(std::uint64_t bytes) {
    asked_.push_back(bytes);
    if (used_ == blocks_.size()) blocks_.push_back({});
    Block& block = blocks_[used_++];
    if (block.bytes < bytes) {
      std::free(block.memory);
      block.bytes = (bytes + 63) / 64 * 64;
      block.memory = std::aligned_alloc(64, block.bytes);
    }
    std::memset(block.memory, 0xA5, block.bytes);
    return block.memory;
  }

 private:
  struct Block {
    void* memory = nullptr;
    std::uint64_t bytes = 0;
  };
  std::vector<Block> blocks_;
  std::size_t used_ = 0;
  std::vector<std::uint64_t> asked_;
};
thread_local WorkspaceBlocks workspace_blocks;

// The state that a kernel keeps in the VM; one for all kernels of a test, as if they were one import.
struct Slot {
  void* state = nullptr;
  void (*deleter)(void*) = nullptr;
  ~Slot() { Set(nullptr, nullptr); }
  void Set(void* next, void (*next_deleter)(void*)) {
    if (state != nullptr && deleter != nullptr) deleter(state);
    state = next;
    deleter = next_deleter;
  }
};
thread_local Slot slot;

ThreadPool* real_threads = nullptr;

void SetError(const char* kind, const char* message) { last_error = std::string(kind) + ": " + message; }

void* TakeWorkspace(std::uint64_t bytes) {
  if (branch != nullptr) {
    const std::uint64_t room = ((bytes | 1) + 63) / 64 * 64;
    void* block = static_cast<char*>(branch->memory) + branch->used;
    branch->used += room;
    if (branch->used <= branch->bytes) return std::memset(block, 0xA5, room);
    SetError("MemoryError", "a branch takes more workspace than it declares");
    return nullptr;
  }
  if (!fail_workspace) return workspace_blocks.Take(bytes);
  SetError("MemoryError", "the test gives no workspace");
  return nullptr;
}

void ParallelFor(std::int64_t begin, std::int64_t end, std::int64_t grain,
                 void (*body)(void*, std::int64_t, std::int64_t), void* data) {
  if (real_threads != nullptr) return real_threads->ParallelFor(begin, end, grain, body, data);
  const std::int64_t ranges = std::max<std::int64_t>(1, (end - begin) / std::max<std::int64_t>(1, grain));
  for (std::int64_t i = ranges - 1; i >= 0; --i) {
    const std::int64_t first = begin + i * grain;
    body(data, first, i == ranges - 1 ? end : first + grain);
  }
}

// One after the other, the last one first.
int RunBranches(RewireBranch* branches, std::int32_t count) {
  int result = 0;
  for (std::int32_t i = count; i-- > 0 && result == 0;) {
    branch = &branches[i];
    result = branch->run(branch);
    if (result != 0 && branch->doing != nullptr) last_error.insert(0, branch->doing);
  }
  branch = nullptr;
  return result;
}

std::vector<RewireFFIAny> ToArguments(const std::vector<HostTensor*>& tensors) {
  std::vector<RewireFFIAny> args(tensors.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    args[i] = RewireFFIAny{};
    if (tensors[i] == nullptr) continue;  // None
    args[i].type_index = kRewireFFIDLTensorPtr;
    args[i].v_ptr = tensors[i]->dl();
  }
  return args;
}

// Names and values in turn, with the memory behind them.
class FactoryArguments {
 public:
  explicit FactoryArguments(const AttributeList& attributes)
      : shapes_(attributes.size()), lists_(attributes.size()) {
    for (std::size_t i = 0; i < attributes.size(); ++i) {
      args_.push_back(RawString(attributes[i].first.c_str()));
      args_.push_back(std::visit([&](const auto& value) { return Value(value, i); }, attributes[i].second));
    }
  }
  const std::vector<RewireFFIAny>& args() const { return args_; }

 private:
  static RewireFFIAny RawString(const char* text) {
    RewireFFIAny any{};
    any.type_index = kRewireFFIRawStr;
    any.v_c_str = text;
    return any;
  }
  RewireFFIAny Value(const char* text, std::size_t) { return RawString(text); }
  RewireFFIAny Value(int number, std::size_t i) { return Value(std::int64_t{number}, i); }
  RewireFFIAny Value(std::int64_t number, std::size_t) {
    RewireFFIAny any{};
    any.type_index = kRewireFFIInt;
    any.v_int64 = number;
    return any;
  }
  RewireFFIAny Value(double number, std::size_t) {
    RewireFFIAny any{};
    any.type_index = kRewireFFIFloat;
    any.v_float64 = number;
    return any;
  }
  RewireFFIAny Value(const std::vector<std::int64_t>& numbers, std::size_t i) {
    shapes_[i].cell = {numbers.data(), numbers.size()};
    RewireFFIAny any{};
    any.type_index = kRewireFFIShape;
    any.v_obj = &shapes_[i].header;
    return any;
  }
  RewireFFIAny Value(const std::vector<double>& numbers, std::size_t i) {
    lists_[i] = HostTensor::Of<double>({static_cast<std::int64_t>(numbers.size())}, numbers);
    RewireFFIAny any{};
    any.type_index = kRewireFFIDLTensorPtr;
    any.v_ptr = lists_[i].dl();
    return any;
  }

  std::vector<RewireFFIAny> args_;
  std::vector<RewireFFIShapeObject> shapes_;
  std::vector<HostTensor> lists_;
};

// The blocks that a kernel declares for these tensors, the largest first; nullopt if it cannot say.
std::optional<std::vector<std::uint64_t>> Declared(RewireWorkspaceBound bound, void* handle,
                                                   const std::vector<HostTensor*>& tensors) {
  std::vector<const DLTensor*> shapes;
  shapes.reserve(tensors.size());
  for (HostTensor* tensor : tensors) shapes.push_back(tensor == nullptr ? nullptr : tensor->dl());
  std::uint64_t blocks[REWIRE_MAX_WORKSPACES] = {};
  const std::int32_t count = bound(handle, shapes.data(), static_cast<std::int32_t>(shapes.size()), blocks);
  if (count < 0) return std::nullopt;
  std::vector<std::uint64_t> declared(blocks, blocks + count);
  std::sort(declared.rbegin(), declared.rend());
  return declared;
}

// "" when each block that the kernel has asked for fits in one of its own that it has declared.
std::string CheckWorkspace(const std::optional<std::vector<std::uint64_t>>& declared) {
  std::vector<std::uint64_t> asked = workspace_blocks.asked();
  std::sort(asked.rbegin(), asked.rend());
  bool fits = declared && asked.size() <= declared->size();
  for (std::size_t i = 0; fits && i < asked.size(); ++i) fits = asked[i] <= (*declared)[i];
  if (fits) return "";
  const auto list = [](const std::vector<std::uint64_t>& sizes) {
    std::string text;
    for (const std::uint64_t size : sizes) text += " " + std::to_string(size);
    return text;
  };
  return "asks for workspaces of" + list(asked) + " bytes, declares" +
         (declared ? list(*declared) : " nothing for these shapes");
}

const auto* EntryOf(const std::string& name) {
  const RewireKernelTable* table = RewireCpuKernels();
  const auto* end = table->entries + table->count;
  const auto* entry = std::find_if(table->entries, end, [&](const auto& row) { return name == row.name; });
  return entry == end ? nullptr : entry;
}

// The object that a kernel's factory makes of the attributes; null after an error, which TakeError gives.
void* MakeObject(RewirePackedFunction factory, const AttributeList& attributes) {
  const FactoryArguments arguments(attributes);
  RewireFFIAny result{};
  const auto count = static_cast<std::int32_t>(arguments.args().size());
  return factory(nullptr, arguments.args().data(), count, &result) == 0 ? result.v_obj : nullptr;
}

void DeleteObject(void* handle) {
  auto* object = static_cast<RewireFFIObject*>(handle);
  object->deleter(object, kRewireFFIBothGone);
}

// The tensors that a call's row says are only read, as they were before the call.
class ReadTensors {
 public:
  ReadTensors(const KernelCalls& calls, const std::vector<HostTensor*>& tensors) {
    const auto count = static_cast<std::uint32_t>(tensors.size());
    const std::optional<KernelCalls::Range> outputs = calls.Outputs(count);
    if (!outputs) return;
    for (std::uint32_t i = 0; i + outputs->most < count; ++i) {
      HostTensor* const tensor = tensors[i];
      // A tensor that is also an output is written as such.
      const auto* first_output = tensors.data() + (count - outputs->most);
      if (tensor == nullptr ||
          std::find(first_output, tensors.data() + count, tensor) != tensors.data() + count) {
        continue;
      }
      tensors_.push_back({i, tensor, tensor->values<std::uint8_t>()});
    }
  }
  // "" when none of them has changed.
  std::string Check() const {
    for (const Kept& kept : tensors_) {
      if (kept.tensor->values<std::uint8_t>() != kept.before)
        return "writes argument " + std::to_string(kept.position) + ", which its row says is only read";
    }
    return "";
  }

 private:
  struct Kept {
    std::uint32_t position;
    const HostTensor* tensor;
    std::vector<std::uint8_t> before;
  };
  std::vector<Kept> tensors_;
};

// The import of a kernel with these attributes, as far as rows look at it.
KernelImport ImportOf(const AttributeList& attributes) {
  KernelImport import;
  for (const auto& [name, value] : attributes) {
    if (const auto* list = std::get_if<std::vector<std::int64_t>>(&value))
      import.attributes.push_back({name, Array<std::int64_t>(list->begin(), list->end())});
  }
  return import;
}

}  // namespace

const RewireKernelApi* TestApi() {
  static const RewireBranchesApi kApi = [] {
    RewireBranchesApi branches{};
    RewireKernelApi& api = branches.kernel;
    api.struct_size = sizeof(RewireBranchesApi);
    api.version = REWIRE_KERNEL_API_VERSION;
    api.set_error = SetError;
    api.get_slot = [] { return slot.state; };
    api.set_slot = [](void* state, void (*deleter)(void*)) { slot.Set(state, deleter); };
    api.workspace = TakeWorkspace;
    api.parallel_for = ParallelFor;
    api.thread_count = [] {
      return real_threads == nullptr ? std::int32_t{3} : real_threads->thread_count();
    };
    api.cancelled = [] { return stop_after >= 0 && ++questions > stop_after ? 1 : 0; };
    branches.run_branches = RunBranches;
    return branches;
  }();
  return &kApi.kernel;
}

void ClearSlot() { slot.Set(nullptr, nullptr); }

void StopAfter(std::int64_t answered) {
  stop_after = answered;
  questions = 0;
}

std::int64_t QuestionsAsked() { return questions; }

void UseThreads(ThreadPool* pool) { real_threads = pool; }

void FailWorkspace(bool fail) { fail_workspace = fail; }

std::string TakeError() { return std::exchange(last_error, std::string()); }

StockKernel::StockKernel(const std::string& name, const AttributeList& attributes) {
  __rewire_kernel_api = TestApi();
  const RewireKernelTable* table = RewireCpuKernels();
  const auto* entry = EntryOf(name);
  if (entry == nullptr) {
    error_ = "no kernel " + name;
    return;
  }
  function_ = entry->function;
  const RewireKernelRow& row = table->rows[entry - table->entries];
  workspace_ = row.workspace;
  calls_ = KernelCalls(&row, ImportOf(attributes));
  if (workspace_ == nullptr) error_ = name + " does not declare its workspace";
  if (entry->is_factory == 0) {
    if (!attributes.empty()) error_ = name + " takes no attributes";
    return;
  }
  handle_ = MakeObject(function_, attributes);
  if (handle_ == nullptr) {
    error_ = TakeError();
    return;
  }
  function_ = static_cast<RewireFFIFunctionObject*>(handle_)->cell.safe_call;
}

StockKernel::~StockKernel() {
  if (handle_ != nullptr) DeleteObject(handle_);
}

std::optional<std::vector<std::uint64_t>> DeclaredWorkspace(const std::string& name,
                                                            const AttributeList& attributes,
                                                            const std::vector<HostTensor*>& tensors) {
  __rewire_kernel_api = TestApi();
  const RewireKernelTable* table = RewireCpuKernels();
  const auto* entry = EntryOf(name);
  void* handle = entry == nullptr ? nullptr : MakeObject(entry->function, attributes);
  if (handle == nullptr) return std::nullopt;
  auto declared = Declared(table->rows[entry - table->entries].workspace, handle, tensors);
  DeleteObject(handle);
  return declared;
}

int StockKernel::CallRaw(const RewireFFIAny* args, int num_args) const {
  workspace_blocks.Restart();
  RewireFFIAny result{};
  return function_(handle_, args, num_args, &result);
}

std::string StockKernel::Call(const std::vector<HostTensor*>& tensors) const {
  if (!error_.empty()) return error_;
  const std::vector<RewireFFIAny> args = ToArguments(tensors);
  const ReadTensors read(calls_, tensors);
  const bool succeeded = CallRaw(args.data(), static_cast<int>(args.size())) == 0;
  if (std::string written = read.Check(); !written.empty()) return written;
  if (!succeeded) return TakeError();
  if (!calls_.Outputs(static_cast<std::uint32_t>(tensors.size())))
    return "takes " + std::to_string(tensors.size()) +
           " arguments, its row has no such call: " + calls_.Text();
  return CheckWorkspace(Declared(workspace_, handle_, tensors));
}

std::string StockKernel::operator()(std::initializer_list<HostTensor*> tensors) const {
  return Call(std::vector<HostTensor*>(tensors));
}

std::string Run(const std::string& name, const std::vector<HostTensor*>& tensors,
                const AttributeList& attributes) {
  return StockKernel(name, attributes).Call(tensors);
}

}  // namespace rewire::test
