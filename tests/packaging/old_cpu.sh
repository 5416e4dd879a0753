#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# old_cpu.sh WHEEL MODEL: on an emulated CPU that is too old for a wheel, `import rewire` says so; on the oldest that is not, a model runs.
set -euo pipefail
wheel=$(realpath "${1:?usage: old_cpu.sh WHEEL MODEL}")
model=$(realpath "${2:?usage: old_cpu.sh WHEEL MODEL}")
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

skip() { echo "old_cpu.sh: SKIPPED: $*"; exit 77; }
fail() { echo "old_cpu.sh: $*" >&2; exit 1; }
[[ $(uname -m) == x86_64 ]] || skip "the levels are those of x86-64"
third_party/install.sh processors || skip "QEMU cannot be installed"

# The emulator loads programs, not scripts: what PATH calls python3 may be one of pyenv's scripts. NumPy, which rewire imports, is in
# the environment.
requirements=tests/python/requirements/python.txt
tests/support/environments.py "$requirements" || skip "NumPy cannot be installed"
python=$(tests/support/environments.py --python "$requirements")

site=$(mktemp -d)
trap 'rm -rf "$site"' EXIT
python3 -m zipfile -e "$wheel" "$site"
emulated() { PYTHONPATH=$site PYTHONDONTWRITEBYTECODE=1 qemu-x86_64 -cpu "$1" "$python" "${@:2}"; }

# SSE4.1 alone.
if said=$(emulated Penryn -c 'import rewire' 2>&1); then fail "a CPU without SSE4.2 imports rewire"; fi
[[ $said == *"ImportError: this CPU is below the level x86-64-v2"*"build rewire from its sources"* ]] || fail "a CPU without SSE4.2: $said"
emulated Nehalem -m rewire run "$model" --random --threads 1 -q || fail "the oldest CPU of x86-64-v2 does not run $model"
echo "old_cpu.sh: a CPU without SSE4.2 is refused at import, and the oldest with it runs $(basename "$model")"
