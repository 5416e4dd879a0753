#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the Python wheels that are for other machines.

    wheels.py [--dist DIR] [--jobs N] [PYTHON...]
    wheels.py [--dist DIR] --local BUILD [PYTHON]

Builds the preset `wheel` in build/wheel, for each PYTHON (a path or a name; by default python3). For 3.12 and later it uses the stable
ABI, and one wheel serves all of these. auditwheel puts the shared libraries of others into the wheel and finds out which systems it is
for. Two wheels come of it:

    rewire           the package, the compiler and the kernels but those of oneDNN
    rewire-onednn    these, with oneDNN: what `pip install rewire[full]` adds

With --local BUILD it packs what such a build tree has built with REWIRE_WITH_PYTHON, as a wheel for this machine alone: it builds nothing,
and the wheel uses the libraries of others that the machine has. Tests install such a wheel.

Equal sources, tools and Debian packages give equal bytes. Prints each wheel with its packed and its installed size, and fails if the
wheel `rewire` is larger than 15 MB, or 45 MB installed. packaging/licenses.py checks their licenses.
"""

import argparse
import base64
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "packaging"))
sys.path.insert(0, str(ROOT / "tests/support"))
import components  # noqa: E402
import environments  # noqa: E402

BUILD = ROOT / "build/wheel"
REQUIREMENTS = ROOT / "packaging/requirements/wheel.txt"
MOST_PACKED, MOST_INSTALLED = 15_000_000, 45_000_000  # bytes, of the wheel `rewire`
FIRST_STABLE = (3, 12)
ZIP_DATE = (1980, 1, 1, 0, 0, 0)


def run(command, **options):
    subprocess.run([str(word) for word in command], check=True, cwd=ROOT, **options)


def tool(name):
    return environments.environment(REQUIREMENTS) / "bin" / name


def site_packages():
    (folder,) = (environments.environment(REQUIREMENTS) / "lib").glob("python3*/site-packages")
    return folder


def tag_of(python):
    """The first part of a wheel's name for this Python: its own ABI, or the stable one."""
    code = "import sys; print(*sys.version_info[:2])"
    major, minor = map(int, subprocess.check_output([python, "-c", code], text=True).split())
    own = f"cp{major}{minor}"
    return f"cp{FIRST_STABLE[0]}{FIRST_STABLE[1]}-abi3" if (major, minor) >= FIRST_STABLE else f"{own}-{own}"


def build(python, jobs):
    """Configures and builds the tree for a Python. Ninja's lines say how far it is."""
    path = os.pathsep.join([str(site_packages()), os.environ.get("PYTHONPATH", "")]).strip(os.pathsep)
    forget = [word for pattern in ("Python_*", "_Python_*", "nanobind_*") for word in ("-U", pattern)]
    environment = dict(os.environ, PYTHONPATH=path)  # where nanobind is, for a Python that has none
    run(["cmake", "--preset", "wheel", "--log-level=WARNING", f"-DREWIRE_PYTHON={python}", *forget], env=environment,
        stdout=subprocess.DEVNULL)
    run(["cmake", "--build", "--preset", "wheel", "--parallel", jobs], env=environment)


def install(component, folder, build=BUILD):
    run(["cmake", "--install", build, "--component", component, "--prefix", folder, "--strip"], stdout=subprocess.DEVNULL)


def metadata(folder):
    """The folder NAME-VERSION.dist-info of pyproject.toml, made below `folder`: METADATA and licenses."""
    code = "import sys; from scikit_build_core import build; print(build.prepare_metadata_for_build_wheel(sys.argv[1]))"
    run([tool("python"), "-c", code, folder], stdout=subprocess.DEVNULL)
    (info,) = folder.glob("*.dist-info")
    return info


def onednn_metadata(folder, version):
    """The same for the wheel of oneDNN, which has no project file: it is made only here."""
    info = folder / f"rewire_onednn-{version}.dist-info"
    shipped = [component for component in components.components() if component.wheel == "rewire-onednn"]
    license_of_all = " AND ".join(["Apache-2.0", *sorted({c.license for c in shipped} - {"Apache-2.0"})])
    (info / "licenses/third_party/licenses").mkdir(parents=True)
    (info / "METADATA").write_text(
        f"Metadata-Version: 2.4\nName: rewire-onednn\nVersion: {version}\nSummary: Kernels of Rewire that use oneDNN\n"
        f"License-Expression: {license_of_all}\nRequires-Dist: rewire=={version}\nRequires-Python: >=3.10\n\n"
        "Rewire uses these kernels where they are installed. `pip install rewire[full]` installs them.\n")
    shutil.copy(ROOT / "LICENSE", info / "licenses")
    shutil.copy(ROOT / "third_party/NOTICES.md", info / "licenses/third_party")
    for component in shipped:
        shutil.copy(components.TEXTS / component.text, info / "licenses/third_party/licenses")
    return info


def pack(folder, wheel, compression=zipfile.ZIP_DEFLATED):
    """Zips a folder as a wheel: sorted names, one date, and a new RECORD. Equal folders give equal bytes."""
    (info,) = folder.glob("*.dist-info")
    record = info / "RECORD"
    record.unlink(missing_ok=True)
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    lines = []
    for path in files:
        digest = base64.urlsafe_b64encode(hashlib.sha256(path.read_bytes()).digest()).rstrip(b"=").decode()
        lines.append(f"{path.relative_to(folder)},sha256={digest},{path.stat().st_size}\n")
    record.write_text("".join(lines) + f"{record.relative_to(folder)},,\n")
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for path in [*files, record]:
            entry = zipfile.ZipInfo(str(path.relative_to(folder)), ZIP_DATE)
            entry.external_attr = (0o755 if path.suffix == ".so" or ".so." in path.name else 0o644) << 16
            entry.compress_type = compression
            archive.writestr(entry, path.read_bytes())


def pack_for_here(folder, name, tag, dist, compression=zipfile.ZIP_DEFLATED):
    """Makes a wheel of a folder, as it is, for this kind of machine."""
    (info,) = folder.glob("*.dist-info")
    (info / "WHEEL").write_text(f"Wheel-Version: 1.0\nGenerator: rewire\nRoot-Is-Purelib: false\nTag: {tag}-linux_x86_64\n")
    wheel = dist / f"{name}-{tag}-linux_x86_64.whl"
    pack(folder, wheel, compression)
    return wheel


def repair(folder, name, tag, dist):
    """Makes a wheel of a folder, lets auditwheel bring in what it needs, and puts the result into `dist`."""
    with tempfile.TemporaryDirectory() as work:
        # Only the last wheel is compressed: the others are read once, here.
        raw = pack_for_here(folder, name, tag, pathlib.Path(work), zipfile.ZIP_STORED)
        path = os.pathsep.join([str(tool("patchelf").parent), os.environ["PATH"]])
        log = subprocess.run([tool("auditwheel"), "repair", "--zip-compression-level", "0", "--wheel-dir", work, raw],
                             capture_output=True, text=True, check=False,
                             env=dict(os.environ, PATH=path))
        made = [each for each in pathlib.Path(work).glob("*.whl") if each != raw]
        if log.returncode != 0 or len(made) != 1:
            raise SystemExit(f"wheels.py: auditwheel made no wheel of {raw.name}:\n{log.stdout}{log.stderr}")
        unpacked = pathlib.Path(work) / "unpacked"
        with zipfile.ZipFile(made[0]) as archive:
            archive.extractall(unpacked)
            installed = sum(entry.file_size for entry in archive.infolist())
        for leftover in unpacked.glob("*.dist-info/sboms"):
            shutil.rmtree(leftover)  # ours is made from the table, for all that a release has
        for old in dist.glob(f"{name}-{tag}-*.whl"):
            old.unlink()
        wheel = dist / made[0].name
        pack(unpacked, wheel)
    print(f"{wheel.name}: {wheel.stat().st_size / 1e6:.1f} MB, {installed / 1e6:.1f} MB installed", flush=True)
    return wheel.stat().st_size, installed


def fill_package(folder, build):
    """Puts the package `rewire` of a build tree, with its metadata, into a folder. Returns the folder of the metadata."""
    info = metadata(folder)
    package = folder / "rewire"
    install("python", package, build)
    source = ROOT / "python/rewire"
    for path in [*source.rglob("*.py"), *source.rglob("*.pyi"), *source.rglob("py.typed")]:
        target = package / path.relative_to(source)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
    return info


def local_wheel(tag, dist, build):
    with tempfile.TemporaryDirectory() as work:
        folder = pathlib.Path(work)
        info = fill_package(folder, build)
        print(pack_for_here(folder, info.stem, tag, dist))


def package_wheel(tag, dist):
    with tempfile.TemporaryDirectory() as work:
        folder = pathlib.Path(work)
        info = fill_package(folder, BUILD)
        packed, installed = repair(folder, info.stem, tag, dist)
    if packed > MOST_PACKED or installed > MOST_INSTALLED:
        raise SystemExit(f"wheels.py: the wheel has {packed} bytes and {installed} installed; "
                         f"at most {MOST_PACKED} and {MOST_INSTALLED} are allowed")
    return info.stem.partition("-")[2]


def onednn_wheel(version, dist):
    with tempfile.TemporaryDirectory() as work:
        folder = pathlib.Path(work)
        install("python_onednn", folder / "rewire")
        if not list(folder.rglob("*.so")):
            print("rewire-onednn: left out, since oneDNN was not found")
            return
        info = onednn_metadata(folder, version)
        repair(folder, info.stem, "py3-none", dist)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dist", type=pathlib.Path, default=ROOT / "dist")
    parser.add_argument("--local", type=pathlib.Path, metavar="BUILD")
    parser.add_argument("--jobs", default=str(os.cpu_count()))
    parser.add_argument("pythons", nargs="*", default=["python3"], metavar="PYTHON")
    options = parser.parse_args()
    code = environments.main([REQUIREMENTS])
    if code != 0:
        return code
    options.dist.mkdir(parents=True, exist_ok=True)
    by_tag = {tag_of(shutil.which(python) or python): shutil.which(python) or python for python in options.pythons}
    if options.local:
        for tag in by_tag:
            local_wheel(tag, options.dist, options.local.resolve())
        return 0
    version = None
    for tag, python in by_tag.items():
        build(python, options.jobs)
        version = package_wheel(tag, options.dist)
    onednn_wheel(version, options.dist)
    return 0


if __name__ == "__main__":
    sys.exit(main())
