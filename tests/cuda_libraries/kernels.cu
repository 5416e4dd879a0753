// SPDX-License-Identifier: Apache-2.0
// The kernels of the simulated cuBLASLt and cuDNN. They are plain and slow.
#include <cuda_fp16.h>

#include "rewire/tests/cuda_libraries/parameters.h"

using rewire::simulated_libraries::ConvolutionParameters;
using rewire::simulated_libraries::MatmulParameters;

__device__ float load(const unsigned char* p, int half, int i) {
  return half ? __half2float(((const __half*)p)[i]) : ((const float*)p)[i];
}
__device__ void store(unsigned char* p, int half, int i, float value) {
  if (half) {
    ((__half*)p)[i] = __float2half_rn(value);
  } else {
    ((float*)p)[i] = value;
  }
}

// The workspace is written, so that one that is too small or is missing is noticed.
extern "C" __global__ void simulated_matmul(const unsigned char* a, const unsigned char* b,
                                            const unsigned char* c, unsigned char* d,
                                            const unsigned char* bias, unsigned char* workspace,
                                            MatmulParameters p) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= p.m * p.n * p.batch) return;
  if (i < 1024) workspace[i] = 1;
  const int row = i % p.m, column = i / p.m % p.n, batch = i / (p.m * p.n);
  float sum = 0;
  for (int k = 0; k < p.k; ++k) {
    const int a_at = p.a_transposed ? k + row * p.a_leading : row + k * p.a_leading;
    const int b_at = p.b_transposed ? column + k * p.b_leading : k + column * p.b_leading;
    sum += load(a, p.half, batch * p.a_step + a_at) * load(b, p.half, batch * p.b_step + b_at);
  }
  sum *= p.alpha;
  if (p.beta != 0) sum += p.beta * load(c, p.half, batch * p.c_step + row + column * p.c_leading);
  if (p.epilogue & 4) sum += load(bias, p.half, row);
  if (p.epilogue & 2) sum = sum < 0 ? 0 : sum;
  if (p.epilogue & 32) sum = 0.5f * sum * (1 + tanhf(0.79788456f * (sum + 0.044715f * sum * sum * sum)));
  store(d, p.half, batch * p.d_step + row + column * p.d_leading, sum);
}
REWIRE_SIMULATED_KERNEL(simulated_matmul)

extern "C" __global__ void simulated_convolution(const unsigned char* x, const unsigned char* w,
                                                 unsigned char* y, unsigned char* workspace,
                                                 ConvolutionParameters p) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const int size = p.y[0] * p.y[1] * p.y[2];
  if (i >= p.images * p.outputs * size) return;
  if (i < 1024) workspace[i] = 1;
  const int o2 = i % p.y[2], o1 = i / p.y[2] % p.y[1], o0 = i / (p.y[2] * p.y[1]) % p.y[0];
  const int output = i / size % p.outputs, image = i / size / p.outputs;
  const int group = output / (p.outputs / p.groups);
  float sum = 0;
  for (int c = 0; c < p.channels; ++c) {
    for (int t0 = 0; t0 < p.w[0]; ++t0) {
      for (int t1 = 0; t1 < p.w[1]; ++t1) {
        for (int t2 = 0; t2 < p.w[2]; ++t2) {
          const int i0 = o0 * p.strides[0] - p.pads[0] + t0 * p.dilations[0];
          const int i1 = o1 * p.strides[1] - p.pads[1] + t1 * p.dilations[1];
          const int i2 = o2 * p.strides[2] - p.pads[2] + t2 * p.dilations[2];
          if (i0 < 0 || i0 >= p.x[0] || i1 < 0 || i1 >= p.x[1] || i2 < 0 || i2 >= p.x[2]) continue;
          const int channel = (image * p.groups + group) * p.channels + c;
          const int x_at = ((channel * p.x[0] + i0) * p.x[1] + i1) * p.x[2] + i2;
          const int w_at = (((output * p.channels + c) * p.w[0] + t0) * p.w[1] + t1) * p.w[2] + t2;
          sum += load(x, p.half, x_at) * load(w, p.half, w_at);
        }
      }
    }
  }
  sum *= p.alpha;
  if (p.beta != 0) sum += p.beta * load(y, p.half, i);
  store(y, p.half, i, sum);
}
REWIRE_SIMULATED_KERNEL(simulated_convolution)

// Each channel of y [.., channels, inner] plus one number.
extern "C" __global__ void simulated_add_channels(const unsigned char* bias, unsigned char* y, int half,
                                                  int channels, int inner, int count, float alpha,
                                                  float beta) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) store(y, half, i, alpha * load(bias, half, i / inner % channels) + beta * load(y, half, i));
}
REWIRE_SIMULATED_KERNEL(simulated_add_channels)
