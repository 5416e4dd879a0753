// SPDX-License-Identifier: Apache-2.0
#include "rewire/vm/link/log_link.h"

#include <cstdlib>
#include <string>

#include "rewire/base/array.h"
#include "rewire/base/message.h"
#include "rewire/base/standalone/private_folder.h"

namespace rewire {
namespace {

void Write(const LogSink& log, const std::string& message) {
  log.write(log.context, message.data(), message.size());
}

// Libraries of devices, which have no log, pass over a folder that they cannot trust.
void LogDeviceCache(const LogSink& log) {
  const char* path = std::getenv("REWIRE_DEVICE_CACHE");
  if (path == nullptr || *path == 0) return;
  const PrivateFolder folder(path);
  if (folder.is_open()) return;
  Write(log,
        Format("REWIRE_DEVICE_CACHE: no compiled code is kept in '{}', because {}", path, folder.reason()));
}

}  // namespace

void LogLink(const LinkedCode& code, const KernelSet& kernels) {
  if (code.log.write == nullptr) return;
  const auto& sources = kernels.sources();
  Array<std::uint32_t> found;
  found.resize(sources.size(), 0);
  for (const KernelImport& import : code.module().kernels) {
    std::size_t i = sources.size();
    while (i > 0 && !sources[i - 1]->Find(import.name).function) --i;
    if (i > 0) ++found[i - 1];
  }
  for (std::size_t i = 0; i < sources.size(); ++i) {
    if (found[i] == 0) continue;
    Write(code.log, Format("{} kernels from {}", found[i], sources[i]->Description()));
  }
  const DeviceApi* last = nullptr;
  for (const LinkedDevice& device : code.devices) {
    if (device.api == nullptr || device.api == last) continue;
    last = device.api;
    Write(code.log, Format("device {} {}", last->name, device.device.device_id));
  }
  if (last != nullptr) LogDeviceCache(code.log);
}

}  // namespace rewire
