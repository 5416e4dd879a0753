// SPDX-License-Identifier: Apache-2.0
//
// The families of operators of .tflite files.
#pragma once

#include <span>

#include "rewire/compiler/lower/registry.h"

namespace rewire::compiler {

std::span<const Operator> TfliteProductOperators();
std::span<const Operator> TfliteMovementOperators();
std::span<const Operator> TfliteActivationOperators();
std::span<const Operator> TfliteArithmeticOperators();

}  // namespace rewire::compiler
