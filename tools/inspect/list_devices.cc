// SPDX-License-Identifier: Apache-2.0
#include "rewire/tools/inspect/list_devices.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "rewire/kernels/contract/libraries.h"
#include "rewire/tools/io/table_text.h"
#include "rewire/tools/io/units.h"
#include "rewire/vm/devices.h"
#include "rewire/vm/loader/library_search.h"

namespace rewire::tools {
namespace {

using Json = nlohmann::ordered_json;

Json DescribeHost() {
  return {{"device", "cpu:0"},
          {"name", "this CPU"},
          {"driver", "built in"},
          {"compute_units", std::thread::hardware_concurrency()}};
}

// Tells which of NVIDIA's libraries the kernels of devices have found; empty if these kernels are not
// installed.
std::string KernelLibraries() {
  for (const std::string& directory : ModuleDirectories()) {
    const std::string path = directory + "/" + names::kDeviceLibrary;
    if (!FileExists(path)) continue;
    void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return "";
    const auto text = reinterpret_cast<const char* (*)()>(dlsym(library, "rewire_device_kernel_libraries"));
    return text != nullptr ? text() : "";
  }
  return "";
}

void AddLibrary(const char* name, Json* devices, Json* missing) {
  const Result<const DeviceApi*> opened = OpenDevice(name);
  if (!opened) {
    missing->push_back({{"device", name}, {"reason", opened.error().message()}});
    return;
  }
  const DeviceApi& api = **opened;
  std::int32_t count = 1;
  if (api.count != nullptr && api.count(api.context, &count) != REWIRE_DEVICE_OK) count = 0;
  for (std::int32_t i = 0; i < count; ++i) {
    RewireDeviceProperties is{};
    is.struct_size = sizeof(is);
    const std::string device = fmt::format("{}:{}", name, i);
    if (api.properties == nullptr || api.properties(api.context, i, &is) != REWIRE_DEVICE_OK) {
      missing->push_back({{"device", device}, {"reason", api.error(api.context)}});
      continue;
    }
    devices->push_back({{"device", device},
                        {"name", is.name},
                        {"driver", is.driver},
                        {"architecture", is.architecture},
                        {"compute_units", is.compute_units},
                        {"memory_bytes", is.memory_bytes},
                        {"largest_block", is.largest_block},
                        {"group_threads", is.group_threads},
                        {"shared_bytes", is.shared_bytes},
                        {"float16", is.has_f16 != 0},
                        {"float64", is.has_f64 != 0}});
    if (api.device_type == kDLCUDA) devices->back()["libraries"] = KernelLibraries();
  }
}

std::string Text(const Json& devices, const Json& missing) {
  std::vector<std::vector<std::string>> rows = {{"device", "name", "driver", "units", "memory"}};
  for (const Json& device : devices) {
    const bool memory = device.contains("memory_bytes");
    rows.push_back({device["device"], device["name"], device["driver"],
                    std::to_string(device["compute_units"].get<unsigned>()),
                    memory ? BytesText(device["memory_bytes"].get<std::uint64_t>()) : ""});
  }
  std::string text = TableText(rows, {3, 4});
  for (const Json& device : devices) {
    const std::string libraries = device.value("libraries", "");
    if (!libraries.empty()) text += fmt::format("\n{}: {}\n", device["device"].get<std::string>(), libraries);
  }
  for (const Json& each : missing) {
    text += fmt::format("\n{}: {}\n", each["device"].get<std::string>(), each["reason"].get<std::string>());
  }
  return text;
}

}  // namespace

std::string DeviceList(bool json) {
  Json devices = Json::array({DescribeHost()});
  Json missing = Json::array();
  for (const char* name : {"opencl", "cuda"}) AddLibrary(name, &devices, &missing);
  return json ? Json{{"devices", devices}, {"missing", missing}}.dump(2) + "\n" : Text(devices, missing);
}

}  // namespace rewire::tools
