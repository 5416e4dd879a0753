#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# on_cuda.sh [CASES]: everything that can be shown on a GPU, in one command of some minutes, after `make build`.
#
# Runs the tests of devices and ONNX's own cases on cuda:0, and measures calls, copies and products (bench-device). If
# CASES is what tests/models/reference.py wrote, it compares all models on the device with ONNX Runtime's answers, and
# measures them beside its CUDA provider, where the package onnxruntime-gpu is installed. Exits with 77, which
# counts as skipped, where there is no CUDA device. With LD_LIBRARY_PATH=build/release/tests/simulated_cuda it runs on
# the simulated driver; its times say nothing then.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

build=build/release
jobs=$(nproc)
export REWIRE_LIBRARY_PATH=$PWD/$build/lib/rewire

# GB/s of the link between host and device in one direction, by its generation and width; 0 where nobody tells.
link_rate() {
  { nvidia-smi --id=0 --query-gpu=pcie.link.gen.max,pcie.link.width.max --format=csv,noheader 2>/dev/null || echo "0, 0"; } |
    awk -F', *' 'BEGIN { lane[3] = 0.985; lane[4] = 1.969; lane[5] = 3.938; lane[6] = 7.563 } { print lane[$1 + 0] * $2; exit }'
}

cmake --preset release -DREWIRE_BUILD_BENCH=ON --log-level=WARNING >/dev/null
cmake --build "$build" --parallel "$jobs" --target vm-run vm-compile rewire_device_cuda rewire_kernels_device \
  rewire_kernels_cpu device_library_test device_compiler_test onnx_node_suite bench-device >/dev/null

devices=$("$build/bin/vm-run" --devices)
echo "$devices"
if ! grep -q 'cuda:0' <<<"$devices"; then
  echo "skipped: there is no CUDA device here"
  exit 77
fi

echo "== tests of devices, and ONNX's own cases on cuda:0"
ctest --test-dir "$build" --output-on-failure --tests-regex '^(device_library_cuda|device_compiler_cuda|onnx_node_suite_cuda)$'
echo "== the same without cuBLASLt and cuDNN"
REWIRE_CUDA_LIBRARIES=off ctest --test-dir "$build" --output-on-failure --tests-regex '^(device_library_cuda|device_compiler_cuda|onnx_node_suite_cuda)$'
echo "== what calls cost"
"$build/tests/bin/bench-device" cuda
echo "== copies and products, and their share of the hardware's peak"
"$build/tests/bin/bench-device" cuda --peaks "$(link_rate)"
if (($# == 1)); then
  echo "== the models of tests/models on cuda:0"
  tests/support/environments.py --run tests/models/requirements/models.txt tests/models/check.py --bin "$build/bin" \
    --cases "$1" --device cuda | sed '/^ok/d'
  echo "== the same, beside ONNX Runtime's CUDA provider"
  python=python3
  python3 -c 'import numpy, onnxruntime; assert "CUDAExecutionProvider" in onnxruntime.get_available_providers()' 2>/dev/null ||
    python=$(tests/support/environments.py --python tests/models/requirements/models.txt)
  "$python" tests/bench/device_models.py --bin "$build/bin" --cases "$1" --seconds 240
fi
