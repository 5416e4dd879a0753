// SPDX-License-Identifier: Apache-2.0
// Calls a virtual function of an object of the library under another class of it, which a sanitizer must
// notice.
#include <rewire/vm/vm.h>

#include <cstdio>
#include <memory>

int main() {
  const std::shared_ptr<rewire::ThreadPool> pool = rewire::ThreadPool::Serial();
  auto* observer = reinterpret_cast<rewire::Observer*>(pool.get());
  std::printf("%d\n", observer->wants_kernels() ? 1 : 0);
  return 0;
}
