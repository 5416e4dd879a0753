// SPDX-License-Identifier: Apache-2.0
#include "rewire/kernels/cuda_libraries/session.h"

#include <algorithm>
#include <vector>

#include "rewire/kernels/cuda_libraries/context.h"

namespace rewire::kernel::cuda_libraries {

Handles::~Handles() {
  if (cublas_ == nullptr && cudnn_ == nullptr) return;
  const EnteredContext context(device_id_);
  if (cublas_ != nullptr) Cublas()->cublasLtDestroy(cublas_);
  if (cudnn_ != nullptr) Cudnn()->cudnnDestroy(cudnn_);
}

void* Handles::cublas() {
  if (cublas_ != nullptr || no_cublas_ || IsRecorded(stream_)) return cublas_;
  const CublasFunctions* library = Cublas();
  if (library == nullptr || library->cublasLtCreate(&cublas_) != kCublasSuccess) {
    cublas_ = nullptr;
    no_cublas_ = true;
  }
  return cublas_;
}

void* Handles::cudnn() {
  if (cudnn_ != nullptr || no_cudnn_ || IsRecorded(stream_)) return cudnn_;
  const CudnnFunctions* library = Cudnn();
  if (library == nullptr || library->cudnnCreate(&cudnn_) != kCudnnSuccess) {
    cudnn_ = nullptr;
  } else if (library->cudnnSetStream(cudnn_, stream_) != kCudnnSuccess) {
    library->cudnnDestroy(cudnn_);
    cudnn_ = nullptr;
  }
  no_cudnn_ = cudnn_ == nullptr;
  return cudnn_;
}

std::shared_ptr<Handles> HandlesOf(std::int32_t device_id, void* stream) {
  struct Table {
    std::mutex mutex;
    std::vector<std::weak_ptr<Handles>> all;
  };
  // Never destroyed: VMs may be destroyed later than static objects.
  static auto* const kTable = new Table();
  const std::lock_guard<std::mutex> lock(kTable->mutex);
  std::vector<std::weak_ptr<Handles>>& all = kTable->all;
  all.erase(std::remove_if(all.begin(), all.end(), [](const auto& each) { return each.expired(); }),
            all.end());
  for (const std::weak_ptr<Handles>& each : all) {
    std::shared_ptr<Handles> handles = each.lock();
    if (handles != nullptr && handles->Serves(device_id, stream)) return handles;
  }
  auto made = std::make_shared<Handles>(device_id, stream);
  all.push_back(made);
  return made;
}

}  // namespace rewire::kernel::cuda_libraries
