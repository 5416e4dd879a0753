// SPDX-License-Identifier: Apache-2.0
#include "rewire/serve/client/remote_program.h"

#include <algorithm>

#include "rewire/executable_format/types.h"
#include "rewire/serve/client/client_regions.h"
#include "rewire/serve/client/remote_model.h"

namespace rewire {

Result<RemoteProgram> RemoteProgram::TryConnect(const std::string& url, RemoteOptions options) {
  serve::Patience patience;
  patience.until = std::chrono::steady_clock::now() + options.connect_time;
  const Result<serve::RemoteModel> model = serve::ConnectRemoteModel(url, patience);
  if (!model) return Forward(model);
  options.link.kernels = model->kernels;
  if (model->regions != nullptr) options.link.allocator = model->regions->allocator();
  Result<Program> program = Program::Link(model->executable, std::move(options.link));
  if (!program) return Forward(program, url);
  return RemoteProgram(*std::move(program), model->regions);
}

Result<Tensor> RemoteProgram::TryMakeTensor(DLDataType dtype, Span<const std::int64_t> shape) const {
  if (regions_ == nullptr) {
    return Fail(StatusCode::kInvalidArgument,
                "no memory is shared with the server: that takes a URL with ?shared_memory at its end");
  }
  const std::optional<std::uint64_t> bytes = TensorBytes(dtype, shape);
  if (!bytes)
    return Fail(StatusCode::kInvalidArgument,
                "no tensor has this shape: it has a negative size, or too many bytes");
  constexpr std::size_t kAlignment = 64;
  const Allocator allocator = regions_->allocator();
  const auto size = static_cast<std::size_t>(std::max<std::uint64_t>(*bytes, 1));
  void* const memory = allocator.allocate(allocator.context, size, kAlignment);
  if (memory == nullptr)
    return Fail(StatusCode::kOutOfMemory, "there is no shared memory for {} bytes", *bytes);
  const std::shared_ptr<const void> owner(memory, [allocator, size](void* last) {
    allocator.deallocate(allocator.context, last, size, kAlignment);
  });
  return Tensor::Wrap(TensorView(memory, dtype, shape), owner);
}

}  // namespace rewire
