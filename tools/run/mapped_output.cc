// SPDX-License-Identifier: Apache-2.0
#include "rewire/tools/run/mapped_output.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "rewire/executable_format/tensor_files/host_tensor.h"
#include "rewire/executable_format/tensor_files/npy.h"
#include "rewire/tools/io/name_lookup.h"
#include "rewire/tools/io/tensor_io.h"
#include "rewire/tools/run/value_spec.h"

namespace rewire::tools {
namespace {

// Room for the header of any ordinary shape, and for the strictest alignment of a kernel library but few.
constexpr std::size_t kHeaderBytes = 128;

}  // namespace

void* MappedOutput::Allocate(void* self, std::uint64_t bytes, std::uint64_t alignment) {
  auto* output = static_cast<MappedOutput*>(self);
  if (alignment > kHeaderBytes) return nullptr;
  if (output->memory_ == nullptr || output->bytes_ != bytes) {
    output->memory_ = nullptr;
    if (!output->file_) {
      Result<AtomicFile> file = AtomicFile::Create(output->path_);
      if (file) {
        output->file_.emplace(*std::move(file));
      } else {
        output->status_ = Forward(file);
        return nullptr;
      }
    }
    const Result<std::byte*> memory = output->file_->Map(kHeaderBytes + bytes);
    if (!memory) {
      output->status_ = Forward(memory);
      return nullptr;
    }
    output->memory_ = *memory;
    output->bytes_ = bytes;
  }
  return output->memory_ + kHeaderBytes;
}

bool MappedOutput::Holds(const HostTensor& tensor) const {
  return memory_ != nullptr && tensor.bytes.view.size() == bytes_ &&
         tensor.bytes.view.data() == memory_ + kHeaderBytes;
}

Status MappedOutput::Commit(const HostTensor& tensor) {
  const Result<std::vector<std::byte>> header = NpyPrefix(tensor.dtype, tensor.shape, kHeaderBytes);
  if (!header) return Forward(header, path_);
  // A shape of very many dimensions.
  if (header->size() != kHeaderBytes) return WriteNpy(path_, tensor);
  std::memcpy(memory_, header->data(), kHeaderBytes);
  return file_->Commit();
}

MappedOutputs MapOutputs(VirtualMachine* vm, std::uint32_t function,
                         const std::vector<std::string>& bindings) {
  const Function& target = vm->program().executable().module().functions[function];
  MappedOutputs mapped;
  for (const std::string& text : bindings) {
    // A wrong binding is reported when it is carried out.
    const Result<FileBinding> binding = ParseFileBinding(text);
    if (!binding || binding->target.empty() || !binding->path.ends_with(".npy")) continue;
    std::error_code unknown;
    const std::filesystem::file_status status = std::filesystem::status(binding->path, unknown);
    if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) continue;
    const Result<std::uint32_t> leaf = FindOutput(target, binding->target);
    if (!leaf) continue;
    const bool taken = std::any_of(mapped.begin(), mapped.end(), [&](const auto& other) {
      return other->leaf() == *leaf || other->path() == binding->path;
    });
    if (taken) continue;
    auto output = std::make_unique<MappedOutput>(*leaf, binding->path);
    if (vm->TrySetOutput(OutputHandle{function, *leaf}, output->allocator())) {
      mapped.push_back(std::move(output));
    }
  }
  return mapped;
}

}  // namespace rewire::tools
