#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# demo.sh BUILD_DIR: what `make demo` shows. Runs digits.rwx on all held-out images, first with vm-run against the
# expected probabilities, then with a host program that shows some and counts how many are right.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
build=$(cd "${1:?usage: demo.sh BUILD_DIR}" && pwd)
model=$build/examples/digits/digits.rwx

show() { echo "\$ $*"; "$@"; }

cd "$here"
PATH=$build/bin:$PATH
show vm-run "$model" --input image=@images.npy --expect probabilities=@expected.npy --rtol 1e-4 --atol 1e-6 --profile
echo
show digits-show "$model" images.npy labels.npy
cat <<END

vm-run compared all 382 results with the expected ones. digits-show is a C++ program that embeds Rewire.
How to go on:
  examples/digits/README.md    the model; digits.asm beside it is its program, show.cc the C++ program
  $build/bin/vm-run --help
  make test                    builds everything, vm-compile for ONNX models included, and runs all tests
  README.md                    how to run and embed a model of your own
END
