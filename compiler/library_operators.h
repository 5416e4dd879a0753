// SPDX-License-Identifier: Apache-2.0
// Public header: <rewire/compiler/library_operators.h>.
//
// Operators whose kernels are in libraries: their schemas lie in a file beside each library, whose code is
// not run.
#pragma once

#include <string>
#include <vector>

#include "rewire/base/export.h"
#include "rewire/base/status.h"
#include "rewire/compiler/operator_schema.h"

namespace rewire {

// The file with the schemas of a library's operators: acme.json beside acme.so.
REWIRE_API std::string OperatorsBeside(const std::string& library);

// The schemas of all operators of these libraries, for CompileOptions::operators. A library without such a
// file has none. Errors: those of ReadOperatorSchemas.
REWIRE_API Result<std::vector<OperatorSchema>> ReadLibraryOperators(
    const std::vector<std::string>& libraries);

}  // namespace rewire
