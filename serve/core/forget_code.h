// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace rewire::serve {

// Gives the pages back that hold code and constants of the program and its libraries, as they are in their
// files. Those that are needed come back when they are read, from the system's cache. A server that has
// loaded its models needs few of those that starting has read. No other thread may load or unload a library
// meanwhile.
void ForgetCode();

}  // namespace rewire::serve
