#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plants faults in the library and checks that the tests notice each of them.

usage: plant.py --check                     every fault of faults/ can still be planted (takes no time)
       plant.py [--area A] [--only TEXT]    plant them; fails when a fault survives
       plant.py --preset release            without sanitizers: sooner, but some faults are then not seen
       plant.py --list

Works on a copy of the tree in build/faults, which is kept: the next run builds only what has changed. The chosen faults
are planted at once, each asleep: «x < y» becomes (planted ? (x <= y) : (x < y)). So the copy is built once, and the tests
run once for each fault, which the environment variable REWIRE_PLANTED_FAULT wakes. The copy is built with the preset
asan-ubsan unless told otherwise: reading past an end counts as noticed. A fault is caught when one of its tests fails, crashes or takes
longer than its time limit: TIMEOUT, or less for a test that was quick without a fault. All sleep in the first run, which must pass.
"""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time
import zlib

from faults import FAULTS
from faults.fault import CTest

ROOT = pathlib.Path(__file__).resolve().parents[2]
COPY = ROOT / "build" / "faults"
TIMEOUT = 240  # seconds for one test executable; all of them take less than half of it
# A test that was quick without a fault has less: this, and so many times what it took. Other work may share its core.
LEAST_TIMEOUT = 40
TIMES_TIMEOUT = 6
ENVIRONMENT = {
    "ASAN_OPTIONS": "detect_leaks=1:detect_stack_use_after_return=1:allocator_may_return_null=1:"
    "intercept_tls_get_addr=0",
    "UBSAN_OPTIONS": "print_stacktrace=1",
}


def tree_files():
    """All files that git tracks or would track, relative to the root."""
    listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT,
                            check=True, capture_output=True, text=True).stdout
    return sorted({name for name in listed.split("\0")
                   if name and ((ROOT / name).is_file() or (ROOT / name).is_symlink())})


# Stands at the top of a file with faults in it.
# Warnings are about the code without its faults. Everything else is compiled as in the tree, so that ccache has it.
SWITCH = """#ifndef REWIRE_PLANTED_FAULT
#define REWIRE_PLANTED_FAULT
#include <cstdlib>
#pragma GCC diagnostic ignored "-Wdangling-else"
#ifndef __clang__  // which does not know it
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#pragma GCC diagnostic ignored "-Wparentheses"
#pragma GCC diagnostic ignored "-Wsign-compare"
#pragma GCC diagnostic ignored "-Wtype-limits"
#pragma GCC diagnostic ignored "-Wunused"
[[maybe_unused]] static bool AwakeFault(long number) {
  static const char* const woken = std::getenv("REWIRE_PLANTED_FAULT");
  static const long awake = woken == nullptr ? 0 : std::atol(woken);
  return awake == number;
}
// In constant expressions all faults sleep.
[[maybe_unused]] static constexpr bool PlantedFault(long number) {
  return !__builtin_is_constant_evaluated() && AwakeFault(number);
}
#endif
"""


def number_of(fault):
    """Stays the same when other faults come and go."""
    return zlib.crc32(fault.rule.encode()) % 1000000 + 1


def parts_of(fault):
    """What stands before the weakened text, the text, and what stands behind it."""
    before, rest = fault.place.split("«")
    sound, behind = rest.split("»")
    return before, sound, behind


def sleeping(fault):
    """The fault's place with the fault in it, asleep."""
    before, sound, behind = parts_of(fault)
    planted = f"PlantedFault({number_of(fault)})"
    if sound.endswith(";"):
        return f"{before}{{ if ({planted}) {{ {fault.weak} }} else {{ {sound} }} }}{behind}"
    return f"{before}({planted} ? ({fault.weak}) : ({sound})){behind}"


def locate(fault, files):
    """The path of the fault's file, or None with the reason why the fault cannot be planted."""
    named = [name for name in files if os.path.basename(name) == fault.file and not name.startswith("tests/")]
    if not named:
        return None, f"there is no file {fault.file}"
    place = "".join(parts_of(fault))
    counts = {name: (ROOT / name).read_text(encoding="utf-8").count(place) for name in named}
    holding = [name for name, count in counts.items() if count > 0]
    if len(holding) == 1 and counts[holding[0]] == 1:
        return holding[0], ""
    return None, f"its place stands {sum(counts.values())} times in {', '.join(named)}, expected once: {fault.place!r}"


def check(files):
    """The faults that cannot be planted, as messages."""
    wrong = []
    numbers = {}
    for fault in FAULTS:
        _, reason = locate(fault, files)
        if not reason and not fault.weak and not parts_of(fault)[1].endswith(";"):
            reason = "only a whole statement can be left out: put its ';' into the marks"
        if not reason and numbers.setdefault(number_of(fault), fault) is not fault:
            reason = f"has the number of the fault '{numbers[number_of(fault)].rule}'; word the rule in another way"
        if reason:
            wrong.append(f"{fault.area}: {fault.rule}: {reason}")
    return wrong


def planted(files, faults):
    """The files that have any of the faults, by path, with these in."""
    changed = {}
    for fault in faults:
        path = locate(fault, files)[0]
        source = changed.get(path) or (ROOT / path).read_text(encoding="utf-8")
        changed[path] = source.replace("".join(parts_of(fault)), sleeping(fault))
    for path, source in changed.items():
        if path.endswith(".h"):
            changed[path] = source.replace("#pragma once\n", "#pragma once\n" + SWITCH, 1)
        else:
            changed[path] = SWITCH + source
    return changed


def copy_tree(files, faults):
    """Brings the copy up to date. Files that are the same keep their time, so that little is built again."""
    changed = planted(files, faults)
    for name in files:
        source, target = ROOT / name, COPY / name
        if source.is_symlink():  # include/rewire is the root itself
            target.parent.mkdir(parents=True, exist_ok=True)
            target.unlink(missing_ok=True)
            target.symlink_to(os.readlink(source))
            continue
        content = changed[name].encode() if name in changed else source.read_bytes()
        if target.is_file() and target.read_bytes() == content:
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
        shutil.copymode(source, target)
    known = set(files)
    for folder, folders, names in os.walk(COPY):
        relative = pathlib.Path(folder).relative_to(COPY)
        if relative == pathlib.Path("."):
            folders[:] = [each for each in folders if each != "build"]
        for name in names:
            if str(relative / name) not in known:
                (COPY / relative / name).unlink()


def build(targets, preset):
    command = ["cmake", "--build", "--preset", preset, "--parallel", os.environ.get("JOBS", str(os.cpu_count())),
               "--target", *targets]
    # To ccache, paths begin at the copy: it then has what was built of the tree itself.
    environment = os.environ | {"CCACHE_BASEDIR": str(COPY)}
    return subprocess.run(command, cwd=COPY, capture_output=True, text=True, env=environment)


def targets_of(test):
    return test.targets if isinstance(test, CTest) else (test,)


def environment_of(test, preset):
    """Tests of devices run on the simulated CUDA driver, which is always there. ctest itself knows what its tests need."""
    if isinstance(test, CTest):
        return {}
    if not test.startswith("device_"):
        return ENVIRONMENT
    built = COPY / "build" / preset
    return ENVIRONMENT | {"REWIRE_TEST_DEVICE": "cuda", "REWIRE_CUDA_LIBRARIES": "off",
                          "REWIRE_LIBRARY_PATH": str(built / "lib" / "rewire"),
                          "LD_LIBRARY_PATH": str(built / "tests" / "simulated_cuda")}


# What programs that are not Catch2's are called with.
ARGUMENTS = {"onnxruntime_api_test": ["../../lib/onnxruntime/libonnxruntime.so.1"]}


def command_of(test):
    """What runs the test, and in which folder of the build."""
    if isinstance(test, CTest):
        return ["ctest", "--output-on-failure", "--no-tests=error", "-R", f"^{re.escape(test.name)}$"], "."
    return [f"./{test}", *ARGUMENTS.get(test, ["--abort", "--durations", "no"])], "tests/bin"


def run_test(test, preset, number=0, limit=TIMEOUT):
    """None when the test passes, otherwise what failed."""
    command, folder = command_of(test)
    fixed = ["setarch", "--addr-no-randomize"]  # sanitizers of this age need it where it is allowed
    if subprocess.run([*fixed, "true"], capture_output=True).returncode == 0:
        command = fixed + command
    try:
        done = subprocess.run(command, cwd=COPY / "build" / preset / folder, timeout=limit,
                              capture_output=True, text=True, errors="replace", env=os.environ | environment_of(test, preset) | {"REWIRE_PLANTED_FAULT": str(number)})
    except subprocess.TimeoutExpired:
        return f"does not end in {limit:.0f} s"
    if done.returncode == 0:
        return None
    output = done.stdout + done.stderr
    # Catch2 prints the name of a test case between two lines of '-', before what it says of it.
    said = output[:output.find("FAILED:")] if "FAILED:" in output else ""
    cases = re.findall(r"^-{70,}\n((?:.+\n)+?)-{70,}$", said, re.MULTILINE)
    name = " ".join(line.strip() for line in cases[-1].splitlines()) if cases else ""
    report = re.search(r"(ERROR: (?:Address|Leak)Sanitizer: [\w-]+|runtime error: .{0,80}|Assertion.{0,80})", output)
    return "; ".join(part for part in (name, report.group(1) if report else "") if part) or \
        f"ends with status {done.returncode}"


def notice(fault, preset, limits):
    """What notices the fault, or None."""
    for test in fault.tests:
        if failure := run_test(test, preset, number_of(fault), limits.get(test, TIMEOUT)):
            return f"{test}: {failure}"
    return None


def prepare(files, faults, preset, baseline):
    """Builds the copy. Its tests must pass while all faults sleep, or a failure would mean nothing. Returns the time limit of each that
    was run."""
    COPY.mkdir(parents=True, exist_ok=True)
    copy_tree(files, faults)
    subprocess.run(["cmake", "--preset", preset], cwd=COPY, check=True, stdout=subprocess.DEVNULL)
    tests = sorted({test for fault in faults for test in fault.tests}, key=str)
    built = build(sorted({target for test in tests for target in targets_of(test)}), preset)
    if built.returncode != 0:
        sys.exit(f"the tree with its faults does not build\n{built.stdout[-4000:]}{built.stderr[-2000:]}")
    limits = {}
    for test in tests if baseline else []:
        started = time.monotonic()
        if failure := run_test(test, preset):
            sys.exit(f"{test} fails without any fault: {failure}")
        limits[test] = min(TIMEOUT, LEAST_TIMEOUT + TIMES_TIMEOUT * (time.monotonic() - started))
    return limits


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="check that every fault can be planted, and end")
    parser.add_argument("--list", action="store_true", help="print the faults, and end")
    parser.add_argument("--area", help="plant the faults of this area alone")
    parser.add_argument("--only", help="plant the faults alone whose rule has this text in it")
    parser.add_argument("--preset", default="asan-ubsan", help="how the copy is built")
    parser.add_argument("--no-baseline", action="store_true", help="do not run the tests without a fault first")
    options = parser.parse_args()
    files = tree_files()
    if wrong := check(files):
        sys.exit("tests/faults/faults/ does not fit the tree; move the fault along with the line it weakens:\n"
                 + "\n".join(wrong))
    faults = [fault for fault in FAULTS if options.area in (None, fault.area) and (options.only or "") in fault.rule]
    if options.check or options.list:
        for fault in faults if options.list else []:
            print(f"{fault.area:9} {fault.rule} ({fault.file}; {', '.join(map(str, fault.tests))})")
        print(f"{len(faults)} faults can be planted")
        return
    if not faults:
        sys.exit("no fault is of that area and has that text in its rule; see --list")
    limits = prepare(files, faults, options.preset, not options.no_baseline)
    survivors = []
    for fault in faults:
        started = time.monotonic()
        noticed = notice(fault, options.preset, limits)
        verdict = "caught  " if noticed else "SURVIVED"
        print(f"{verdict} {fault.area:9} {fault.rule} [{noticed or ', '.join(map(str, fault.tests))}] "
              f"{time.monotonic() - started:.0f} s", flush=True)
        if not noticed:
            survivors.append(fault)
    print(f"{len(faults)} faults planted, {len(faults) - len(survivors)} caught")
    sys.exit(1 if survivors else 0)


if __name__ == "__main__":
    main()
