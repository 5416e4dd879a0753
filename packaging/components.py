#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The table of third-party components (third_party/components.toml), and the texts that are made from it: the table of libraries in
third_party/README.md, third_party/NOTICES.md and packaging/debian/copyright.

    components.py            writes them
    components.py --check    fails if one of them is not what the table says
"""

import dataclasses
import pathlib
import sys
import tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent
TEXTS = ROOT / "third_party/licenses"
BEGIN, END = "<!-- made from components.toml -->\n", "<!-- end of what is made -->\n"


@dataclasses.dataclass(frozen=True)
class Component:
    """One row of the table; components.toml says what the fields are."""

    name: str
    package: str
    version: str
    license: str
    purpose: str
    linked_into: str
    found_by: str
    source: str = ""
    text: str = ""
    headers: tuple = ()
    contained: bool = False
    archives: tuple = ()
    libraries: tuple = ()
    wheel: str = ""

    @property
    def compiled_in(self):
        """Whether code of it is within what we build: from its headers or an archive."""
        return self.contained or bool(self.archives)

    @property
    def redistributed(self):
        return bool(self.compiled_in or self.libraries)


def components():
    """All rows. Raises ValueError for a row that says too little."""
    with open(ROOT / "third_party/components.toml", "rb") as file:
        rows = tomllib.load(file)["component"]
    read = [Component(**{key: tuple(value) if isinstance(value, list) else value for key, value in row.items()}) for row in rows]
    for component in read:
        if component.redistributed and not (component.text and component.source):
            raise ValueError(f"components.toml: {component.name} is redistributed, and has no text or no source")
        if component.text and not (TEXTS / component.text).is_file():
            raise ValueError(f"components.toml: {component.name}: there is no third_party/licenses/{component.text}")
        if bool(component.libraries) != bool(component.wheel):
            raise ValueError(f"components.toml: {component.name} has libraries and no wheel, or a wheel and no libraries")
    unknown = {path.name for path in TEXTS.iterdir()} - {component.text for component in read}
    if unknown:
        raise ValueError(f"third_party/licenses: no component has the text {', '.join(sorted(unknown))}")
    return read


def table(header, rows):
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines).replace("|  |", "| |") + "\n"


def readme(all_of_them):
    """third_party/README.md with its table of libraries made anew."""
    text = (ROOT / "third_party/README.md").read_text()
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    header = ("library", "Debian package", "version", "license", "for", "linked into", "found by")
    rows = [(c.name, c.package, c.version, c.license, c.purpose, c.linked_into, c.found_by) for c in all_of_them]
    return before + BEGIN + table(header, rows) + END + after


def where(component):
    parts = []
    if component.libraries:
        parts.append(f"{', '.join(component.libraries)} in the wheel {component.wheel}")
    if component.compiled_in:
        parts.append(f"compiled into what uses it: {component.linked_into or 'nothing of ours'}")
    return "; ".join(parts)


def notices(all_of_them):
    rows = [(c.name, c.version, c.license, f"[{c.text}](licenses/{c.text})", where(c)) for c in all_of_them if c.redistributed]
    return (
        "<!-- made from components.toml by packaging/components.py -->\n"
        "# Notices\n\n"
        "Rewire is under the Apache License 2.0. What is built from it, and its Python wheels, also contain the following works of\n"
        "others. Their notices are in `licenses`. The JPEG kernels are based in part on the work of the Independent JPEG Group.\n\n"
        + table(("work", "version", "license", "notice", "where"), rows)
    )


def copyright_file(all_of_them):
    """Debian's copyright file: packages have code of others only where it is compiled in, since they depend on the rest."""
    inside = [c for c in all_of_them if c.compiled_in and not c.source.startswith("pypi") and c.name != "robin-map"]
    lines = ["Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/", "Upstream-Name: rewire",
             "Comment: Code of these works is compiled into the packages; their notices are below."]
    lines += [f" {c.name} {c.version}: {c.license}" for c in inside]
    lines += ["", "Files: *", "Copyright: the Rewire authors", "License: Apache-2.0", ""]
    apache = (ROOT / "packaging/debian/apache-2.0.txt").read_text()
    for name, text in [("Apache-2.0", apache)] + [(f"notice-of-{c.text.removesuffix('.txt')}", (TEXTS / c.text).read_text()) for c in inside]:
        lines += [f"License: {name}"] + [f" {line}" if line.strip() else " ." for line in text.rstrip().splitlines()] + [""]
    return "\n".join(lines)


def made():
    """What the table makes: path to text."""
    all_of_them = components()
    return {
        ROOT / "third_party/README.md": readme(all_of_them),
        ROOT / "third_party/NOTICES.md": notices(all_of_them),
        ROOT / "packaging/debian/copyright": copyright_file(all_of_them),
    }


def main(arguments):
    if arguments not in ([], ["--check"]):
        print(__doc__)
        return 2
    stale = [path for path, text in made().items() if not path.exists() or path.read_text() != text]
    for path in stale:
        if arguments:
            print(f"{path.relative_to(ROOT)}: differs from third_party/components.toml; run packaging/components.py")
        else:
            path.write_text(made()[path])
    if not arguments or not stale:
        print(f"components: {len(components())} rows, {sum(c.redistributed for c in components())} of them redistributed")
    return 1 if arguments and stale else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
