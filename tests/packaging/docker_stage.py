#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What Docker would do for a stage of packaging/Dockerfile, as lines for docker_build.sh and docker_serve.sh.

    docker_stage.py DOCKERFILE STAGE

Prints the variables of bash `image`, `user` and `port`, `binds`, what RUN binds (STAGE:SOURCE:TARGET), and `command`, the words of ENTRYPOINT
and CMD. Prints the function `steps`, which calls the caller's `run FOLDER COMMAND` for each RUN and `copy FOLDER` for a COPY of all sources, in
their order. The stages below STAGE count, down to one that begins with an image. Refuses an instruction that it does not know, because the
test would pass without it.
"""

import json
import re
import shlex
import sys


def instructions(text):
    """(name, rest) of each instruction; a backslash joins lines, and lines that begin with # are comments."""
    text = re.sub(r"^\s*#.*\n", "", text, flags=re.MULTILINE)
    for line in re.sub(r"\\\n", " ", text).splitlines():
        if line.strip():
            name, _, rest = line.strip().partition(" ")
            yield name.upper(), re.sub(r"\s+", " ", rest.strip())


def stages(text):
    """Name of each stage, to the image or stage below it and its instructions. The last one may have no name."""
    found, name = {}, None
    for instruction, rest in instructions(text):
        if instruction == "FROM":
            below, _, name = rest.partition(" AS ")
            found[name] = (below, [])
        else:
            found[name][1].append((instruction, rest))
    return found


def add(made, instruction, rest):
    if instruction == "RUN":
        for mount in re.findall(r"--mount=(\S+) ", rest):
            options = dict(each.split("=", 1) for each in mount.split(","))
            if options.pop("type", "bind") != "bind":
                raise SystemExit(f"docker_stage.py: RUN --mount={mount}: only type=bind is known here")
            made["binds"].append("{from}:{source}:{target}".format(**options))
        made["steps"].append(["run", made["WORKDIR"], re.sub(r"--mount=\S+ ", "", rest)])
    elif instruction == "COPY" and rest.startswith(". /"):
        made["steps"].append(["copy", rest.removeprefix(". ")])
    elif instruction in ("ENTRYPOINT", "CMD"):
        made[instruction] = json.loads(rest)
    elif instruction in ("USER", "EXPOSE", "WORKDIR"):
        made[instruction] = rest
    else:
        raise SystemExit(f"docker_stage.py: the instruction {instruction} {rest} is not known here; teach it to this script")


def described(found, stage):
    if stage not in found:
        raise SystemExit(f"docker_stage.py: there is no stage {stage!r}; there are {', '.join(filter(None, found))}")
    chain = []
    while stage in found:
        chain.insert(0, stage)
        stage = found[stage][0]
    made = {"image": stage, "steps": [], "binds": [], "ENTRYPOINT": [], "CMD": [], "USER": "0:0", "EXPOSE": "", "WORKDIR": "/"}
    for each in chain:
        for instruction, rest in found[each][1]:
            add(made, instruction, rest)
    return made


def main(path, stage):
    with open(path, encoding="utf-8") as file:
        made = described(stages(file.read()), stage)
    for name, value in (("image", made["image"]), ("user", made["USER"]), ("port", made["EXPOSE"])):
        print(f"{name}={shlex.quote(value)}")
    for name, value in (("binds", made["binds"]), ("command", made["ENTRYPOINT"] + made["CMD"])):
        print(f"{name}=({shlex.join(value)})")
    print("steps() {", *map(shlex.join, made["steps"]), "}", sep="\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
