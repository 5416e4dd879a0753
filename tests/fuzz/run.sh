#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# run.sh BUILD_DIR SECONDS [SEED]: every fuzzer over its kept corpus, then on from there for so long.
#
# The seed is printed; with the same seed and build a fuzzer takes the same way. An input that fails is left in
# BUILD_DIR: `BUILD_DIR/tests/bin/FUZZER INPUT` tries it again.
set -euo pipefail
tests=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=$(cd "${1:?usage: run.sh BUILD_DIR SECONDS [SEED]}" && pwd)
seconds=${2:?usage: run.sh BUILD_DIR SECONDS [SEED]}
seed=${3:-$(date +%s)}

# Sanitizer runtimes of this age need fixed addresses.
fixed=()
if setarch --addr-no-randomize true 2>/dev/null; then fixed=(setarch --addr-no-randomize); fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# fuzz NAME FOLDER...: the folders of tests/ are its corpus; what it finds on the way is dropped with the work folder.
fuzz() {
  local name=$1
  shift
  mkdir "$work/$name"
  echo "$name: seed $seed, $seconds s, from $*"
  # -runs=0 tries the corpus alone, so that what is kept cannot be passed over for lack of time.
  (cd "$tests" && "${fixed[@]}" "$build/tests/bin/$name" -runs=0 -artifact_prefix="$build/" "$@") >"$work/log" 2>&1 &&
    (cd "$tests" && "${fixed[@]}" "$build/tests/bin/$name" -seed="$seed" -max_total_time="$seconds" -timeout=10 \
      -print_final_stats=1 -artifact_prefix="$build/" "$work/$name" "$@") >"$work/log" 2>&1 ||
    { cat "$work/log" >&2; echo "$name failed, seed $seed" >&2; return 1; }
  echo "$name: $(sed -n 's/^stat::number_of_executed_units: *//p' "$work/log") inputs, none failed"
}

fuzz fuzz_executable fuzz/corpus/executable executable_format/samples
fuzz fuzz_bundle fuzz/corpus/bundle executable_format/samples
fuzz fuzz_state fuzz/corpus/state
fuzz fuzz_assembler programs executable_format/text
"$tests/fuzz/front_end_seeds.py" "$work/seeds"
for protocol in http grpc openai; do
  if [[ -x $build/tests/bin/fuzz_$protocol ]]; then fuzz fuzz_$protocol "$work/seeds/$protocol"; fi
done
# What the machine does not have is left out: the compiler needs ONNX's protobuf, its corpus libonnx-testdata.
if [[ -x $build/tests/bin/fuzz_onnx ]]; then
  models=$work/models
  mkdir "$models"
  find /usr/share/libonnx-testdata/data -name model.onnx -size -8k 2>/dev/null |
    while read -r model; do cp "$model" "$models/$(md5sum <"$model" | cut -c1-16)"; done
  # Only these kernels: the other libraries report branches for the kernel drill, and libFuzzer ends a program that does.
  mkdir "$work/kernels"
  ln -s "$build/lib/rewire/librewire_kernels_cpu.so" "$work/kernels/"
  REWIRE_LIBRARY_PATH=$work/kernels fuzz fuzz_onnx fuzz/corpus/onnx "$models"
fi
