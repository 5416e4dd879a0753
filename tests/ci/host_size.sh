#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# host_size.sh BUILD_DIR LIMIT_KB: what librewire.a of a build adds to a stripped host program is at most LIMIT_KB
# thousand bytes. The hosts are examples/embed.cc and examples/embed_c.c, which open, verify, link, bind and run; what an
# empty program takes is not counted. Kernels are the host's own and not in it.
set -euo pipefail

source=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
build=$(cd "${1:?usage: host_size.sh BUILD_DIR LIMIT_KB}" && pwd)
limit=${2:?usage: host_size.sh BUILD_DIR LIMIT_KB}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cmake --install "$build" --prefix "$work/prefix" >/dev/null
[[ -n $(find "$work/prefix" -name librewire.a) ]] || { echo "host_size.sh: $build has no librewire.a" >&2; exit 1; }
PKG_CONFIG_PATH=$(find "$work/prefix" -name rewire.pc -printf '%h\n')
export PKG_CONFIG_PATH
read -ra compile <<<"$(pkg-config --cflags rewire)"
read -ra link <<<"$(pkg-config --libs rewire)"

# The bytes of a program of COMPILER from SOURCE, stripped, with all that it links.
program_bytes() {
  "$1" "${@:3}" -Os -Wl,--gc-sections -Wl,-z,noseparate-code -o "$work/program" "$2" "${link[@]}"
  strip "$work/program"
  stat --format=%s "$work/program"
}

echo 'int main(void) { return 0; }' >"$work/empty.c"
empty=$(program_bytes cc "$work/empty.c")
largest=0
for host in embed.cc embed_c.c; do
  compiler=c++
  standard=-std=c++17
  if [[ $host == *.c ]]; then
    compiler=cc
    standard=-std=c11
  fi
  bytes=$(($(program_bytes "$compiler" "$source/examples/$host" "$standard" "${compile[@]}") - empty))
  echo "librewire.a of $1 adds $bytes bytes to examples/$host, limit ${limit}000"
  ((bytes <= largest)) || largest=$bytes
done
((largest <= limit * 1000))
