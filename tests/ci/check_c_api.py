#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The C API keeps what its releases promised.

    check_c_api.py                  every function, constant and struct of tests/ci/c_api/RELEASE.txt is still declared
    check_c_api.py --write RELEASE  write the list of a release; only for one that is not out yet
    check_c_api.py --self-test

A program that was compiled against a release runs with later libraries if functions keep their types, constants their values,
and structs their fields. A struct that begins with struct_size may grow at its end. New names may be added.
"""
import argparse
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
HEADERS = ["vm/c_api/*.h", "vm/kernel/*.h", "compiler/c_api.h", "serve/client/c_api.h"]
LISTS = ROOT / "tests" / "ci" / "c_api"
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)
FUNCTION = re.compile(r"REWIRE_(?:COMPILER_)?API\s+([^;{]*?\brewire_\w+\s*\([^;]*?\))\s*;", re.S)
CONSTANT = re.compile(r"\b(k?R(?:EWIRE|ewire)\w*)\s*=\s*(-?\w+)")
STRUCT = re.compile(r"typedef struct (Rewire\w+) \{(.*?)\} \1;", re.S)
MACRO = re.compile(r"^#define (REWIRE_[A-Z_]+)\s+(\(.+\)|\d\w*)$", re.M)


def one_line(text):
    return re.sub(r"\s*([(),*])\s*", r"\1", " ".join(text.split()))


def declarations(text):
    """Lines that say what a header declares, one for each name."""
    text = COMMENT.sub(" ", text)
    for declaration in FUNCTION.findall(text):
        yield f"function {one_line(declaration)}"
    for body in re.findall(r"\benum\s*\w*\s*\{(.*?)\}", text, re.S):
        for name, value in CONSTANT.findall(body):
            yield f"constant {name} = {value}"
    for name, body in STRUCT.findall(text):
        yield f"struct {name}: {one_line(body)}"
    for name, value in MACRO.findall(text):
        yield f"macro {name} {value}"


def declared():
    paths = sorted(path for pattern in HEADERS for path in ROOT.glob(pattern))
    c_side = [path for path in paths if "namespace rewire" not in path.read_text() or path.parent.name == "c_api"]
    return sorted({line for path in c_side for line in declarations(path.read_text())})


def broken(promised, present):
    """Each promise that no longer holds, in words."""
    here = set(present)
    structs = dict(line.split(": ", 1) for line in present if line.startswith("struct "))
    for line in promised:
        if line in here:
            continue
        name, _, fields = line.partition(": ")
        # Fields may follow the released ones where callers say how large their struct is.
        if name in structs and fields.startswith("uint32_t struct_size;") and structs[name].startswith(fields):
            continue
        yield f"released, and gone or changed: {line}"


def check():
    present, wrong, count = declared(), [], 0
    for path in sorted(LISTS.glob("*.txt")):
        promised = path.read_text().splitlines()
        count += len(promised)
        wrong += [f"{path.relative_to(ROOT)}: {each}" for each in broken(promised, present)]
    print("\n".join(wrong) or f"check_c_api: {count} released declarations, all kept")
    return 1 if wrong or count < 200 else 0


def self_test():
    header = """/* REWIRE_API int rewire_in_comment(void); */
REWIRE_API RewireStatus rewire_a(const RewireVm* vm,
                                 uint32_t index);
enum { kRewireOk = 0, kRewireIo = 3, };
typedef struct RewireX {
  uint32_t struct_size;
  int64_t bytes;
} RewireX;
"""
    promised = list(declarations(header))
    assert promised == ["function RewireStatus rewire_a(const RewireVm*vm,uint32_t index)", "constant kRewireOk = 0",
                        "constant kRewireIo = 3", "struct RewireX: uint32_t struct_size; int64_t bytes;"], promised
    changes = {"": 0, "uint32_t index->uint64_t index": 1, "kRewireIo = 3->kRewireIo = 4": 1, "int64_t bytes->int32_t bytes": 1,
               "bytes;->bytes; int64_t more;": 0, "int64_t bytes;->": 1, "rewire_a->rewire_b": 1}
    for change, count in changes.items():
        before, _, after = change.partition("->")
        found = list(broken(promised, list(declarations(header.replace(before, after) if before else header))))
        assert len(found) == count, (change, found)
    print("check_c_api: self-test passed")
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--self-test", action="store_true")
    parser.add_argument("--write", metavar="RELEASE")
    options = parser.parse_args()
    if options.self_test:
        return self_test()
    if options.write:
        (LISTS / f"{options.write}.txt").write_text("\n".join(declared()) + "\n")
    return check()


if __name__ == "__main__":
    sys.exit(main())
