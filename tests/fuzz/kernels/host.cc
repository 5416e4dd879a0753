// SPDX-License-Identifier: Apache-2.0
#include "rewire/tests/fuzz/kernels/host.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>

#include "rewire/tests/fuzz/kernels/memory.h"
#include "rewire/vm/kernel/branches.h"

namespace {

// Branches that the kernels have taken since the last question, as clang's coverage counts them.
std::uint64_t branches = 0;

}  // namespace

// The kernels are compiled with calls of these (cmake/RewireTargets.cmake).
// NOLINTBEGIN(readability-identifier-naming)
extern "C" REWIRE_KERNEL_EXPORT void __sanitizer_cov_trace_pc_guard(std::uint32_t*);
extern "C" REWIRE_KERNEL_EXPORT void __sanitizer_cov_trace_pc_guard_init(std::uint32_t*, std::uint32_t*);
extern "C" void __sanitizer_cov_trace_pc_guard(std::uint32_t*) { ++branches; }
extern "C" void __sanitizer_cov_trace_pc_guard_init(std::uint32_t*, std::uint32_t*) {}
// NOLINTEND(readability-identifier-naming)

namespace rewire::test {
namespace {

// Unoptimized, some 10 ms; optimized about one.
constexpr std::uint64_t kMostBranches = 20'000'000;
constexpr std::uint64_t kMostWorkspace = std::uint64_t{1} << 26;

struct State {
  const Entry* entry = nullptr;
  const Call* call = nullptr;
  std::string error;
  std::int64_t questions = 0, questions_left = 0;
  bool told_to_stop = false;
  std::uint64_t most_branches = 0;
  double longest_gap = 0;
  std::chrono::steady_clock::time_point gap_began;
  std::uint64_t workspace = 0;
  std::vector<void*> blocks;
  std::vector<std::uint64_t> asked;  // the bytes of each
  std::vector<Object*> objects;
  RewireBranch* branch = nullptr;  // that is running
  void* slot = nullptr;
  void (*slot_deleter)(void*) = nullptr;
};
State state;

// At the beginning of a call, at each question and at the end.
void EndGap() {
  const auto now = std::chrono::steady_clock::now();
  state.longest_gap =
      std::max(state.longest_gap, std::chrono::duration<double, std::micro>(now - state.gap_began).count());
  state.gap_began = now;
  state.most_branches = std::max(state.most_branches, branches);
  if (branches > kMostBranches)
    Report("the kernel did not ask whether to go on for " + std::to_string(branches) + " branches");
  branches = 0;
}

void SetError(const char* kind, const char* message) { state.error = std::string(kind) + ": " + message; }

void* TakeWorkspace(std::uint64_t bytes) {
  if (RewireBranch* branch = state.branch; branch != nullptr) {
    void* block = static_cast<char*>(branch->memory) + branch->used;
    branch->used += ((bytes | 1) + 63) / 64 * 64;
    if (branch->used > branch->bytes) Report("a branch takes more workspace than it declares");
    return block;
  }
  state.workspace += std::min(bytes, kMostWorkspace + 1);
  if (state.workspace > kMostWorkspace) {
    SetError("MemoryError", "the drill gives no more workspace");
    return nullptr;
  }
  state.asked.push_back(bytes);
  state.blocks.push_back(AlignedBlock(bytes));
  return state.blocks.back();
}

int Cancelled() {
  EndGap();
  ++state.questions;
  if (state.questions_left-- > 0) return 0;
  state.told_to_stop = true;
  return 1;
}

void SetSlot(void* next, void (*deleter)(void*)) {
  if (state.slot_deleter != nullptr) state.slot_deleter(state.slot);
  state.slot = next;
  state.slot_deleter = deleter;
}

void ParallelFor(std::int64_t begin, std::int64_t end, std::int64_t grain,
                 void (*body)(void*, std::int64_t, std::int64_t), void* data) {
  const std::int64_t ranges =
      std::clamp<std::int64_t>((end - begin) / std::max<std::int64_t>(1, grain), 1, 12);
  const std::int64_t size = (end - begin) / ranges;
  for (std::int64_t i = ranges - 1; i >= 0; --i)
    body(data, begin + i * size, i == ranges - 1 ? end : begin + (i + 1) * size);
}

int RunBranches(RewireBranch* branches, std::int32_t count) {
  int result = 0;
  for (std::int32_t i = count; i-- > 0 && result == 0;) {
    state.branch = &branches[i];
    result = branches[i].run(&branches[i]);
  }
  state.branch = nullptr;
  return result;
}

int NewTensor(DLDataType dtype, std::int32_t rank, const std::int64_t* shape, DLDevice,
              RewireFFIAny* result) {
  Argument like;
  like.dtype = dtype;
  like.shape.assign(shape, shape + rank);
  like.fill = Fill::kBytes;
  if (Elements(like.shape, std::int64_t{1} << 20) < 0) {
    SetError("MemoryError", "the drill makes no tensor of this size");
    return -1;
  }
  state.objects.push_back(Object::Tensor(like));
  *result = state.objects.back()->any();
  return 0;
}

int NewAdt(std::uint32_t, std::int32_t size, const RewireFFIAny* fields, RewireFFIAny* result) {
  state.objects.push_back(Object::Sequence(std::vector<RewireFFIAny>(fields, fields + size)));
  *result = state.objects.back()->any();
  return 0;
}

int AdtField(const RewireFFIAny* value, std::int32_t index, RewireFFIAny* field) {
  const std::vector<RewireFFIAny>* fields = Object::FieldsOf(*value);
  if (fields == nullptr || index < 0 || index >= static_cast<std::int32_t>(fields->size())) {
    SetError("IndexError", "no such field");
    return -1;
  }
  *field = (*fields)[static_cast<std::size_t>(index)];
  return 0;
}

int AdtFields(const RewireFFIAny* value, std::int32_t begin, std::int32_t count, RewireFFIAny* fields) {
  for (std::int32_t i = 0; i < count; ++i) {
    if (AdtField(value, begin + i, &fields[i]) != 0) return -1;
  }
  return 0;
}

std::int32_t AdtSize(const RewireFFIAny* value) {
  const std::vector<RewireFFIAny>* fields = Object::FieldsOf(*value);
  return fields == nullptr ? -1 : static_cast<std::int32_t>(fields->size());
}

void FreeAll() {
  for (void* block : state.blocks) std::free(block);
  state.blocks.clear();
  for (Object* object : state.objects) delete object;
  state.objects.clear();
  SetSlot(nullptr, nullptr);
}

// Each block that a kernel has asked for fits in one of its own that it declares for these shapes.
void CheckWorkspace(const Entry& entry, void* handle, const Memory& memory, bool succeeded) {
  if (entry.workspace == nullptr) return;
  const std::vector<const DLTensor*> tensors = memory.tensors();
  std::uint64_t blocks[REWIRE_MAX_WORKSPACES] = {};
  const std::int32_t count =
      entry.workspace(handle, tensors.data(), static_cast<std::int32_t>(tensors.size()), blocks);
  if (count > REWIRE_MAX_WORKSPACES) Report("the kernel declares too many workspaces");
  if (!succeeded || count < 0) return;
  std::sort(blocks, blocks + count, std::greater<>());
  std::sort(state.asked.begin(), state.asked.end(), std::greater<>());
  for (std::size_t i = 0; i < state.asked.size(); ++i) {
    if (i >= static_cast<std::size_t>(count) || state.asked[i] > blocks[i])
      Report("the kernel takes " + std::to_string(state.asked[i]) +
             " bytes of workspace that it does not declare");
  }
}

// The kernel itself, or what its factory makes. Null when the factory refuses.
class Prepared {
 public:
  Prepared(const Entry& entry, const Call& call) : function_(entry.function) {
    if (!entry.is_factory) return;
    const Attributes attributes(call);
    RewireFFIAny result{};
    function_ = nullptr;
    if (entry.function(nullptr, attributes.args().data(), static_cast<std::int32_t>(attributes.args().size()),
                       &result) != 0)
      return;
    handle_ = static_cast<RewireFFIObject*>(result.v_ptr);
    function_ = reinterpret_cast<RewireFFIFunctionObject*>(handle_)->cell.safe_call;
  }
  ~Prepared() {
    if (handle_ != nullptr) handle_->deleter(handle_, kRewireFFIBothGone);
  }
  RewirePackedFunction function() const { return function_; }
  void* handle() const { return handle_; }

 private:
  RewirePackedFunction function_;
  RewireFFIObject* handle_ = nullptr;
};

}  // namespace

void PrintRunning() {
  if (state.call == nullptr) return;
  std::fprintf(stderr, "kernel_drill: in %s with\n%s", state.entry->name.c_str(),
               Describe(*state.call).c_str());
}

void Report(const std::string& what) {
  std::fprintf(stderr, "kernel_drill: %s\n", what.c_str());
  PrintRunning();
  std::abort();
}

std::uint64_t MostBetweenQuestions() { return state.most_branches; }

const RewireKernelApi* DrillApi() {
  static const RewireBranchesApi kApi = [] {
    RewireBranchesApi branches{};
    RewireKernelApi& api = branches.kernel;
    api.struct_size = sizeof(RewireBranchesApi);
    api.version = REWIRE_KERNEL_API_VERSION;
    api.set_error = SetError;
    api.get_slot = [] { return state.slot; };
    api.set_slot = SetSlot;
    api.workspace = TakeWorkspace;
    api.parallel_for = ParallelFor;
    // oneDNN starts threads of its own.
    api.thread_count = [] {
      return std::int32_t{state.entry->name.find("onednn") == std::string::npos ? 3 : 1};
    };
    api.stream = [](std::int32_t, std::int32_t) -> void* { return nullptr; };
    api.cancelled = Cancelled;
    api.new_tensor = NewTensor;
    api.new_adt = NewAdt;
    api.adt_size = AdtSize;
    api.adt_tag = [](const RewireFFIAny*) { return std::uint32_t{0}; };
    api.adt_field = AdtField;
    api.adt_fields = AdtFields;
    branches.run_branches = RunBranches;
    return branches;
  }();
  return &kApi.kernel;
}

Outcome Run(const Entry& entry, const Call& call, std::int64_t stop_after) {
  Outcome outcome;
  state.entry = &entry;
  state.call = &call;
  state.error.clear();
  state.questions = 0;
  state.questions_left = stop_after;
  state.told_to_stop = false;
  state.workspace = 0;
  state.asked.clear();
  const auto memory = Memory::Make(call);
  if (memory == nullptr) {
    outcome.skipped = true;
    state.call = nullptr;
    return outcome;
  }
  branches = 0;
  state.gap_began = std::chrono::steady_clock::now();
  state.longest_gap = 0;
  {
    const Prepared kernel(entry, call);
    RewireFFIAny result{};
    outcome.succeeded = kernel.function() != nullptr &&
                        kernel.function()(kernel.handle(), memory->args().data(),
                                          static_cast<std::int32_t>(memory->args().size()), &result) == 0;
    EndGap();
    if (kernel.function() != nullptr) CheckWorkspace(entry, kernel.handle(), *memory, outcome.succeeded);
  }
  outcome.error = state.error;
  outcome.questions = state.questions;
  outcome.longest_gap = state.longest_gap;
  if (outcome.succeeded && state.told_to_stop)
    Report("the kernel says that it has succeeded after it was told to stop");
  if (!outcome.succeeded && state.error.empty()) Report("the kernel has failed without an error");
  FreeAll();
  state.call = nullptr;
  return outcome;
}

}  // namespace rewire::test
