// SPDX-License-Identifier: Apache-2.0
// JPEG 2000 files by OpenJPEG's encoder.
#pragma once

#include <openjpeg.h>

#include <vector>

#include "rewire/tests/fuzz/codecs/picture_seeds.h"

namespace rewire::test {

// How many pixels a sample of a component stands for.
struct Jpeg2000Step {
  OPJ_UINT32 across = 1, down = 1;
};

// Encodes a picture of so many pixels whose components have the drawing's bytes in turn. The parameters say
// where it begins. Gives no bytes if a component has no sample, or if OpenJPEG does not encode the form.
Bytes EncodeJpeg2000(opj_cparameters_t parameters, const Drawing& drawing,
                     const std::vector<Jpeg2000Step>& components, int depth, bool has_boxes);

}  // namespace rewire::test
