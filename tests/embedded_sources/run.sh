#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# run.sh: builds and runs the projects beside this script, which take Rewire's sources into their own build, one by g++ and
# one by clang++. They get
#   REWIRE    the sources of Rewire
#   HOST      a copy of host/, their common program
# clang++ builds the host and Rewire under its undefined behavior sanitizer, as a host does that sanitizes all it builds.
set -euo pipefail

source=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
REWIRE=$(cd "$source/../.." && pwd)
export REWIRE
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp -r "$source"/. "$work"
export HOST=$work/host

# build_and_run PROJECT WHAT: with the compilers and flags of the environment. Nothing is optimized, to be quick.
build_and_run() {
  local project=$1 what=$2 build=$work/build/$1
  cmake -S "$work/$project" -B "$build" -G Ninja -DCMAKE_UNITY_BUILD=ON -DCMAKE_CXX_FLAGS_RELWITHDEBINFO=-O0 >"$work/log" 2>&1 &&
    cmake --build "$build" --parallel "${JOBS:-$(nproc)}" --target host >>"$work/log" 2>&1 &&
    ctest --test-dir "$build" --output-on-failure --no-tests=error >>"$work/log" 2>&1 || {
      cat "$work/log" >&2
      echo "embedded_sources/$project: failed, $what" >&2
      exit 1
    }
  echo "embedding: $project with Rewire's sources built and run, $what"
}

# What a project gets that says nothing: the runtime and the CPU kernels, in few steps, and a word about the rest.
mkdir "$work/plain"
cat >"$work/plain/CMakeLists.txt" <<END
cmake_minimum_required(VERSION 3.24)
project(plain LANGUAGES C CXX)
include(FetchContent)
FetchContent_Declare(rewire SOURCE_DIR $REWIRE)
FetchContent_MakeAvailable(rewire)
if(NOT TARGET rewire_kernels_cpu OR TARGET rewire_compiler OR TARGET rewire_kernels_device OR DEFINED CACHE{CMAKE_UNITY_BUILD})
  message(FATAL_ERROR "these are not the parts that docs/embedding.md names")
endif()
END
said=$(cmake -S "$work/plain" -B "$work/plain/build" -G Ninja)
[[ $said == *"these options turn on: REWIRE_WITH_COMPILER, REWIRE_BUILD_OPTIONAL_KERNELS, REWIRE_BUILD_DEVICES, REWIRE_BUILD_TOOLS"* ]] ||
  { echo "embedded_sources: CMake does not say what is left out" >&2; exit 1; }
steps=$(ninja -C "$work/plain/build" -n all | sed -n 's#^\[[0-9]*/\([0-9]*\)\].*#\1#p' | sort -n | tail -n 1)
((steps <= 200)) || { echo "embedded_sources: a project that fetches Rewire has $steps steps to build, at most 200 are promised" >&2; exit 1; }
echo "embedding: a project that fetches Rewire builds it in $steps steps"

CC=gcc CXX=g++ build_and_run add_subdirectory "by g++"
if command -v clang >/dev/null && command -v clang++ >/dev/null; then
  sanitizer="-fsanitize=undefined -fno-sanitize-recover=all"
  CC=clang CXX=clang++ CFLAGS=$sanitizer CXXFLAGS=$sanitizer build_and_run fetch_content "with -fsanitize=undefined by clang++"
else
  echo "embedding: SKIPPED: the undefined behavior sanitizer of clang++, which is not here, over host and Rewire"
  CC=gcc CXX=g++ build_and_run fetch_content "by g++"
fi
