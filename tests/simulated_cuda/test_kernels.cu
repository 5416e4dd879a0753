// SPDX-License-Identifier: Apache-2.0
// Kernels for the tests of the simulated CUDA driver, in CUDA C++.

extern "C" __global__ void add(const float* a, const float* b, float* out, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) out[i] = a[i] + b[i];
}
REWIRE_SIMULATED_KERNEL(add)

extern "C" __global__ void increment(int* values, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) values[i] += 1;
}
REWIRE_SIMULATED_KERNEL(increment)

// Shared memory, barriers: the sum of each block.
extern "C" __global__ void sum_blocks(const int* values, int* sums) {
  __shared__ int parts[256];
  const int t = threadIdx.x;
  parts[t] = values[blockIdx.x * blockDim.x + t];
  __syncthreads();
  for (int half = blockDim.x / 2; half > 0; half /= 2) {
    if (t < half) parts[t] += parts[t + half];
    __syncthreads();
  }
  if (t == 0) sums[blockIdx.x] = parts[0];
}
REWIRE_SIMULATED_KERNEL(sum_blocks)

// Shuffles: the sum of each warp, in every lane's place.
extern "C" __global__ void sum_warps(const int* values, int* sums) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  int sum = values[i];
  for (int by = 16; by > 0; by /= 2) sum += __shfl_xor_sync(0xffffffffU, sum, by);
  sums[i] = sum;
}
REWIRE_SIMULATED_KERNEL(sum_warps)

// Running sums of a warp of 20 lanes: the mask names lanes that there are not.
extern "C" __global__ void scan_part(const int* values, int* sums) {
  int sum = values[threadIdx.x];
  for (unsigned by = 1; by < 32; by *= 2) {
    const int other = __shfl_up_sync(0xffffffffU, sum, by);
    if (threadIdx.x >= by) sum += other;
  }
  sums[threadIdx.x] = sum;
}
REWIRE_SIMULATED_KERNEL(scan_part)

// Votes of halves of a warp that take different ways.
extern "C" __global__ void vote(const int* values, unsigned* votes) {
  const unsigned t = threadIdx.x;
  if (t < 16)
    votes[t] = __ballot_sync(0x0000ffffU, values[t] > 0);
  else
    votes[t] = __ballot_sync(0xffff0000U, values[t] > 0);
}
REWIRE_SIMULATED_KERNEL(vote)

extern "C" __global__ void count_threads(int* whole, float* real) {
  atomicAdd(whole, 1);
  atomicAdd(real, 0.5F);
  atomicMax(whole + 1, static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x));
}
REWIRE_SIMULATED_KERNEL(count_threads)

// A tiled product of square matrices, in tiles of 8 x 8 in dynamic shared memory.
extern "C" __global__ void product(const float* a, const float* b, float* c, int n) {
  REWIRE_DYNAMIC_SHARED(float, tiles);
  float* tile_a = tiles;
  float* tile_b = tiles + 64;
  const int row = blockIdx.y * 8 + threadIdx.y;
  const int column = blockIdx.x * 8 + threadIdx.x;
  const int at = threadIdx.y * 8 + threadIdx.x;
  float sum = 0;
  for (int k = 0; k < n; k += 8) {
    tile_a[at] = a[row * n + k + threadIdx.x];
    tile_b[at] = b[(k + threadIdx.y) * n + column];
    __syncthreads();
    for (int i = 0; i < 8; ++i) sum += tile_a[threadIdx.y * 8 + i] * tile_b[i * 8 + threadIdx.x];
    __syncthreads();
  }
  c[row * n + column] = sum;
}
REWIRE_SIMULATED_KERNEL(product)

// How many threads of the block have a positive value. Some threads have left before the barrier.
extern "C" __global__ void count_positive(const int* values, int* count, int threads) {
  if (static_cast<int>(threadIdx.x) >= threads) return;
  const int found = __syncthreads_count(values[threadIdx.x] > 0);
  if (threadIdx.x == 0) *count = found;
}
REWIRE_SIMULATED_KERNEL(count_positive)

struct Pair {
  float* first;
  float* second;
};
extern "C" __global__ void swap_by_struct(Pair pair, char unused, double scale) {
  const float first = pair.first[threadIdx.x];
  pair.first[threadIdx.x] = static_cast<float>(pair.second[threadIdx.x] * scale);
  pair.second[threadIdx.x] = first + static_cast<float>(unused);
}
REWIRE_SIMULATED_KERNEL(swap_by_struct)

extern "C" __global__ void write_address(unsigned long long* out) { *out = rewire_address_for_host(out); }
REWIRE_SIMULATED_KERNEL(write_address)

// Faults.
extern "C" __global__ void write_far(int* values, long long at) { values[at] = 1; }
REWIRE_SIMULATED_KERNEL(write_far)
extern "C" __global__ void trap(int* values) {
  if (values[0] != 12345) __trap();
}
REWIRE_SIMULATED_KERNEL(trap)
extern "C" __global__ void wait_for_nobody(int* values) {
  if (threadIdx.x == 0) values[0] = __shfl_sync(3, 1, 1);
  if (threadIdx.x == 1) __syncthreads();
}
REWIRE_SIMULATED_KERNEL(wait_for_nobody)

extern "C" {
__constant__ int table[4] = {1, 2, 3, 4};
}
extern "C" __global__ void read_table(int* out) { out[threadIdx.x] = table[threadIdx.x]; }
REWIRE_SIMULATED_KERNEL(read_table)
