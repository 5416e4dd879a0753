#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# plain_c.sh ROOT ARCHIVE: the embedded kernels compile as C99 and as C++ with every compiler that is here, without a
# warning, and need nothing of a system but memcpy and the functions of the math library that are listed below.
set -euo pipefail
root=$1
archive=$2

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
warnings=(-Wall -Wextra -Wconversion -Wshadow -Werror -O1 -c -o "$folder/object.o")
arm=(-mcpu=cortex-m4 -mthumb -mfloat-abi=hard -mfpu=fpv4-sp-d16)
compiled=0
for compiler in "gcc -std=c99 -pedantic" "g++ -std=c++17 -x c++" "clang-14 -std=c99 -pedantic" "clang++-14 -std=c++17 -x c++" \
  "arm-none-eabi-gcc -std=c99 -pedantic ${arm[*]}"; do
  read -ra command <<<"$compiler"
  command -v "${command[0]}" >/dev/null || continue
  for source in "$root"/kernels/embedded/*.c "$root"/kernels/embedded/*/*.c; do
    "${command[@]}" -I"$root/include" "${warnings[@]}" "$source" || { echo "plain_c.sh: $compiler refuses $source" >&2; exit 1; }
    compiled=$((compiled + 1))
  done
done
((compiled > 0)) || { echo "plain_c.sh: no compiler is here" >&2; exit 1; }

allowed='memcpy|memset|fmaf|expm1f|log1pf|logf|sinf|cosf|erff|rintf|floorf|ceilf|sqrtf'
# Sanitizers and position-independent code have symbols of their own.
undefined=$(nm --undefined-only "$archive" | awk 'NF == 2 {print $2}' | sort -u)
defined=$(nm --defined-only "$archive" | awk 'NF == 3 && $2 ~ /[A-Z]/ {print $3}' | sort -u)
needed=$(comm -23 <(echo "$undefined") <(echo "$defined") | sed -E '/^(__asan|__ubsan|__tsan|__stack_chk|_GLOBAL_OFFSET_TABLE_)/d')
others=$(sed -E "/^($allowed)\$/d" <<<"$needed")
[[ -z $others ]] || { echo "plain_c.sh: the archive needs $others" >&2; exit 1; }
strange=$(sed -E '/^(rewire_embedded_|__asan|__odr_asan|__tsan)/d' <<<"$defined")
[[ -z $strange ]] || { echo "plain_c.sh: the archive defines $strange" >&2; exit 1; }
echo "$compiled sources compiled; the archive needs: ${needed//$'\n'/ }"
