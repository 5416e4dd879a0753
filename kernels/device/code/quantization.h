// SPDX-License-Identifier: Apache-2.0
// Between float32 numbers and the integers that represent them: real = (stored - zero) * scale. The integers'
// type is an argument, the same for all threads.

// A product that is rounded before anything is added to it. Compilers may do both at once, and round once.
#if defined(__OPENCL_VERSION__)
#pragma OPENCL FP_CONTRACT OFF
#define ROUNDED_PRODUCT(a, b) ((a) * (b))
#else
#define ROUNDED_PRODUCT(a, b) __fmul_rn(a, b)
#endif

FUNCTION int channel_of(Channels c, int i) {
  if (c.block == 0) return c.count == 1 ? 0 : i / c.inner % c.count;
  int at = i / c.inner;
  return (at / c.count * c.blocks + at % c.count / c.block) * c.inner + i % c.inner;
}

KERNEL(quantize)
(GLOBAL const float* x, GLOBAL const float* scale, GLOBAL const u8* zero, GLOBAL u8* out, Channels channels,
 int type, int has_zero, int count) {
  int i = GLOBAL_ID(0);
  if (i >= count) return;
  int c = channel_of(channels, i);
  int shift = has_zero ? (int)load_integer(zero, type, c) : 0;
  store_integer(out, type, i, rint(x[i] / scale[c]) + (float)shift);
}

KERNEL(dequantize)
(GLOBAL const u8* x, GLOBAL const float* scale, GLOBAL const u8* zero, GLOBAL float* out, Channels channels,
 int type, int has_zero, int count) {
  int i = GLOBAL_ID(0);
  if (i >= count) return;
  int c = channel_of(channels, i);
  i64 shift = has_zero ? load_integer(zero, type, c) : 0;
  out[i] = (float)(load_integer(x, type, i) - shift) * scale[c];
}

KERNEL(requantize)
(GLOBAL const int* x, GLOBAL const float* x_scale, GLOBAL const float* w_scale, GLOBAL const float* out_scale,
 GLOBAL const u8* zero, GLOBAL u8* out, Channels channels, int type, int count) {
  int i = GLOBAL_ID(0);
  if (i >= count) return;
  float factor = x_scale[0] * w_scale[channel_of(channels, i)] / out_scale[0];
  store_integer(out, type, i, rint((float)x[i] * factor) + (float)load_integer(zero, type, 0));
}

// Elements of 8 bits.
KERNEL(add_quantized)
(GLOBAL const u8* a, GLOBAL const u8* b, GLOBAL u8* out, QuantizedSum s, int type, int count) {
  int i = GLOBAL_ID(0);
  if (i >= count) return;
  float x = ROUNDED_PRODUCT((float)((int)load_integer(a, type, i) - s.a_zero), s.a_scale);
  float y = ROUNDED_PRODUCT((float)((int)load_integer(b, type, i) - s.b_zero), s.b_scale);
  float sum = (x + y) / s.scale;
  float least = (float)(s.least - s.zero);
  float most = (float)(s.most - s.zero);
  sum = sum > least ? sum : least;  // NaN gives the least one
  sum = sum < most ? sum : most;
  store_wrapped(out, type, i, (int)rint(sum) + s.zero);
}

// The byte of the table at each byte.
KERNEL(map_bytes)(GLOBAL const u8* x, GLOBAL const u8* table, GLOBAL u8* out, int count) {
  int i = GLOBAL_ID(0);
  if (i < count) out[i] = table[x[i]];
}

#define LANES 256

// The scale and zero of unsigned bytes that cover all elements and 0. One group of threads.
KERNEL(covering_scale)(GLOBAL const float* x, GLOBAL float* scale, GLOBAL u8* zero, int count) {
  SHARED float least[LANES];
  SHARED float most[LANES];
  int lane = LOCAL_ID(0);
  float low = 0.0f;
  float high = 0.0f;
  for (int i = lane; i < count; i += LANES) {
    float value = x[i];
    low = value < low ? value : low;
    high = value > high ? value : high;
  }
  least[lane] = low;
  most[lane] = high;
  BARRIER();
  for (int step = LANES / 2; step > 0; step /= 2) {
    if (lane < step) {
      least[lane] = Min(least[lane], least[lane + step]);
      most[lane] = Max(most[lane], most[lane + step]);
    }
    BARRIER();
  }
  if (lane == 0) {
    float step = most[0] > least[0] ? (most[0] - least[0]) / 255.0f : 1.0f;
    scale[0] = step;
    store_integer(zero, kTypeU8, 0, rint(-least[0] / step));
  }
}
