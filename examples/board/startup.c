// SPDX-License-Identifier: Apache-2.0
//
// Starts a program on a Cortex-M processor without an operating system: the table of vectors, the copy of
// initialized data, main. Faults end the program by a breakpoint, which an emulator reports.
#include <stdint.h>
#include <string.h>

extern char data_source[], data_begin[], data_end[], bss_begin[], bss_end[], stack_top[];
int main(void);
void reset(void);
void board_exit(int status);

static void fault(void) { board_exit(1); }

void reset(void) {
  // Coprocessors 10 and 11, the floating-point unit, are off until they are asked for.
  *(volatile uint32_t*)0xE000ED88 |= 0xFU << 20;
  memcpy(data_begin, data_source, (size_t)(data_end - data_begin));
  memset(bss_begin, 0, (size_t)(bss_end - bss_begin));
  board_exit(main());
}

// The stack, the entry, then NMI and the faults. Nothing enables other interrupts.
__attribute__((section(".vectors"), used)) static void (*const vectors[])(void) = {
    (void (*)(void))(uintptr_t)stack_top, reset, fault, fault, fault, fault, fault};
