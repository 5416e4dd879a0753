#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# debian.sh BUILD_DIR [MODEL]: installs the packages of BUILD_DIR (the preset `packages`) into an empty folder by dpkg, and
# uses them there: hosts are built by pkg-config and by CMake, and a tool runs. MODEL is the one of examples/digits; without
# it no model is run. dpkg takes the packages that the machine has for installed, so what ours depend on must be there.
set -euo pipefail
# A pipe ends in `grep ... >/dev/null`, not `grep -q`: that ends at the first match, and what still writes to it then fails.

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
build=$(cd "${1:?usage: debian.sh BUILD_DIR [MODEL]}" && pwd)
model=${2:+$(realpath "$2")}
for program in dpkg dpkg-deb dpkg-shlibdeps pkg-config; do
  command -v "$program" >/dev/null || { echo "debian.sh: $program is not here: nothing is tested" >&2; exit 77; }
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "debian.sh: $*" >&2; exit 1; }

shopt -s nullglob
packages=("$build"/packages/*.deb)
((${#packages[@]})) || fail "there is no package in $build/packages; build the target 'package'"

# What each of them must be: its documents, and dependencies that dpkg-shlibdeps has found.
for package in "${packages[@]}"; do
  name=$(dpkg-deb --field "$package" Package)
  contents=$(dpkg-deb --contents "$package" | cat)
  for document in copyright changelog.gz; do
    [[ $contents == *"/usr/share/doc/$name/$document"* ]] || fail "$name lacks $document"
  done
  # The notices of what is compiled in, as packaging/components.py has written them.
  dpkg-deb --fsys-tarfile "$package" | tar -xOf - "./usr/share/doc/$name/copyright" | cmp -s - "$here/../../packaging/debian/copyright" ||
    fail "$name has another copyright file than packaging/debian/copyright"
  case $name in
    librewire-dev) wanted=librewire0 ;;
    *) wanted=libc6 ;;
  esac
  dpkg-deb --field "$package" Depends | grep "$wanted" >/dev/null || fail "$name does not depend on $wanted"
  # Names of folders of this machine stay out of them.
  [[ $contents != *"$build"* ]] || fail "$name has files below $build"
done

# An empty root, where dpkg knows the packages of this machine.
root=$work/root
admin=$root/var/lib/dpkg
mkdir -p "$admin"/{info,updates,triggers} "$root/etc"
cp /var/lib/dpkg/status "$admin"
touch "$admin/available"
# Without a shell in the root, the scripts of the packages run outside of it, with the root in DPKG_ROOT.
options=(--root="$root" --force-not-root --force-script-chrootless --log="$work/dpkg.log")
as_root=()
if ((EUID != 0)); then
  command -v fakeroot >/dev/null || { echo "debian.sh: neither root nor fakeroot: nothing is tested" >&2; exit 77; }
  as_root=(fakeroot)
fi
"${as_root[@]}" dpkg "${options[@]}" --install "${packages[@]}" >"$work/log" 2>&1 ||
  { grep -v "files list file" "$work/log" >&2; fail "dpkg did not install them"; }

strings "$root/etc/ld.so.cache" | grep "librewire.so.$(dpkg-deb --field "$build"/packages/librewire-dev_*.deb Version | cut -d. -f1,2)" >/dev/null ||
  fail "ldconfig has not been run in the root"

triplet=$(dpkg-architecture -qDEB_HOST_MULTIARCH)
libraries=$root/usr/lib/$triplet
export PKG_CONFIG_LIBDIR=$libraries/pkgconfig:/usr/lib/$triplet/pkgconfig:/usr/share/pkgconfig
export LD_LIBRARY_PATH=$libraries
examples=$here/../../examples

# By pkg-config. The .pc files lie in the root and find their prefix from there, so no sysroot is to be put before it.
version=$(pkg-config --modversion rewire)
read -r -a flags <<<"-std=c++17 $(pkg-config --cflags rewire)"
read -r -a libs <<<"$(pkg-config --libs rewire)"
[[ " ${flags[*]} " == *"$root/"* ]] || [[ " ${flags[*]} " == *"-I$libraries"* ]] || fail "pkg-config found no headers in the root: ${flags[*]}"
g++ "${flags[@]}" "$examples/embed.cc" -o "$work/embed" "${libs[@]}"
# As a builder for another root does it: then the names are those of the root.
PKG_CONFIG_SYSROOT_DIR=$root pkg-config --cflags rewire | grep -- "-I$root" >/dev/null || fail "pkg-config does not find the root by PKG_CONFIG_SYSROOT_DIR"

# By CMake.
cp -r "$here/../embedding/cmake" "$work/cmake"
MODEL=$model EXAMPLES=$examples cmake -S "$work/cmake" -B "$work/cmake/build" -G Ninja -DCMAKE_PREFIX_PATH="$root/usr" >"$work/log" 2>&1 &&
  cmake --build "$work/cmake/build" >>"$work/log" && ctest --test-dir "$work/cmake/build" --output-on-failure >>"$work/log" ||
  { cat "$work/log" >&2; fail "a host by find_package"; }
ldd "$work/cmake/build/embed" | grep "librewire.so.* => $libraries/" >/dev/null || fail "the host does not use the library of the root"

# The tools, with what is installed for them.
"$root/usr/bin/vm-run" --version | grep "$version" >/dev/null || fail "vm-run is of another version"
if [[ -n $model ]]; then
  "$work/embed" "$model" | grep "this is a 3," >/dev/null || fail "the host does not run the model"
  "$root/usr/bin/vm-run" "$model" --random --dim N=1 >/dev/null || fail "vm-run does not run the model"
fi
# A program for ONNX Runtime's C interface finds the library by its folder alone: the loader's own folders have no such name.
[[ -z $(find "$libraries" -maxdepth 1 -name 'libonnxruntime*') ]] || fail "a libonnxruntime lies where the loader looks"
mapfile -t sources < <(find "$here/../onnxruntime_api" -maxdepth 1 -name '*.c' ! -name custom_ops_library.c ! -name string_ops.c)
gcc -std=c11 -I"$here/../../include" -shared -fPIC "$here"/../onnxruntime_api/{custom_ops_library,string_ops}.c -o "$work/custom_ops.so"
gcc -std=c11 -I"$here/../../include" -DREWIRE_TEST_CUSTOM_OPS="\"$work/custom_ops.so\"" "${sources[@]}" \
  -o "$work/api_test" -ldl -lpthread
for name in libonnxruntime.so libonnxruntime.so.1; do
  LD_LIBRARY_PATH=$libraries/rewire/onnxruntime "$work/api_test" "$name" >"$work/log" 2>&1 || { cat "$work/log" >&2; fail "$name"; }
done
for tool in "$root"/usr/bin/*; do
  name=$(basename "$tool")
  zgrep -q "^\.TH" "$root/usr/share/man/man1/$name.1.gz" || fail "$name has no manual page"
  bash -n "$root/usr/share/bash-completion/completions/$name" || fail "$name has no completion for bash"
done

# Removing them leaves nothing behind.
names=()
for package in "${packages[@]}"; do names+=("$(dpkg-deb --field "$package" Package)"); done
"${as_root[@]}" dpkg "${options[@]}" --purge "${names[@]}" >"$work/log" 2>&1 ||
  { grep -v "files list file" "$work/log" >&2; fail "dpkg did not remove them"; }
left=$(find "$root/usr" -type f 2>/dev/null || true)
[[ -z $left ]] || fail "these files are left: $left"
echo "packages: ${#packages[@]} installed into an empty root, used there and removed: ${names[*]}"
