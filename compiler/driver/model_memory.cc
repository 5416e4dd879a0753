// SPDX-License-Identifier: Apache-2.0
#include "rewire/compiler/driver/model_memory.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <unordered_map>

#include "rewire/executable_format/tensor_files/host_tensor.h"

namespace rewire::compiler {

void LeaveMessage(const ModelFile& model, Module* module) {
  const void* const message = model.proto().get();
  std::unordered_map<const std::byte*, std::uint64_t> left;  // constants may share their bytes
  for (const Constant& constant : module->constants) {
    const SharedBytes& stored = constant.stored;
    if (stored.owner.get() != message) continue;
    std::uint64_t& bytes = left[stored.view.data()];
    bytes = std::max<std::uint64_t>(bytes, stored.view.size());
  }
  std::uint64_t bytes = 0;
  for (const auto& [data, size] : left) bytes += size;
  if (left.empty() || bytes > model.proto()->ByteSizeLong() / 2) return;
  std::unordered_map<const std::byte*, SharedBytes> copies;
  for (Constant& constant : module->constants) {
    SharedBytes& stored = constant.stored;
    if (stored.owner.get() != message) continue;
    const auto [place, is_new] = copies.try_emplace(stored.view.data());
    if (is_new) place->second = CopyBytes({stored.view.data(), left[stored.view.data()]});
    stored = {place->second.view.subspan(0, stored.view.size()), place->second.owner};
  }
}

}  // namespace rewire::compiler
