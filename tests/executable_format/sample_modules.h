// SPDX-License-Identifier: Apache-2.0
// Well-formed modules that between them use every opcode, section and record of the format.
#pragma once

#include <string>
#include <vector>

#include "rewire/executable_format/bundle.h"
#include "rewire/executable_format/module.h"

namespace rewire::test {

struct SampleModule {
  std::string name;  // file name without its ending
  Module module;
};

std::vector<SampleModule> SampleModules();
// The one of this name. Throws std::out_of_range if there is none.
Module Sample(const std::string& name);

// The bytes with an owner of their own.
SharedBytes Share(const std::vector<std::byte>& bytes);

// All of them but "device_code" and "compressed_tables" as models of one bundle, and the first once more, as
// "again".
std::vector<BundledExecutable> SampleBundle();

// Adds source text for opencl:0, as constant "code", and a device kernel "test.scale" with one argument of
// each kind but local memory.
void AddDeviceCode(Module& module);

// A data constant that owns `values`' bytes.
Constant DataConstant(std::string name, Type type, const std::vector<float>& values);

}  // namespace rewire::test
