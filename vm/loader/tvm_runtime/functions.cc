// SPDX-License-Identifier: Apache-2.0
#include "rewire/base/array.h"
#include "rewire/vm/loader/tvm_runtime/host.h"
#include "rewire/vm/loader/tvm_runtime/products.h"
#include "rewire/vm/loader/tvm_runtime/sort.h"

namespace rewire::tvm_runtime {

const Host* g_host = nullptr;

namespace {

// Runs once, when the first kernel library binds; kernels of other libraries may be running at the next.
Array<Function> BindAll(const Host* host) {
  g_host = host;
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

}  // namespace

// A Bind.
extern "C" __attribute__((visibility("default"))) const Function* rewire_tvm_runtime_bind(
    const Host* host, std::size_t* count) {
  static const Array<Function> functions = BindAll(host);
  *count = functions.size();
  return functions.data();
}

}  // namespace rewire::tvm_runtime
