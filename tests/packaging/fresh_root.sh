#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# fresh_root.sh DIST SUITE KIND: installs what `make dist` left in DIST into a fresh root of a Debian (SUITE: bookworm or trixie), and runs
# the first screen of README.md there as it is printed. KIND is wheel (the Python part) or deb (the C++ part and the tools).
# Needs root, debootstrap and a mirror of Debian; exits with 77 and says why if one is missing. The base system is made once, and kept
# below ~/.cache/rewire as a tar file. The first screen must take at most 180 seconds.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
dist=$(cd "${1:?usage: fresh_root.sh DIST SUITE wheel|deb}" && pwd)
suite=${2:?SUITE is missing}
kind=${3:?KIND is missing}
most_seconds=180

skip() { echo "fresh_root.sh: SKIPPED: $suite, $kind: $*"; exit 77; }
fail() { echo "fresh_root.sh: $suite, $kind: $*" >&2; exit 1; }
work=$(mktemp -d)
. "$here/root.sh"
trap clean_root EXIT
make_root "$suite" || skip "$why_no_root"

screen=$root/screen
"$here/first_screen.py" "$screen"
cp "$here/first_screen.onnx" "$screen/model.onnx"
echo "fresh_root.sh: SKIPPED: the line of torch.onnx.export, as PyTorch takes longer than all else; model.onnx is a file of the tests"

# What comes before and does not count: numpy's wheel in place of an index, a compiler, and answers to apt.
if [[ $kind == wheel ]]; then
  version=$(in_root python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])')
  mkdir "$root/index"
  python3 -m pip download --quiet --dest "$root/index" --only-binary :all: --python-version "$version" "numpy>=1.24" ||
    skip "numpy cannot be downloaded"
  cp "$dist"/*.whl "$root/index"
  cp "$dist"/*.whl "$screen"  # a release lies where the reader is
  in_root python3 -m venv /venv
  cat >"$screen/run.sh" <<'END'
set -euo pipefail
cd /screen
. ./commands.sh
. /venv/bin/activate
export PIP_NO_INDEX=1 PIP_FIND_LINKS=/index PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_QUIET=1
install_python
python main.py
python -c 'import rewire; print("rewire", rewire.__version__, "runs")'
pip install "rewire[full]"
python main.py
END
else
  cp "$dist"/*.deb "$screen"
  answer_apt
  in_root sh -c 'apt-get update && apt-get install g++ pkg-config' >"$work/log" 2>&1 || { tail -n 5 "$work/log"; skip "apt finds no g++"; }
  cat >"$screen/run.sh" <<'END'
set -euo pipefail
cd /screen
sudo() { DEBIAN_FRONTEND=noninteractive "$@"; }  # root has none
. ./commands.sh
install_debian >log 2>&1 || { tail -n 20 log; exit 1; }
compile_model
build
./a.out
report >log 2>&1 || { cat log; exit 1; }
grep "<html" page.html >/dev/null
vm-run --version
END
fi
began=$SECONDS
in_root bash /screen/run.sh || fail "the first screen of README.md does not run as it is printed"
took=$((SECONDS - began))
((took <= most_seconds)) || fail "the first screen took $took s, at most $most_seconds are allowed"
echo "fresh_root.sh: $suite, $kind: installed, and the first screen ran, in $took s"
