// SPDX-License-Identifier: Apache-2.0
// The section of device code, as docs/format.md, "Records", describes it.
#pragma once

#include "rewire/tests/hostile/program.h"

namespace rewire::hostile {

// One node of a type (program.cc).
void ReadNode(ByteReader& reader, TypeNode& node);
void WriteNode(ByteWriter& writer, const TypeNode& node);

void ReadDeviceCode(ByteReader& reader, Program& program);
void WriteDeviceCode(ByteWriter& writer, const Program& program);

}  // namespace rewire::hostile
