// SPDX-License-Identifier: Apache-2.0
// Updates of places that indices name. Several updates of one place are made in their order, as on the CPU:
// one thread makes them all. An update whose index is out of range is left out.

// Elements are integers of `type`, or float32 for kTypeReal.
FUNCTION void update(GLOBAL u8* out, int to, GLOBAL const u8* updates, int from, int type, int operation) {
  if (type == kTypeReal) {
    GLOBAL float* place = (GLOBAL float*)out + to;
    float term = ((GLOBAL const float*)updates)[from];
    float sum = *place;
    *place = operation == kScatterAdd        ? sum + term
             : operation == kScatterMultiply ? sum * term
             : operation == kScatterLeast    ? (term < sum || is_nan(term) ? term : sum)
                                             : (term > sum || is_nan(term) ? term : sum);
    return;
  }
  i64 term = load_integer(updates, type, from);
  if (operation != kScatterSet) {
    i64 sum = load_integer(out, type, to);
    if (operation == kScatterAdd) term = (i64)((ulong)sum + (ulong)term);
    if (operation == kScatterMultiply) term = (i64)((ulong)sum * (ulong)term);
    if (operation == kScatterLeast && sum < term) term = sum;
    if (operation == kScatterMost && sum > term) term = sum;
  }
  store_wrapped(out, type, to, term);
}

// `lines` leads to the first update of each line, and to where out's line begins.
KERNEL(scatter_elements)
(GLOBAL const u8* indices, GLOBAL const u8* updates, GLOBAL u8* out, Move lines, Scatter scatter, int count) {
  int i = GLOBAL_ID(0);
  if (i >= count) return;
  int rest = i / scatter.sharers;
  int own = i % scatter.sharers;
  int from = 0;
  int to = 0;
  for (int axis = lines.rank - 1; axis >= 0; --axis) {
    int row = rest / lines.dims[axis];
    int at = rest - row * lines.dims[axis];
    from += at * lines.from_steps[axis];
    to += at * lines.to_steps[axis];
    rest = row;
  }
  for (int k = 0; k < scatter.length; ++k) {
    i64 place = load_integer(indices, scatter.index_type, from + k * scatter.update_step);
    if (place < 0) place += scatter.places;
    if (place < 0 || place >= scatter.places || (int)place % scatter.sharers != own) continue;
    update(out, to + (int)place * scatter.place_step, updates, from + k * scatter.update_step, scatter.type,
           scatter.operation);
  }
}

// A line is one element of all slices.
KERNEL(scatter_slices)
(GLOBAL const u8* indices, GLOBAL const u8* updates, GLOBAL u8* out, Tuples tuples, Scatter scatter,
 int count) {
  int i = GLOBAL_ID(0);
  if (i >= count) return;
  int line = i / scatter.sharers;
  int own = i % scatter.sharers;
  for (int tuple = 0; tuple < scatter.length; ++tuple) {
    int slice = 0;
    int inside = 1;
    for (int k = 0; k < tuples.width; ++k) {
      i64 index = load_integer(indices, scatter.index_type, tuple * tuples.width + k);
      if (index < 0) index += tuples.dims[k];
      inside = inside && index >= 0 && index < tuples.dims[k];
      slice += inside ? (int)index * tuples.steps[k] : 0;
    }
    if (!inside || slice % scatter.sharers != own) continue;
    update(out, slice * tuples.run + line, updates, tuple * tuples.run + line, scatter.type,
           scatter.operation);
  }
}
