#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# run.sh BUILD PYTHON ENGINES [TEST... | -- SCRIPT [ARGUMENT...]]: makes the wheels `rewire`, of a build tree with REWIRE_WITH_PYTHON, and `rewire-integrations`.
# Installs both for ENGINES, a Python that has the engines, and runs with that the recipes of integrations/ and the tests in this
# folder, or only those that are named, or a script. PYTHON is the one that the build tree is for; both have one version.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
build=${1:?usage: run.sh BUILD PYTHON ENGINES [TEST... | -- SCRIPT [ARGUMENT...]]}
python=${2:?PYTHON is missing}
engines=${3:?ENGINES is missing}
shift 3

installed=$(mktemp -d)
trap 'rm -rf "$installed"' EXIT
"$root/packaging/wheels.py" --dist "$installed" --local "$build" "$python" >/dev/null
pip=("$engines" -m pip --disable-pip-version-check --quiet)
"${pip[@]}" wheel --no-deps --no-build-isolation --wheel-dir "$installed" "$root/integrations"
"${pip[@]}" install --no-deps --target "$installed/site" "$installed"/*.whl
export PYTHONPATH=$installed/site PYTHONDONTWRITEBYTECODE=1
cd "$installed"
if [[ ${1-} == -- ]]; then
  "$engines" "${@:2}"
elif (($#)); then
  "$engines" -m pytest -q -p no:cacheprovider "$@"
else
  "$engines" -m pytest -q -p no:cacheprovider "$root/tests/integrations"
  "$engines" "$root/tests/integrations/pages.py"
fi
