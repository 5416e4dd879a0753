// SPDX-License-Identifier: Apache-2.0
// Attention without a matrix of scores in global memory. The keys go by in blocks. For each query there are
// the largest score so far and the sum of the exponentials relative to it. A Max score scales the sums
// down.

#define LANES 64

// The keys [first, last) that a query sees.
FUNCTION void keys_of(Attention a, GLOBAL const i64* begin, GLOBAL const i64* lengths, int batch, int query,
                      int* first, int* last) {
  i64 from = 0;
  i64 to = a.visible;
  if (a.has_lengths) {
    i64 length = lengths[batch * a.lengths_step];
    to = length < 0 ? 0 : length < to ? length : to;
  }
  if (a.left >= 0 || a.right >= 0) {
    i64 position = a.has_begin ? begin[batch * a.begin_step] : 0;
    i64 most = (i64)1 << 40;
    position = (position < -most ? -most : position > most ? most : position) + query;
    if (a.left >= 0 && position - a.left > from) from = position - a.left;
    if (a.right >= 0 && position + a.right + 1 < to) to = position + a.right + 1;
  }
  *first = from < to ? (int)from : 0;
  *last = from < to ? (int)to : 0;
}

// The place where a vector of q, or of out, begins.
FUNCTION int vector_of(Attention a, int batch, int head, int query, int size) {
  return (a.joined ? (batch * a.length + query) * a.heads + head
                   : (batch * a.heads + head) * a.length + query) *
         size;
}

FUNCTION float score_of(Attention a, float product, GLOBAL const float* bias, int batch, int head, int query,
                        int key) {
  float score = product * a.scale;
  if (a.softcap > 0.0f) score = a.softcap * tanh(score / a.softcap);
  if (a.has_bias) {
    score += bias[batch * a.bias_steps[0] + head * a.bias_steps[1] + query * a.bias_steps[2] +
                  key * a.bias_steps[3]];
  }
  return score;
}

// The share that earlier sums keep when the largest score has become this.
FUNCTION float kept(float before, float largest) {
  return largest == -INFINITE ? 1.0f : exp(before - largest);
}
// The weight of a score; no score so far is more than `largest`.
FUNCTION float weight_of(float score, float largest) {
  return largest == -INFINITE ? 0.0f : exp(score - largest);
}

// A tile of queries by a tile of elements of the values.
KERNEL(attention_tiles)
(GLOBAL const float* q, GLOBAL const float* keys, GLOBAL const float* values, GLOBAL const i64* begin,
 GLOBAL const i64* lengths, GLOBAL const float* bias, GLOBAL float* out, Attention a) {
  SHARED float left[STEP][TILE];
  SHARED float right[STEP][TILE];
  SHARED float weights[TILE][TILE];  // of keys, for queries
  SHARED float largest[TILE];
  SHARED float keep[TILE];
  SHARED float total[TILE];
  SHARED int query_at[TILE];
  SHARED int first_key[TILE];
  SHARED int last_key[TILE];
  SHARED int range[2];
  int column = LOCAL_ID(0);
  int row = LOCAL_ID(1);
  int thread = row * 16 + column;
  int tiles = (a.rows + TILE - 1) / TILE;
  int image = GROUP_ID(0) / tiles;  // of a batch and a head of keys
  int first_row = GROUP_ID(0) % tiles * TILE;
  int first_column = GROUP_ID(1) * TILE;
  int batch = image / a.groups;
  int first_head = image % a.groups * (a.heads / a.groups);
  if (thread < TILE) {
    int own = first_row + thread;
    int from = 0;
    int to = 0;
    query_at[thread] = -1;
    if (own < a.rows) {
      query_at[thread] = vector_of(a, batch, first_head + own / a.length, own % a.length, a.size);
      keys_of(a, begin, lengths, batch, own % a.length, &from, &to);
    }
    first_key[thread] = from;
    last_key[thread] = to;
    largest[thread] = -INFINITE;
    total[thread] = 0.0f;
  }
  BARRIER();
  if (thread == 0) {
    range[0] = a.keys;
    range[1] = 0;
    for (int i = 0; i < TILE; ++i) {
      if (first_key[i] < last_key[i]) {
        if (first_key[i] < range[0]) range[0] = first_key[i];
        if (last_key[i] > range[1]) range[1] = last_key[i];
      }
    }
  }
  BARRIER();
  int first_block = range[0];
  int end = range[1];
  float sums[4][4];
  float scores[4][4];
  for (int i = 0; i < 4; ++i) {
    for (int j = 0; j < 4; ++j) sums[i][j] = 0.0f;
  }
  for (int block = first_block; block < end; block += TILE) {
    for (int i = 0; i < 4; ++i) {
      for (int j = 0; j < 4; ++j) scores[i][j] = 0.0f;
    }
    for (int first_k = 0; first_k < a.size; first_k += STEP) {
      for (int i = thread; i < TILE * STEP; i += 256) {
        int k = first_k + i % STEP;
        int at = query_at[i / STEP];
        left[i % STEP][i / STEP] = at >= 0 && k < a.size ? q[at + k] : 0.0f;
        int key = block + i / STEP;
        right[i % STEP][i / STEP] =
            key < a.keys && k < a.size ? keys[(image * a.keys + key) * a.size + k] : 0.0f;
      }
      BARRIER();
      MULTIPLY_TILES(float, left, right, scores, row, column);
      BARRIER();
    }
    for (int i = 0; i < 4; ++i) {
      int own = row * 4 + i;
      int head = first_head + (first_row + own) / a.length;
      int query = (first_row + own) % a.length;
      for (int j = 0; j < 4; ++j) {
        int key = block + column * 4 + j;
        int seen = key >= first_key[own] && key < last_key[own];
        scores[i][j] = seen ? score_of(a, scores[i][j], bias, batch, head, query, key) : -INFINITE;
        weights[column * 4 + j][own] = scores[i][j];
      }
    }
    BARRIER();
    if (thread < TILE) {
      float most = largest[thread];
      for (int j = 0; j < TILE; ++j) most = Max(most, weights[j][thread]);
      keep[thread] = kept(largest[thread], most);
      largest[thread] = most;
    }
    BARRIER();
    for (int i = 0; i < 4; ++i) {
      int own = row * 4 + i;
      for (int j = 0; j < 4; ++j) {
        weights[column * 4 + j][own] = weight_of(scores[i][j], largest[own]);
        sums[i][j] *= keep[own];
      }
    }
    BARRIER();
    if (thread < TILE) {
      float sum = 0.0f;
      for (int j = 0; j < TILE; ++j) sum += weights[j][thread];
      total[thread] = total[thread] * keep[thread] + sum;
    }
    // PoCL 3.1 loses what is done right in front of a loop with barriers.
    BARRIER();
    for (int step = 0; step < TILE; step += STEP) {
      for (int i = thread; i < TILE * STEP; i += 256) {
        int key = block + step + i / TILE;
        int e = first_column + i % TILE;
        right[i / TILE][i % TILE] =
            key < end && e < a.value_size ? values[(image * a.keys + key) * a.value_size + e] : 0.0f;
      }
      BARRIER();
      MULTIPLY_TILES(float, (weights + step), right, sums, row, column);
      BARRIER();
    }
  }
  for (int i = 0; i < 4; ++i) {
    int own = first_row + row * 4 + i;
    if (own >= a.rows) continue;
    int at = vector_of(a, batch, first_head + own / a.length, own % a.length, a.value_size);
    float sum = total[row * 4 + i];
    for (int j = 0; j < 4; ++j) {
      int e = first_column + column * 4 + j;
      if (e < a.value_size) out[at + e] = sum != 0.0f ? sums[i][j] / sum : sums[i][j];
    }
  }
}

#define ROW_KEYS 256
#define ROW_COLUMNS 256

// All threads of the group call it; `part` has room for LANES and ends with the result at 0.
#define JOIN_PARTS(part, lane, join)                                     \
  {                                                                      \
    BARRIER();                                                           \
    for (int step = LANES / 2; step > 0; step /= 2) {                    \
      if (lane < step) part[lane] = join(part[lane], part[lane + step]); \
      BARRIER();                                                         \
    }                                                                    \
  }
#define SUM_OF(x, y) ((x) + (y))

// One query by ROW_COLUMNS elements of the values: for calls with too few queries to fill a tile.
KERNEL(attention_rows)
(GLOBAL const float* q, GLOBAL const float* keys, GLOBAL const float* values, GLOBAL const i64* begin,
 GLOBAL const i64* lengths, GLOBAL const float* bias, GLOBAL float* out, Attention a) {
  SHARED float weights[ROW_KEYS];
  SHARED float part[LANES];
  int lane = LOCAL_ID(0);
  int image = GROUP_ID(0) / a.rows;  // of a batch and a head of keys
  int row = GROUP_ID(0) % a.rows;
  int batch = image / a.groups;
  int head = image % a.groups * (a.heads / a.groups) + row / a.length;
  int query = row % a.length;
  int column = GROUP_ID(1) * ROW_COLUMNS + lane;
  int query_at = vector_of(a, batch, head, query, a.size);
  int first = 0;
  int last = 0;
  keys_of(a, begin, lengths, batch, query, &first, &last);
  float largest = -INFINITE;
  float total = 0.0f;
  float sums[ROW_COLUMNS / LANES];
  for (int j = 0; j < ROW_COLUMNS / LANES; ++j) sums[j] = 0.0f;
  for (int block = first; block < last; block += ROW_KEYS) {
    int count = last - block < ROW_KEYS ? last - block : ROW_KEYS;
    float most = -INFINITE;
    for (int key = lane; key < count; key += LANES) {
      int key_at = (image * a.keys + block + key) * a.size;
      float sum = 0.0f;
      for (int k = 0; k < a.size; ++k) sum += q[query_at + k] * keys[key_at + k];
      float score = score_of(a, sum, bias, batch, head, query, block + key);
      weights[key] = score;
      most = Max(most, score);
    }
    part[lane] = most;
    JOIN_PARTS(part, lane, Max);
    most = Max(largest, part[0]);
    float keep = kept(largest, most);
    largest = most;
    BARRIER();
    float sum = 0.0f;
    for (int key = lane; key < count; key += LANES) {
      float weight = weight_of(weights[key], largest);
      weights[key] = weight;
      sum += weight;
    }
    part[lane] = sum;
    JOIN_PARTS(part, lane, SUM_OF);
    total = total * keep + part[0];
    for (int j = 0; j < ROW_COLUMNS / LANES; ++j) {
      int e = column + j * LANES;
      if (e >= a.value_size) continue;
      int value_at = (image * a.keys + block) * a.value_size + e;
      sums[j] *= keep;
      for (int key = 0; key < count; ++key) sums[j] += weights[key] * values[value_at + key * a.value_size];
    }
    BARRIER();
  }
  int out_at = vector_of(a, batch, head, query, a.value_size);
  for (int j = 0; j < ROW_COLUMNS / LANES; ++j) {
    int e = column + j * LANES;
    if (e < a.value_size) out[out_at + e] = total != 0.0f ? sums[j] / total : sums[j];
  }
}
