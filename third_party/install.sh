#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# install.sh [SECTION...]: installs the packages of packages.txt that are missing, or those of the sections that are named
# (build, libraries, ...). A section that begins with "##" is installed only if it is named. Does nothing, and needs no
# rights, when all are there.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
  echo "install.sh: this is not a Debian system (no dpkg-query or apt-get)." >&2
  echo "Install the libraries that third_party/README.md lists by other means, then build with cmake --preset release." >&2
  exit 1
fi

for section in "$@"; do
  grep -qE "^##? $section\$" "$here/packages.txt" || { echo "install.sh: packages.txt has no section '$section'" >&2; exit 2; }
done

missing=()
section=
on_request=
while read -r package; do
  if [[ $package == \#* ]]; then
    section=${package##*\# }
    on_request=
    [[ $package == "## "* ]] && on_request=yes
    continue
  fi
  [[ -z $package ]] && continue
  (($# == 0)) && [[ -n $on_request ]] && continue
  (($#)) && [[ " $* " != *" $section "* ]] && continue
  status=$(dpkg-query --show --showformat='${db:Status-Status}' "$package" 2>/dev/null || true)
  # A package that exists for several architectures answers once for each.
  [[ $status == *installed* && $status != *not-installed* ]] || missing+=("$package")
done <"$here/packages.txt"

if ((${#missing[@]} == 0)); then
  exit 0
fi

as_root=(env)
if ((EUID != 0)); then
  if ! command -v sudo >/dev/null; then
    echo "install.sh: these packages are missing: ${missing[*]}" >&2
    echo "Run it as root, or install sudo." >&2
    exit 1
  fi
  as_root=(sudo env)
fi

echo "Installing: ${missing[*]}"
"${as_root[@]}" apt-get update
"${as_root[@]}" DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends "${missing[@]}" </dev/null
