// SPDX-License-Identifier: Apache-2.0
#include "rewire/tests/fuzz/codecs/jpeg2000_encoder.h"

#include "rewire/tests/fuzz/codecs/memory_file.h"

namespace rewire::test {

Bytes EncodeJpeg2000(opj_cparameters_t parameters, const Drawing& drawing,
                     const std::vector<Jpeg2000Step>& components, int depth, bool has_boxes) {
  const auto left = static_cast<OPJ_UINT32>(parameters.image_offset_x0),
             top = static_cast<OPJ_UINT32>(parameters.image_offset_y0);
  const OPJ_UINT32 right = left + static_cast<OPJ_UINT32>(drawing.width),
                   bottom = top + static_cast<OPJ_UINT32>(drawing.height);
  std::vector<opj_image_cmptparm_t> sizes;
  for (const Jpeg2000Step& step : components) {
    const auto count = [](OPJ_UINT32 begin, OPJ_UINT32 end, OPJ_UINT32 pixels) {
      return (end + pixels - 1) / pixels - (begin + pixels - 1) / pixels;
    };
    opj_image_cmptparm_t size = {};
    size.dx = step.across;
    size.dy = step.down;
    size.w = count(left, right, step.across);
    size.h = count(top, bottom, step.down);
    size.prec = static_cast<OPJ_UINT32>(depth);
    if (size.w == 0 || size.h == 0) return {};
    sizes.push_back(size);
  }
  opj_image_t* image = opj_image_tile_create(static_cast<OPJ_UINT32>(sizes.size()), sizes.data(),
                                             sizes.size() >= 3 ? OPJ_CLRSPC_SRGB : OPJ_CLRSPC_GRAY);
  image->x0 = left;
  image->y0 = top;
  image->x1 = right;
  image->y1 = bottom;
  std::size_t at = 0;
  for (OPJ_UINT32 i = 0; i < image->numcomps; ++i) {
    opj_image_comp_t& component = image->comps[i];
    // For pictures that begin between samples, OpenJPEG takes rows to be longer by one sample.
    const std::size_t count = std::size_t{component.w + 1} * (component.h + 1);
    component.data = static_cast<OPJ_INT32*>(opj_image_data_alloc(count * sizeof(OPJ_INT32)));
    for (std::size_t k = 0; k < count; ++k)
      component.data[k] = drawing.pixels[at++ % drawing.pixels.size()] & ((1 << depth) - 1);
  }
  opj_codec_t* codec = opj_create_compress(has_boxes ? OPJ_CODEC_JP2 : OPJ_CODEC_J2K);
  MemoryFile memory;
  opj_stream_t* stream = opj_stream_default_create(OPJ_FALSE);
  opj_stream_set_user_data(stream, &memory, nullptr);
  opj_stream_set_write_function(stream, [](void* data, OPJ_SIZE_T size, void* m) {
    return static_cast<MemoryFile*>(m)->Write(data, size);
  });
  opj_stream_set_skip_function(stream, [](OPJ_OFF_T count, void* m) {
    static_cast<MemoryFile*>(m)->at += static_cast<std::size_t>(count);
    return count;
  });
  opj_stream_set_seek_function(stream, [](OPJ_OFF_T to, void* m) -> OPJ_BOOL {
    static_cast<MemoryFile*>(m)->at = static_cast<std::size_t>(to);
    return OPJ_TRUE;
  });
  const bool is_made = opj_setup_encoder(codec, &parameters, image) != OPJ_FALSE &&
                       opj_start_compress(codec, image, stream) != OPJ_FALSE &&
                       opj_encode(codec, stream) != OPJ_FALSE && opj_end_compress(codec, stream) != OPJ_FALSE;
  opj_stream_destroy(stream);
  opj_destroy_codec(codec);
  opj_image_destroy(image);
  return is_made ? memory.bytes : Bytes();
}

}  // namespace rewire::test
