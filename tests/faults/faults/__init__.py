# SPDX-License-Identifier: Apache-2.0
"""The planted faults, by the part of the library that they weaken; fault.py says what one is."""

from . import boards, collectives, devices, files, kernels, machine, onnxruntime_api, passes, serve, tools
from .fault import Fault

FAULTS: list[Fault] = [*files.FAULTS, *machine.FAULTS, *passes.FAULTS, *kernels.FAULTS, *devices.FAULTS,
                       *tools.FAULTS, *onnxruntime_api.FAULTS, *serve.FAULTS, *boards.FAULTS, *collectives.FAULTS]
