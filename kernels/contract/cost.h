// SPDX-License-Identifier: Apache-2.0
//
// How many simple operations a kernel does for an element. Each family's file has a list of those of its
// kernels whose work grows with the elements of the largest tensor. An elementwise kernel that is in no list
// does one.
#pragma once

namespace rewire::names {

struct Cost {
  const char* kernel;
  double operations;  // each about as long as an addition
};

}  // namespace rewire::names
