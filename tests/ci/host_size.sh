#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# host_size.sh BUILD_DIR LIMIT_KB [LINKED LIMIT_LINKED_KB]: what librewire.a of a build adds to a stripped host program is at most LIMIT_KB
# thousand bytes. The hosts are examples/embed.cc and examples/embed_c.c, which open, verify, link, bind and run. LINKED is a folder with
# digits.c and digits.h of vm-aot --bytecode. With it, the hosts of examples/linked are measured, too, which have no reader and no verifier.
# Not counted are what an empty program takes, the model that is linked in, and kernels, which are the host's own.
set -euo pipefail

usage="usage: host_size.sh BUILD_DIR LIMIT_KB [LINKED LIMIT_LINKED_KB]"
source=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
build=$(cd "${1:?$usage}" && pwd)
limit=${2:?$usage}
linked=${3:-}
[[ -z $linked ]] || limit_linked=${4:?$usage}
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
status=0

# measure HOST LIMIT_KB NOT_COUNTED [FILE...]: one line of the table.
measure() {
  local compiler=c++ standard=-std=c++17 bytes
  if [[ $1 == *.c ]]; then
    compiler=cc
    standard=-std=c11
  fi
  bytes=$(($(program_bytes "$compiler" "$source/examples/$1" "$standard" "${compile[@]}" "${@:4}") - empty - $3))
  echo "librewire.a of $build adds $bytes bytes to examples/$1, limit ${2}000"
  ((bytes <= $2 * 1000)) || status=1
}

measure embed.cc "$limit" 0
measure embed_c.c "$limit" 0
if [[ -n $linked ]]; then
  # A table without kernels in place of the host's.
  cat >"$work/kernels.c" <<'END'
#include <rewire/kernels/cpu/kernels_cpu.h>
static const RewireKernelTable kNone = {0};
const RewireKernelTable* RewireCpuKernels(void) { return &kNone; }
END
  cc -Os -c "$work/kernels.c" "${compile[@]}" -o "$work/kernels.o"
  cc -Os -c "$linked/digits.c" "${compile[@]}" -o "$work/digits.o"
  model=$(size "$work/digits.o" | awk 'NR == 2 {print $1 + $2}')
  measure linked/host.cc "$limit_linked" "$model" -I "$linked" "$work/digits.o" "$work/kernels.o"
  measure linked/host.c "$limit_linked" "$model" -I "$linked" "$work/digits.o" "$work/kernels.o"
fi
exit "$status"
