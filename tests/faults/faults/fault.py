# SPDX-License-Identifier: Apache-2.0
"""The planted faults: one place of the library made wrong, and the tests that have to notice.

A fault names its source file by the file's name alone, so that the file may move between folders. `place` is text that
stands exactly once in it; what stands between « and » is weakened. It is an expression, or a statement with its ';'.
CI runs `plant.py --check`, which fails when a place is gone: whoever rewrites such a line moves the fault along, by
planting the same mistake in the new code.

Never make a fault easier because no test notices it. Write the test.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class CTest:
    """A test that ctest knows how to run: several processes, or a script."""
    name: str  # as ctest knows it
    targets: tuple  # what must be built for it

    def __str__(self):
        return self.name


@dataclass(frozen=True)
class Fault:
    area: str  # which part of the library is weakened
    rule: str  # what the sound code guarantees
    file: str  # name of the source file, without its folder
    place: str  # stands once in the file
    weak: str  # what is there instead of what is marked; empty for a statement that is left out
    tests: tuple  # that must fail, the one most likely to notice first: targets of executables, or CTests


FORMAT = ("executable_format_test",)
BASE = ("base_test",)
TENSOR_FILES = ("tensor_files_test",)
IMAGES = ("kernels_image_test",)
IMPORT = ("import_test",)
PROGRAMS = ("programs_test",)
OUTPUTS = ("vm_outputs_test",)
LOADER = ("vm_loader_test",)
KERNELS = ("kernels_cpu_test",)
KERNELS_TILES = ("kernels_cpu_tiles_test",)
COMPILER = ("compiler_test",)
SHARDS = ("compiler_shards_test",)
TFLITE = ("compiler_tflite_test",)
AOT = ("aot_test",)
STATES = ("vm_inputs_test",)
VALUES = ("compiler_values_test",)
ROWS = ("kernels_rows_test",)
TOOLS = ("tools_test",)
PARAMETERS = ("compiler_parameters_test",)
OWN_OPERATORS = ("compiler_own_operators_test",)
PACKING = ("compiler_packing_test", "compiler_test")
DEVICES = ("vm_async_test",)
FAILING = ("vm_device_test", "vm_device_drill_test")
PLACING = ("device_compiler_test",)
# Jobs of several ranks.
RANKS = (CTest("collective_test_3_ranks", ("collective_test",)),)
LOST_RANKS = (CTest("collective_ranks", ("collective_rank",)),)
