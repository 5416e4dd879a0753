// SPDX-License-Identifier: Apache-2.0
#include "rewire/tests/fuzz/codecs/codec_host.h"

#include <sys/mman.h>
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>

#include "rewire/kernels/image/decoders.h"
#include "rewire/tests/fuzz/codecs/process_memory.h"
#include "rewire/vm/kernel/kernel.h"

namespace rewire::test {
namespace {

// This thread's time on a processor, in milliseconds: others may have it meanwhile.
double Now() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) * 1e-6;
}

// One region of address space, of which a call takes blocks in order. Untouched pages cost nothing.
struct Host {
  std::uint8_t* region = nullptr;
  std::int64_t reserved = 0, limit = 0, taken = 0;
  std::int64_t questions_left = 0;
  bool told_to_stop = false;
  double longest_gap = 0;
  double gap_began = 0;
  RewireFFITensorObject tensor{};
  std::int64_t shape[3] = {}, strides[3] = {};
};
Host host;

void EndGap() {
  const double now = Now();
  host.longest_gap = std::max(host.longest_gap, now - host.gap_began);
  host.gap_began = now;
}

void* Take(std::uint64_t bytes) {
  if (bytes > static_cast<std::uint64_t>(host.limit - host.taken)) return nullptr;
  void* memory = host.region + host.taken;
  host.taken = std::min(host.limit, host.taken + static_cast<std::int64_t>((bytes + 63) / 64 * 64));
  return memory;
}

int Cancelled() {
  EndGap();
  if (host.questions_left-- > 0) return 0;
  host.told_to_stop = true;
  return 1;
}

int NewTensor(DLDataType dtype, std::int32_t rank, const std::int64_t* shape, DLDevice device,
              RewireFFIAny* result) {
  const auto bytes = static_cast<unsigned __int128>(shape[0]) * static_cast<unsigned __int128>(shape[1]) *
                     static_cast<unsigned __int128>(shape[2]);
  if (bytes > static_cast<unsigned __int128>(host.limit)) return -1;
  void* data = Take(static_cast<std::uint64_t>(bytes));
  if (data == nullptr) return -1;
  std::copy_n(shape, rank, host.shape);
  host.strides[2] = 1;
  host.strides[1] = shape[2];
  host.strides[0] = shape[1] * shape[2];
  host.tensor.header = {(std::uint64_t{1} << 32) | 1, kRewireFFITensor, 0, nullptr};
  host.tensor.tensor = {data, device, rank, dtype, host.shape, host.strides, 0};
  *result = RewireFFIAny{};
  result->type_index = kRewireFFITensor;
  result->v_obj = &host.tensor.header;
  return 0;
}

const RewireKernelApi* HostApi() {
  static const RewireKernelApi kApi = [] {
    RewireKernelApi api{};
    api.struct_size = sizeof(api);
    api.version = REWIRE_KERNEL_API_VERSION;
    api.set_error = [](const char*, const char*) {};
    api.workspace = Take;
    api.thread_count = [] { return std::int32_t{1}; };
    api.parallel_for = [](std::int64_t begin, std::int64_t end, std::int64_t,
                          void (*body)(void*, std::int64_t, std::int64_t),
                          void* data) { body(data, begin, end); };
    api.cancelled = Cancelled;
    api.new_tensor = NewTensor;
    return api;
  }();
  return &kApi;
}

}  // namespace

void ReserveHostMemory(std::int64_t limit) {
  if (host.region != nullptr) munmap(host.region, static_cast<std::size_t>(host.reserved));
  void* region = mmap(nullptr, static_cast<std::size_t>(limit), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (region == MAP_FAILED) throw std::runtime_error("codec_drill: no address space");
  host.region = static_cast<std::uint8_t*>(region);
  host.reserved = limit;
  __rewire_kernel_api = HostApi();
}

Decoding DecodePicture(const Bytes& file, std::int64_t limit, std::int64_t stop_after, bool keep_pixels) {
  using namespace kernel::image;
  Decoding decoding;
  const File picture{file.data(), file.size()};
  const Decoder decoder = FindDecoder(picture);
  decoding.is_known = decoder != nullptr;
  if (!decoding.is_known) return decoding;
  host.limit = std::min(limit, host.reserved);
  host.taken = 0;
  host.questions_left = stop_after;
  host.told_to_stop = false;
  host.longest_gap = 0;
  RewireFFIAny result{};
  Outcome outcome = Outcome::kDamaged;
  StartCounting();
  host.gap_began = Now();
  {
    Canvas canvas(Pixels::kRgb, &result);
    outcome = decoder(picture, canvas);
  }
  EndGap();
  const Allocations allocations = StopCounting();
  decoding.by_codec = allocations.most;
  decoding.left = allocations.left;
  decoding.charged = host.taken;
  decoding.longest_gap = host.longest_gap;
  decoding.has_failed = outcome == Outcome::kFailed;
  decoding.has_rows = outcome == Outcome::kDone;
  if (decoding.has_rows && host.told_to_stop) {
    std::fprintf(stderr, "codec_drill: a picture was made after the host had said stop\n");
    std::abort();
  }
  if (keep_pixels && decoding.has_rows) {
    const auto* data = static_cast<const std::uint8_t*>(host.tensor.tensor.data);
    decoding.pixels.assign(data, data + host.shape[0] * host.shape[1] * host.shape[2]);
  }
  return decoding;
}

}  // namespace rewire::test
