#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# root.sh, to be sourced: a fresh root of a Debian, for tests that install packages. The caller has made the folder $work, and calls clean_root when
# it exits. Needs root, debootstrap and a mirror of Debian. The base system is made once, and kept below ~/.cache/rewire as a tar file.

root=$work/root

# make_root SUITE: makes the root in $root. Returns 1 where none can be made, with the reason in $why_no_root.
make_root() {
  local suite=$1 mirror=${DEBIAN_MIRROR:-http://deb.debian.org/debian}
  local cache=${REWIRE_TEST_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/rewire}/roots
  ((EUID == 0)) || { why_no_root="a root can be made only by root"; return 1; }
  command -v debootstrap >/dev/null || { why_no_root="debootstrap is not installed (third_party/install.sh roots)"; return 1; }
  mkdir -p "$cache"
  if [[ ! -f $cache/$suite.tar ]]; then
    debootstrap --variant=minbase --include=ca-certificates,python3,python3-venv "$suite" "$root" "$mirror" >"$work/log" 2>&1 ||
      { tail -n 5 "$work/log"; why_no_root="debootstrap made no root"; return 1; }
    tar -C "$root" --one-file-system -cf "$cache/$suite.tar.part" .
    mv "$cache/$suite.tar.part" "$cache/$suite.tar"
  else
    mkdir "$root"
    tar -C "$root" -xf "$cache/$suite.tar"
  fi
  mountpoint -q "$root/proc" || mount -t proc proc "$root/proc" 2>/dev/null || { why_no_root="nothing can be mounted here"; return 1; }
  cp --dereference /etc/resolv.conf "$root/etc/resolv.conf"
}

# bind_into_root FOLDER TARGET: the root has FOLDER, which is made if it is missing, at TARGET.
bind_into_root() {
  mkdir -p "$1" "$root$2"
  mount --bind "$1" "$root$2"
}

clean_root() {
  local mounted
  while read -r mounted; do umount --lazy "$mounted"; done < <(findmnt --list --noheadings --output TARGET | grep "^$root/" | tac)
  # What a process in the root still uses stays mounted until that ends, and belongs to others.
  rm -rf --one-file-system "$work"
}

# in_root COMMAND...: runs a command there, as its root. exec_in_root_as USER:GROUP COMMAND... becomes a command of another user.
in_root() { (exec_in_root_as 0:0 "$@"); }
exec_in_root_as() {
  exec chroot --userspec="$1" "$root" /usr/bin/env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 "${@:2}"
}

# Without it apt asks, and takes a user of its own that cannot read what a test has put there. dpkg need not wait for the disk in a root that is
# thrown away.
answer_apt() {
  echo force-unsafe-io >"$root/etc/dpkg/dpkg.cfg.d/99test"
  echo 'APT::Get::Assume-Yes "true"; APT::Install-Recommends "false"; APT::Sandbox::User "root";' >"$root/etc/apt/apt.conf.d/99test"
}
