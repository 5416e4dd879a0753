#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs clang-tidy over our own translation units.

usage: tidy.py [REGEX]    all of them, or those whose path has a match (as in 'tidy.py ^vm/')

What was found clean is remembered in build/tidy and checked again only when the command, a file that the unit
includes, .clang-tidy or clang-tidy itself has changed; remove that folder to start over.
"""

import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / "build/tidy"
REMEMBERED = BUILD / "clean.json"
TIDY = "clang-tidy-14"
# Deep analysis takes five times as long in kernels; what it would find on long paths, the sanitizers and drills find.
SHALLOW = ["-Xclang", "-analyzer-config", "-Xclang", "mode=shallow"]
# The units that the header test generates hold one include each; headers are seen through the real sources.
OWN = re.compile(r"^(base|executable_format|vm|kernels|compiler|tools|tests|examples)/")
FINDING = re.compile(r"^\S+:\d+:\d+: (error|warning): ")
NOT_A_FINDING = re.compile(r"^\d+ warnings?.* generated|^Suppressed |^Use -header-filter|^Use -system-headers")


def configure():
    """A tree of its own, never built: the commands must be clang's and free of a compiler launcher."""
    environment = {k: v for k, v in os.environ.items() if not k.endswith("_COMPILER_LAUNCHER")}
    command = ["cmake", "--preset", "dev", "-B", str(BUILD), "-DCMAKE_C_COMPILER=clang-14",
               "-DCMAKE_CXX_COMPILER=clang++-14", "-DREWIRE_BUILD_FUZZ=ON"]
    done = subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode != 0:
        sys.exit(done.stdout.decode())


def own_units():
    """{path relative to the root: compile command} of the units to check."""
    units = {}
    for entry in json.loads((BUILD / "compile_commands.json").read_text()):
        path = os.path.relpath(entry["file"], ROOT)
        if OWN.match(path):
            units[path] = shlex.split(entry["command"])
    return units


def files_of(command):
    """Every file that the unit reads, those of the system included."""
    output = command.index("-o")
    listing = subprocess.run(command[:output] + command[output + 2:] + ["-M"], cwd=BUILD, check=True,
                             stdout=subprocess.PIPE).stdout.decode()
    return sorted(set(listing.replace("\\\n", " ").split()[1:]))


class Fingerprints:
    """Hashes of everything that decides what clang-tidy finds in a unit."""

    def __init__(self):
        version = subprocess.run([TIDY, "--version"], check=True, stdout=subprocess.PIPE).stdout
        self._tool = hashlib.sha256(version + (ROOT / ".clang-tidy").read_bytes()).hexdigest()
        self._files = {}

    def of(self, command, files):
        parts = [self._tool, *command, *SHALLOW]
        for file in files:
            if file not in self._files:
                try:
                    content = (BUILD / file).read_bytes()  # an absolute path stays what it is
                except OSError:
                    return None
                self._files[file] = hashlib.sha256(content).hexdigest()
            parts.append(self._files[file])
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def check(path):
    """(clean, what clang-tidy said)"""
    options = [f"--extra-arg={option}" for option in SHALLOW]
    done = subprocess.run([TIDY, "-quiet", "-p", str(BUILD), *options, path], cwd=ROOT, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)
    lines = done.stdout.decode().splitlines()
    return done.returncode == 0, "\n".join(line for line in lines if not NOT_A_FINDING.match(line))


def print_new(said, seen):
    """Prints the findings that have not been `seen`: one in a header comes with every unit that includes it."""
    new = True
    for line in said.splitlines():
        if FINDING.match(line):
            new = line not in seen
            seen.add(line)
        if new:
            print(line, flush=True)


def main():
    wanted = re.compile(sys.argv[1] if len(sys.argv) > 1 else "")
    configure()
    units = {path: command for path, command in own_units().items() if wanted.search(path)}
    if not units:
        sys.exit(f"tidy.py: no translation unit matches {wanted.pattern!r}")
    try:
        remembered = json.loads(REMEMBERED.read_text())
    except (OSError, ValueError):
        remembered = {}
    fingerprints = Fingerprints()
    due = [path for path, command in units.items()
           if path not in remembered
           or fingerprints.of(command, remembered[path]["files"]) != remembered[path]["fingerprint"]]

    def check_and_remember(path):
        files = files_of(units[path])
        fingerprint = fingerprints.of(units[path], files)
        clean, said = check(path)
        if clean:
            remembered[path] = {"files": files, "fingerprint": fingerprint}
        return path, clean, said

    failed = []
    seen = set()
    try:
        with concurrent.futures.ThreadPoolExecutor(int(os.environ.get("JOBS") or os.cpu_count())) as pool:
            for path, clean, said in pool.map(check_and_remember, due):
                if not clean:
                    failed.append(path)
                    print_new(said, seen)
    finally:
        REMEMBERED.write_text(json.dumps(remembered))
    print(f"clang-tidy: {len(units)} translation units, {len(units) - len(due)} unchanged since they were clean, "
          f"{len(failed)} with findings")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
