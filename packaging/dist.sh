#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# dist.sh [PYTHON...]: makes a release in dist/: the wheels for each PYTHON (default: python3), the sources, the Debian packages, a
# bill of materials (rewire-VERSION.cdx.json) and SHA256SUMS. Equal sources, tools and Debian packages give equal bytes: dates are that of
# the commit, archives are sorted, and a file that has the name of this folder in it ends the run.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

fail() { echo "dist.sh: $*" >&2; exit 1; }
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || stat -c %Y CHANGELOG.md)}
export SOURCE_DATE_EPOCH
version=$(sed -n 's/^project(rewire VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
jobs=${JOBS:-$(nproc)}
requirements=packaging/requirements/wheel.txt
umask 022  # the rights of files are part of the packages

rm -rf dist
mkdir dist
echo "== wheels"
packaging/wheels.py --dist dist --jobs "$jobs" "$@"
echo "== sources"
tests/support/environments.py --run "$requirements" -c 'import scikit_build_core.build as b; b.build_sdist("dist")' >/dev/null
echo "== Debian packages"
cmake --preset packages --log-level=WARNING >/dev/null
rm -rf build/packages/packages build/packages/_CPack_Packages
cmake --build --preset packages --parallel "$jobs" | sed -E '/^CPack/d'
cp build/packages/packages/*.deb dist

echo "== what is in them"
packaging/licenses.py --self-test
packaging/licenses.py --build build/packages
packaging/licenses.py --wheel dist/*.whl
packaging/artifacts.py --version "$version" --no-path "$PWD" dist/*
packaging/sbom.py "$version" dist/* >rewire.cdx.json
mv rewire.cdx.json "dist/rewire-$version.cdx.json"
(cd dist && sha256sum -- * >../SHA256SUMS && mv ../SHA256SUMS .)
[[ -s dist/SHA256SUMS ]] || fail "no file was made"
ls -l dist
