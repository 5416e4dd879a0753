// SPDX-License-Identifier: Apache-2.0
// A window over an image, one output element a thread: convolutions of few channels and transposed ones,
// pools, and resizing.

KERNEL(direct_convolution)
(GLOBAL const real* x, GLOBAL const real* weights, GLOBAL const real* bias, GLOBAL real* out, Window w,
 int count) {
  int at = GLOBAL_ID(0);
  if (at >= count) return;
  int inputs = w.input[0] * w.input[1] * w.input[2];
  int taps = w.size[0] * w.size[1] * w.size[2];
  int o2 = at % w.output[2];
  int o1 = at / w.output[2] % w.output[1];
  int o0 = at / (w.output[2] * w.output[1]) % w.output[0];
  int map = at / (w.output[2] * w.output[1] * w.output[0]);  // of batch, group and channel
  int m = map % (w.groups * w.out_channels);
  int image = map / w.out_channels;  // of batch and group
  float sum = w.has_bias ? LOAD(bias, m) : 0.0f;
  for (int channel = 0; channel < w.channels; ++channel) {
    int x_at = (image * w.channels + channel) * inputs;
    int w_at = (m * w.channels + channel) * taps;
    for (int t0 = 0; t0 < w.size[0]; ++t0) {
      int i0 = o0 * w.stride[0] - w.before[0] + t0 * w.dilation[0];
      if (i0 < 0 || i0 >= w.input[0]) continue;
      for (int t1 = 0; t1 < w.size[1]; ++t1) {
        int i1 = o1 * w.stride[1] - w.before[1] + t1 * w.dilation[1];
        if (i1 < 0 || i1 >= w.input[1]) continue;
        for (int t2 = 0; t2 < w.size[2]; ++t2) {
          int i2 = o2 * w.stride[2] - w.before[2] + t2 * w.dilation[2];
          if (i2 < 0 || i2 >= w.input[2]) continue;
          sum += LOAD(x, x_at + (i0 * w.input[1] + i1) * w.input[2] + i2) *
                 LOAD(weights, w_at + (t0 * w.size[1] + t1) * w.size[2] + t2);
        }
      }
    }
  }
  STORE(out, at, sum);
}

// The taps of a window that lie on the image, from `first` to before `last` along each axis; none if that is
// no range. `begin` is where the window begins, perhaps in front of the image.
typedef struct Taps {
  int first[3], last[3], begin[3];
  int elements;  // that count for a mean
  int plane;     // number of the image and channel
} Taps;

FUNCTION int lesser(int a, int b) { return a < b ? a : b; }

// The taps of output element `at`.
FUNCTION Taps taps_at(Window w, int at) {
  Taps taps;
  taps.elements = 1;
  for (int axis = 2; axis >= 0; --axis) {
    int row = at / w.output[axis];
    int begin = (at - row * w.output[axis]) * w.stride[axis] - w.before[axis];
    int behind = w.input[axis] - begin;
    int first = begin < 0 ? (w.dilation[axis] - 1 - begin) / w.dilation[axis] : 0;
    int last = behind <= 0 ? 0 : lesser(w.size[axis], (behind - 1) / w.dilation[axis] + 1);
    // A position behind the pads, where a last window was rounded up, is no element.
    int padded = lesser(w.size[axis], (behind + w.after[axis] - 1) / w.dilation[axis] + 1);
    taps.elements *= w.counts_pads ? padded : last > first ? last - first : 0;
    taps.first[axis] = first;
    taps.last[axis] = last;
    taps.begin[axis] = begin;
    at = row;
  }
  taps.plane = at;
  return taps;
}
// The beginning of the line of taps that has these places along the first two axes.
FUNCTION int line_of(Window w, Taps taps, int t0, int t1) {
  int i0 = taps.begin[0] + t0 * w.dilation[0];
  int i1 = taps.begin[1] + t1 * w.dilation[1];
  return ((taps.plane * w.input[0] + i0) * w.input[1] + i1) * w.input[2] + taps.begin[2];
}

// The largest element (largest != 0) or the mean under the window.
KERNEL(pool)(GLOBAL const real* x, GLOBAL real* out, Window w, int largest, int count) {
  int at = GLOBAL_ID(0);
  if (at >= count) return;
  Taps taps = taps_at(w, at);
  float result = largest ? -INFINITE : 0.0f;
  for (int t0 = taps.first[0]; t0 < taps.last[0]; ++t0) {
    for (int t1 = taps.first[1]; t1 < taps.last[1]; ++t1) {
      int line = line_of(w, taps, t0, t1);
      for (int t2 = taps.first[2]; t2 < taps.last[2]; ++t2) {
        float value = LOAD(x, line + t2 * w.dilation[2]);
        result = largest ? Max(result, value) : result + value;
      }
    }
  }
  STORE(out, at, largest ? result : taps.elements == 0 ? 0.0f : result / (float)taps.elements);
}

// The largest integer of 8 bits, `least` where a window lies beside the image.
KERNEL(byte_pool)(GLOBAL const u8* x, GLOBAL u8* out, Window w, int type, int least, int count) {
  int at = GLOBAL_ID(0);
  if (at >= count) return;
  Taps taps = taps_at(w, at);
  int result = least;
  for (int t0 = taps.first[0]; t0 < taps.last[0]; ++t0) {
    for (int t1 = taps.first[1]; t1 < taps.last[1]; ++t1) {
      int line = line_of(w, taps, t0, t1);
      for (int t2 = taps.first[2]; t2 < taps.last[2]; ++t2) {
        int value = (int)load_integer(x, type, line + t2 * w.dilation[2]);
        result = value > result ? value : result;
      }
    }
  }
  store_wrapped(out, type, at, result);
}

// The window is that of the convolution from out, its input, to x, its output.
KERNEL(transposed_convolution)
(GLOBAL const real* x, GLOBAL const real* weights, GLOBAL const real* bias, GLOBAL real* out, Window w,
 int count) {
  int at = GLOBAL_ID(0);
  if (at >= count) return;
  int taps = w.size[0] * w.size[1] * w.size[2];
  int positions = w.output[0] * w.output[1] * w.output[2];
  int p2 = at % w.input[2] + w.before[2];
  int p1 = at / w.input[2] % w.input[1] + w.before[1];
  int p0 = at / (w.input[2] * w.input[1]) % w.input[0] + w.before[0];
  int map = at / (w.input[2] * w.input[1] * w.input[0]);  // of batch, group and channel
  int m = map % w.out_channels;
  int image = map / w.out_channels;  // of batch and group
  int first = image % w.groups * w.channels;
  float sum = w.has_bias ? LOAD(bias, map % (w.groups * w.out_channels)) : 0.0f;
  for (int tap = 0; tap < taps; ++tap) {
    int o2 = p2 - tap % w.size[2] * w.dilation[2];
    int o1 = p1 - tap / w.size[2] % w.size[1] * w.dilation[1];
    int o0 = p0 - tap / (w.size[2] * w.size[1]) * w.dilation[0];
    if (o0 < 0 || o1 < 0 || o2 < 0) continue;
    if (o0 % w.stride[0] != 0 || o1 % w.stride[1] != 0 || o2 % w.stride[2] != 0) continue;
    o0 /= w.stride[0];
    o1 /= w.stride[1];
    o2 /= w.stride[2];
    if (o0 >= w.output[0] || o1 >= w.output[1] || o2 >= w.output[2]) continue;
    int from = (o0 * w.output[1] + o1) * w.output[2] + o2;
    for (int c = 0; c < w.channels; ++c) {
      sum += LOAD(x, (image * w.channels + c) * positions + from) *
             LOAD(weights, ((first + c) * w.out_channels + m) * taps + tap);
    }
  }
  STORE(out, at, sum);
}

// Positions are computed in float64 as on the CPU, where the device has it: a position that is rounded may
// lie between two elements by chance.
#if defined(__OPENCL_VERSION__) && !defined(cl_khr_fp64)
typedef float wide;
#else
typedef double wide;
#endif

FUNCTION wide source_position(int coordinates, int input, int output, wide scale, int o) {
  wide x = (wide)o;
  switch (coordinates) {
    case kResizePytorchHalfPixel:
      return output > 1 ? (x + (wide)0.5) / scale - (wide)0.5 : 0;
    case kResizeAlignCorners:
      return output > 1 ? x * (wide)(input - 1) / (wide)(output - 1) : 0;
    case kResizeAsymmetric:
      return x / scale;
    case kResizeTfHalfPixel:
      return (x + (wide)0.5) / scale;
    case kResizeSymmetric: {
      wide center = (wide)input / 2;
      return center * (1 - (wide)output / (scale * (wide)input)) + (x + (wide)0.5) / scale - (wide)0.5;
    }
    default:
      return (x + (wide)0.5) / scale - (wide)0.5;
  }
}

FUNCTION int nearest_position(int rounding, wide x) {
  wide down = floor(x);
  switch (rounding) {
    case kResizePreferFloor:
      return (int)(x - down == (wide)0.5 ? down : floor(x + (wide)0.5));
    case kResizePreferCeil:
      return (int)floor(x + (wide)0.5);
    case kResizeFloor:
      return (int)down;
    default:
      return (int)ceil(x);
  }
}

FUNCTION wide filter_weight(int mode, wide a, wide distance) {
  wide x = distance < 0 ? -distance : distance;
  if (mode == kResizeLinear) return x < 1 ? 1 - x : 0;
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

#define MOST_TAPS 4

// Resizes real numbers, or integers of 8 bits, which are rounded once.
KERNEL(resize)
(GLOBAL const u8* x, GLOBAL const float* scales, GLOBAL u8* out, Resizing r, int type, int count) {
  int at = GLOBAL_ID(0);
  if (at >= count) return;
  float weights[REWIRE_DEVICE_RANK][MOST_TAPS];
  int first[REWIRE_DEVICE_RANK];
  int taps[REWIRE_DEVICE_RANK];
  int rest = at;
  int combinations = 1;
  for (int axis = r.rank - 1; axis >= 0; --axis) {
    int row = rest / r.output[axis];
    int o = rest - row * r.output[axis];
    rest = row;
    wide scale = r.scale[axis] < 0 ? (wide)r.output[axis] / (wide)r.input[axis] : (wide)scales[r.scale[axis]];
    first[axis] = o;
    taps[axis] = 1;
    weights[axis][0] = 1.0f;
    if (r.input[axis] == r.output[axis] && scale == 1) continue;
    wide source = source_position(r.coordinates, r.input[axis], r.output[axis], scale, o);
    if (r.mode == kResizeNearest) {
      first[axis] = nearest_position(r.rounding, source);
      continue;
    }
    int reach = r.mode == kResizeLinear ? 1 : 2;
    first[axis] = (int)floor(source) - (reach - 1);
    taps[axis] = 2 * reach;
    combinations *= taps[axis];
    wide sum = 0;
    for (int t = 0; t < 2 * reach; ++t) {
      int position = first[axis] + t;
      wide weight = filter_weight(r.mode, (wide)r.cubic, (wide)position - source);
      if (r.exclude_outside && (position < 0 || position >= r.input[axis])) weight = 0;
      weights[axis][t] = (float)weight;
      sum += weight;
    }
    for (int t = 0; r.exclude_outside && sum != 0 && t < 2 * reach; ++t) weights[axis][t] /= (float)sum;
  }
  float result = 0.0f;
  for (int k = 0; k < combinations; ++k) {
    float weight = 1.0f;
    int from = 0;
    int step = 1;
    rest = k;
    for (int axis = r.rank - 1; axis >= 0; --axis) {
      int tap = rest % taps[axis];
      rest /= taps[axis];
      int position = first[axis] + tap;
      position = position < 0 ? 0 : position >= r.input[axis] ? r.input[axis] - 1 : position;
      weight *= weights[axis][tap];
      from += position * step;
      step *= r.input[axis];
    }
    if (weight == 0.0f) continue;
    result +=
        weight * (type == kTypeReal ? LOAD((GLOBAL const real*)x, from) : (float)load_integer(x, type, from));
  }
  if (type == kTypeReal) {
    STORE((GLOBAL real*)out, at, result);
  } else {
    store_integer(out, type, at, rint(result));
  }
}
