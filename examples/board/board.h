// SPDX-License-Identifier: Apache-2.0
//
// An example program needs of a board: text to the host, the end of the program, and a clock. Text and end go
// through semihosting, which emulators and debuggers answer.
#ifndef REWIRE_EXAMPLES_BOARD_H_
#define REWIRE_EXAMPLES_BOARD_H_

#include <stdint.h>

void board_write(const char* text);
void board_write_number(uint32_t number);
void board_exit(int status) __attribute__((noreturn));

// Counts up; with qemu's -icount shift=0 one tick is BOARD_INSTRUCTIONS_A_TICK instructions.
#define BOARD_INSTRUCTIONS_A_TICK 40
void board_start_clock(void);
uint32_t board_ticks(void);

// Fills the free stack with a pattern; board_stack_depth says how many bytes have been used since, at most.
void board_paint_stack(void);
uint32_t board_stack_depth(void);

#endif  // REWIRE_EXAMPLES_BOARD_H_
