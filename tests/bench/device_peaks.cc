// SPDX-License-Identifier: Apache-2.0
//
// The rates of copies and products on a device, and their share of the hardware's peak.
#include "rewire/tests/bench/device_peaks.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "rewire/tests/bench/device_timing.h"

namespace rewire::bench {
namespace {

constexpr int kRounds = 9;
constexpr std::uint64_t kCopied = std::uint64_t{64} << 20;  // bytes

// The peak rates of the hardware; 0 where they are not known.
struct Peaks {
  double memory = 0;  // GB/s, reading and writing together
  double f32 = 0;     // GFLOP/s
  double f16 = 0;     // GFLOP/s of matrix units that sum in f32, without sparsity
};

// Operations of a multiprocessor in one cycle, a product and its sum counted as two. From NVIDIA's
// descriptions of the architectures A100 (GA100), GA10x, H100 and Blackwell.
struct Architecture {
  int major;
  int minor;
  int f32;
  int f16;
};
constexpr Architecture kArchitectures[] = {
    {8, 0, 128, 2048}, {8, 6, 256, 512}, {8, 9, 256, 1024}, {9, 0, 256, 4096}, {10, 0, 256, 8192}};

Peaks CudaPeaks() {
  // Numbers of CUdevice_attribute.
  enum : int { kClock = 13, kProcessors = 16, kMemoryClock = 36, kBusBits = 37, kMajor = 75, kMinor = 76 };
  Peaks peaks;
  void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  if (driver == nullptr) return peaks;
  auto* const attribute = reinterpret_cast<int (*)(int*, int, int)>(dlsym(driver, "cuDeviceGetAttribute"));
  const auto get = [&](int which) {
    int value = 0;
    if (attribute == nullptr || attribute(&value, which, 0) != 0) return 0;
    return value;
  };
  // Clocks are in kHz. Memory moves data twice in a cycle.
  peaks.memory = 2.0 * get(kMemoryClock) * get(kBusBits) / 8 / 1e6;
  for (const Architecture& each : kArchitectures) {
    if (each.major != get(kMajor) || each.minor != get(kMinor)) continue;
    const double cycles = 1.0 * get(kProcessors) * get(kClock) / 1e6;
    peaks.f32 = cycles * each.f32;
    peaks.f16 = cycles * each.f16;
  }
  return peaks;
}

void Print(const std::string& what, const std::vector<double>& rates, const char* unit, double peak) {
  const Summary rate = Summarize(rates);
  fmt::print("{}: {}", what, Text(rate, 1, unit));
  if (peak > 0) fmt::print(", {:.0f} % of the peak of {:.4g}", 100 * rate.median / peak, peak);
  fmt::print("\n");
}

// Copies of one size on a stream. `moved`: how often memory of the device is touched for each byte.
class Copies {
 public:
  explicit Copies(const DeviceApi& api) : api_(api), device_{static_cast<DLDeviceType>(api.device_type), 0} {
    if (api.make_stream != nullptr) Call(api.make_stream(api.context, device_, &stream_));
    for (void*& block : blocks_) {
      Call(api.allocate(api.context, device_, kCopied, 256, "", stream_, &block));
    }
    pageable_.assign(kCopied, 1);
    pinned_ = pageable_.data();
    if (api.allocate_host != nullptr) {
      Call(api.allocate_host(api.context, device_, kCopied, &pinned_));
      std::memset(pinned_, 1, kCopied);
    }
  }
  ~Copies() {
    for (void* block : blocks_) api_.deallocate(api_.context, device_, block, stream_);
    api_.synchronize(api_.context, device_, stream_);
    if (pinned_ != pageable_.data()) api_.deallocate_host(api_.context, device_, pinned_);
    if (stream_ != nullptr) api_.destroy_stream(api_.context, device_, stream_);
  }
  Copies(const Copies&) = delete;
  Copies& operator=(const Copies&) = delete;

  void Measure(double pcie, double memory) const {
    const DLDevice host{kDLCPU, 0};
    Print("a copy of 64 MiB to the device", Rates(blocks_[0], device_, pinned_, host, 1), "GB/s", pcie);
    Print("back to the host", Rates(pinned_, host, blocks_[0], device_, 1), "GB/s", pcie);
    Print("to the device from memory that is not pinned",
          Rates(blocks_[0], device_, pageable_.data(), host, 1), "GB/s", pcie);
    Print("within the device, what is read and what is written",
          Rates(blocks_[1], device_, blocks_[0], device_, 2), "GB/s", memory);
  }

 private:
  void Call(int code) const {
    if (code != REWIRE_DEVICE_OK) Stop(api_.error(api_.context));
  }
  std::vector<double> Rates(void* to, DLDevice to_device, const void* from, DLDevice from_device,
                            int moved) const {
    std::vector<double> rates;
    for (int i = 0; i <= kRounds; ++i) {
      const double time = Timed([&] {
        Call(api_.copy(api_.context, to, to_device, from, from_device, kCopied, stream_));
        Call(api_.synchronize(api_.context, device_, stream_));
      });
      if (i > 0) rates.push_back(moved * static_cast<double>(kCopied) / time);
    }
    return rates;
  }

  const DeviceApi& api_;
  DLDevice device_;
  void* stream_ = nullptr;
  void* blocks_[2] = {};
  std::vector<char> pageable_;
  void* pinned_ = nullptr;
};

// `products` times y = a b over [size, size] on the device, between a copy in and a copy of one element out.
std::string ProductsText(const std::string& device, const std::string& type, std::int64_t size,
                         int products) {
  const std::string square = fmt::format("{}[{}, {}]", type, size, size);
  std::string text = fmt::format(R"(
    .device gpu = {1}:0
    .kernel rewire.device.matmul
    .func main(x: {0}) -> {0}
      %a = device_copy %x, cpu, gpu
      %s = alloc_storage _, alignment=256, {0}, gpu
      %b = alloc_tensor %s, _, {0}
      invoke_packed rewire.device.matmul(%a, %a, %b), outputs=1
)",
                                 square, device);
  for (int i = 1; i < products; ++i)
    text += "      invoke_packed rewire.device.matmul(%a, %a, %b), outputs=1\n";
  return text + "      %h = device_copy %b, gpu, cpu\n      ret %h\n    .end\n";
}

// GFLOP/s of products of one size; `nanoseconds` is set to what one takes.
std::vector<double> ProductRates(const std::string& device, const std::string& type, std::int64_t size,
                                 double* nanoseconds) {
  constexpr int kProducts = 5;
  const Tensor x = Taken(Tensor::Make(type == "f16" ? kFloat16 : kFloat32, {size, size}));
  // Small numbers of both signs, so that the arithmetic has something to do.
  if (type == "f16") {
    auto* const to = static_cast<std::uint16_t*>(x.view().data());
    for (std::int64_t i = 0; i < size * size; ++i) to[i] = i % 3 == 0 ? 0x2c00 : 0xa800;
  } else {
    auto* const to = x.data<float>();
    for (std::int64_t i = 0; i < size * size; ++i) to[i] = static_cast<float>(i * 7 % 13 - 6) / 64;
  }
  VirtualMachine one(ProgramOf(ProductsText(device, type, size, 1)));
  VirtualMachine many(ProgramOf(ProductsText(device, type, size, 1 + kProducts)));
  for (VirtualMachine* vm : {&one, &many}) {
    vm->SetInput("x", x);
    vm->Invoke();
  }
  std::vector<double> rates;
  const double operations =
      2.0 * static_cast<double>(size) * static_cast<double>(size) * static_cast<double>(size);
  std::vector<double> times;
  for (int i = 0; i < kRounds; ++i) {
    const double base = Timed([&] { one.Invoke(); });
    const double time = std::max(1.0, (Timed([&] { many.Invoke(); }) - base) / kProducts);
    times.push_back(time);
    rates.push_back(operations / time);
  }
  *nanoseconds = Summarize(times).median;
  return rates;
}

void MeasureProducts(const std::string& device, const std::string& type, double peak) {
  constexpr double kLong = 5e6;  // nanoseconds: long enough that beginning and ending do not count
  for (std::int64_t size = 256;; size *= 2) {
    double nanoseconds = 0;
    const std::vector<double> rates = ProductRates(device, type, size, &nanoseconds);
    if (nanoseconds < kLong && size < 8192) continue;
    return Print(fmt::format("a product of [{0}, {0}] by [{0}, {0}], {1}", size, type), rates, "GFLOP/s",
                 peak);
  }
}

}  // namespace

void MeasurePeaks(const DeviceApi& api, const std::string& name, double pcie) {
  const Peaks peaks = name == "cuda" ? CudaPeaks() : Peaks();
  Copies(api).Measure(pcie, peaks.memory);
  MeasureProducts(name, "f32", peaks.f32);
  MeasureProducts(name, "f16", peaks.f16);
}

}  // namespace rewire::bench
