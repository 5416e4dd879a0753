#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# on_cuda.sh [CASES]: everything that can be shown on a GPU, in one command of some minutes, after `make build`.
#
# Runs the tests of devices and ONNX's own cases on cuda:0, measures calls (bench-device), and if CASES is what
# tests/models/reference.py wrote, compares all models on the device with ONNX Runtime's answers. Exits with 77, which
# counts as skipped, where there is no CUDA device. With LD_LIBRARY_PATH=build/release/tests/simulated_cuda it runs on
# the simulated driver; its times say nothing then.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

build=build/release
jobs=$(nproc)
export REWIRE_LIBRARY_PATH=$PWD/$build/lib/rewire

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
if (($# == 1)); then
  echo "== the models of tests/models on cuda:0"
  tests/support/environments.py --run tests/models/requirements/models.txt tests/models/check.py --bin "$build/bin" \
    --cases "$1" --device cuda | grep -v '^ok'
fi
