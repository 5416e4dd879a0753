#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# run.sh BUILD_DIR: builds and runs outside programs against an installed Rewire.
#
# BUILD_DIR is a finished build. It is installed below a temporary folder; each project folder beside this script is
# copied there, built with nothing but the installed files, and run. A folder with a CMakeLists.txt uses
# find_package(rewire) and its own ctest entries; one with a Makefile uses pkg-config and `make check`. Both get
#   EXAMPLES    a copy of examples/, whose programs are built here as an outside project would
#   README      a copy of README.md, whose program is one of them
#   MODEL       the executable of examples/digits, empty when the build has made none
#   DIGITS      the same, or one of another build: for programs that bring their kernels along
set -euo pipefail

source=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
build=$(cd "${1:?usage: run.sh BUILD_DIR}" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cmake --install "$build" --prefix "$work/prefix" >/dev/null
# What is found must be the installed tree, after a move, and not this checkout.
mv "$work/prefix" "$work/moved"
prefix=$work/moved
cp -r "$source/../../examples" "$work/examples"
export EXAMPLES=$work/examples
cp "$source/../../README.md" "$work"
export README=$work/README.md
model=$build/examples/digits/digits.rwx
[[ -f $model ]] || model=
export MODEL=$model
export DIGITS=${DIGITS:-$model}
pc=$(find "$prefix" -name rewire.pc -printf '%h\n')
export PKG_CONFIG_PATH=$pc${PKG_CONFIG_PATH:+:$PKG_CONFIG_PATH}
LD_LIBRARY_PATH=$(pkg-config --variable=libdir rewire)
export LD_LIBRARY_PATH

cp -r "$source" "$work/projects"
built=0
for folder in "$work"/projects/*/; do
  project=${folder%/}
  name=$(basename "$project")
  if [[ -f $project/CMakeLists.txt ]]; then
    cmake -S "$project" -B "$project/build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_PREFIX_PATH="$prefix" >"$work/log" 2>&1 ||
      { cat "$work/log" >&2; echo "embedding/$name: find_package(rewire) or the configuration failed" >&2; exit 1; }
    cmake --build "$project/build"
    ctest --test-dir "$project/build" --output-on-failure --no-tests=error
  elif [[ -f $project/Makefile ]]; then
    make --no-print-directory -C "$project" check
  else
    echo "embedding/$name: neither a CMakeLists.txt nor a Makefile" >&2
    exit 1
  fi
  built=$((built + 1))
done
echo "embedding: $built outside projects built and run against the installed tree"
