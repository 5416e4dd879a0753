#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that everything that is redistributed has its license, by third_party/components.toml.

    licenses.py --build DIR        what a build tree compiles: each header and archive of others belongs to a component
    licenses.py --prefix DIR       what `cmake --install` has left: each shared object is ours, and the notices are there
    licenses.py --wheel FILE...    each shared object in a wheel is ours or a component's, once, and its notice is in the wheel
    licenses.py --self-test        that these checks find what is wrong

Prints a line for each shared object. Exits with 1 if a license is missing.
"""

import pathlib
import re
import subprocess
import sys
import tempfile
import zipfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import components  # noqa: E402

OURS = re.compile(r"librewire[a-z0-9_]*\.so.*|libtvm_ffi\.so|_rewire\..*so")
# The library that answers to the names of ONNX Runtime's; one of that name elsewhere is not ours.
OURS_BY_FOLDER = re.compile(r"(.*/)?rewire/(onnxruntime|_native)/libonnxruntime\.so(\.1)?")
GRAFTED = re.compile(r"-[0-9a-f]{8}(?=\.so)")  # auditwheel puts a hash into names
SHARED = re.compile(r"\.so(\.[0-9.]+)?$")
# Debian packages of the system and the compiler, whose headers every program is compiled with; and Python's own headers.
SYSTEM = r"libc6-dev|linux-libc-dev|libstdc\+\+-[0-9]+-dev|libgcc-[0-9]+-dev|libc-dev-bin|libcrypt-dev"
PYTHON = re.compile(r"/python3[^/]*/[^/]+\.h$|/python3[^/]*/(cpython|internal)/")
FOLDER = re.compile(r"/(?:include|site-packages)/(?:x86_64-linux-gnu/)?(.+)$")
NEVER = re.compile(r"lib(crypto|ssl|bz2|jbig|tiff)[-.]")  # not in a wheel: for their size or their license


def owner(header, rows):
    """The component that a path below an include folder belongs to; None for none."""
    for component in rows:
        if any(header == each or header.startswith(each + "/") for each in component.headers):
            return component
    return None


def system_files():
    """The files of the packages that SYSTEM names."""
    names = subprocess.run(["dpkg-query", "-W", "-f", "${Package}\\n"], capture_output=True, text=True, check=True).stdout.split()
    chosen = [name for name in names if re.fullmatch(SYSTEM, name)]
    return set(subprocess.run(["dpkg-query", "-L", *chosen], capture_output=True, text=True, check=True).stdout.splitlines())


def build_errors(headers, archives, rows, system):
    """`headers` and `archives` are paths that are not in the source tree, `system` those of the system's packages."""
    errors = []
    for header in sorted(headers):
        found = FOLDER.search(header)
        if header not in system and not PYTHON.search(header) and owner(found.group(1) if found else header, rows) is None:
            errors.append(f"{header}: no component has this header")
    known = {archive for component in rows for archive in component.archives}
    errors += [f"{path}: no component has this archive" for path in sorted(archives)
               if path not in system and pathlib.PurePath(path).name not in known]
    return errors


def object_errors(names, texts, rows, wheel):
    """`names` are shared objects; `texts` the names of the notices that lie beside them."""
    errors, lines, seen = [], [], {}
    missing = [c.text for c in rows if c.compiled_in and c.text not in texts] if wheel != "rewire-onednn" else []
    errors += [f"the notice {text} is missing, of what is compiled in" for text in missing]
    for name in sorted(names):
        plain = GRAFTED.sub("", pathlib.PurePath(name).name)
        stem = plain.partition(".so")[0]
        if NEVER.match(plain):
            errors.append(f"{name}: it must not be redistributed")
        elif OURS.fullmatch(plain) or OURS_BY_FOLDER.fullmatch(name):
            lines.append(f"{name}: Apache-2.0, and what NOTICES.md says is compiled in")
        else:
            found = next((c for c in rows if any(plain == so or plain.startswith(so + ".") for so in c.libraries)
                          or any(stem == so.partition(".so")[0] for so in c.libraries)), None)
            if found is None:
                errors.append(f"{name}: no component has this library")
            elif found.text not in texts:
                errors.append(f"{name}: its notice {found.text} is missing")
            elif wheel and found.wheel != wheel:
                errors.append(f"{name}: the table has it in the wheel {found.wheel}")
            else:
                lines.append(f"{name}: {found.license}, {found.text}")
        if wheel and stem in seen and not OURS_BY_FOLDER.fullmatch(name):  # which has two names, one of them without code
            errors.append(f"{name}: it is {seen[stem]} once more")
        seen[stem] = name
    return errors, lines


def check_build(folder):
    """By Ninja's record of what each object has read, but for tests and examples, and of what is linked."""
    root = str(components.ROOT)
    said = subprocess.run(["ninja", "-C", folder, "-t", "deps"], capture_output=True, text=True, check=True).stdout
    headers, redistributed = set(), False
    for line in said.splitlines():
        if line and not line.startswith(" "):
            redistributed = not line.startswith(("tests/", "examples/"))
        elif redistributed and line.startswith("    /") and not line.strip().startswith(root):
            headers.add(line.strip())
    text = (pathlib.Path(folder) / "build.ninja").read_text()
    archives = {word for word in re.findall(r"[\w./+-]+\.a\b", text) if re.match(r"lib(?!rewire_)", pathlib.PurePath(word).name)}
    errors = build_errors(headers, archives, components.components(), system_files())
    return errors, [f"{folder}: {len(headers)} headers and {len(archives)} archives of others, each of the system or of a component"]


def check_wheel(path):
    with zipfile.ZipFile(path) as archive:
        files = archive.namelist()
    texts = {pathlib.PurePath(name).name for name in files if ".dist-info/licenses/" in name}
    wheel = "rewire-onednn" if pathlib.Path(path).name.startswith("rewire_onednn") else "rewire"
    errors, lines = object_errors([name for name in files if SHARED.search(name)], texts, components.components(), wheel)
    errors += [f"{name} is missing" for name in ("LICENSE", "NOTICES.md") if name not in texts]
    return errors, lines


def check_prefix(folder):
    files = [path for path in pathlib.Path(folder).rglob("*") if path.is_file() and not path.is_symlink()]
    documents = [path for path in files if "doc" in path.parts]
    texts = {path.name for path in documents}
    names = [str(path.relative_to(folder)) for path in files if SHARED.search(path.name)]
    errors, lines = object_errors(names, texts, components.components(), "")
    errors += [f"{name} is missing" for name in ("LICENSE", "NOTICES.md") if name not in texts]
    return errors, lines


def self_test():
    rows = components.components()
    texts = {c.text for c in rows}
    good = ["rewire/_native/_rewire.abi3.so", "rewire.libs/libfmt-0a1b2c3d.so.9.1.0", "rewire/_native/rewire/librewire_kernels_cpu.so"]
    cases = [
        (object_errors(good, texts, rows, "rewire")[0], 0),
        (object_errors(good + ["rewire.libs/libnew-0a1b2c3d.so.1"], texts, rows, "rewire")[0], 1),
        (object_errors(good, texts - {"fmt.txt"}, rows, "rewire")[0], 2),
        (object_errors(good + ["rewire.libs/libfmt.so.9"], texts, rows, "rewire")[0], 1),
        (object_errors(good + ["rewire.libs/libcrypto-0a1b2c3d.so.3"], texts, rows, "rewire")[0], 1),
        (object_errors(good + ["rewire.libs/libdnnl-0a1b2c3d.so.2.6"], texts, rows, "rewire")[0], 1),
        (object_errors(["lib/rewire/onnxruntime/libonnxruntime.so.1"], texts, rows, "")[0], 0),
        (object_errors(["lib/libonnxruntime.so.1"], texts, rows, "")[0], 1),
        (object_errors(["rewire/_native/libonnxruntime.so", "rewire/_native/libonnxruntime.so.1"], texts, rows, "rewire")[0], 0),
        (object_errors(["rewire.libs/libonnxruntime-12345678.so.1"], texts, rows, "rewire")[0], 1),
        (build_errors(["/usr/include/fmt/core.h", "/usr/include/stdio.h"], ["/usr/lib/libutf8proc.a"], rows, {"/usr/include/stdio.h"}), 0),
        (build_errors(["/usr/include/boost/any.hpp", "/usr/include/zip.h"], [], rows, set()), 2),
        (build_errors([], ["/usr/lib/libzip.a"], rows, set()), 1),
    ]
    wrong = [index for index, (errors, count) in enumerate(cases) if len(errors) != count]
    with tempfile.TemporaryDirectory() as folder:
        if not check_prefix(folder)[0]:
            wrong.append("an empty prefix")
    print(f"licenses self-test: {len(cases) + 1 - len(wrong)} of {len(cases) + 1} cases right")
    for index in wrong:
        print("wrong:", index, cases[index] if isinstance(index, int) else "")
    return 1 if wrong else 0


def main(arguments):
    checks = {"--build": check_build, "--prefix": check_prefix, "--wheel": check_wheel}
    if arguments == ["--self-test"]:
        return self_test()
    if len(arguments) < 2 or arguments[0] not in checks:
        print(__doc__)
        return 2
    failed = 0
    for path in arguments[1:]:
        errors, lines = checks[arguments[0]](path)
        for line in lines:
            print(line)
        for error in errors:
            print(f"{path}: {error}", file=sys.stderr)
        failed += len(errors)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
