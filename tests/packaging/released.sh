#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# released.sh BUILD_DIR: executables that the compilers of releases have written (released/VERSION/*.rwx: the model of examples/digits in
# f32, bf16 and int8) give the same results on the kernels of BUILD_DIR. They hold stock kernels by their names, and weights in packed
# layouts. The files are never made anew: docs/compatibility.md promises that they go on running. A release adds a folder.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
build=$(cd "${1:?usage: released.sh BUILD_DIR}" && pwd)
digits=$here/../../examples/digits
export REWIRE_LIBRARY_PATH=$build/lib/rewire

# What the compiler of 0.1.0 said that the results differ by, and a little more.
declare -A error=([f32]=1e-5 [bf16]=0.01 [int8]=0.03)
count=0
for file in "$here"/released/*/*.rwx; do
  kind=$(basename "$file" .rwx)
  "$build/bin/vm-run" "$file" --input "image=@$digits/images.npy" --expect "probabilities=@$digits/expected.npy" --rtol 0 \
    --atol "${error[$kind]}" --quiet || { echo "released.sh: $file gives other results than when it was released" >&2; exit 1; }
  count=$((count + 1))
done
((count >= 3)) || { echo "released.sh: there are only $count files in $here/released" >&2; exit 1; }
echo "released: $count executables of earlier releases give their results"
