// SPDX-License-Identifier: Apache-2.0
// Elements whose places other tensors name. WORD is an unsigned type of the element's size. A negative index
// counts from the end; one that is out of range takes the nearest place.

FUNCTION int held_index(i64 index, int places) {
  if (index < 0) index += places;
  return index < 0 ? 0 : index >= places ? places - 1 : (int)index;
}

// `move` leads from an element of out to x, without the axis that is indexed, and to its index.
KERNEL(gather)
(GLOBAL const WORD* x, GLOBAL const u8* indices, GLOBAL WORD* out, Move move, int type, int places, int step,
 int count) {
  int i = GLOBAL_ID(0);
  if (i >= count) return;
  int rest = i;
  int from = 0;
  int index = 0;
  for (int axis = move.rank - 1; axis >= 0; --axis) {
    int row = rest / move.dims[axis];
    int at = rest - row * move.dims[axis];
    from += at * move.from_steps[axis];
    index += at * move.to_steps[axis];
    rest = row;
  }
  out[i] = x[from + held_index(load_integer(indices, type, index), places) * step];
}

KERNEL(gather_slices)
(GLOBAL const WORD* x, GLOBAL const u8* indices, GLOBAL WORD* out, Tuples tuples, int type, int count) {
  int i = GLOBAL_ID(0);
  if (i >= count) return;
  int tuple = i / tuples.run;
  int slice = 0;
  for (int k = 0; k < tuples.width; ++k) {
    i64 index = load_integer(indices, type, tuple * tuples.width + k);
    slice += held_index(index, tuples.dims[k]) * tuples.steps[k];
  }
  out[i] = x[tuple / tuples.per_batch * tuples.batch_step + (slice - tuple) * tuples.run + i];
}

// out = on where an index is the position along the axis of `depth`, else off.
KERNEL(mark)
(GLOBAL const u8* indices, GLOBAL const WORD* off_on, GLOBAL WORD* out, int type, int depth, int inner,
 int count) {
  int i = GLOBAL_ID(0);
  if (i >= count) return;
  i64 index = load_integer(indices, type, i / (inner * depth) * inner + i % inner);
  if (index < 0) index += depth;
  out[i] = off_on[index == i / inner % depth ? 1 : 0];
}

// The first lengths[b] steps of batch b in reverse, the others as they are.
KERNEL(reverse_steps)
(GLOBAL const WORD* x, GLOBAL const i64* lengths, GLOBAL WORD* out, int steps, int batch, int run,
 int batch_first, int count) {
  int i = GLOBAL_ID(0);
  if (i >= count) return;
  int row = i / run;
  int step = batch_first ? row % steps : row / batch;
  i64 length = lengths[batch_first ? row / steps : row % batch];
  if (length > steps) length = steps;
  int source = step < length ? (int)length - 1 - step : step;
  out[i] = x[i + (source - step) * (batch_first ? run : batch * run)];
}

// Keeps what lies on a diagonal of each matrix and above it (below it); 0 elsewhere.
KERNEL(triangle)
(GLOBAL const WORD* x, GLOBAL WORD* out, int rows, int columns, int diagonal, int upper, int count) {
  int i = GLOBAL_ID(0);
  if (i >= count) return;
  int above = i % columns - i / columns % rows - diagonal;
  out[i] = (upper ? above >= 0 : above <= 0) ? x[i] : (WORD)0;
}
