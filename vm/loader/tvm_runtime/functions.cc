// SPDX-License-Identifier: Apache-2.0
#include "rewire/vm/loader/tvm_runtime/functions.h"

#include "rewire/vm/loader/tvm_runtime/products.h"
#include "rewire/vm/loader/tvm_runtime/sort.h"

namespace rewire::tvm_runtime {

Array<Function> Functions() {
  Array<Function> functions = {
      {"tvm.contrib.sort.argsort", &ArgSort},
      {"tvm.contrib.sort.argsort_nms", &ArgSortNms},
      {"tvm.contrib.sort.sort", &Sort},
      {"tvm.contrib.sort.topk", &TopK},
  };
  const Span<const Function> products = Products();
  functions.append(products.begin(), products.end());
  return functions;
}

}  // namespace rewire::tvm_runtime
