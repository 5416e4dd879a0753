# SPDX-License-Identifier: Apache-2.0
"""A sound for programs that look for speech."""
import math

import numpy

RATE = 16000


def speech(seconds=3.0):
    """A voice-like sound between silences: a pulse train through resonances, which wander as those of vowels do."""
    count = int(RATE * seconds)
    time = numpy.arange(count) / RATE
    pitch = 120 + 20 * numpy.sin(2 * math.pi * 0.7 * time)
    phase = numpy.cumsum(pitch) / RATE
    sound = numpy.zeros(count)
    for harmonic in range(1, 30):
        frequency = harmonic * pitch
        level = sum(numpy.exp(-(((frequency - center * (1 + 0.15 * numpy.sin(2 * math.pi * speed * time))) / width) ** 2))
                    for center, width, speed in ((600, 150, 2.1), (1200, 200, 1.3), (2500, 300, 0.9)))
        sound += level * numpy.sin(2 * math.pi * harmonic * phase)
    sound *= (numpy.sin(2 * math.pi * 3 * time) > -0.6) * ((time > 0.5) & (time < seconds - 0.7))
    noise = numpy.random.default_rng(0).standard_normal(count)
    return (0.2 * sound / numpy.abs(sound).max() + 0.002 * noise).astype(numpy.float32)
