#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# docker_build.sh OUT: does what the stage `build` of packaging/Dockerfile says, in a fresh root of Debian in place of Docker's image, with the
# sources of this checkout as .dockerignore leaves them. Copies the packages that it makes to OUT/packages, for docker_serve.sh.
# Archives of apt and what ccache remembers are kept below ~/.cache/rewire, so a second run takes minutes; the first one compiles everything.
# REWIRE_TEST_CCACHE names another folder of ccache's, such as the one of this machine's builds. OUT/log has what the steps print.
# Exits with 77 and says why where no root can be made.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
top=$(cd "$here/../.." && pwd)
out=${1:?usage: docker_build.sh OUT}
skip() { echo "docker_build.sh: SKIPPED: $*"; exit 77; }
fail() { tail -n 30 "$log" >&2; echo "docker_build.sh: $*; $log has all" >&2; exit 1; }
mkdir -p "$out/packages"
out=$(cd "$out" && pwd)
log=$out/log
: >"$log"

described=$("$here/docker_stage.py" "$top/packaging/Dockerfile" build)
eval "$described"
[[ $image =~ ^debian:([a-z]+)(-slim)?$ ]] || fail "the stage begins with $image, which is no Debian"
suite=${BASH_REMATCH[1]}

work=$(mktemp -d)
. "$here/root.sh"
trap clean_root EXIT
make_root "$suite" || skip "$why_no_root"
answer_apt
in_root apt-get update >>"$log" 2>&1 || { tail -n 5 "$log"; skip "apt finds no mirror"; }
# Docker's image has none of what the roots of other tests bring.
in_root apt-get purge 'python3*' ca-certificates >>"$log" 2>&1 || fail "the root keeps Python"
[[ ! -e $root/usr/bin/python3 ]] || fail "the root still has Python, which Docker's image lacks"

kept=${REWIRE_TEST_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/rewire}/container
bind_into_root "$kept/archives" /var/cache/apt/archives
bind_into_root "${REWIRE_TEST_CCACHE:-$kept/ccache}" /ccache

copy() {
  local ignored=()
  mapfile -t ignored <"$top/packaging/Dockerfile.dockerignore"
  mkdir -p "$root$1"
  tar -C "$top" --anchored "${ignored[@]/#/--exclude=./}" -cf - . | tar -C "$root$1" --no-same-owner -xf -
}
# The stage installs ccache; CMake takes it by the launchers in the environment.
run() {
  local began=$SECONDS
  echo "RUN $2" >>"$log"
  in_root env CCACHE_DIR=/ccache CCACHE_BASEDIR="$1" CCACHE_NOHASHDIR=1 CMAKE_C_COMPILER_LAUNCHER=ccache CMAKE_CXX_COMPILER_LAUNCHER=ccache \
    sh -c "cd $1 && $2" >>"$log" 2>&1 || fail "RUN $2"
  echo "docker_build.sh: $((SECONDS - began)) s: RUN $2"
}
steps

rm -f "$out"/packages/*.deb
cp "$root"/rewire/build/packages/packages/*.deb "$out/packages" || fail "the stage has made no packages"
echo "docker_build.sh: the stage build was made in a root of $suite; its packages are in $out/packages:"
(cd "$out/packages" && ls)
