#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# size.sh BUILD_DIR LIMIT_KB: the stripped librewire.so of a build is at most LIMIT_KB thousand bytes; says what takes
# the room.
set -euo pipefail

build=${1:?usage: size.sh BUILD_DIR LIMIT_KB}
limit=${2:?usage: size.sh BUILD_DIR LIMIT_KB}
stripped=$(mktemp)
trap 'rm -f "$stripped"' EXIT
strip -o "$stripped" "$build/lib/librewire.so"
bytes=$(stat --format=%s "$stripped")

echo "librewire.so of $build, stripped: $bytes bytes, limit ${limit}000"
echo "largest sections:"
size --format=sysv "$stripped" | awk '$2 ~ /^[0-9]+$/ && $1 ~ /^\./ {printf "%9d %s\n", $2, $1}' | sort -rn | sed -n 1,5p
echo "code and data by object (thousand bytes before linking):"
find "$build" -path '*.dir/*' -name '*.o' -path '*/rewire_*' \
  \( -path '*/rewire_base.dir/*' -o -path '*/rewire_format.dir/*' -o -path '*/rewire_vm.dir/*' \) -print0 |
  xargs -0 size | awk 'NR > 1 && $6 ~ /\.o$/ {sub(/.*\.dir\//, "", $6); printf "%9.1f %s\n", ($1 + $2) / 1000, $6}' |
  sort -rn | sed -n 1,12p
((bytes <= limit * 1000))
