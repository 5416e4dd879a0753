# SPDX-License-Identifier: Apache-2.0
"""The faults of exchanges between ranks."""

from .fault import LOST_RANKS, RANKS, Fault

FAULTS = [
    Fault("collectives", "a rank beyond a power of two gives its neighbor what it has", "algorithms.h",
          "const bool has_neighbor = «rank < 2 * rest»;", "rank < rest", RANKS),
    Fault("collectives", "a rank whose process has ended is seen", "peers.cc",
          "if («ended») return rank;", "false", LOST_RANKS),
    Fault("collectives", "a rank that has left is told to the others", "world.cc",
          "if («peer == rank_») continue;", "true", LOST_RANKS),
]
