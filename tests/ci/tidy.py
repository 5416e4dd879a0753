#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs clang-tidy over our own translation units.

usage: tidy.py [REGEX]    all of them, or those whose path has a match (as in 'tidy.py ^vm/')

Nearly all of clang-tidy's time goes into headers of others, so that units with the same command are checked together, as
one file: in a seventh of the time that they take alone. Where they do not compile together, the file
is cut in two.

What was found clean is remembered in build/tidy and checked again only when the command, a file that the unit
includes, .clang-tidy or clang-tidy itself has changed; remove that folder to start over.
"""

import bisect
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
BATCHES = BUILD / "batches"
REMEMBERED = BUILD / "clean.json"
TIDY = "clang-tidy-14"
BATCH = 24
# Deep analysis takes five times as long in kernels; what it would find on long paths, the sanitizers and drills find.
SHALLOW = ["-Xclang", "-analyzer-config", "-Xclang", "mode=shallow"]
OFF_WITH_CLI = "-performance-unnecessary-value-param"  # takes ten seconds for what CLI11 defines in its headers
# Highway compiles such a unit once for every instruction set, all from the same lines: one is enough here.
HIGHWAY = "hwy/foreach_target.h"
ONE_TARGET = ["-DHWY_COMPILE_ONLY_STATIC"]
# The units that the header test generates hold one include each; headers are seen through the real sources.
# Libraries in C that tests load stand for what compilers of others make, names and signatures included.
OWN = re.compile(r"^(?!tests/.*/libraries/.*\.c$)(base|executable_format|vm|kernels|compiler|tools|tests|examples)/")
FINDING = re.compile(r"^\S+:\d+:\d+: (error|warning): ")
NOT_A_FINDING = re.compile(r"^\d+ warnings?.* generated|^Suppressed |^Use -header-filter|^Use -system-headers")
# What a line at the left margin declares, and the words with which a unit may mean it: neither members, nor what is
# named with its namespace.
DECLARES = re.compile(r"(?:struct|class|union|enum|enum class) (\w+)|using (?:.*\b)?(\w+)(?:;| =)|"
                      r"(?!return|namespace|static_assert|TEST_CASE)[\w:<].*?\b(\w+)(?:[({;[]| =)")
WORD = re.compile(r"(?<![.>:\w])[A-Z]\w*|\bk[A-Z]\w*")
NO_WORD = re.compile(r"//.*|\"([^\"\\]|\\.)*\"")


def configure():
    """A tree of its own, never built: the commands must be clang's and free of a compiler launcher."""
    environment = {k: v for k, v in os.environ.items() if not k.endswith("_COMPILER_LAUNCHER")}
    command = ["cmake", "--preset", "dev", "-B", str(BUILD), "-DCMAKE_C_COMPILER=clang-14",
               "-DCMAKE_CXX_COMPILER=clang++-14", "-DREWIRE_BUILD_FUZZ=ON"]
    done = subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode != 0:
        sys.exit(done.stdout.decode())


class Unit:
    """A translation unit: its path relative to the root, and how it is compiled."""

    def __init__(self, entry):
        self.path = os.path.relpath(entry["file"], ROOT)
        command = shlex.split(entry["command"])
        output = command.index("-o")
        self.command = command[:output]
        text = (ROOT / self.path).read_text()
        self.alone = HIGHWAY in text
        if self.alone:
            self.command += ONE_TARGET
        self.is_program = re.search(r"^int main\(", text, re.MULTILINE) is not None
        # What would mean something else, or twice, where one file holds several units. Not all of it: only what is
        # easily found, so that few batches must be cut.
        lines = [line for line in hidden_lines(text) if not line.startswith("using namespace")]
        self.declared = {next(filter(None, match.groups())): match.string for match in map(DECLARES.match, lines) if match}
        self.words = set(WORD.findall(NO_WORD.sub("", text)))

    def goes_with(self, other):
        return not (self.hides_from(other) or other.hides_from(self))

    def hides_from(self, other):
        """Whether a name of this unit's own stands in the other, and not for the same."""
        return any(name in other.words and not (line.startswith("using") and other.declared.get(name) == line)
                   for name, line in self.declared.items())


def hidden_lines(text):
    """The lines that declare for this unit alone: in anonymous namespaces, and what is used from others."""
    hidden = False
    for line in text.splitlines():
        if line == "namespace {":
            hidden = True
        elif line == "}  // namespace":
            hidden = False
        elif hidden or line.startswith("using "):
            yield line


def own_units():
    entries = json.loads((BUILD / "compile_commands.json").read_text())
    units = {unit.path: unit for unit in map(Unit, (e for e in entries if OWN.match(os.path.relpath(e["file"], ROOT))))}
    return list(units.values())


def batches_of(units):
    """The units in lists to check at once: of the same command, and without names that meet."""
    by_command = {}
    for unit in units:
        batches = by_command.setdefault((*unit.command, unit.path if unit.alone else pathlib.Path(unit.path).suffix), [])
        batch = next((b for b in batches if len(b) < BATCH and all(map(unit.goes_with, b))), None)
        if batch is None:
            batches.append([unit])
        else:
            batch.append(unit)
    return sorted((batch for batches in by_command.values() for batch in batches), key=len, reverse=True)


class Batch:
    """Units to check as one file. It holds their text: what is included would not be analyzed."""

    def __init__(self, units):
        self.units = units
        self.command = units[0].command
        name = hashlib.sha256("\0".join(unit.path for unit in units).encode()).hexdigest()[:16]
        self.file = BATCHES / (name + pathlib.Path(units[0].path).suffix)
        self._starts = []  # the line in front of each unit's first
        lines = []
        for unit in units:
            if unit.is_program:
                lines += ["#undef main", "#define main Main" + re.sub(r"\W", "_", unit.path)]
            self._starts.append(len(lines))
            lines += (ROOT / unit.path).read_text().splitlines()
        self.file.write_text("\n".join([*lines, ""]))

    def in_units(self, said):
        """The same findings with the places in the units, relative to the root."""
        def place(match):
            line = int(match[1])
            i = bisect.bisect_left(self._starts, line) - 1
            return f"{self.units[i].path}:{line - self._starts[i]}:"
        return re.sub(re.escape(str(self.file)) + r":(\d+):", place, said).replace(f"{ROOT}/", "")


def headers_of(batch):
    """Every file that the batch includes, those of the system included."""
    listing = subprocess.run([*batch.command, "-M", str(batch.file)], cwd=BUILD, check=True,
                             stdout=subprocess.PIPE).stdout.decode()
    return sorted(set(listing.replace("\\\n", " ").split()[1:]) - {str(batch.file)})


class Memory:
    """What was found clean, by path: what the unit's batch included, and a hash of everything that decided."""

    def __init__(self):
        version = subprocess.run([TIDY, "--version"], check=True, stdout=subprocess.PIPE).stdout
        self._tool = hashlib.sha256(version + (ROOT / ".clang-tidy").read_bytes()).hexdigest()
        self._hashes = {}
        try:
            self._clean = json.loads(REMEMBERED.read_text())
        except (OSError, ValueError):
            self._clean = {}

    def has(self, unit):
        known = self._clean.get(unit.path)
        return known is not None and self.fingerprint(unit, known["headers"]) == known["fingerprint"]

    def add(self, unit, headers, fingerprint):
        self._clean[unit.path] = {"headers": headers, "fingerprint": fingerprint}

    def save(self):
        REMEMBERED.write_text(json.dumps(self._clean))

    def fingerprint(self, unit, headers):
        """None where a header is gone."""
        parts = [self._tool, *unit.command, *SHALLOW]
        for file in (str(ROOT / unit.path), *headers):
            if file not in self._hashes:
                try:
                    content = (BUILD / file).read_bytes()  # an absolute path stays what it is
                except OSError:
                    return None
                self._hashes[file] = hashlib.sha256(content).hexdigest()
            parts.append(self._hashes[file])
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def check(units, memory):
    """[(what clang-tidy said, whether it found nothing)]: of one batch, or of several where it does not compile as one."""
    batch = Batch(units)
    headers = headers_of(batch)
    fingerprints = [memory.fingerprint(unit, headers) for unit in units]
    off = OFF_WITH_CLI * any("/CLI/" in header for header in headers)
    command = [TIDY, "-quiet", f"-checks={off}", str(batch.file), "--", *batch.command[1:], *SHALLOW]
    done = subprocess.run(command, cwd=BUILD, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    said = batch.in_units(done.stdout.decode())
    if "[clang-diagnostic-error" in said and len(units) > 1:
        half = len(units) // 2
        return check(units[:half], memory) + check(units[half:], memory)
    if done.returncode == 0:
        for unit, fingerprint in zip(units, fingerprints):
            memory.add(unit, headers, fingerprint)
    lines = (line for line in said.splitlines() if not NOT_A_FINDING.match(line))
    return [("\n".join(lines), done.returncode == 0)]


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
    if sys.argv[1:] in (["-h"], ["--help"]):
        sys.exit(print(__doc__))
    wanted = re.compile(sys.argv[1] if len(sys.argv) > 1 else "")
    configure()
    BATCHES.mkdir(exist_ok=True)
    units = [unit for unit in own_units() if wanted.search(unit.path)]
    if not units:
        sys.exit(f"tidy.py: no translation unit matches {wanted.pattern!r}")
    memory = Memory()
    due = [unit for unit in units if not memory.has(unit)]
    failed = 0
    seen = set()
    try:
        with concurrent.futures.ThreadPoolExecutor(int(os.environ.get("JOBS") or os.cpu_count())) as pool:
            for results in pool.map(lambda batch: check(batch, memory), batches_of(due)):
                for said, clean in results:
                    if not clean:
                        failed += 1
                        print_new(said, seen)
    finally:
        memory.save()
    print(f"clang-tidy: {len(units)} translation units, {len(units) - len(due)} unchanged since they were clean, "
          f"{len(seen)} findings")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
