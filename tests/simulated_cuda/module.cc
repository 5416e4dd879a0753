// SPDX-License-Identifier: Apache-2.0
#include "rewire/tests/simulated_cuda/module.h"

#include <dlfcn.h>
#include <elf.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

namespace rewire::simulated_cuda {
namespace {

// How many bytes a shared object of the host has: its section headers, or its sections, come last. 0: it is
// none.
std::size_t SizeOfObject(const void* image) {
  Elf64_Ehdr header;
  if (std::memcmp(image, ELFMAG, SELFMAG) != 0) return 0;
  std::memcpy(&header, image, sizeof header);
#if defined(__x86_64__)
  constexpr Elf64_Half kMachine = EM_X86_64;
#elif defined(__aarch64__)
  constexpr Elf64_Half kMachine = EM_AARCH64;
#else
  constexpr Elf64_Half kMachine = EM_NONE;
#endif
  // A cubin is an ELF file too, of NVIDIA's machine.
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_machine != kMachine || header.e_type != ET_DYN)
    return 0;
  std::size_t end = header.e_shoff + std::size_t{header.e_shentsize} * header.e_shnum;
  for (unsigned i = 0; i < header.e_shnum; ++i) {
    Elf64_Shdr section;
    std::memcpy(&section,
                static_cast<const char*>(image) + header.e_shoff + std::size_t{header.e_shentsize} * i,
                sizeof section);
    if (section.sh_type != SHT_NOBITS) end = std::max<std::size_t>(end, section.sh_offset + section.sh_size);
  }
  return end;
}

}  // namespace

Module::~Module() {
  if (library != nullptr) dlclose(library);
  if (file >= 0) close(file);
}

CUresult OpenImage(const void* image, std::shared_ptr<Module>* module) {
  const std::size_t bytes = SizeOfObject(image);
  if (bytes == 0) return CUDA_ERROR_NO_BINARY_FOR_GPU;
  auto opened = std::make_shared<Module>();
  opened->file = memfd_create("simulated CUDA module", MFD_CLOEXEC);
  if (opened->file < 0) return CUDA_ERROR_OPERATING_SYSTEM;
  std::size_t written = 0;
  while (written < bytes) {
    const ssize_t more = write(opened->file, static_cast<const char*>(image) + written, bytes - written);
    if (more <= 0) break;
    written += static_cast<std::size_t>(more);
  }
  if (written == bytes)
    opened->library = dlopen(fmt::format("/proc/self/fd/{}", opened->file).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (opened->library == nullptr) return CUDA_ERROR_INVALID_IMAGE;
  const auto function =
      reinterpret_cast<SimulatedImageFunction>(dlsym(opened->library, REWIRE_SIMULATED_IMAGE_SYMBOL));
  if (function == nullptr) return CUDA_ERROR_INVALID_IMAGE;
  opened->image = function();
  if (opened->image->version != kSimulatedImageVersion) return CUDA_ERROR_INVALID_IMAGE;
  *module = std::move(opened);
  return CUDA_SUCCESS;
}

}  // namespace rewire::simulated_cuda
