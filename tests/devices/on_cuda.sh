#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# on_cuda.sh [CASES]: everything that can be shown on a GPU, in one command of some minutes, after `make build`.
# on_cuda.sh --pack FILE.tar.xz: builds here, and packs what the command needs on a machine that has no Debian packages.
#   There, unpack it in a checkout at the same path (or a link to it), and call on_cuda.sh --built [CASES].
#
# Runs the tests of devices and ONNX's own cases on cuda:0, and measures calls, copies and products (bench-device). If
# CASES is what tests/models/reference.py wrote, it compares all models on the device with ONNX Runtime's answers, and
# measures them beside its CUDA provider, where the package onnxruntime-gpu is installed. NVIDIA's libraries are used
# where LD_LIBRARY_PATH or the system finds them. Exits with 77, which counts as skipped, where there is no CUDA device.
# With LD_LIBRARY_PATH=build/release/tests/simulated_cuda it runs on the simulated driver; its times say nothing then.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

build=build/release
programs=(bin/vm-run bin/vm-compile bin/vm-inspect tests/bin/{device_library_test,device_compiler_test,onnx_node_suite,bench-device})
cases_of_onnx=/usr/share/libonnx-testdata/data

compile() {
  cmake --preset release -DREWIRE_BUILD_BENCH=ON --log-level=WARNING >/dev/null
  cmake --build "$build" --parallel "$(nproc)" --target vm-run vm-compile vm-inspect rewire_device_cuda rewire_kernels_device \
    rewire_kernels_cpu device_library_test device_compiler_test onnx_node_suite bench-device >/dev/null
}

# The programs and their libraries, those of Debian in lib/packed, and ONNX's cases, all below build/.
pack() {
  local folder
  folder=$(mktemp -d)
  mkdir -p "$folder/$build"/{bin,tests/bin,lib/packed} "$folder/build/onnx-cases"
  (cd "$build" && cp -a --parents "${programs[@]}" lib/*.so* lib/rewire/*.so* tests/libraries/stream_of.so "$folder/$build")
  for program in "${programs[@]}"; do ldd "$build/$program"; done |
    awk '$3 ~ "^/(usr/)?lib/" && $1 !~ "^(libc|libm|libgcc_s|libstdc\\+\\+)\\.so" { print $3 }' | sort -u |
    xargs cp -L -t "$folder/$build/lib/packed"
  find "$folder/$build" -type f -exec strip {} + 2>/dev/null || true
  cp -r "$cases_of_onnx" "$folder/build/onnx-cases/"
  tar -C "$folder" -cJf "$1" build
  rm -rf "$folder"
}

# GB/s of the link between host and device in one direction, by its generation and width; 0 where nobody tells.
link_rate() {
  { nvidia-smi --id=0 --query-gpu=pcie.link.gen.max,pcie.link.width.max --format=csv,noheader 2>/dev/null || echo "0, 0"; } |
    awk -F', *' 'BEGIN { lane[3] = 0.985; lane[4] = 1.969; lane[5] = 3.938; lane[6] = 7.563 } NR == 1 { print lane[$1 + 0] * $2 }'
}

run_tests() {
  for test in device_library_test device_compiler_test; do REWIRE_TEST_DEVICE=cuda "$build/tests/bin/$test"; done
  "$build/tests/bin/onnx_node_suite" tests/compiler/onnx_known_failures.txt --device cuda
}

case ${1-} in
  --pack)
    compile
    pack "$(realpath -m "$2")"
    exit
    ;;
  --built)
    shift
    export LD_LIBRARY_PATH=$PWD/$build/lib/packed${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
    if [[ ! -e $cases_of_onnx ]]; then
      mkdir -p "$(dirname "$cases_of_onnx")"
      ln -s "$PWD/build/onnx-cases/data" "$cases_of_onnx"
    fi
    ;;
  *) compile ;;
esac
export REWIRE_LIBRARY_PATH=$PWD/$build/lib/rewire

devices=$("$build/bin/vm-run" --devices)
echo "$devices"
if ! grep -q 'cuda:0' <<<"$devices"; then
  echo "skipped: there is no CUDA device here"
  exit 77
fi

echo "== tests of devices, and ONNX's own cases on cuda:0"
run_tests
echo "== the same, with cuDNN for small convolutions too, and without cuBLASLt and cuDNN"
REWIRE_CUDA_LIBRARIES=always run_tests
REWIRE_CUDA_LIBRARIES=off run_tests
echo "== what calls cost"
"$build/tests/bin/bench-device" cuda
echo "== copies and products, and their share of the hardware's peak"
"$build/tests/bin/bench-device" cuda --peaks "$(link_rate)"
if (($# == 1)); then
  echo "== the models of tests/models on cuda:0"
  python=python3
  python3 -c 'import numpy' 2>/dev/null || python=$(tests/support/environments.py --python tests/models/requirements/models.txt)
  "$python" tests/models/check.py --bin "$build/bin" --cases "$1" --device cuda | sed '/^ok/d'
  echo "== the same, beside ONNX Runtime's CUDA provider"
  python=python3
  python3 -c 'import numpy, onnxruntime; assert "CUDAExecutionProvider" in onnxruntime.get_available_providers()' 2>/dev/null ||
    python=$(tests/support/environments.py --python tests/models/requirements/models.txt)
  "$python" tests/bench/device_models.py --bin "$build/bin" --cases "$1" --seconds 240
fi
