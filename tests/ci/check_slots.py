#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each function of ONNX Runtime's table does what tests/onnxruntime_api/slots.txt plans for it, and a test calls it.

    check_slots.py
    check_slots.py --self-test

A row of slots.txt is "name | plan | reason". The plans are `serve`, `accept` (without effect), `refuse`, `nothing` (a function that
releases what never exists) and `null`. Where onnxruntime_api/slots.def does something else, the row has a reason. Rows stand in the
table's order. The test of the interface calls every function that slots.def refuses or leaves out, and it calls the served ones by
name. How many of these it does not call is counted here, and the count may only go down.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
UNCALLED = 0
KINDS = {"serve": {"SERVED"}, "accept": {"SERVED"}, "refuse": {"REFUSED"}, "nothing": {"EMPTY", "SERVED"}, "null": {"ABSENT"}}
ROW = re.compile(r"^(?:STATUS|REFUSED|ABSENT|EMPTY)\((\w+)|^SERVED\(.+?, (\w+), \(", re.M)


def slots(text):
    """(kind, name) of each function, in order."""
    text = "\n".join(line for line in text.splitlines() if not line.startswith("#"))
    return [("SERVED" if match[0].startswith(("STATUS", "SERVED")) else match[0].split("(")[0], match[1] or match[2])
            for match in ROW.finditer(text)]


def plans(text):
    rows = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [tuple(part.strip() for part in (line + " | |").split("|")[:3]) for line in rows]


def problems(table, planned):
    if [name for _, name in table] != [name for name, _, _ in planned]:
        first = next((a, b) for (_, a), (b, _, _) in zip(table + [("", "its end")], planned + [("its end", "", "")]) if a != b)
        return [f"slots.txt: has {first[1]} where slots.def has {first[0]}"]
    found = []
    for (kind, _), (name, plan, reason) in zip(table, planned):
        if plan not in KINDS:
            found.append(f"slots.txt: {name}: there is no plan '{plan}'; expected one of {', '.join(KINDS)}")
        elif (kind in KINDS[plan]) == bool(reason):
            found.append(f"slots.txt: {name}: planned '{plan}', slots.def says {kind}: a reason stands exactly where both differ")
    return found


def self_test():
    text = "#define X\nSTATUS(A, (int a))\nSERVED(const char*, B, (void))\nREFUSED(C)\nABSENT(D)\n"
    table = slots(text)
    right = plans("A | serve\nB | accept\nC | refuse\nD | null\n")
    wrong = [plans("A | serve\nC | refuse\nB | accept\nD | null"), plans("A | refuse\nB | accept\nC | refuse\nD | null"),
             plans("A | serve | why\nB | accept\nC | refuse\nD | null"), plans("A | serve\nB | serves\nC | refuse\nD | null"),
             plans("A | serve\nB | accept\nC | refuse")]
    good = not problems(table, right) and not problems(table, plans("A | refuse | better\nB | accept\nC | refuse\nD | null"))
    caught = sum(bool(problems(table, each)) for each in wrong)
    print(f"check_slots self-test: {caught} of {len(wrong)} faults found")
    return 0 if good and caught == len(wrong) else 1


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    tests = ROOT / "tests/onnxruntime_api"
    table = slots((ROOT / "onnxruntime_api/slots.def").read_text(encoding="utf-8"))
    planned = plans((tests / "slots.txt").read_text(encoding="utf-8"))
    found = problems(table, planned)
    called = set(re.findall(r"api->(\w+)", "".join(path.read_text(encoding="utf-8") for path in tests.glob("*.c"))))
    # TestReleaseNull calls every Release function by its place.
    uncalled = [name for kind, name in table if kind == "SERVED" and name not in called and not name.startswith("Release")]
    if len(uncalled) > UNCALLED:
        found.append(f"no test calls {len(uncalled)} served functions, {UNCALLED} allowed: {', '.join(uncalled)}")
    elif len(uncalled) < UNCALLED:
        found.append(f"no test calls {len(uncalled)} served functions: set UNCALLED in check_slots.py from {UNCALLED} to that")
    print("\n".join([*found, f"{len(table)} functions of the table, {len(found)} problems"]))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
