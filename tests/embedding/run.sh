#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# run.sh BUILD_DIR [PROJECT]: builds and runs outside programs against an installed Rewire.
#
# BUILD_DIR is a finished build. It is installed below a temporary folder; each project folder beside this script is
# copied there, built with nothing but the installed files, and run. A folder with a CMakeLists.txt uses
# find_package(rewire) and its own ctest entries; one with a Makefile uses pkg-config and `make check`. Both get
#   EXAMPLES    a copy of examples/, whose programs are built here as an outside project would
#   README      a copy of README.md, whose program is one of them
#   MODEL       the executable of examples/digits, empty when the build has made none
#   DOCS        a copy of docs/, and RUN_PAGE, the program that runs a page of it
#   DIGITS      the same, or one of another build: for programs that bring their kernels along
#   LINKED      a folder with DIGITS as a source of vm-aot --bytecode; may be empty
set -euo pipefail

source=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
build=$(cd "${1:?usage: run.sh BUILD_DIR [PROJECT]}" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cmake --install "$build" --prefix "$work/prefix" >/dev/null
"$source/../../packaging/licenses.py" --prefix "$work/prefix" >/dev/null
# What is found must be the installed tree, after a move, and not this checkout.
mv "$work/prefix" "$work/moved"
prefix=$work/moved
cp -r "$source/../../examples" "$work/examples"
export EXAMPLES=$work/examples
cp "$source/../../README.md" "$work"
export README=$work/README.md
cp -r "$source/../../docs" "$work/docs"
cp "$source/../support/run_page.py" "$work"
export DOCS=$work/docs RUN_PAGE=$work/run_page.py
model=$build/examples/digits/digits.rwx
[[ -f $model ]] || model=
export MODEL=$model
export DIGITS=${DIGITS:-$model} LINKED=${LINKED:-}
pc=$(find "$prefix" -name rewire.pc -printf '%h\n')
export PKG_CONFIG_PATH=$pc${PKG_CONFIG_PATH:+:$PKG_CONFIG_PATH}
LD_LIBRARY_PATH=$(pkg-config --variable=libdir rewire)
export LD_LIBRARY_PATH
export PATH=$prefix/bin:$PATH CMAKE_PREFIX_PATH=$prefix

cp -r "$source" "$work/projects"
mkdir "$work/logs"

# build_and_run FOLDER: one project, with the compilers and flags of the environment. Linked by &&, as -e does not hold
# in a function whose status is asked for.
build_and_run() {
  local project=$1 name
  name=$(basename "$project")
  if [[ -f $project/CMakeLists.txt ]]; then
    cmake -S "$project" -B "$project/build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_PREFIX_PATH="$prefix" &&
      cmake --build "$project/build" &&
      ctest --test-dir "$project/build" --output-on-failure --no-tests=error
  elif [[ -f $project/Makefile ]]; then
    make --no-print-directory -C "$project" check
  else
    echo "embedding/$name: neither a CMakeLists.txt nor a Makefile" >&2
    return 1
  fi
}

only=${2:-}

# build_and_run_all WHAT: all projects, at once for each core. What one prints is shown when it fails.
build_and_run_all() {
  local what=$1 folder name status=0
  rm -rf "$work/hosts"
  cp -r "$work/projects" "$work/hosts"
  [[ -z $only ]] || find "$work/hosts" -mindepth 1 -maxdepth 1 ! -name "$only" -exec rm -rf {} +
  export prefix
  export -f build_and_run
  find "$work/hosts" -mindepth 1 -maxdepth 1 -type d -print0 |
    xargs -0 -P "${JOBS:-$(nproc)}" -I{} bash -euo pipefail -c \
      'log=$2/$(basename "$1").log; build_and_run "$1" >"$log" 2>&1 || { mv "$log" "$log.failed"; exit 1; }' \
      _ {} "$work/logs" || status=1
  for log in "$work"/logs/*.failed; do
    [[ -f $log ]] || continue
    cat "$log" >&2
    name=$(basename "$log" .log.failed)
    echo "embedding/$name: failed, $what" >&2
  done
  ((status == 0)) || exit 1
  folder=("$work"/hosts/*/)
  echo "embedding: ${#folder[@]} outside projects built and run against the installed tree, $what"
}

build_and_run_all "as they are"

# A librewire without sanitizers serves hosts that have them. The checks of "vptr" and, by clang, of "function" look at
# the types of what the library has made.
# An archive is linked anew into each host, which takes minutes; there one host is enough.
[[ -n $(find "$prefix" -name librewire.so) ]] || only=${only:-sanitized}
sanitizer="-fsanitize=undefined -fno-sanitize-recover=all -fno-omit-frame-pointer"
for compilers in "gcc g++" "clang clang++"; do
  read -r c cxx <<<"$compilers"
  if ! command -v "$c" >/dev/null || ! command -v "$cxx" >/dev/null; then
    echo "embedding: SKIPPED: hosts under the undefined behavior sanitizer of $cxx, which is not here"
    continue
  fi
  CC=$c CXX=$cxx CFLAGS=$sanitizer CXXFLAGS=$sanitizer LDFLAGS=$sanitizer \
    build_and_run_all "with -fsanitize=undefined by $cxx"
done
