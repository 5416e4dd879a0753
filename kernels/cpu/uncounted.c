/* SPDX-License-Identifier: Apache-2.0 */
/* Under sanitizers, kernels report every branch they take, so that the kernel drill can count them. The drill
 * links the kernels itself. In a module, which other tests load, nobody counts. The sanitizer's own counter
 * would remember every branch of every module that was ever loaded, and take longer each time. */
#include <stdint.h>

void __sanitizer_cov_trace_pc_guard(uint32_t* guard);
void __sanitizer_cov_trace_pc_guard_init(uint32_t* begin, uint32_t* end);

void __sanitizer_cov_trace_pc_guard(uint32_t* guard) { (void)guard; }
void __sanitizer_cov_trace_pc_guard_init(uint32_t* begin, uint32_t* end) {
  (void)begin;
  (void)end;
}
