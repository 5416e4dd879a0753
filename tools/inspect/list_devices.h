// SPDX-License-Identifier: Apache-2.0
//
// The list of `vm-run --devices`.
#pragma once

#include <string>

namespace rewire::tools {

// The devices that programs can use here, and for each library of devices that has none, what is missing. As
// text or as JSON.
std::string DeviceList(bool json);

}  // namespace rewire::tools
