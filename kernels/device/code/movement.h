// SPDX-License-Identifier: Apache-2.0
// Elements in another order or place. WORD is an unsigned type of the element's size.

KERNEL(move)(GLOBAL const WORD* x, GLOBAL WORD* out, Move move, int count) {
  int i = GLOBAL_ID(0);
  if (i >= count) return;
  int rest = i;
  int from = move.from;
  int to = move.to;
  for (int axis = move.rank - 1; axis >= 0; --axis) {
    int row = rest / move.dims[axis];
    int at = rest - row * move.dims[axis];
    from += at * move.from_steps[axis];
    to += at * move.to_steps[axis];
    rest = row;
  }
  out[to] = x[from];
}

KERNEL(choose)
(GLOBAL const u8* condition, GLOBAL const WORD* a, GLOBAL const WORD* b, GLOBAL WORD* out, Broadcast shape,
 int count) {
  int i = GLOBAL_ID(0);
  if (i >= count) return;
  int at;
  POSITION_OF(i, shape, shape.c, at);
  if (condition[at] != 0) {
    POSITION_OF(i, shape, shape.a, at);
    out[i] = a[at];
  } else {
    POSITION_OF(i, shape, shape.b, at);
    out[i] = b[at];
  }
}

// x within a border of `value` (0 if none), or of x's own elements. A border of less than 0 cuts x.
KERNEL(pad)
(GLOBAL const WORD* x, GLOBAL const WORD* value, GLOBAL WORD* out, Border border, int has_value, int count) {
  int i = GLOBAL_ID(0);
  if (i >= count) return;
  int rest = i;
  int from = 0;
  int step = 1;
  int inside = 1;
  for (int axis = border.rank - 1; axis >= 0; --axis) {
    int row = rest / border.dims[axis];
    int at = rest - row * border.dims[axis] - border.before[axis];
    int dim = border.inner[axis];
    rest = row;
    if (border.mode == kBorderWrap) {
      // The rest of the axis repeats.
      int after = border.dims[axis] - dim - border.before[axis];
      int first = border.before[axis] < 0 ? -border.before[axis] : 0;
      int kept = dim - first + (after < 0 ? after : 0);
      int repeated = (at - first) % kept;
      at = first + (repeated < 0 ? repeated + kept : repeated);
    } else if (at < 0 || at >= dim) {
      inside = 0;
      if (border.mode == kBorderReflect) at = at < 0 ? -at : 2 * (dim - 1) - at;
      if (border.mode == kBorderEdge) at = at < 0 ? 0 : dim - 1;
    }
    from += at * step;
    step *= dim;
  }
  if (inside || border.mode != kBorderConstant) {
    out[i] = x[from];
  } else {
    out[i] = has_value ? value[0] : (WORD)0;
  }
}
