// SPDX-License-Identifier: Apache-2.0
// A window over an image, one output element a thread: convolutions of few channels, and pools.

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

// The largest element (largest != 0) or the mean under the window.
KERNEL(pool)(GLOBAL const real* x, GLOBAL real* out, Window w, int largest, int count) {
  int at = GLOBAL_ID(0);
  if (at >= count) return;
  int inputs = w.input[0] * w.input[1] * w.input[2];
  int o2 = at % w.output[2];
  int o1 = at / w.output[2] % w.output[1];
  int o0 = at / (w.output[2] * w.output[1]) % w.output[0];
  int x_at = at / (w.output[2] * w.output[1] * w.output[0]) * inputs;
  float result = largest ? -INFINITE : 0.0f;
  int elements = 0;
  for (int t0 = 0; t0 < w.size[0]; ++t0) {
    int i0 = o0 * w.stride[0] - w.before[0] + t0 * w.dilation[0];
    for (int t1 = 0; t1 < w.size[1]; ++t1) {
      int i1 = o1 * w.stride[1] - w.before[1] + t1 * w.dilation[1];
      for (int t2 = 0; t2 < w.size[2]; ++t2) {
        int i2 = o2 * w.stride[2] - w.before[2] + t2 * w.dilation[2];
        int inside = i0 >= 0 && i0 < w.input[0] && i1 >= 0 && i1 < w.input[1] && i2 >= 0 && i2 < w.input[2];
        // What lies behind the pads, where a last window was rounded up, is no element.
        int padded =
            i0 < w.input[0] + w.after[0] && i1 < w.input[1] + w.after[1] && i2 < w.input[2] + w.after[2];
        if (inside || (w.counts_pads && padded)) ++elements;
        if (!inside) continue;
        float value = LOAD(x, x_at + (i0 * w.input[1] + i1) * w.input[2] + i2);
        result = largest ? larger(result, value) : result + value;
      }
    }
  }
  STORE(out, at, largest ? result : result / (float)elements);
}
