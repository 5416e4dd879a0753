// SPDX-License-Identifier: Apache-2.0
// Encoded pictures of any known format.
#include <string_view>

#include "rewire/kernels/contract/image.h"
#include "rewire/kernels/cpu/support/checks.h"
#include "rewire/kernels/cpu/support/types.h"
#include "rewire/kernels/image/decoders.h"
#include "rewire/kernels/image/registry.h"

namespace rewire::kernel::image {

Decoder FindDecoder(File file) {
  const std::string_view start(reinterpret_cast<const char*>(file.data), file.size);
  using namespace std::string_view_literals;
  struct Format {
    std::string_view signature;
    Decoder decoder;
  };
  static constexpr Format kFormats[] = {
    {"BM"sv, DecodeBmp},
    {"\xFF\xD8\xFF"sv, DecodeJpeg},
    {"\x89PNG\r\n\x1A\n"sv, DecodePng},
#if REWIRE_IMAGE_HAS_TIFF
    {"II*\0"sv, DecodeTiff},
    {"MM\0*"sv, DecodeTiff},
    {"II+\0"sv, DecodeTiff},
    {"MM\0+"sv, DecodeTiff},
#endif
    {"\0\0\0\x0CjP  \r\n\x87\n"sv, DecodeJpeg2000},
    {"\xFF\x4F\xFF\x51"sv, DecodeJpeg2000},
  };
  for (const Format& format : kFormats) {
    if (start.substr(0, format.signature.size()) == format.signature) return format.decoder;
  }
  if (start.substr(0, 4) == "RIFF" && start.size() >= 12 && start.substr(8, 4) == "WEBP") return DecodeWebp;
  if (start.size() >= 2 && start[0] == 'P' && start[1] >= '1' && start[1] <= '6') return DecodePnm;
  return nullptr;
}

namespace {

struct Decode {
  static constexpr const char* kName = names::kImageDecode;
  Pixels pixels = Pixels::kRgb;

  static Status Make(Attributes& attributes, Decode* decode) {
    decode->pixels = static_cast<Pixels>(attributes.Choice("pixel_format", {"RGB", "BGR", "Grayscale"}, 0));
    return Status();
  }

  Status operator()(TensorView x, RewireFFIAny* result) const {
    cpu::Checks checks;
    checks.Dense("x", x).Rank("x", x, 1);
    if (Status s = checks.Take(); !s.ok()) return s;
    if (!x.Is<std::uint8_t>()) return cpu::WrongDType(cpu::Types<std::uint8_t>(), "x", x);
    const File file{x.data<std::uint8_t>(), static_cast<std::size_t>(x.size())};
    Canvas canvas(pixels, result);
    if (file.size == 0) return canvas.Clear();
    const Decoder decoder = FindDecoder(file);
    if (decoder != nullptr && decoder(file, canvas) == Outcome::kDone) return Status();
    return canvas.Clear();
  }
  // The file's size is not known from shapes, so no workspace is declared.
  bool DeclareWorkspace(cpu::WorkspaceSizes&) const { return false; }
};

}  // namespace

std::span<const cpu::Kernel> DecodeKernels() {
  static constexpr cpu::Kernel kKernels[] = {
      cpu::Describe<Decode>(
          "x", "x u8", "pixel_format = RGB, BGR or Grayscale",
          "returns the picture in the file x [bytes], u8 [height, width, channels]: a BMP, JPEG, JPEG 2000, "
          "PNG, PNM, TIFF or WebP; u8 [0, 0, channels] if it is none or damaged"),
  };
  return kKernels;
}

}  // namespace rewire::kernel::image
