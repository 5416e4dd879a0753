// SPDX-License-Identifier: Apache-2.0
#include "rewire/onnxruntime_api/sessions/model.h"

#include <malloc.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <optional>

#include "rewire/base/files/file_identity.h"
#include "rewire/base/mapped_file.h"
#include "rewire/compiler/compiler.h"
#include "rewire/onnxruntime_api/sessions/model_options.h"
#include "rewire/onnxruntime_api/sessions/model_text.h"
#include "rewire/onnxruntime_api/status.h"

namespace rewire::onnxruntime_api {
namespace {

constexpr char kExecutableStart[] = "\x89RWX";

bool IsExecutable(Span<const std::byte> bytes) {
  return bytes.size() >= 4 && std::memcmp(bytes.data(), kExecutableStart, 4) == 0;
}

OrtStatus* Missing(const std::string& path, const std::string& why) {
  return MakeStatus(ORT_NO_SUCHFILE,
                    "Load model from " + path + " failed:Load model " + path + " failed. " + why);
}

OrtStatus* Cancelled() {
  return MakeStatus(ORT_MODEL_LOAD_CANCELED, "Model loading canceled due to user request.");
}

// Nodes that cannot be compiled, with ONNX Runtime's code for such a model.
OrtStatus* FromUnsupported(const Error& error, const std::vector<UnsupportedNode>& nodes) {
  if (nodes.empty()) return FromError(error);
  std::string text = error.message();
  bool own_domain = true;
  for (const UnsupportedNode& node : nodes) {
    text += "\n  " + node.op_type + " '" + node.node + "': " + node.reason;
    own_domain =
        own_domain && (node.domain.empty() || node.domain == "ai.onnx" || node.domain == "ai.onnx.ml");
  }
  return MakeStatus(own_domain ? ORT_INVALID_GRAPH : ORT_FAIL, std::move(text));
}

OrtStatus* Finish(const Executable& executable, LinkOptions link, const ModelText& text,
                  const SessionLimits& limits, Model::MakeOverriding make, OrtErrorCode not_linked,
                  std::shared_ptr<const Model>* model) {
  const Result<Program> program = Program::Link(executable, std::move(link));
  if (!program) return FromError(program.error(), not_linked);
  const Result<std::uint32_t> function = program->FindFunction({});
  if (!function) return FromError(function.error(), ORT_INVALID_GRAPH);
  Result<Ports> ports = ReadPorts(*program, *function, text);
  if (!ports) return FromError(ports.error());
  *model = std::make_shared<const Model>(*program, *function, *std::move(ports), limits, std::move(make));
  return nullptr;
}

Result<Compilation> CompileModelBytes(Span<const std::byte> bytes, const std::string& path,
                                      const OrtSessionOptions& options, const CompileOptions& compile,
                                      std::vector<UnsupportedNode>* unsupported) {
  if (!path.empty()) return Compile(path, compile, unsupported);
  const auto configured = options.config.find("session.model_external_initializers_file_folder_path");
  const std::string folder = configured == options.config.end() ? "" : configured->second;
  return CompileBytes(bytes, folder, "model", compile, unsupported);
}

std::string CompiledText(const std::string& path, const CompileReport& report) {
  std::string text = path.empty() ? "a model of memory" : "the model '" + path + "'";
  text += report.from_cache ? " is in the cache of compiled models" : " is compiled: ";
  if (!report.from_cache)
    text += std::to_string(report.model_nodes) + " nodes became " + std::to_string(report.kernel_calls) +
            " calls of kernels";
  return text;
}

OrtStatus* CompileText(const Logger& logger, Span<const std::byte> bytes, const std::string& path,
                       const OrtSessionOptions& options, const CompileOptions& compile,
                       std::optional<Compilation>* out) {
  std::vector<UnsupportedNode> unsupported;
  Result<Compilation> compiled = CompileModelBytes(bytes, path, options, compile, &unsupported);
  if (!compiled) return FromUnsupported(compiled.error(), unsupported);
  if (const std::string& problem = compiled->report.cache_problem; !problem.empty())
    logger.Write(ORT_LOGGING_LEVEL_WARNING, "cache", problem);
  logger.Write(ORT_LOGGING_LEVEL_INFO, "compile", CompiledText(path, compiled->report));
  if (options.cancelled->load()) return Cancelled();
  *out = *std::move(compiled);
  return nullptr;
}

// Memory that compiling has freed lies between the weights that stay, so the allocator would keep it.
void ReturnFreedMemory() {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}

// `path` is empty for bytes of the host's, which may change after the return.
OrtStatus* Make(const OrtEnv& env, Span<const std::byte> bytes, const std::string& path,
                const OrtSessionOptions& options, const std::set<std::string>& overridden,
                std::shared_ptr<const Model>* model);

// Returns a function that makes the model once more when a run gives initializers. Bytes of the host's are
// copied, which may change after the session is made.
Model::MakeOverriding OverridingOf(Span<const std::byte> bytes, const std::string& path,
                                   const OrtSessionOptions& options) {
  std::string copy;
  if (path.empty()) copy.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  OrtSessionOptions kept = options;
  kept.optimized_path.clear();
  kept.initializers = options.initializers.Kept();
  return [copy = std::move(copy), path, kept = std::move(kept)](const std::set<std::string>& names,
                                                                std::shared_ptr<const Model>* model) {
    const OrtEnv* const env = CurrentEnv();
    if (env == nullptr) return MakeStatus(ORT_FAIL, "the environment is released");
    if (path.empty())
      return Make(*env, {reinterpret_cast<const std::byte*>(copy.data()), copy.size()}, path, kept, names,
                  model);
    const Result<SharedBytes> file = MapFile(path);
    if (!file) return Missing(path, file.error().message());
    return Make(*env, file->view, path, kept, names, model);
  };
}

OrtStatus* Make(const OrtEnv& env, Span<const std::byte> bytes, const std::string& path,
                const OrtSessionOptions& options, const std::set<std::string>& overridden,
                std::shared_ptr<const Model>* model) {
  if (options.cancelled->load()) return Cancelled();
  const Result<SessionLimits> limits = ReadLimits(options.config);
  if (!limits) return FromError(limits.error());
  const Logger logger = LoggerOf(env, options);
  const LinkingLogger linking(logger);
  LinkOptions link = LinkOptionsFor(env, options, *limits);
  // Linking makes the kernels of custom operators, which may fail.
  const OrtErrorCode not_linked = options.custom_ops.empty() ? ORT_FAIL : ORT_RUNTIME_EXCEPTION;
  if (IsExecutable(bytes)) {
    OpenOptions open;
    open.copy = path.empty();
    const Result<Executable> executable =
        path.empty() ? Executable::FromBytes({bytes, nullptr}, open) : Executable::Open(path, open);
    if (!executable) return FromError(executable.error());
    return Finish(*executable, std::move(link), {}, *limits, {}, not_linked, model);
  }
  const ModelText text = ReadModelText(bytes);
  Result<CompileOptions> compile = CompileOptionsFor(text, options, *limits, overridden);
  if (!compile) return FromError(compile.error());
  // A file that is written holds all weights.
  if (!options.optimized_path.empty()) compile->parameters.clear();
  std::optional<Compilation> compiled;
  OrtStatus* const failed = CompileText(logger, bytes, path, options, *compile, &compiled);
  if (failed != nullptr) return failed;
  if (!options.optimized_path.empty()) {
    const Status written = WriteExecutable(compiled->executable, options.optimized_path);
    if (!written) return FromError(written.error(), ORT_FAIL);
  }
  if (compiled->parameters.size() != 0) link.parameters = {compiled->parameters};
  const Executable executable = compiled->executable;
  const bool from_cache = compiled->report.from_cache;
  compiled.reset();  // what linking does not need goes before it
  Model::MakeOverriding make;
  if (!text.overridable.empty() && overridden.empty()) make = OverridingOf(bytes, path, options);
  OrtStatus* const finished =
      Finish(executable, std::move(link), text, *limits, std::move(make), not_linked, model);
  if (!from_cache) ReturnFreedMemory();
  return finished;
}

// Models that some session uses, by file and options. Never destroyed, as the environment.
struct Opened {
  std::mutex mutex;
  std::weak_ptr<const Model> model;
};
struct OpenedFiles {
  std::mutex mutex;
  std::map<std::string, std::shared_ptr<Opened>> entries;
};

std::shared_ptr<Opened> EntryOf(const std::string& key) {
  static OpenedFiles* const files = new OpenedFiles;
  const std::lock_guard lock(files->mutex);
  // An entry that nobody waits for and whose model is gone has no use.
  for (auto at = files->entries.begin(); at != files->entries.end();) {
    at =
        at->second.use_count() == 1 && at->second->model.expired() ? files->entries.erase(at) : std::next(at);
  }
  std::shared_ptr<Opened>& entry = files->entries[key];
  if (entry == nullptr) entry = std::make_shared<Opened>();
  return entry;
}

std::string KeyOf(const FileIdentity& file, const OrtEnv& env, const OrtSessionOptions& options) {
  std::string key;
  for (const std::uint64_t part : {file.device, file.inode, file.size}) key += std::to_string(part) + ":";
  for (const std::int64_t part : {file.modified, file.changed}) key += std::to_string(part) + ":";
  key += "|" + std::to_string(options.own_threads ? options.threads : env.threads);
  for (const auto* sizes : {&options.sizes_by_name, &options.sizes_by_denotation}) {
    key += "|";
    for (const auto& [name, size] : *sizes)
      key += std::to_string(name.size()) + ":" + name + "=" + std::to_string(size) + ";";
  }
  // Limits and the host's allocator belong to the program and its VMs.
  for (const auto& [name, value] : options.config) {
    const bool counts = name.rfind("session.rewire_", 0) == 0 && name != kCacheEntry;
    if (counts) key += "|" + name + "=" + std::to_string(value.size()) + ":" + value;
  }
  const OrtAllocator* const allocator = AllocatorFor(env, options);
  if (allocator != nullptr) key += "|" + std::to_string(reinterpret_cast<std::uintptr_t>(allocator));
  return key;
}

}  // namespace

OrtStatus* Model::Overriding(const std::set<std::string>& names, std::shared_ptr<const Model>* model) const {
  const std::lock_guard lock(overriding_mutex_);
  std::shared_ptr<const Model>& kept = overriding_[names];
  OrtStatus* const failed = kept == nullptr ? make_overriding_(names, &kept) : nullptr;
  *model = kept;
  return failed;
}

std::unique_ptr<VirtualMachine> Model::TakeVm() const {
  {
    const std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      std::unique_ptr<VirtualMachine> vm = std::move(idle_.back());
      idle_.pop_back();
      return vm;
    }
  }
  return std::make_unique<VirtualMachine>(program_, limits_.run);
}

void Model::GiveBack(std::unique_ptr<VirtualMachine> vm) const {
  const std::lock_guard lock(mutex_);
  idle_.push_back(std::move(vm));
}

OrtStatus* OpenModel(const OrtEnv& env, const std::string& path, const OrtSessionOptions& options,
                     std::shared_ptr<const Model>* model) {
  const std::optional<FileIdentity> identity = IdentityOf(path);
  if (!identity) return Missing(path, errno == ENOENT ? "File doesn't exist" : std::strerror(errno));
  const Result<SharedBytes> file = MapFile(path);
  if (!file) return Missing(path, file.error().message());
  // The host's own initializers and operators belong to the one session, and a file to write is written each
  // time.
  if (!options.initializers.empty() || !options.custom_ops.empty() || !options.optimized_path.empty())
    return Make(env, file->view, path, options, {}, model);
  const std::shared_ptr<Opened> entry = EntryOf(KeyOf(*identity, env, options));
  const std::lock_guard lock(entry->mutex);  // others that open the same file wait for this one
  *model = entry->model.lock();
  if (*model != nullptr) return nullptr;
  OrtStatus* const failed = Make(env, file->view, path, options, {}, model);
  if (failed == nullptr) entry->model = *model;
  return failed;
}

OrtStatus* OpenModel(const OrtEnv& env, Span<const std::byte> bytes, const OrtSessionOptions& options,
                     std::shared_ptr<const Model>* model) {
  return Make(env, bytes, {}, options, {}, model);
}

OrtStatus* CompileModelOnly(const OrtEnv& env, const std::string& path, Span<const std::byte> bytes,
                            const OrtSessionOptions& options, std::optional<Executable>* executable) {
  SharedBytes model{bytes, nullptr};
  if (!path.empty()) {
    const Result<SharedBytes> file = MapFile(path);
    if (!file) return Missing(path, file.error().message());
    model = *file;
  }
  if (IsExecutable(model.view)) return InvalidArgument("the model is compiled already");
  const Result<SessionLimits> limits = ReadLimits(options.config);
  if (!limits) return FromError(limits.error());
  Result<CompileOptions> compile = CompileOptionsFor(ReadModelText(model.view), options, *limits, {});
  if (!compile) return FromError(compile.error());
  compile->compress = true;
  compile->cache.clear();
  compile->parameters.clear();  // the executable holds all weights
  std::optional<Compilation> compiled;
  OrtStatus* const failed =
      CompileText(LoggerOf(env, options), model.view, path, options, *compile, &compiled);
  if (failed == nullptr) *executable = std::move(compiled->executable);
  return failed;
}

}  // namespace rewire::onnxruntime_api
