# SPDX-License-Identifier: Apache-2.0
"""From the name of a model to an executable on this machine, and to the one Program of this process.

All processes of a machine map the same .rwx file, so the weights are in memory once. An .onnx model is compiled once for that: the
first process that asks writes the executable to a folder of the user's, and the others wait for it.
"""

from __future__ import annotations

import collections
import contextlib
import fcntl
import hashlib
import json
import mmap
import os
import re
import socket
import stat
import tempfile
import threading
import time
from typing import Any, Mapping

import rewire

# An entry {"location": NAME} of a tensor's external data, as protobuf writes it: two strings, each behind its length.
_LOCATION = re.compile(rb"\x0a\x08location\x12([\x80-\xff]{0,4}[\x00-\x7f])")
_LONGEST_NAME = 4096
_MOST_PROGRAMS = 8
_OLD_SECONDS = 3600

_programs: collections.OrderedDict[str, rewire.Program] = collections.OrderedDict()
_programs_lock = threading.Lock()


def path_on_this_machine(model: str | os.PathLike[str]) -> str:
    """The absolute path of a model, with `~` and $VARIABLES as this machine has them. Raises MissingFileError by its name."""
    path = os.path.abspath(os.path.expanduser(os.path.expandvars(os.fspath(model))))
    if not os.path.isfile(path):
        raise rewire.MissingFileError(
            f"model {os.fspath(model)!r}: there is no file {path} on the machine {socket.gethostname()}; put the model at the same "
            "path of every machine, or give a path with a $VARIABLE that each machine sets")
    return path


def cache_folder() -> str:
    """The folder of compiled models: $REWIRE_MODEL_CACHE, else rewire/models below $XDG_CACHE_HOME or ~/.cache.

    It is made if it is missing. Raises IoError if it belongs to another user or if others may write to it, because they could then
    give this process other models.
    """
    folder = os.environ.get("REWIRE_MODEL_CACHE")
    if not folder:
        base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
        folder = os.path.join(base, "rewire", "models")
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        found = os.stat(folder)
    except OSError as error:
        raise rewire.IoError(f"the folder of compiled models cannot be made: {error}; set REWIRE_MODEL_CACHE to one") from error
    if found.st_uid != os.geteuid() or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise rewire.IoError(
            f"the folder of compiled models {folder} must belong to user {os.geteuid()} and be writable by that user alone; it belongs "
            f"to {found.st_uid} with mode {stat.S_IMODE(found.st_mode):o}; set REWIRE_MODEL_CACHE to another, or run chmod go-w")
    return folder


def _external_files(path: str) -> list[str]:
    """The files that the tensors of an ONNX model lie in, by their names in it. What only looks like one may be among them."""
    names = set()
    with open(path, "rb") as file:
        if os.fstat(file.fileno()).st_size == 0:
            return []
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            for found in _LOCATION.finditer(data):
                length = 0
                for place, byte in enumerate(found.group(1)):
                    length |= (byte & 0x7F) << (7 * place)
                if 0 < length <= _LONGEST_NAME:
                    names.add(bytes(data[found.end():found.end() + length]))
    return [os.path.join(os.path.dirname(path), os.fsdecode(name)) for name in sorted(names) if b"\0" not in name]


def _identity(path: str) -> list[int]:
    """What differs between two versions of a file."""
    try:
        found = os.stat(path)
    except OSError:
        return []
    return [found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns]


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]


def _remove_old(folder: str, beginning: str, keep: str) -> None:
    """Removes executables of earlier versions of a model, and what a killed process has left. A process may be about to open a
    young one."""
    for name in os.listdir(folder):
        path = os.path.join(folder, name)
        if name.startswith(beginning) and name.endswith((".rwx", ".part")) and path != keep:
            with contextlib.suppress(FileNotFoundError):
                if time.time() - os.stat(path).st_mtime > _OLD_SECONDS:
                    os.unlink(path)


def executable_of(model: str | os.PathLike[str], *, dims: Mapping[str, int] | None = None,
                  max_dims: Mapping[str, int] | None = None) -> str:
    """Returns the path of an executable of a model on this machine.

    An .onnx model is compiled into `cache_folder()` unless an executable of the same file, options and version of Rewire is there.
    Of several processes that ask at once, one compiles. A file counts as the same by its device, inode, size and time of change,
    and so do the files with its weights. Executables of earlier versions are removed an hour after they were made; processes that
    have mapped one keep it. Any other file is an executable already: it is returned, and `dims` and `max_dims` are refused.

    Raises MissingFileError, IoError for the cache, and the errors of `rewire.compile`.
    """
    path = path_on_this_machine(model)
    if not path.endswith(".onnx"):
        if dims or max_dims:
            raise rewire.InvalidArgumentError(
                f"dims: {path} is compiled already; sizes are fixed when it is compiled (rewire.compile)")
        return path
    options = {"dims": dict(dims or {}), "max_dims": dict(max_dims or {})}
    folder = cache_folder()
    stem = f"{os.path.basename(path).removesuffix('.onnx')}-{_digest([path, options])}"
    with open(os.path.join(folder, f"{stem}.lock"), "wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        files = [path, *_external_files(path)]
        made = os.path.join(folder, f"{stem}-{_digest([rewire.__version__, [_identity(file) for file in files]])}.rwx")
        if not os.path.exists(made):
            handle, partial = tempfile.mkstemp(dir=folder, prefix=f"{stem}-", suffix=".part")
            os.close(handle)
            try:
                rewire.compile(path, partial, dims=options["dims"], max_dims=options["max_dims"])
                os.replace(partial, made)
            finally:
                if os.path.exists(partial):
                    os.unlink(partial)
            _remove_old(folder, f"{stem}-", keep=made)
    return made


def program_of(executable: str, options: Mapping[str, Any]) -> rewire.Program:
    """The Program of an executable in this process, linked once for all that run it.

    `options` are arguments of `rewire.load`. The last eight programs are kept, so that short tasks of one worker do not link again.
    """
    key = _digest([executable, _identity(executable), sorted((name, repr(value)) for name, value in options.items())])
    with _programs_lock:
        program = _programs.get(key)
        if program is None:
            program = _programs[key] = rewire.load(executable, **options)
        _programs.move_to_end(key)
        while len(_programs) > _MOST_PROGRAMS:
            _programs.popitem(last=False)
    return program
