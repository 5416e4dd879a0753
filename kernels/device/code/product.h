// SPDX-License-Identifier: Apache-2.0
// Products of matrices, and convolutions as products with an image whose columns are read where they lie. A
// group computes a tile (tiles.h).

// The places where the two operands of a batch start.
#define BATCH_POSITIONS(batch, p, a_at, b_at)        \
  {                                                  \
    int rest = batch;                                \
    for (int axis = p.rank - 1; axis >= 0; --axis) { \
      int next = rest / p.dims[axis];                \
      int at = rest - next * p.dims[axis];           \
      a_at += at * p.a_batch[axis];                  \
      b_at += at * p.b_batch[axis];                  \
      rest = next;                                   \
    }                                                \
  }

// The window of an output: where its first tap lies.
typedef struct WindowPlace {
  int i0, i1, i2;
} WindowPlace;
FUNCTION WindowPlace window_of(Window w, int n) {
  WindowPlace at;
  at.i2 = n % w.output[2] * w.stride[2] - w.before[2];
  at.i1 = n / w.output[2] % w.output[1] * w.stride[1] - w.before[1];
  at.i0 = n / (w.output[2] * w.output[1]) * w.stride[0] - w.before[0];
  return at;
}
// The element under tap k (of all channels), from the image's first channel on; -1 outside of it.
FUNCTION int under_tap(Window w, WindowPlace at, int taps, int k) {
  int channel = k / taps;
  int tap = k - channel * taps;
  int rest = tap / w.size[2];
  int i2 = at.i2 + (tap - rest * w.size[2]) * w.dilation[2];
  int i1 = at.i1 + rest % w.size[1] * w.dilation[1];
  int i0 = at.i0 + rest / w.size[1] * w.dilation[0];
  int inside = i0 >= 0 && i0 < w.input[0] && i1 >= 0 && i1 < w.input[1] && i2 >= 0 && i2 < w.input[2];
  return inside ? ((channel * w.input[0] + i0) * w.input[1] + i1) * w.input[2] + i2 : -1;
}
FUNCTION int under_window(Window w, int taps, int n, int k) { return under_tap(w, window_of(w, n), taps, k); }

FUNCTION float activated(int activation, float x) {
  return activation == kNoActivation ? x
         : activation == kReluActivation
             ? (x < 0.0f ? 0.0f : x)
             : 0.5f * x * (1.0f + tanh(0.79788456f * (x + 0.044715f * x * x * x)));
}

// Elements of the operands, 0 outside of them.
FUNCTION float left_of(GLOBAL const real* a, int a_at, Product p, int m, int k) {
  return m < p.m && k < p.k ? LOAD(a, a_at + m * p.a_row + k * p.a_column) : 0.0f;
}
FUNCTION float right_of(GLOBAL const real* b, int b_at, Product p, int k, int n) {
  return k < p.k && n < p.n ? LOAD(b, b_at + k * p.b_row + n * p.b_column) : 0.0f;
}
// Stores a sum, unless it lies outside of the result.
FUNCTION void store_product(GLOBAL const real* c, GLOBAL real* out, Product p, int batch, int m, int n,
                            float sum) {
  if (m >= p.m || n >= p.n) return;
  sum *= p.alpha;
  if (p.has_c) sum += p.beta * LOAD(c, batch * p.c_batch + m * p.c_row + n * p.c_column);
  STORE(out, (batch * p.m + m) * p.n + n, activated(p.activation, sum));
}

KERNEL(product)
(GLOBAL const real* a, GLOBAL const real* b, GLOBAL const real* c, GLOBAL real* out, Product p) {
  SHARED float left[STEP][TILE];
  SHARED float right[STEP][TILE];
  int column = LOCAL_ID(0);
  int row = LOCAL_ID(1);
  int thread = row * 16 + column;
  TilePlace place = tile_place(GROUP_ID(0), TILE, p.m, p.n);
  int first_n = place.n;
  int first_m = place.m;
  int batch = place.batch;
  int a_at = 0;
  int b_at = 0;
  BATCH_POSITIONS(batch, p, a_at, b_at);
  float sums[4][4];
  for (int i = 0; i < 4; ++i) {
    for (int j = 0; j < 4; ++j) sums[i][j] = 0.0f;
  }
  for (int first_k = 0; first_k < p.k; first_k += STEP) {
    for (int i = thread; i < TILE * STEP; i += 256) {
      int m = first_m + i / STEP;
      int k = first_k + i % STEP;
      left[i % STEP][i / STEP] = left_of(a, a_at, p, m, k);
      int n = first_n + i % TILE;
      k = first_k + i / TILE;
      right[i / TILE][i % TILE] = right_of(b, b_at, p, k, n);
    }
    BARRIER();
    MULTIPLY_TILES(float, left, right, sums, row, column);
    BARRIER();
  }
  for (int i = 0; i < 4; ++i) {
    int m = first_m + row * 4 + i;
    for (int j = 0; j < 4; ++j) {
      int n = first_n + column * 4 + j;
      store_product(c, out, p, batch, m, n, sums[i][j]);
    }
  }
}

// Each thread an element. Two steps at once: while the one is loaded, the other is on its way.
KERNEL(small_product)
(GLOBAL const real* a, GLOBAL const real* b, GLOBAL const real* c, GLOBAL real* out, Product p) {
  SHARED float left[2 * STEP][STEP + 1];
  SHARED float right[2 * STEP][STEP + 1];
  int column = LOCAL_ID(0);
  int row = LOCAL_ID(1);
  TilePlace place = tile_place(GROUP_ID(0), STEP, p.m, p.n);
  int n = place.n + column;
  int m = place.m + row;
  int batch = place.batch;
  int a_at = 0;
  int b_at = 0;
  BATCH_POSITIONS(batch, p, a_at, b_at);
  float sum = 0.0f;
  for (int first_k = 0; first_k < p.k; first_k += 2 * STEP) {
    for (int i = 0; i < 2 * STEP; i += STEP) {
      left[i + column][row] = left_of(a, a_at, p, m, first_k + i + column);
      right[i + row][column] = right_of(b, b_at, p, first_k + i + row, n);
    }
    BARRIER();
    MULTIPLY_SMALL_TILES(left, right, sum, row, column);
    BARRIER();
  }
  store_product(c, out, p, batch, m, n, sum);
}

// Each group of 64 threads an element, for products of a few columns.
#define DOT_LANES 64
KERNEL(dots)
(GLOBAL const real* a, GLOBAL const real* b, GLOBAL const real* c, GLOBAL real* out, Product p) {
  SHARED float part[DOT_LANES];
  int lane = LOCAL_ID(0);
  int n = GROUP_ID(0) % p.n;
  int m = GROUP_ID(0) / p.n % p.m;
  int batch = GROUP_ID(0) / p.n / p.m;
  int a_at = 0;
  int b_at = 0;
  BATCH_POSITIONS(batch, p, a_at, b_at);
  float sum = 0.0f;
  for (int k = lane; k < p.k; k += DOT_LANES) {
    sum += LOAD(a, a_at + m * p.a_row + k * p.a_column) * LOAD(b, b_at + k * p.b_row + n * p.b_column);
  }
  part[lane] = sum;
  BARRIER();
  for (int step = DOT_LANES / 2; step > 0; step /= 2) {
    if (lane < step) part[lane] += part[lane + step];
    BARRIER();
  }
  if (lane == 0) store_product(c, out, p, batch, m, n, part[0]);
}

FUNCTION int outputs_of(Window w) { return w.output[0] * w.output[1] * w.output[2]; }

// The place of a group's convolution.
typedef struct ConvolutionPlace {
  int image;  // of a batch and a group
  int group;
  int taps, depth, outputs;
  int x_at, weights_at;
} ConvolutionPlace;
FUNCTION ConvolutionPlace place_of(Window w, int image) {
  ConvolutionPlace at;
  at.image = image;
  at.group = image % w.groups;
  at.taps = w.size[0] * w.size[1] * w.size[2];
  at.depth = w.channels * at.taps;
  at.outputs = outputs_of(w);
  at.x_at = image * w.channels * w.input[0] * w.input[1] * w.input[2];
  at.weights_at = at.group * w.out_channels * at.depth;
  return at;
}
FUNCTION float weight_of(GLOBAL const real* weights, Window w, ConvolutionPlace at, int m, int k) {
  return m < w.out_channels && k < at.depth ? LOAD(weights, at.weights_at + m * at.depth + k) : 0.0f;
}
FUNCTION float pixel_of(GLOBAL const real* x, Window w, ConvolutionPlace at, WindowPlace window, int k,
                        int n) {
  if (n >= at.outputs || k >= at.depth) return 0.0f;
  int under = under_tap(w, window, at.taps, k);
  return under >= 0 ? LOAD(x, at.x_at + under) : 0.0f;
}
FUNCTION void store_convolution(GLOBAL const real* bias, GLOBAL real* out, Window w, ConvolutionPlace at,
                                int m, int n, float sum) {
  if (m >= w.out_channels || n >= at.outputs) return;
  if (w.has_bias) sum += LOAD(bias, at.group * w.out_channels + m);
  STORE(out, (at.image * w.out_channels + m) * at.outputs + n, sum);
}

KERNEL(convolution)
(GLOBAL const real* x, GLOBAL const real* weights, GLOBAL const real* bias, GLOBAL real* out, Window w) {
  SHARED float left[STEP][TILE];
  SHARED float right[STEP][TILE];
  int column = LOCAL_ID(0);
  int row = LOCAL_ID(1);
  int thread = row * 16 + column;
  TilePlace place = tile_place(GROUP_ID(0), TILE, w.out_channels, outputs_of(w));
  int first_n = place.n;
  int first_m = place.m;
  ConvolutionPlace at = place_of(w, place.batch);
  float sums[4][4];
  for (int i = 0; i < 4; ++i) {
    for (int j = 0; j < 4; ++j) sums[i][j] = 0.0f;
  }
  WindowPlace window = window_of(w, first_n + thread % TILE);  // of all columns that the thread loads
  for (int first_k = 0; first_k < at.depth; first_k += STEP) {
    for (int i = thread; i < TILE * STEP; i += 256) {
      left[i % STEP][i / STEP] = weight_of(weights, w, at, first_m + i / STEP, first_k + i % STEP);
      right[i / TILE][i % TILE] = pixel_of(x, w, at, window, first_k + i / TILE, first_n + i % TILE);
    }
    BARRIER();
    MULTIPLY_TILES(float, left, right, sums, row, column);
    BARRIER();
  }
  for (int i = 0; i < 4; ++i) {
    int m = first_m + row * 4 + i;
    for (int j = 0; j < 4; ++j) {
      int n = first_n + column * 4 + j;
      store_convolution(bias, out, w, at, m, n, sums[i][j]);
    }
  }
}

// Each thread an element.
KERNEL(small_convolution)
(GLOBAL const real* x, GLOBAL const real* weights, GLOBAL const real* bias, GLOBAL real* out, Window w) {
  SHARED float left[2 * STEP][STEP + 1];
  SHARED float right[2 * STEP][STEP + 1];
  int column = LOCAL_ID(0);
  int row = LOCAL_ID(1);
  TilePlace place = tile_place(GROUP_ID(0), STEP, w.out_channels, outputs_of(w));
  int n = place.n + column;
  int m = place.m + row;
  ConvolutionPlace at = place_of(w, place.batch);
  float sum = 0.0f;
  WindowPlace window = window_of(w, n);
  for (int first_k = 0; first_k < at.depth; first_k += 2 * STEP) {
    for (int i = 0; i < 2 * STEP; i += STEP) {
      left[i + column][row] = weight_of(weights, w, at, m, first_k + i + column);
      right[i + row][column] = pixel_of(x, w, at, window, first_k + i + row, n);
    }
    BARRIER();
    MULTIPLY_SMALL_TILES(left, right, sum, row, column);
    BARRIER();
  }
  store_convolution(bias, out, w, at, m, n, sum);
}

// Bytes less their zeros, with sums of 32 bits, which wrap.
FUNCTION uint load_byte(GLOBAL const u8* p, int is_signed, int i) {
  return is_signed ? (uint)(int)((GLOBAL const signed char*)p)[i] : (uint)p[i];
}
FUNCTION uint load_shifted(GLOBAL const u8* p, GLOBAL const u8* zero, int is_signed, int zeros, int i,
                           int line) {
  uint shift = zeros == 0 ? 0 : load_byte(zero, is_signed, zeros == 1 ? 0 : line);
  return load_byte(p, is_signed, i) - shift;
}

KERNEL(integer_product)
(GLOBAL const u8* a, GLOBAL const u8* b, GLOBAL const u8* a_zero, GLOBAL const u8* b_zero, GLOBAL uint* out,
 Product p, Bytes bytes) {
  SHARED uint left[STEP][TILE];
  SHARED uint right[STEP][TILE];
  int column = LOCAL_ID(0);
  int row = LOCAL_ID(1);
  int thread = row * 16 + column;
  TilePlace place = tile_place(GROUP_ID(0), TILE, p.m, p.n);
  int first_n = place.n;
  int first_m = place.m;
  int batch = place.batch;
  int a_at = 0;
  int b_at = 0;
  BATCH_POSITIONS(batch, p, a_at, b_at);
  uint sums[4][4];
  for (int i = 0; i < 4; ++i) {
    for (int j = 0; j < 4; ++j) sums[i][j] = 0;
  }
  for (int first_k = 0; first_k < p.k; first_k += STEP) {
    for (int i = thread; i < TILE * STEP; i += 256) {
      int m = first_m + i / STEP;
      int k = first_k + i % STEP;
      left[i % STEP][i / STEP] = m < p.m && k < p.k
                                     ? load_shifted(a, a_zero, bytes.left_signed, bytes.left_zeros,
                                                    a_at + m * p.a_row + k * p.a_column, m % p.rows)
                                     : 0;
      int n = first_n + i % TILE;
      k = first_k + i / TILE;
      right[i / TILE][i % TILE] = n < p.n && k < p.k
                                      ? load_shifted(b, b_zero, bytes.right_signed, bytes.right_zeros,
                                                     b_at + k * p.b_row + n * p.b_column, n)
                                      : 0;
    }
    BARRIER();
    MULTIPLY_TILES(uint, left, right, sums, row, column);
    BARRIER();
  }
  for (int i = 0; i < 4; ++i) {
    int m = first_m + row * 4 + i;
    for (int j = 0; j < 4; ++j) {
      int n = first_n + column * 4 + j;
      if (m < p.m && n < p.n) out[(batch * p.m + m) * p.n + n] = sums[i][j];
    }
  }
}

// The left operand is the weights, the right one the image.
KERNEL(integer_convolution)
(GLOBAL const u8* x, GLOBAL const u8* weights, GLOBAL const u8* x_zero, GLOBAL const u8* w_zero,
 GLOBAL uint* out, Window w, Bytes bytes) {
  SHARED uint left[STEP][TILE];
  SHARED uint right[STEP][TILE];
  int column = LOCAL_ID(0);
  int row = LOCAL_ID(1);
  int thread = row * 16 + column;
  TilePlace place = tile_place(GROUP_ID(0), TILE, w.out_channels, outputs_of(w));
  int first_n = place.n;
  int first_m = place.m;
  int image = place.batch;  // of a batch and a group
  int first_channel = image % w.groups * w.out_channels;
  int taps = w.size[0] * w.size[1] * w.size[2];
  int depth = w.channels * taps;
  int outputs = w.output[0] * w.output[1] * w.output[2];
  int x_at = image * w.channels * w.input[0] * w.input[1] * w.input[2];
  uint sums[4][4];
  for (int i = 0; i < 4; ++i) {
    for (int j = 0; j < 4; ++j) sums[i][j] = 0;
  }
  for (int first_k = 0; first_k < depth; first_k += STEP) {
    for (int i = thread; i < TILE * STEP; i += 256) {
      int m = first_m + i / STEP;
      int k = first_k + i % STEP;
      int channel = first_channel + m;
      left[i % STEP][i / STEP] = m < w.out_channels && k < depth
                                     ? load_shifted(weights, w_zero, bytes.left_signed, bytes.left_zeros,
                                                    channel * depth + k, channel)
                                     : 0;
      int n = first_n + i % TILE;
      k = first_k + i / TILE;
      int at = n < outputs && k < depth ? under_window(w, taps, n, k) : -1;
      right[i / TILE][i % TILE] =
          at < 0 ? 0 : load_shifted(x, x_zero, bytes.right_signed, bytes.right_zeros, x_at + at, 0);
    }
    BARRIER();
    MULTIPLY_TILES(uint, left, right, sums, row, column);
    BARRIER();
  }
  for (int i = 0; i < 4; ++i) {
    int m = first_m + row * 4 + i;
    for (int j = 0; j < 4; ++j) {
      int n = first_n + column * 4 + j;
      if (m < w.out_channels && n < outputs) {
        out[(image * w.out_channels + m) * outputs + n] = sums[i][j];
      }
    }
  }
}
