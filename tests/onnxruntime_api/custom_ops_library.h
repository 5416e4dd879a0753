/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers that the custom operator Facts returns, in this order. */
#pragma once

enum {
  FACT_INPUTS,
  FACT_OUTPUTS,
  FACT_NAMED,
  FACT_NODE,
  FACT_TEXT,
  FACT_TEXT_SIZE,
  FACT_TOO_SMALL,
  FACT_LIST,
  FACT_FLOATS,
  FACT_MISSING,
  FACT_TABLE,
  FACT_TYPE,
  FACT_GIVEN,
  FACT_PAST_END,
  FACT_TOGETHER,
  FACT_SCRATCH,
  FACT_LOGGED,
  FACTS
};
