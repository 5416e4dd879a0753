// SPDX-License-Identifier: Apache-2.0
//
// The text of the files in code/.
#pragma once

namespace rewire::kernel::device {

extern const char k_dialect[];
extern const char k_arguments[];
extern const char k_elementwise[];
extern const char k_movement[];
extern const char k_product[];
extern const char k_window[];
extern const char k_reduction[];
extern const char k_quantization[];
extern const char k_integer[];
extern const char k_lines[];
extern const char k_recurrent[];
extern const char k_indexing[];
extern const char k_scatter[];
extern const char k_trees[];
extern const char k_tiles[];
extern const char k_attention[];

}  // namespace rewire::kernel::device
