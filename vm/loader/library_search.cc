// SPDX-License-Identifier: Apache-2.0
#include "rewire/vm/loader/library_search.h"

#include <dlfcn.h>
#include <sys/stat.h>

#include <cstdlib>
#include <memory>
#include <string_view>

#include "rewire/base/array.h"
#include "rewire/base/message.h"

namespace rewire {
namespace {

// The directory of the shared library or program that this function is in.
std::string OwnDirectory() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&OwnDirectory), &info) == 0 || info.dli_fname == nullptr)
    return {};
  // For a program it is what the program was called as, perhaps a bare name.
  const bool is_program = std::string_view(info.dli_fname).find('/') == std::string_view::npos;
  const std::string path = CanonicalPath(is_program ? "/proc/self/exe" : info.dli_fname);
  return path.substr(0, path.rfind('/'));
}

}  // namespace

Array<std::string> ModuleDirectories() {
  Array<std::string> directories;
  if (const char* list = std::getenv("REWIRE_LIBRARY_PATH"); list != nullptr) {
    for (std::string_view rest = list; !rest.empty();) {
      const std::string_view directory = rest.substr(0, rest.find(':'));
      if (!directory.empty()) directories.emplace_back(directory);
      rest.remove_prefix(directory.size() == rest.size() ? rest.size() : directory.size() + 1);
    }
  }
  const std::string own = OwnDirectory();
  directories.push_back(Format("{}/rewire", own));
  directories.push_back(Format("{}{}", own, "/../" REWIRE_LIBDIR "/rewire"));
  return directories;
}

bool FileExists(const std::string& path) {
  struct stat status {};
  return stat(path.c_str(), &status) == 0;
}

std::string FindFile(const Array<std::string>& directories, const std::string& name, std::string* tried) {
  for (const std::string& directory : directories) {
    std::string path = Format("{}/{}", directory, name);
    if (FileExists(path)) return path;
    tried->append(tried->empty() ? "" : ", ").append(path);
  }
  return {};
}

std::string CanonicalPath(const std::string& path) {
  const std::unique_ptr<char, void (*)(void*)> resolved(realpath(path.c_str(), nullptr), &std::free);
  return resolved != nullptr ? std::string(resolved.get()) : path;
}

}  // namespace rewire
