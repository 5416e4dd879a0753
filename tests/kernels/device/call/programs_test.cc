// SPDX-License-Identifier: Apache-2.0
//
// A driver is given one form of device code first, and others when it does not take that.
#include <catch2/catch.hpp>
#include <cstring>
#include <vector>

#include "rewire/kernels/device/call/device_images.h"
#include "rewire/kernels/device/call/programs.h"
#include "rewire/vm/kernel/kernel.h"

REWIRE_KERNEL_LIBRARY;

namespace rewire::kernel::device {
namespace {

// A driver that takes some forms of code and notes which it was given.
struct FakeDriver {
  std::vector<std::uint32_t> given;
  bool takes_images = true;
  RewireDeviceApi api{};

  explicit FakeDriver(std::int32_t device_type) {
    api.struct_size = sizeof(api);
    api.device_type = device_type;
    api.name = "fake";
    api.context = this;
    api.error = [](void*) { return "no such code"; };
    api.load_module = [](void* context, DLDevice, std::uint32_t form, const void* code, std::uint64_t bytes,
                         const char*, const char*, void** module) {
      auto* self = static_cast<FakeDriver*>(context);
      self->given.push_back(form);
      if (bytes == 0 || code == nullptr) return REWIRE_DEVICE_FAILED;
      *module = self;
      return form != REWIRE_DEVICE_CODE_FATBIN || self->takes_images ? REWIRE_DEVICE_OK
                                                                     : REWIRE_DEVICE_FAILED;
    };
    api.find_kernel = [](void* context, DLDevice, void*, const char*, void** kernel) {
      *kernel = context;
      return REWIRE_DEVICE_OK;
    };
  }
  bool Find(Program program, Form form) {
    void* kernel = nullptr;
    return FindKernel(api, {static_cast<DLDeviceType>(api.device_type), 0}, program, form, "any", &kernel)
        .ok();
  }
};

TEST_CASE("CUDA is given what was compiled ahead, and the source where that is missing or does not fit") {
  const bool has_images = ImageCount() != 0;
  // Never destroyed: what a device has loaded is kept until the process ends.
  auto& cuda = *new FakeDriver(kDLCUDA);
  CHECK(cuda.Find(Program::kElementwise, Form::kF32));
  CHECK(cuda.given ==
        std::vector<std::uint32_t>{has_images ? REWIRE_DEVICE_CODE_FATBIN : REWIRE_DEVICE_CODE_CUDA_CPP});
  auto& old = *new FakeDriver(kDLCUDA);
  old.takes_images = false;
  CHECK(old.Find(Program::kMovement, Form::kBytes4));
  CHECK(old.given.back() == REWIRE_DEVICE_CODE_CUDA_CPP);
  CHECK(old.given.size() == (has_images ? 2 : 1));
  auto& opencl = *new FakeDriver(kDLOpenCL);
  CHECK(opencl.Find(Program::kElementwise, Form::kF32));
  CHECK(opencl.given == std::vector<std::uint32_t>{REWIRE_DEVICE_CODE_OPENCL_C});
}

TEST_CASE("each program and form has an image, or none has") {
  if (ImageCount() == 0) return;
  // The index is the Program; a new one has a row here.
  const std::vector<std::vector<Form>> forms = {
      {Form::kF32, Form::kF16},                                      // kElementwise
      {Form::kBytes1, Form::kBytes2, Form::kBytes4, Form::kBytes8},  // kMovement
      {Form::kF32, Form::kF16},                                      // kProduct
      {Form::kF32, Form::kF16},                                      // kWindow
      {Form::kF32, Form::kF16},                                      // kReduction
      {Form::kF32},                                                  // kQuantization
      {Form::kF32},                                                  // kInteger
      {Form::kF32, Form::kF16},                                      // kLines
      {Form::kF32, Form::kF16},                                      // kRecurrent
      {Form::kBytes1, Form::kBytes2, Form::kBytes4, Form::kBytes8},  // kIndexing
      {Form::kF32},                                                  // kScatter
      {Form::kF32},                                                  // kTrees
      {Form::kF32},                                                  // kAttention
  };
  std::size_t images = 0;
  for (std::size_t program = 0; program < forms.size(); ++program) {
    for (const Form form : forms[program]) {
      INFO("program " << program << ", form " << static_cast<int>(form));
      const DeviceImage* image = FindImage(static_cast<Program>(program), form);
      REQUIRE(image != nullptr);
      const std::uint32_t magic = 0xBA55ED50;  // of a fatbin
      CHECK(std::memcmp(image->begin, &magic, sizeof(magic)) == 0);
      ++images;
    }
  }
  CHECK(ImageCount() == images);
}

}  // namespace
}  // namespace rewire::kernel::device
