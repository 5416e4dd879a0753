// SPDX-License-Identifier: Apache-2.0
// The simulated CUDA driver: copies and fills.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "rewire/tests/simulated_cuda/simulator.h"

// NOLINTBEGIN(readability-identifier-naming): the driver's names

namespace rewire::simulated_cuda {
namespace {

// `kind` as in LogEntry, or 0: it follows from the addresses.
CUresult Copy(Call& call, CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream handle, char kind) {
  Simulator& simulator = call.simulator();
  Stream* stream = call.FindStream(handle);
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (bytes == 0) return CUDA_SUCCESS;
  const auto is_device = [&simulator](CUdeviceptr address) {
    return simulator.DeviceOf(address) != nullptr || simulator.IsModuleGlobal(address);
  };
  const bool to_device = is_device(to);
  const bool from_device = is_device(from);
  // Pinned memory has device addresses too; copies by them are those of memory of the host.
  const char found = to_device ? (from_device ? 'p' : 'h') : (from_device ? 'd' : 'H');
  if (kind != 0 && kind != found) {
    simulator.Violation(
        fmt::format("a copy of {} bytes from {:#x} to {:#x}: the addresses are of other memory than "
                    "the function is for",
                    bytes, from, to));
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (to == 0 || from == 0) return CUDA_ERROR_INVALID_VALUE;
  Work work;
  work.kind = found == 'H' ? 'h' : found;
  work.name = "copy";
  work.bytes = bytes;
  if (to_device) work.uses.push_back({to, bytes, true, true});
  if (from_device) work.uses.push_back({from, bytes, false, true});
  void* target = simulator.Touchable(to);
  const void* source = simulator.Touchable(from);
  // As with a real driver, memory that is not pinned is read before the call returns, and written before it
  // does.
  const bool staged = !from_device && stream->capture == nullptr && !simulator.IsPinned(from, bytes);
  const bool waits = !to_device && stream->capture == nullptr && !simulator.IsPinned(to, bytes);
  if (staged) {
    const auto* begin = static_cast<const std::byte*>(source);
    auto kept = std::make_shared<std::vector<std::byte>>(begin, begin + bytes);
    work.run = [target, kept] {
      std::memcpy(target, kept->data(), kept->size());
      return CUDA_SUCCESS;
    };
  } else {
    work.run = [target, source, bytes] {
      std::memmove(target, source, bytes);
      return CUDA_SUCCESS;
    };
  }
  const CUresult result = simulator.Enqueue(stream, std::move(work));
  if (result != CUDA_SUCCESS || !waits) return result;
  simulator.WaitForStream(call.lock(), *stream);
  return call.device()->lost;
}

template <typename T>
CUresult Fill(const char* function, CUdeviceptr to, T value, std::size_t count, CUstream handle) {
  Call call(function);
  if (call.Fails()) return call.result();
  Simulator& simulator = call.simulator();
  Stream* stream = call.FindStream(handle);
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (count == 0) return CUDA_SUCCESS;
  if (to % sizeof(T) != 0) {
    simulator.Violation(fmt::format("{}: {:#x} is not aligned to {} bytes", function, to, sizeof(T)));
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (simulator.DeviceOf(to) == nullptr && !simulator.IsPinned(to, count * sizeof(T))) {
    simulator.Violation(fmt::format("{}: {:#x} is no device memory", function, to));
    return CUDA_ERROR_INVALID_VALUE;
  }
  Work work;
  work.kind = 'm';
  work.name = "fill";
  work.bytes = count * sizeof(T);
  if (simulator.DeviceOf(to) != nullptr) work.uses.push_back({to, work.bytes, true, true});
  work.run = [target = static_cast<T*>(simulator.Touchable(to)), value, count] {
    std::fill_n(target, count, value);
    return CUDA_SUCCESS;
  };
  return simulator.Enqueue(stream, std::move(work));
}

}  // namespace

REWIRE_SIMULATED_EXPORT CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, std::size_t bytes,
                                                      CUstream stream) {
  Call call("cuMemcpyHtoDAsync");
  if (call.Fails()) return call.result();
  return Copy(call, to, reinterpret_cast<CUdeviceptr>(from), bytes, stream, 'h');
}

REWIRE_SIMULATED_EXPORT CUresult cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, std::size_t bytes,
                                                      CUstream stream) {
  Call call("cuMemcpyDtoHAsync");
  if (call.Fails()) return call.result();
  return Copy(call, reinterpret_cast<CUdeviceptr>(to), from, bytes, stream, 'd');
}

REWIRE_SIMULATED_EXPORT CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, std::size_t bytes,
                                                      CUstream stream) {
  Call call("cuMemcpyDtoDAsync");
  if (call.Fails()) return call.result();
  return Copy(call, to, from, bytes, stream, 'p');
}

REWIRE_SIMULATED_EXPORT CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, std::size_t bytes,
                                               CUstream stream) {
  Call call("cuMemcpyAsync");
  if (call.Fails()) return call.result();
  return Copy(call, to, from, bytes, stream, 0);
}

REWIRE_SIMULATED_EXPORT CUresult cuMemcpyPeerAsync(CUdeviceptr to, CUcontext to_context, CUdeviceptr from,
                                                   CUcontext from_context, std::size_t bytes,
                                                   CUstream stream) {
  Call call("cuMemcpyPeerAsync");
  if (call.Fails()) return call.result();
  const auto lies_in = [&call](CUdeviceptr address, CUcontext context) {
    const Device* device = call.simulator().DeviceOf(address);
    return context != nullptr && device == reinterpret_cast<Context*>(context)->device;
  };
  if (!lies_in(to, to_context) || !lies_in(from, from_context)) return CUDA_ERROR_INVALID_VALUE;
  return Copy(call, to, from, bytes, stream, 'p');
}

REWIRE_SIMULATED_EXPORT CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, std::size_t count,
                                                 CUstream stream) {
  return Fill("cuMemsetD8Async", to, value, count, stream);
}

REWIRE_SIMULATED_EXPORT CUresult cuMemsetD16Async(CUdeviceptr to, unsigned short value, std::size_t count,
                                                  CUstream stream) {
  return Fill("cuMemsetD16Async", to, value, count, stream);
}

REWIRE_SIMULATED_EXPORT CUresult cuMemsetD32Async(CUdeviceptr to, unsigned value, std::size_t count,
                                                  CUstream stream) {
  return Fill("cuMemsetD32Async", to, value, count, stream);
}

}  // namespace rewire::simulated_cuda

// NOLINTEND(readability-identifier-naming)
