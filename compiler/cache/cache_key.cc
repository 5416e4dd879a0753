// SPDX-License-Identifier: Apache-2.0
#include "rewire/compiler/cache/cache_key.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include "rewire/base/files/file_identity.h"
#include "rewire/vm/kernel/amx.h"

namespace rewire::compiler {
namespace {

// Writes values one after the other, so that different ones never give the same text.
class Text {
 public:
  void Add(const std::string& text) { text_ += fmt::format("{}:{};", text.size(), text); }
  void Add(const char* text) { Add(std::string(text)); }
  void Add(bool flag) { text_ += flag ? "1;" : "0;"; }
  void Add(std::int64_t number) { text_ += fmt::format("{};", number); }
  void Add(std::uint64_t number) { text_ += fmt::format("{};", number); }
  void Add(double number) { text_ += fmt::format("{:a};", number); }
  void Add(std::chrono::nanoseconds time) { Add(std::int64_t{time.count()}); }
  template <typename E>
  requires std::is_enum_v<E>
  void Add(E value) { Add(static_cast<std::int64_t>(value)); }
  template <typename T>
  void Add(const std::optional<T>& value) {
    Add(value.has_value());
    if (value) Add(*value);
  }
  template <typename A, typename B>
  void Add(const std::pair<A, B>& pair) {
    Add(pair.first);
    Add(pair.second);
  }
  template <typename... T>
  void Add(const std::variant<T...>& value) {
    Add(std::uint64_t{value.index()});
    std::visit([&](const auto& inside) { Add(inside); }, value);
  }
  template <typename List>
  requires requires(const List& list) {
    list.begin();
    list.size();
  }
  void Add(const List& list) {
    Add(std::uint64_t{list.size()});
    for (const auto& element : list) Add(element);
  }
  // Naming each member here lets the build fail when one is added.
  void Add(const OperatorSchema::Input& input) {
    const auto& [name, dtypes, shape, optional, variadic] = input;
    AddAll(name, dtypes, shape, optional, variadic);
  }
  void Add(const OperatorSchema::Output& output) {
    const auto& [name, dtype, shape, shape_function, variadic] = output;
    AddAll(name, dtype, shape, shape_function, variadic);
  }
  void Add(const OperatorSchema::Attribute& attribute) {
    const auto& [name, value, required] = attribute;
    AddAll(name, value, required);
  }
  void Add(const OperatorSchema& schema) {
    const auto& [domain, name, inputs, outputs, attributes, attributes_as, returns, kernel] = schema;
    AddAll(domain, name, inputs, outputs, attributes, attributes_as, returns, kernel);
  }
  void Add(const CompileLimits& limits) {
    const auto& [work, fold_bytes, fold_node_time, fold_time] = limits;
    AddAll(work, fold_bytes, fold_node_time, fold_time);
  }
  template <typename... T>
  void AddAll(const T&... values) {
    (Add(values), ...);
  }

  std::string Take() { return std::move(text_); }

 private:
  std::string text_;
};

// The file that holds the compiler's code: a library or the program.
std::string OwnFile() {
  Dl_info info;
  const bool found = dladdr(reinterpret_cast<const void*>(&BuildText), &info) != 0 &&
                     info.dli_fname != nullptr && IdentityOf(info.dli_fname);
  return found ? info.dli_fname : "/proc/self/exe";
}

}  // namespace

bool IsCacheable(const CompileOptions& options) {
  return options.parameters.empty() && !options.all_parameters && options.calibration.data.empty() &&
         options.precision != Precision::kInt8 && !options.dump && options.initializers.size() == 0 &&
         options.external_files.empty();
}

bool IsForCache(const CompileOptions& options) { return !options.cache.empty() && IsCacheable(options); }

std::string OptionsText(const CompileOptions& options) {
  // Naming each member here lets the build fail when one is added. Those that are not used below change
  // nothing in the executable, or are not cacheable.
  const auto& [dims, max_dims, disabled_passes, operators, parameters, all_parameters, initializers,
               external_files, overridden, external_folders, limits, strict, device, least_device_work,
               precision, calibration, parallel, cpu, shards, stages, rank, shard_goal, compress,
               bound_memory, check_passes, cache, dump, progress] = options;
  Text text;
  text.AddAll(dims, max_dims, disabled_passes, operators, overridden, external_folders, limits, strict,
              device, least_device_work, precision, parallel, cpu, shards, stages, rank, shard_goal,
              compress);
  return text.Take();
}

std::string BuildText() {
  // Builds of one version differ, so the compiler's own file counts.
  static const std::string kOwn = [] {
    const std::optional<FileIdentity> identity = IdentityOf(OwnFile());
    return identity ? IdentityText(*identity) : "none";
  }();
  Text text;
  text.AddAll(kOwn, CpuHasAmx());
  return text.Take();
}

std::string CacheKey(const ContentHash& hash, const std::string& model, const CompileOptions& options) {
  return fmt::format("2 model {} options {} build {}", model, hash.TextOf(OptionsText(options)),
                     hash.TextOf(BuildText()));
}

}  // namespace rewire::compiler
