// SPDX-License-Identifier: Apache-2.0
#include "rewire/vm/loader/load_library.h"

#include <dlfcn.h>
#include <link.h>
#include <sys/stat.h>

#include <mutex>
#include <utility>

#include "rewire/base/array.h"
#include "rewire/base/mapped_file.h"
#include "rewire/vm/loader/classic_library.h"
#include "rewire/vm/loader/elf_file.h"
#include "rewire/vm/loader/ffi_library.h"
#include "rewire/vm/loader/ffi_runtime.h"
#include "rewire/vm/loader/library_abi.h"
#include "rewire/vm/loader/library_search.h"
#include "rewire/vm/loader/object_archive.h"

namespace rewire {
namespace {

using Source = std::shared_ptr<const KernelSource>;

struct LoadedLibrary {
  std::string path;
  dev_t device;
  ino_t inode;
  std::weak_ptr<const KernelSource> source;
};

// All libraries of the process. Never destroyed: sets of static storage may go after it.
struct Registry {
  Array<LoadedLibrary> libraries;
};
Registry& TheRegistry() {
  static auto* registry = new Registry;
  return *registry;
}

// SystemPath tells what dlopen finds for a bare name. Only loading it shows that, so a runtime must exist
// before.
std::string SystemPath(const std::string& name, std::string* reason) {
  (void)EnsureFfiRuntime();  // most libraries do without; those that do not say so below
  void* handle = dlopen(name.c_str(), RTLD_LAZY | RTLD_LOCAL);
  if (handle == nullptr) {
    *reason = dlerror();
    return {};
  }
  const link_map* map = nullptr;
  std::string path;
  if (dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && map != nullptr) path = map->l_name;
  dlclose(handle);
  return path;
}

Result<std::string> FindLibrary(const std::string& name, Array<std::string> directories) {
  if (name.find('/') != std::string::npos) {
    if (FileExists(name)) return CanonicalPath(name);
    return Fail(StatusCode::kNotFound, "kernel library '{}': no such file", name);
  }
  const Array<std::string> own = ModuleDirectories();
  directories.append(own.begin(), own.end());
  std::string tried;
  const std::string found = FindFile(directories, name, &tried);
  if (!found.empty()) return CanonicalPath(found);
  std::string reason;
  const std::string path = name.empty() ? std::string() : SystemPath(name, &reason);
  if (!path.empty()) return CanonicalPath(path);
  return Fail(StatusCode::kNotFound,
              "kernel library '{}' was not found; tried {}, and the system's libraries ({})", name, tried,
              reason);
}

// TVM writes an EmptyLibrary for a model that calls no kernel: it exports nothing. Its code is not loaded.
class EmptyLibrary : public KernelSource {
 public:
  explicit EmptyLibrary(const std::string& path) : name_(path.substr(path.rfind('/') + 1)) {}

  Found Find(const std::string& /*name*/) const override { return {}; }
  Array<std::string> Names() const override { return {}; }
  std::string Description() const override { return Format("{} (exports nothing)", name_); }

 private:
  std::string name_;
};

Result<Source> LoadByAbi(const std::string& path) {
  Result<SharedBytes> bytes = MapFile(path);
  if (!bytes) return Forward(bytes);
  if (IsArchive(bytes->view)) return RefuseArchive(bytes->view);
  const Result<ElfFile> elf = ElfFile::Parse(*std::move(bytes));
  if (!elf) return Forward(elf);
  if (elf->defined().empty()) return Source(std::make_shared<EmptyLibrary>(path));
  switch (FindAbi(*elf)) {
    case LibraryAbi::kTvmFfi:
      return FfiLibrary::Load(path, *elf);
    case LibraryAbi::kTvmFfi021:
      return Fail(StatusCode::kUnsupported,
                  "it speaks the tvm-ffi ABI of TVM 0.21 (it has __tvm_ffi_library_ctx), whose type numbers "
                  "differ from all later ones; build it with TVM 0.22 or later");
    case LibraryAbi::kTvmClassic:
      return ClassicLibrary::Load(path, *elf);
    case LibraryAbi::kUnmarked:
      return ClassicLibrary::Load(path, *elf, "classic TVM ABI, for want of any mark");
    case LibraryAbi::kNone:
      break;
  }
  return Fail(
      StatusCode::kUnsupported,
      "it exports no kernels: neither __rewire_kernel_table, nor a function __tvm_ffi_<name>, nor any other "
      "function whose name does not begin with an underscore");
}

}  // namespace

std::recursive_mutex& LoadingMutex() {
  static auto* mutex = new std::recursive_mutex;
  return *mutex;
}

Result<Source> LoadKernelLibrary(const std::string& name, const Array<std::string>& directories) {
  const Result<std::string> path = FindLibrary(name, directories);
  if (!path) return Forward(path);
  const std::string context = Format("kernel library '{}'", *path);
  struct stat status {};
  if (stat(path->c_str(), &status) != 0) return Fail(StatusCode::kNotFound, "{}: no such file", context);

  Registry& registry = TheRegistry();
  const std::lock_guard<std::recursive_mutex> lock(LoadingMutex());
  Array<LoadedLibrary>& libraries = registry.libraries;
  for (std::size_t i = 0; i < libraries.size();) {
    const LoadedLibrary& library = libraries[i];
    Source source = library.source.lock();
    if (source == nullptr) {
      libraries[i] = std::move(libraries.back());
      libraries.pop_back();
      continue;
    }
    if (library.device == status.st_dev && library.inode == status.st_ino) return source;
    if (library.path == *path) {
      // dlopen would give the file's former content again.
      return Fail(StatusCode::kBusy,
                  "{}: the file was replaced while its former content is loaded; release the kernel sets and "
                  "programs that use it first",
                  context);
    }
    ++i;
  }
  Result<Source> source = LoadByAbi(*path);
  if (!source) return Forward(source, context);
  libraries.push_back({*path, status.st_dev, status.st_ino, *source});
  return source;
}

}  // namespace rewire
