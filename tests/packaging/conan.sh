#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# conan.sh PYTHON: `conan create` of packaging/conan with its test_package, in a cache of its own. PYTHON is that of the
# environment of requirements/conan.txt. The smallest package is made, not optimized, to be quick.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
conan=$(dirname "${1:?usage: conan.sh PYTHON}")/conan
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export CONAN_HOME=$work/home
# So that ccache knows the files again in another temporary folder.
export CCACHE_BASEDIR=$work CCACHE_NOHASHDIR=1
"$conan" profile detect >/dev/null 2>&1
"$conan" remote disable '*' >/dev/null 2>&1  # what it needs is on this machine
cp -r "$here/../../packaging/conan/test_package" "$work"  # it is built in its folder
"$conan" create "$here/../../packaging/conan" --test-folder "$work/test_package" -s build_type=Debug -s compiler.cppstd=20 -o '&:kernels=False' -o '&:devices=False' \
  -o '&:compiler=False' -o '&:tools=False' -c tools.cmake.cmaketoolchain:generator=Ninja \
  -c tools.cmake.cmaketoolchain:extra_variables="{'CMAKE_UNITY_BUILD': 'ON', 'CMAKE_CXX_FLAGS_DEBUG': '-O0'}" >"$work/log" 2>&1 || { tail -60 "$work/log" >&2; exit 1; }
grep -q "'no_such_model.rwx': No such file" "$work/log" || { cat "$work/log" >&2; echo "conan.sh: the host of test_package did not run" >&2; exit 1; }
echo "conan: $("$conan" list 'rewire/*' 2>/dev/null | grep -o 'rewire/[0-9.]*' | sed -n 1p) made by 'conan create', and a host run with it"
