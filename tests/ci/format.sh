#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# format.sh [--check|--fix]: every source is as .clang-format says, and starts with its license line.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

mode=${1:---check}
mapfile -t sources < <(git ls-files --cached --others --exclude-standard -- '*.h' '*.cc' '*.c' '*.cu' '*.cl')
mapfile -t scripts < <(git ls-files --cached --others --exclude-standard -- \
  '*.py' '*.sh' '*.cmake' '*CMakeLists.txt' '*.def' 'Makefile' '.ci/run')

case $mode in
  --fix)
    printf '%s\0' "${sources[@]}" | xargs -0 --no-run-if-empty clang-format-14 -i
    ;;
  --check)
    printf '%s\0' "${sources[@]}" | xargs -0 --no-run-if-empty clang-format-14 --dry-run -Werror
    unlicensed=0
    for file in "${sources[@]}" "${scripts[@]}"; do
      if [[ $(head -n 3 "$file") != *'SPDX-License-Identifier: Apache-2.0'* ]]; then
        echo "$file: the line 'SPDX-License-Identifier: Apache-2.0' is missing at the top" >&2
        unlicensed=1
      fi
    done
    exit $unlicensed
    ;;
  *)
    echo "usage: format.sh [--check|--fix]" >&2
    exit 2
    ;;
esac
