# SPDX-License-Identifier: Apache-2.0
"""Programs that sessions of one model file share."""

from __future__ import annotations

import os
import threading
import weakref
from typing import Any, Callable, Hashable

from rewire.program import Program

_lock = threading.Lock()
_programs: weakref.WeakValueDictionary[Hashable, Program] = weakref.WeakValueDictionary()


def shared(model: Any, options: Hashable, make: Callable[[], Program]) -> Program:
    """The program that a session uses for a model with these options; otherwise a new one, by `make`.

    A file is the same by device, inode, size and times. Models in memory are not shared.
    """
    if not isinstance(model, (str, os.PathLike)):
        return make()
    try:
        found = os.stat(model)
    except OSError:
        return make()  # which says why
    key = (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns, options)
    with _lock:
        program = _programs.get(key)
    if program is None:
        program = make()
        with _lock:
            # Another thread may have been faster; then both use its program.
            program = _programs.setdefault(key, program)
    return program
