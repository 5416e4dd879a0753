// SPDX-License-Identifier: Apache-2.0
#include "rewire/kernels/cpu/branches/branch_calls.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "rewire/kernels/cpu/support/checked.h"
#include "rewire/kernels/cpu/support/checks.h"

namespace rewire::kernel::cpu {
namespace {

using Call = BranchCalls::Call;
using Inner = std::vector<RewireFFIAny>;

const Kernel* FindKernel(std::string_view name) {
  static const std::unordered_map<std::string_view, const Kernel*> kByName = [] {
    std::unordered_map<std::string_view, const Kernel*> by_name;
    for (const Family& family : Families()) {
      for (const Kernel& kernel : family.kernels) by_name.emplace(kernel.entry.name, &kernel);
    }
    return by_name;
  }();
  const auto found = kByName.find(name);
  return found == kByName.end() ? nullptr : found->second;
}

std::vector<std::string> Split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  for (std::size_t at = 0; at <= text.size() && !text.empty();) {
    const std::size_t end = std::min(text.find(separator, at), text.size());
    parts.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

// How many elements the attribute has that says how long a list of arguments is.
std::int64_t LengthOf(const Inner& attributes, std::string_view name) {
  for (std::size_t i = 0; i + 1 < attributes.size(); i += 2) {
    if (name != attributes[i].v_c_str || attributes[i + 1].type_index != kRewireFFIShape) continue;
    return static_cast<std::int64_t>(
        reinterpret_cast<const RewireFFIShapeObject*>(attributes[i + 1].v_obj)->cell.size);
  }
  return 0;
}

// The argument of its kernel's row that each argument of a call is.
struct ArgumentPlaces {
  std::vector<std::uint32_t> index;
  std::int64_t written = 0;  // the last ones
};

struct Side {
  std::int64_t required = 0, optional = 0, counted = 0;
  bool list = false;

  void Append(const RowArguments& row, std::uint32_t written, std::int64_t given,
              std::vector<std::uint32_t>* index) const {
    std::int64_t more = given - required;
    for (std::uint32_t i = 0; i < row.count; ++i) {
      const std::uint32_t flags = row.list[i].flags;
      if ((flags & REWIRE_ARGUMENT_WRITTEN) != written) continue;
      std::int64_t count = 1;
      if ((flags & REWIRE_ARGUMENT_COUNTED) != 0) {
        count = counted;
      } else if ((flags & REWIRE_ARGUMENT_LIST) != 0) {
        count = more;
      } else if ((flags & REWIRE_ARGUMENT_OPTIONAL) != 0) {
        count = list ? 0 : std::min<std::int64_t>(1, more);
        more -= count;
      }
      index->insert(index->end(), static_cast<std::size_t>(count), i);
    }
  }
};

// nullopt if the kernel has no call with so many arguments. As the VM counts them (docs/kernels.md): optional
// ones are given from the first on, those that are read before those that are written.
std::optional<ArgumentPlaces> PlacesOf(const RowArguments& row, std::int64_t count, const Inner& attributes) {
  Side read, written;
  for (std::uint32_t i = 0; i < row.count; ++i) {
    const RewireKernelArgument& argument = row.list[i];
    Side& side = (argument.flags & REWIRE_ARGUMENT_WRITTEN) != 0 ? written : read;
    if ((argument.flags & REWIRE_ARGUMENT_COUNTED) != 0) {
      side.counted = LengthOf(attributes, row_text::NameOf(argument));
      side.required = Plus(side.required, side.counted);
    } else if ((argument.flags & REWIRE_ARGUMENT_LIST) != 0) {
      side.list = true;
    } else {
      ++((argument.flags & REWIRE_ARGUMENT_OPTIONAL) != 0 ? side.optional : side.required);
    }
  }
  const std::int64_t more = count - Plus(read.required, written.required);
  if (more < 0 || (read.list && written.list)) return std::nullopt;
  if (!read.list && !written.list && more > read.optional + written.optional) return std::nullopt;
  ArgumentPlaces places;
  places.written = written.required;
  if (written.list) {
    places.written += more;
  } else if (!read.list) {
    places.written += more - std::min(more, read.optional);
  }
  read.Append(row, 0, count - places.written, &places.index);
  written.Append(row, REWIRE_ARGUMENT_WRITTEN, places.written, &places.index);
  return places;
}

class Reader {
 public:
  Reader(const BranchCalls::CallAttributes& of_calls, BranchCalls* calls)
      : of_calls_(of_calls), calls_(*calls) {}

  Status ReadViews(const std::vector<std::int64_t>& numbers) {
    for (std::size_t i = 0; i < numbers.size();) {
      const std::int64_t of = numbers[i++];
      const std::int64_t rank = i < numbers.size() ? numbers[i++] : -1;
      if (of < 0 || of >= calls_.argument_count() || rank < 0 || rank > kMaxKernelRank ||
          rank > static_cast<std::int64_t>(numbers.size() - i) ||
          std::ssize(calls_.views) == BranchCalls::kMostViews)
        return ValueError("attribute 'views': no view at ", i);
      BranchCalls::View view;
      view.of = static_cast<std::int32_t>(of);
      for (; std::ssize(view.dims) < rank; ++i) {
        if (numbers[i] < 0)
          return ValueError("attribute 'views': view ", calls_.views.size(), " has a dimension ", numbers[i]);
        view.dims.push_back(numbers[i]);
        view.size = Times(view.size, numbers[i]);
      }
      view.strides.resize(view.dims.size());
      std::int64_t stride = 1;
      for (std::size_t axis = view.dims.size(); axis-- > 0;) {
        view.strides[axis] = stride;
        stride = Times(stride, std::max<std::int64_t>(1, view.dims[axis]));
      }
      calls_.views.push_back(std::move(view));
    }
    return Status();
  }

  Status ReadCalls(const std::vector<std::int64_t>& numbers, const std::vector<std::string>& kernels) {
    written_.resize(calls_.outputs.size());
    for (std::size_t i = 0; i < numbers.size();) {
      const std::int64_t branch = numbers[i++];
      const std::int64_t count = i < numbers.size() ? numbers[i++] : -1;
      if (branch < 0 || branch >= BranchCalls::kMostBranches || count < 1 ||
          count > BranchCalls::kMostOfCall || count > static_cast<std::int64_t>(numbers.size() - i) ||
          number_ == BranchCalls::kMostCalls)
        return ValueError("attribute 'calls': no call at ", i);
      if (number_ >= std::ssize(kernels))
        return ValueError("attribute 'calls': there are more calls than the ", kernels.size(),
                          " names of attribute 'kernels'");
      name_ = kernels[static_cast<std::size_t>(number_)];
      Call call;
      call.arguments.assign(numbers.begin() + static_cast<std::ptrdiff_t>(i),
                            numbers.begin() + static_cast<std::ptrdiff_t>(i) + count);
      for (std::int64_t k = 0; k < count; ++k, ++i) {
        const std::int64_t all = calls_.argument_count() + std::ssize(calls_.views);
        if (numbers[i] < 0 || numbers[i] >= all)
          return Wrong("names argument ", numbers[i], ", expected 0 to ", all - 1);
      }
      if (Status s = Add(branch, std::move(call)); !s.ok()) return s;
      ++number_;
    }
    if (number_ != std::ssize(kernels))
      return ValueError("attribute 'kernels' has ", kernels.size(), " names for ", number_, " calls");
    if (std::ssize(of_calls_) > number_)
      return ValueError("attribute '", of_calls_.size() - 1, ".", of_calls_.back()[0].v_c_str,
                        "' is of a call that there is not: there are ", number_);
    for (std::size_t i = 0; i < written_.size(); ++i) {
      if (!written_[i])
        return ValueError("attribute 'outputs': no call writes argument ",
                          calls_.inputs + static_cast<std::int64_t>(i));
    }
    return Status();
  }

 private:
  template <typename... Parts>
  Status Wrong(const Parts&... parts) const {
    return ValueError("call ", number_, " (", name_, ") ", parts...);
  }

  Status Add(std::int64_t branch, Call call) {
    static const Inner kNone;
    const Inner& attributes =
        number_ < std::ssize(of_calls_) ? of_calls_[static_cast<std::size_t>(number_)] : kNone;
    if (name_ == BranchCalls::kName) return Wrong("has branches of its own, expected none");
    const Kernel* kernel = FindKernel(name_);
    if (kernel == nullptr) return Wrong("is of a kernel that this library does not have");
    constexpr std::uint32_t kRefused = REWIRE_KERNEL_IMPURE | REWIRE_KERNEL_OBJECTS | REWIRE_KERNEL_RETURNS;
    if ((kernel->traits & kRefused) != 0)
      return Wrong("is of a kernel that keeps state, takes objects or returns a value");
    const std::optional<ArgumentPlaces> places =
        PlacesOf(kernel->arguments, std::ssize(call.arguments), attributes);
    if (!places) return Wrong("has ", call.arguments.size(), " arguments, which the kernel does not take");
    if (Status s = CheckUses(branch, call, *kernel, *places); !s.ok()) return s;
    if (Status s = Make(*kernel, attributes, &call); !s.ok()) return s;
    if (number_ < std::ssize(calls_.node_texts) &&
        !calls_.node_texts[static_cast<std::size_t>(number_)].empty())
      call.node = calls_.node_texts[static_cast<std::size_t>(number_)].c_str();
    if (std::ssize(calls_.branches) <= branch) calls_.branches.resize(static_cast<std::size_t>(branch) + 1);
    calls_.branches[static_cast<std::size_t>(branch)].push_back(std::move(call));
    return Status();
  }

  // A written argument belongs to the branch, and was written before it is read.
  Status CheckUses(std::int64_t branch, const Call& call, const Kernel& kernel,
                   const ArgumentPlaces& places) {
    const std::int64_t read = std::ssize(call.arguments) - places.written;
    for (std::int64_t i = 0; i < read; ++i) {
      const std::int64_t output = OutputOf(MemoryOf(call.arguments[static_cast<std::size_t>(i)]));
      if (output < 0) continue;
      const auto at = static_cast<std::size_t>(output);
      if (calls_.outputs[at] != branch)
        return Wrong("of branch ", branch, " reads argument ", calls_.inputs + output, " of branch ",
                     calls_.outputs[at]);
      if (!written_[at]) return Wrong("reads argument ", calls_.inputs + output, " before it is written");
    }
    for (std::int64_t i = read; i < std::ssize(call.arguments); ++i) {
      const std::int32_t argument = call.arguments[static_cast<std::size_t>(i)];
      const std::int64_t output = OutputOf(argument);
      if (output < 0) return Wrong("writes argument ", argument, ", which is only read");
      const auto at = static_cast<std::size_t>(output);
      if (calls_.outputs[at] != branch)
        return Wrong("of branch ", branch, " writes argument ", argument, " of branch ", calls_.outputs[at]);
      const RewireKernelArgument& row = kernel.arguments.list[places.index[static_cast<std::size_t>(i)]];
      for (std::int64_t k = 0; k < i; ++k) {
        const std::int32_t other = call.arguments[static_cast<std::size_t>(k)];
        if (MemoryOf(other) != argument) continue;
        const bool parts = (row.flags & (REWIRE_ARGUMENT_AROUND | REWIRE_ARGUMENT_WITHIN)) != 0;
        if (k >= read || other != argument || parts ||
            (row.over >> places.index[static_cast<std::size_t>(k)] & 1) == 0)
          return Wrong("writes argument ", argument, " over another one, which the kernel does not allow");
      }
      written_[at] = true;
    }
    return Status();
  }

  Status Make(const Kernel& kernel, const Inner& attributes, Call* call) const {
    call->function = kernel.entry.function;
    call->workspace = kernel.workspace;
    if (kernel.entry.is_factory != 0) {
      RewireFFIAny made{};
      if (kernel.entry.function(nullptr, attributes.data(), static_cast<std::int32_t>(attributes.size()),
                                &made) != 0)
        return Status::AlreadySet();
      call->object.reset(static_cast<RewireFFIObject*>(made.v_obj));
      call->function = reinterpret_cast<RewireFFIFunctionObject*>(call->object.get())->cell.safe_call;
    } else if (!attributes.empty()) {
      return Wrong("has attributes, but the kernel takes none");
    }
    std::uint64_t blocks[REWIRE_MAX_WORKSPACES] = {};
    if (call->workspace != nullptr && call->workspace(call->object.get(), nullptr, 0, blocks) == 0)
      call->workspace = nullptr;
    return Status();
  }

  std::int32_t MemoryOf(std::int32_t argument) const {
    const std::int32_t view = argument - calls_.argument_count();
    return view < 0 ? argument : calls_.views[static_cast<std::size_t>(view)].of;
  }
  // Negative for what is only read.
  std::int64_t OutputOf(std::int32_t argument) const {
    return argument < calls_.argument_count() ? argument - calls_.inputs : -1;
  }

  const BranchCalls::CallAttributes& of_calls_;
  BranchCalls& calls_;
  std::vector<bool> written_;  // by output
  std::int64_t number_ = 0;    // of the call that is being read
  std::string name_;           // of its kernel
};

}  // namespace

Status BranchCalls::Read(Attributes& attributes, const CallAttributes& of_calls, BranchCalls* calls) {
  for (const char* name : {"inputs", "outputs", "kernels", "calls"}) attributes.Require(name);
  calls->inputs = static_cast<std::int32_t>(attributes.Int("inputs", 0, 0, kMostArguments));
  calls->outputs = attributes.Ints("outputs", {});
  const std::vector<std::int64_t> views = attributes.Ints("views", {});
  const std::vector<std::int64_t> numbers = attributes.Ints("calls", {});
  const std::vector<std::string> kernels = Split(attributes.String("kernels", ""), ' ');
  calls->node_texts = Split(attributes.String("debug.nodes", ""), '\n');
  for (std::string& name : calls->node_texts) {
    if (!name.empty()) name += ": ";
  }
  if (std::ssize(calls->outputs) > kMostArguments)
    return ValueError("attribute 'outputs' has ", calls->outputs.size(), " elements, expected at most ",
                      kMostArguments);
  Reader reader(of_calls, calls);
  if (Status s = reader.ReadViews(views); !s.ok()) return s;
  return reader.ReadCalls(numbers, kernels);
}

}  // namespace rewire::kernel::cpu
