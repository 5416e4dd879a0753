// SPDX-License-Identifier: Apache-2.0
#include "rewire/examples/board/board.h"

#define PAINT 0xA5A5A5A5U

extern uint32_t stack_bottom[], stack_top[];

static uint32_t* painted_to;

static int semihost(int operation, const void* argument) {
  register int r0 __asm__("r0") = operation;
  register const void* r1 __asm__("r1") = argument;
  __asm__ volatile("bkpt 0xAB" : "+r"(r0) : "r"(r1) : "memory");
  return r0;
}

void board_write(const char* text) { semihost(0x04, text); }

void board_write_number(uint32_t number) {
  char digits[11];
  char* at = digits + sizeof(digits) - 1;
  *at = 0;
  do *--at = (char)('0' + number % 10);
  while ((number /= 10) != 0);
  board_write(at);
}

void board_exit(int status) {
  const uint32_t block[] = {0x20026, (uint32_t)status};  // "application exit"
  for (;;) semihost(0x20, block);
}

// SysTick counts 24 bits down.
void board_start_clock(void) {
  volatile uint32_t* const systick = (volatile uint32_t*)0xE000E010;
  systick[1] = 0xFFFFFF;
  systick[2] = 0;
  systick[0] = 5;
}

uint32_t board_ticks(void) { return (0x1000000 - *(volatile uint32_t*)0xE000E018) & 0xFFFFFF; }

void board_paint_stack(void) {
  uint32_t* here = (uint32_t*)__builtin_frame_address(0) - 8;
  painted_to = here;
  for (volatile uint32_t* at = stack_bottom; at != here; ++at) *at = PAINT;
}

uint32_t board_stack_depth(void) {
  const uint32_t* at = stack_bottom;
  while (at != painted_to && *at == PAINT) ++at;
  return (uint32_t)(painted_to - at) * 4;
}
