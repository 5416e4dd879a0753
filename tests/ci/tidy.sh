#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# tidy.sh [FILE_REGEX]: clang-tidy over our own translation units, all or those whose path matches.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

# A tree of its own, never built: the commands must be clang's and free of a compiler launcher.
build=build/tidy
env -u CMAKE_C_COMPILER_LAUNCHER -u CMAKE_CXX_COMPILER_LAUNCHER \
  cmake --preset dev -B "$build" -DCMAKE_C_COMPILER=clang-14 -DCMAKE_CXX_COMPILER=clang++-14 >"$build.log" 2>&1 ||
  { cat "$build.log" >&2; exit 1; }

# The generated units of the header test hold one include each; the headers are seen through the real sources.
folders='base|executable_format|vm|kernels|compiler|tools|tests|examples'
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! run-clang-tidy-14 -quiet -p "$build" -j "${JOBS:-$(nproc)}" "^$PWD/($folders)/.*${1:-}" >"$log" 2>&1; then
  # Colours off, then everything but the findings.
  sed 's/\x1b\[[0-9;]*m//g' "$log" |
    grep -vE '^clang-tidy-14 |^[0-9]+ warnings? (and [0-9]+ errors? )?generated|^Suppressed |^Use -|^Error while' >&2 || true
  exit 1
fi
echo "clang-tidy: $(grep -c 'clang-tidy-14 .* -p=' "$log") translation units, no finding"
