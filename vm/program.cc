// SPDX-License-Identifier: Apache-2.0
#include "vm/program.h"

#include <algorithm>
#include <atomic>
#include <map>

#include "base/near_names.h"
#include "executable_format/instruction.h"
#include "executable_format/instruction_text.h"
#include "vm/program_rep.h"
#include "vm/shape.h"
#include "vm/type_check.h"
#include "vm/virtual_machine.h"
#include "vm/vm_pool.h"

namespace rewire {

ProgramRep::~ProgramRep() {
  for (const RewireFFIAny& constant : constants) {
    if (IsObjectKind(constant.type_index)) DropStrong(ObjectOf(constant));
  }
}

namespace {

// Rewire's own kernel libraries; of several prefixes that fit, the first counts.
struct StockLibrary {
  std::string_view prefix;
  const char* file;
};
constexpr StockLibrary kStockLibraries[] = {
    {"rewire.onednn.", "librewire_kernels_onednn.so"},
    {"rewire.", "librewire_kernels_cpu.so"},
};
constexpr std::size_t kNoLibrary = std::size(kStockLibraries);

// The position in kStockLibraries of the one that should have this kernel, or kNoLibrary.
std::size_t StockLibraryOf(std::string_view kernel) {
  std::size_t i = 0;
  while (i < kNoLibrary && kernel.substr(0, kStockLibraries[i].prefix.size()) != kStockLibraries[i].prefix)
    ++i;
  return i;
}

// Collects what is wrong so that a host sees all of it at once.
class Complaints {
 public:
  void Add(const std::string& text) { text_ += "\n  " + text; }
  bool empty() const { return text_.empty(); }
  tl::unexpected<Error> Fail(const std::string& head) const {
    return rewire::Fail(StatusCode::kLinkFailed, head + text_);
  }

 private:
  std::string text_;
};

Status LinkDevices(ProgramRep* rep, const std::vector<const DeviceApi*>& available) {
  Complaints complaints;
  for (const DeviceEntry& entry : rep->module().devices) {
    LinkedDevice device;
    device.device = {static_cast<DLDeviceType>(entry.type), entry.id};
    device.scope = entry.memory_scope.c_str();
    for (const DeviceApi* api : available) {
      if (api->device_type == entry.type) device.api = api;
    }
    if (device.api == nullptr && entry.type != kDLCPU) complaints.Add(DeviceText(entry));
    rep->devices.push_back(device);
  }
  if (complaints.empty()) return {};
  return complaints.Fail("the executable uses devices that the host did not give (LinkOptions::devices):");
}

Status LinkKernels(ProgramRep* rep, LinkOptions* options) {
  Complaints complaints;
  bool tried[kNoLibrary + 1] = {};
  tried[kNoLibrary] = true;
  for (const KernelImport& import : rep->module().kernels) {
    Result<PackedFunction> function = options->kernels.Resolve(import);
    const std::size_t stock = StockLibraryOf(import.name);
    if (!function && function.error().code() == StatusCode::kNotFound && options->stock_kernels &&
        !tried[stock]) {
      tried[stock] = true;
      if (Status ok = options->kernels.AddLibrary(kStockLibraries[stock].file); !ok) {
        complaints.Add(ok.error().message());
      }
      function = options->kernels.Resolve(import);
    }
    if (!function) {
      complaints.Add(function.error().message());
      continue;
    }
    LinkedKernel kernel;
    kernel.call = function->call;
    kernel.handle = function->handle;
    kernel.plain = (import.flags & kKernelObjects) == 0 && import.also_written.empty();
    kernel.alignment_mask = import.alignment == 0 ? 0 : import.alignment - 1;
    rep->output_alignment = std::max(rep->output_alignment, import.alignment);
    kernel.import = &import;
    kernel.function = *std::move(function);
    rep->kernels.push_back(std::move(kernel));
  }
  if (complaints.empty()) return {};
  return complaints.Fail("kernels could not be resolved:");
}

std::vector<std::int64_t> ShapeOfType(const TypeNode& type) { return {type.dims.begin(), type.dims.end()}; }

// An uncounted tensor over bytes that `owner` keeps; without an owner the Program itself does.
Result<RewireFFIAny> MakeConstant(const ProgramRep& rep, const Constant& constant, void* data,
                                  StorageObject* storage) {
  const std::vector<std::int64_t> shape = ShapeOfType(constant.type);
  TensorObject* tensor = NewSharedTensor(static_cast<std::uint32_t>(shape.size()));
  if (tensor == nullptr) {
    if (storage != nullptr) DropStrong(storage);
    return Fail(StatusCode::kOutOfMemory, "constant " + constant.name + ": no memory");
  }
  SetContiguousDims(tensor, shape.data(), static_cast<std::uint32_t>(shape.size()));
  tensor->tensor.data = data;
  tensor->tensor.dtype = constant.type.dtype;
  tensor->tensor.device =
      rep.devices[constant.type.device == kAnyDevice ? kHostDevice : constant.type.device].device;
  tensor->flags |= TensorObject::kImmutable;
  tensor->storage = storage;
  tensor->local = kUncounted;
  return MakeAny(kTensorKind, tensor);
}

// The bytes of a data constant: in the file where they can be used as they lie, else decoded into new memory.
Result<SharedBytes> BytesOf(const Constant& constant, const ConstantCodecs& codecs) {
  const auto address = reinterpret_cast<std::uintptr_t>(constant.stored.view.data());
  const std::uint64_t element = ElementBytes({constant.type.dtype.code, constant.type.dtype.bits, 1});
  if (constant.codec == kCodecNone && address % element == 0) return constant.stored;
  Result<Tensor> decoded = Tensor::Make(constant.type.dtype, constant.type.dims);
  if (!decoded) return Forward(decoded);
  auto* raw = static_cast<std::byte*>(decoded->dl().data);
  if (Status ok = DecodeConstant(constant, codecs, {raw, constant.raw_bytes}); !ok) return Forward(ok);
  return SharedBytes{{raw, constant.raw_bytes}, std::make_shared<Tensor>(*std::move(decoded))};
}

Result<RewireFFIAny> PlaceData(const ProgramRep& rep, const Constant& constant,
                               const ConstantCodecs& codecs) {
  const LinkedDevice& device =
      rep.devices[constant.type.device == kAnyDevice ? kHostDevice : constant.type.device];
  Result<SharedBytes> bytes = BytesOf(constant, codecs);
  if (!bytes) return Forward(bytes);
  void* data = const_cast<std::byte*>(bytes->view.data());
  if (device.api == nullptr) {
    StorageObject* storage = NewOwnerStorage(data, bytes->view.size(), device.device, bytes->owner);
    if (storage == nullptr)
      return Fail(StatusCode::kOutOfMemory, "constant " + constant.name + ": no memory");
    return MakeConstant(rep, constant, data, storage);
  }
  const DeviceApi* api = device.api;
  StorageObject* storage = NewSharedStorage();
  void* block = storage == nullptr
                    ? nullptr
                    : api->allocate(api->context, device.device, bytes->view.size(), 256, device.scope);
  if (block == nullptr) {
    if (storage != nullptr) DropStrong(storage);
    return Fail(StatusCode::kOutOfMemory, "constant " + constant.name + ": no memory on the device");
  }
  storage->block = block;
  storage->data = block;
  storage->device = device.device;
  storage->device_api = api;
  if (api->copy(api->context, block, device.device, data, kHost, bytes->view.size(), nullptr) != 0 ||
      api->synchronize(api->context, device.device, nullptr) != 0) {
    DropStrong(storage);
    return Fail(StatusCode::kLinkFailed, "constant " + constant.name +
                                             ": the copy to the device failed: " + TakeKernelError().message);
  }
  return MakeConstant(rep, constant, block, storage);
}

Result<RewireFFIAny> PlaceParameter(const ProgramRep& rep, const Constant& constant, const Tensor& tensor) {
  const DLTensor& dl = tensor.dl();
  if (!TensorFits(rep.module(), constant.type, dl)) {
    return Fail(StatusCode::kLinkFailed, TensorMismatchText(rep.module(), constant.type, dl));
  }
  if (!IsContiguous(dl)) return Fail(StatusCode::kLinkFailed, "a strided tensor given; make it contiguous");
  // A view of the caller's tensor, which keeps that tensor.
  TensorObject* view = NewSharedTensor(static_cast<std::uint32_t>(dl.ndim));
  StorageObject* storage =
      NewOwnerStorage(dl.data, tensor.view().bytes(), dl.device, std::make_shared<Tensor>(tensor));
  if (view == nullptr || storage == nullptr) {
    if (view != nullptr) DropStrong(view);
    if (storage != nullptr) DropStrong(storage);
    return Fail(StatusCode::kOutOfMemory, "no memory");
  }
  SetContiguousDims(view, dl.shape, static_cast<std::uint32_t>(dl.ndim));
  view->tensor.data = static_cast<char*>(dl.data) + dl.byte_offset;
  view->tensor.dtype = dl.dtype;
  view->tensor.device = dl.device;
  view->flags |= TensorObject::kImmutable;
  view->storage = storage;
  view->local = kUncounted;
  return MakeAny(kTensorKind, view);
}

Status LinkConstants(ProgramRep* rep, const LinkOptions& options) {
  std::map<std::string, const Tensor*> given;
  for (const auto& [name, tensor] : options.parameters) given[name] = &tensor;
  Complaints complaints;
  std::vector<std::string> known;
  for (const Constant& constant : rep->module().constants) {
    Result<RewireFFIAny> placed = RewireFFIAny{};
    switch (constant.kind) {
      case ConstantKind::kData:
        placed = PlaceData(*rep, constant, options.codecs);
        break;
      case ConstantKind::kComputed:
        break;  // `__init` fills it in
      case ConstantKind::kParameter: {
        known.push_back(constant.name);
        const auto found = given.find(constant.name);
        if (found == given.end()) {
          Type type;
          type.nodes.push_back(constant.type);
          placed = Fail(StatusCode::kLinkFailed, "no parameter of this name given, " +
                                                     TypeText(type, rep->module().symbols) + " expected");
        } else {
          placed = PlaceParameter(*rep, constant, *found->second);
        }
        break;
      }
    }
    if (placed) {
      rep->constants.push_back(*placed);
    } else if (placed.error().code() == StatusCode::kLinkFailed) {
      complaints.Add(constant.name + ": " + placed.error().message());
    } else {
      return Forward(placed);
    }
  }
  for (const auto& [name, tensor] : given) {
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      complaints.Add(name + ": the executable has no parameter of this name" + DidYouMean(name, known));
    }
  }
  if (complaints.empty()) return {};
  return complaints.Fail("parameters do not match:");
}

void LinkFunctions(ProgramRep* rep) {
  const Module& module = rep->module();
  for (const Function& function : module.functions) {
    const auto inputs = static_cast<std::uint32_t>(function.inputs.size());
    rep->functions.push_back(
        {function.code.data(), function.register_count, inputs, rep->input_count, Leaves(function.result)});
    rep->input_count += inputs;
    for (std::uint32_t pc = 0; pc < function.code.size(); pc += WordsOf(function.code[pc])) {
      if (OpcodeOf(function.code[pc]) != Opcode::kInvokePacked) continue;
      const std::uint32_t args = function.code[pc + WordOf(Opcode::kInvokePacked, "args")];
      rep->max_args = std::max(rep->max_args, args);
    }
  }
  for (std::uint32_t i = 0; i < module.functions.size(); ++i) {
    if (module.functions[i].name == "main") rep->entry = i;
  }
}

// Runs `__init` and puts its results into the computed constants.
Status Initialise(const Program& program, ProgramRep* rep, const Limits& limits) {
  const Module& module = rep->module();
  const std::optional<std::uint32_t> init = rep->executable.FindFunction(kInitFunction);
  if (!init) return {};
  VirtualMachine vm(program, limits);
  if (Status ok = vm.TryInvoke(*init); !ok) return ok;
  std::uint32_t field = 0;
  for (std::size_t i = 0; i < module.constants.size(); ++i) {
    if (module.constants[i].kind != ConstantKind::kComputed) continue;
    const Value value = vm.result().field(field++);
    const Result<RewireFFIAny> placed =
        value.kind() == ValueKind::kTensor ? PlaceParameter(*rep, module.constants[i], value.tensor())
                                           : Result<RewireFFIAny>(Fail(StatusCode::kLinkFailed, "no tensor"));
    if (!placed) return Forward(placed, "computed constant " + module.constants[i].name);
    rep->constants[i] = *placed;
  }
  return {};
}

void FindConstantRanges(ProgramRep* rep) {
  for (std::uint32_t i = 0; i < rep->constants.size(); ++i) {
    rep->constant_ranges.push_back({RangeOf(TensorOf(rep->constants[i])->tensor), i});
  }
  std::vector<NamedRange>& ranges = rep->constant_ranges;
  std::sort(ranges.begin(), ranges.end());
  // Parameters may share memory; ranges that do become one.
  std::size_t last = 0;
  for (std::size_t i = 1; i < ranges.size(); ++i) {
    if (ranges[last].range.Overlaps(ranges[i].range)) {
      ranges[last].range.end = std::max(ranges[last].range.end, ranges[i].range.end);
    } else {
      ranges[++last] = ranges[i];
    }
  }
  if (!ranges.empty()) ranges.resize(last + 1);
}

std::uint64_t NextProgramNumber() {
  static std::atomic<std::uint64_t> next{1};
  return next.fetch_add(1, std::memory_order_relaxed);
}

std::vector<std::string> NamesOf(const std::vector<NamedType>& inputs) {
  std::vector<std::string> names;
  names.reserve(inputs.size());
  for (const NamedType& input : inputs) names.push_back(input.name);
  return names;
}

// The position of a name, or kNotFound saying what there is.
Result<std::uint32_t> FindName(std::string_view name, const std::vector<std::string>& names,
                               const std::string& what) {
  for (std::uint32_t i = 0; i < names.size(); ++i) {
    if (names[i] == name) return i;
  }
  return Fail(StatusCode::kNotFound, what + " named \"" + std::string(name) + "\"" + DidYouMean(name, names));
}

}  // namespace

Result<Program> Program::Link(const Executable& executable, LinkOptions options) {
  return LinkUnderRules(executable, std::move(options), {});
}

Result<Program> LinkUnderRules(const Executable& executable, LinkOptions options, const PlanRules& rules) {
  auto rep = std::make_shared<ProgramRep>(executable);
  rep->number = NextProgramNumber();
  rep->threads = options.threads != nullptr ? options.threads : ThreadPool::Serial();
  rep->allocator = options.allocator;
  rep->log = options.log;
  rep->storage_fill = options.storage_fill;
  if (Status ok = LinkDevices(rep.get(), options.devices); !ok) return Forward(ok);
  if (Status ok = LinkKernels(rep.get(), &options); !ok) return Forward(ok);
  if (Status ok = LinkConstants(rep.get(), options); !ok) return Forward(ok);
  LinkFunctions(rep.get());
  rep->plans = PlanOutputs(rep->module(), rules);
  Program program(rep, std::make_shared<VmPool>());
  if (Status ok = Initialise(program, rep.get(), options.init_limits); !ok) return Forward(ok);
  FindConstantRanges(rep.get());
  return program;
}

const Executable& Program::executable() const { return rep_->executable; }

Result<std::uint32_t> Program::FindFunction(std::string_view name) const {
  const Module& module = rep_->module();
  if (module.functions.empty()) return Fail(StatusCode::kNotFound, "the executable has no functions");
  if (name.empty()) return rep_->entry;
  if (const std::optional<std::uint32_t> found = rep_->executable.FindFunction(name)) return *found;
  std::vector<std::string> names;
  for (const Function& function : module.functions) names.push_back(function.name);
  return FindName(name, names, "the executable has no function");
}

Result<InputHandle> Program::FindInput(std::string_view name, std::string_view function) const {
  const Result<std::uint32_t> index = FindFunction(function);
  if (!index) return Forward(index);
  const Function& target = rep_->module().functions[*index];
  // Compared in place: names are looked up with every call of hosts that do not keep handles.
  for (std::uint32_t i = 0; i < target.inputs.size(); ++i) {
    if (target.inputs[i].name == name) return InputHandle{*index, i};
  }
  return Forward(FindName(name, NamesOf(target.inputs), "function " + target.name + " has no input"));
}

Result<InputHandle> Program::FindInput(std::uint32_t index, std::string_view function) const {
  const Result<std::uint32_t> target = FindFunction(function);
  if (!target) return Forward(target);
  const Function& found = rep_->module().functions[*target];
  if (index < found.inputs.size()) return InputHandle{*target, index};
  return Fail(StatusCode::kNotFound, "function " + found.name + " has " +
                                         std::to_string(found.inputs.size()) + " inputs, number " +
                                         std::to_string(index) + " asked for");
}

Result<OutputHandle> Program::FindOutput(std::string_view name, std::string_view function) const {
  const Result<std::uint32_t> index = FindFunction(function);
  if (!index) return Forward(index);
  const Function& target = rep_->module().functions[*index];
  for (std::uint32_t i = 0; i < target.output_names.size(); ++i) {
    if (target.output_names[i] == name) return OutputHandle{*index, i};
  }
  const Result<std::uint32_t> leaf =
      FindName(name, target.output_names, "function " + target.name + " has no output");
  if (!leaf) return Forward(leaf);
  return OutputHandle{*index, *leaf};
}

Result<OutputHandle> Program::FindOutput(std::uint32_t leaf, std::string_view function) const {
  const Result<std::uint32_t> index = FindFunction(function);
  if (!index) return Forward(index);
  const Function& target = rep_->module().functions[*index];
  if (leaf < target.output_names.size()) return OutputHandle{*index, leaf};
  return Fail(StatusCode::kNotFound, "function " + target.name + " has " +
                                         std::to_string(target.output_names.size()) + " outputs, number " +
                                         std::to_string(leaf) + " asked for");
}

}  // namespace rewire
