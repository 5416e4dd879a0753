#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks files of a release: wheels, sources and Debian packages.

    artifacts.py [--version V] [--no-path DIR] FILE...

Each must be of version V, by its name and by what it says of itself, and no file in it may contain the name of the folder DIR, where it
was built. Prints the number of files that were read, and exits with 1 for each that is wrong.
"""

import argparse
import pathlib
import re
import subprocess
import sys
import tarfile
import tempfile
import zipfile


def unpack(artifact, folder):
    if artifact.suffix == ".whl":
        with zipfile.ZipFile(artifact) as archive:
            archive.extractall(folder)
    elif artifact.suffix == ".deb":
        subprocess.run(["dpkg-deb", "--raw-extract", artifact, folder], check=True)
    else:
        with tarfile.open(artifact) as archive:
            archive.extractall(folder, filter="data") if hasattr(tarfile, "data_filter") else archive.extractall(folder)


def said_version(artifact, folder):
    """The version that the file's own description has."""
    description = {".whl": "*.dist-info/METADATA", ".deb": "DEBIAN/control"}.get(artifact.suffix, "*/PKG-INFO")
    (path,) = folder.glob(description)
    return re.search(r"^Version: (.+)$", path.read_text(), re.MULTILINE).group(1)


def problems(artifact, version, path):
    """What is wrong with one file, and how many files it has."""
    wrong = []
    with tempfile.TemporaryDirectory() as work:
        folder = pathlib.Path(work) / "content"
        unpack(artifact, folder)
        if version and (f"-{version}" not in artifact.name and f"_{version}" not in artifact.name):
            wrong.append(f"its name has no version {version}")
        if version and said_version(artifact, folder) != version:
            wrong.append(f"it says version {said_version(artifact, folder)}, not {version}")
        files = [each for each in folder.rglob("*") if each.is_file() and not each.is_symlink()]
        for each in files:
            if path and path.encode() in each.read_bytes():
                wrong.append(f"{each.relative_to(folder)} has the name of the folder {path} in it")
    return wrong, len(files)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--version")
    parser.add_argument("--no-path")
    parser.add_argument("files", nargs="+", type=pathlib.Path)
    options = parser.parse_args()
    failed = 0
    for artifact in options.files:
        wrong, count = problems(artifact, options.version, options.no_path)
        print(f"{artifact.name}: {count} files")
        for line in wrong:
            print(f"{artifact.name}: {line}", file=sys.stderr)
        failed += len(wrong)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
