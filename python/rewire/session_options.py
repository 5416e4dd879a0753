# SPDX-License-Identifier: Apache-2.0
"""The settings of ONNX Runtime's sessions and runs. Those without an effect are told when a session is made."""

from __future__ import annotations

import enum
import os
import warnings
from typing import Any, Mapping, Sequence

from rewire import errors
from rewire._native import _rewire
from rewire.ort_value import OrtValue
from rewire.types import Path


class GraphOptimizationLevel(enum.IntEnum):
    """How much a session optimizes. Here every level is ORT_ENABLE_ALL."""

    ORT_DISABLE_ALL = 0
    ORT_ENABLE_BASIC = 1
    ORT_ENABLE_EXTENDED = 2
    ORT_ENABLE_LAYOUT = 3
    ORT_ENABLE_ALL = 99


class ExecutionMode(enum.IntEnum):
    """Whether operators run at once. Here the compiler decides it."""

    ORT_SEQUENTIAL = 0
    ORT_PARALLEL = 1


class ExecutionOrder(enum.IntEnum):
    """In which order operators run. Here the compiler decides it."""

    DEFAULT = 0
    PRIORITY_BASED = 1
    MEMORY_EFFICIENT = 2


def warn_ignored(what: str, instead: str, depth: int = 3) -> None:
    """Tells that a setting has no effect, and what has it. `depth` is how far up the caller to name is."""
    warnings.warn(f"{what} has no effect in Rewire: {instead}", UserWarning, stacklevel=depth + 1)


# Settings whose values other than the default have no effect, and what to know about that. Those of logs are left out: a
# session writes none.
_IGNORED = {
    "inter_op_num_threads": "intra_op_num_threads sets the threads of a run",
    "graph_optimization_level": "models are always compiled with all passes; rewire.compile(disable_passes=...) leaves some out",
    "execution_mode": "rewire.compile(parallel=...) says whether operators run at once",
    "execution_order": "the compiler orders operators",
    "enable_profiling": "session.program.profile(...) measures a run",
    "optimized_model_filepath": "rewire.compile(model, path) writes the compiled model",
    "enable_cpu_mem_arena": "memory is planned when a model is compiled",
    "enable_mem_pattern": "memory is planned when a model is compiled",
    "enable_mem_reuse": "memory is planned when a model is compiled",
    "use_deterministic_compute": "runs of one program on one number of threads give equal results",
    "use_per_session_threads": "every session has threads of its own",
}


_CACHE = "session.rewire_cache"


class SessionOptions:
    """What a session is made with: `intra_op_num_threads`, of which 0 means one thread, the sizes of dimensions, and the
    config entry "session.rewire_cache".

    Other settings have no effect. If they are set, the session warns of them.
    """

    __slots__ = (*_IGNORED, "intra_op_num_threads", "log_severity_level", "log_verbosity_level", "logid",
                 "profile_file_prefix", "free_dimensions", "initializers", "external_files", "_entries")

    def __init__(self) -> None:
        self.intra_op_num_threads = 0
        self.inter_op_num_threads = 0
        self.log_severity_level = -1
        self.log_verbosity_level = 0
        self.logid = ""
        self.graph_optimization_level = GraphOptimizationLevel.ORT_ENABLE_ALL
        self.execution_mode = ExecutionMode.ORT_SEQUENTIAL
        self.execution_order = ExecutionOrder.DEFAULT
        self.enable_profiling = False
        self.profile_file_prefix = "onnxruntime_profile_"
        self.optimized_model_filepath = ""
        self.enable_cpu_mem_arena = True
        self.enable_mem_pattern = True
        self.enable_mem_reuse = True
        self.use_deterministic_compute = False
        self.use_per_session_threads = True
        self.free_dimensions: dict[str, int] = {}
        self.initializers: dict[str, Any] = {}
        self.external_files: dict[str, Any] = {}
        self._entries: dict[str, str] = {}

    def add_free_dimension_override_by_name(self, name: str, size: int) -> None:
        """Fixes a symbolic dimension."""
        self.free_dimensions[name] = size

    def add_initializer(self, name: str, value: OrtValue) -> None:
        """Gives the elements of an initializer, which the session uses in place where it can."""
        self.add_external_initializers([name], [value])

    def add_external_initializers(self, names: Sequence[str], values: Sequence[OrtValue]) -> None:
        """The same for several initializers, also for those of external files."""
        for name, value in zip(names, values):
            if name in self.initializers:
                raise errors.InvalidArgumentError(f"initializer {name!r} is given already")
            self.initializers[name] = value.numpy()

    def add_external_initializers_from_files_in_memory(self, names: Sequence[str], buffers: Sequence[Any],
                                                       lengths: Sequence[int]) -> None:
        """Gives files of external data as buffers, by the locations that the model names."""
        for name, buffer, length in zip(names, buffers, lengths):
            self.external_files[name] = memoryview(buffer)[:length]

    def add_session_config_entry(self, key: str, value: str) -> None:
        """Keeps an entry. "session.rewire_cache" is the folder in which compiled models are kept; no other has an effect."""
        self._entries[key] = value

    def cache(self) -> str | None:
        """The folder in which compiled models are kept: that of the entry, or of the environment variable REWIRE_MODEL_CACHE."""
        return self._entries.get(_CACHE) or os.environ.get("REWIRE_MODEL_CACHE") or None

    def get_session_config_entry(self, key: str) -> str:
        """An entry that was added."""
        if key not in self._entries:
            raise errors.NotFoundError(f"there is no session config entry {key!r}{_rewire._known_names('entries', key, self._entries)}")
        return self._entries[key]

    def has_providers(self) -> bool:
        """Whether providers were added: never."""
        return False

    def register_custom_ops_library(self, path: Path) -> None:
        """Raises UnsupportedError: libraries of operators for ONNX Runtime cannot be loaded."""
        raise errors.UnsupportedError(
            f"the operators of {path!r} are for ONNX Runtime's interface and cannot be loaded; give "
            "their schemas to rewire.compile(operators=...) and kernels of your own to rewire.load(kernels=...)")

    def warn(self) -> None:
        """Warns of the settings that have no effect and differ from what they are by default."""
        usual = SessionOptions()
        for name, instead in _IGNORED.items():
            if getattr(self, name) != getattr(usual, name):
                warn_ignored(f"SessionOptions.{name} = {getattr(self, name)!r}", instead)
        for key in self._entries:
            if key != _CACHE:
                warn_ignored(f"the session config entry {key!r}", f"a session has only {_CACHE!r}")


class RunOptions:
    """What one run is made with. It has no effect: `terminate` is VirtualMachine.cancel, and run_async can be cancelled."""

    __slots__ = ("log_severity_level", "log_verbosity_level", "logid", "only_execute_path_to_fetches", "terminate", "_entries")

    def __init__(self) -> None:
        self.log_severity_level = -1
        self.log_verbosity_level = 0
        self.logid = ""
        self.only_execute_path_to_fetches = False
        self.terminate = False
        self._entries: dict[str, str] = {}

    def add_run_config_entry(self, key: str, value: str) -> None:
        """Keeps an entry, which has no effect."""
        self._entries[key] = value

    def get_run_config_entry(self, key: str) -> str:
        """An entry that was added, or an empty text."""
        return self._entries.get(key, "")

    def warn(self) -> None:
        """Warns of the settings that have no effect and differ from what they are by default."""
        if self.only_execute_path_to_fetches:
            warn_ignored("RunOptions.only_execute_path_to_fetches", "a run computes all outputs")
        if self.terminate:
            warn_ignored("RunOptions.terminate", "VirtualMachine.cancel() ends a run")
        for key in self._entries:
            warn_ignored(f"the run config entry {key!r}", "a run has no entries")


_PROVIDER = "CPUExecutionProvider"


def get_available_providers() -> list[str]:
    """Where sessions run: on the host."""
    return [_PROVIDER]


def get_all_providers() -> list[str]:
    """The same: there are no others."""
    return [_PROVIDER]


def get_device() -> str:
    """Where sessions run: "CPU"."""
    return "CPU"


def set_default_logger_severity(severity: int) -> None:
    """Does nothing: a session writes no log."""


def set_default_logger_verbosity(verbosity: int) -> None:
    """Does nothing: a session writes no log."""


def set_seed(seed: int) -> None:
    """Does nothing, and warns: a model's random numbers come from the seeds in the model, or else from the system."""
    warn_ignored("set_seed", "a node of random numbers has its seed as an attribute", 2)


def warn_of_providers(providers: Sequence[str | tuple[str, Mapping[str, Any]]] | None,
                      provider_options: Sequence[Mapping[str, Any]] | None) -> None:
    """Warns of providers that are not here, and of options."""
    given = [(each, {}) if isinstance(each, str) else each for each in providers or ()]
    for name, options in given:
        if name != _PROVIDER:
            warn_ignored(f"provider {name!r}", f"sessions run on {_PROVIDER}; rewire.compile(device=...) compiles for a GPU")
        elif options:
            warn_ignored(f"options of {name}: {dict(options)!r}", "SessionOptions has the threads")
    for each in provider_options or ():
        if each:
            warn_ignored(f"provider_options {dict(each)!r}", "SessionOptions has the threads")
