# SPDX-License-Identifier: Apache-2.0
"""Inputs for models: functions of a random generator and of sizes."""

import numpy as np
from PIL import Image, ImageDraw, ImageFont


def image(rng, *shape):
    """Smooth noise in -1..1: white noise would leave a detector with nothing but ties."""
    coarse = rng.uniform(-1, 1, shape[:2] + tuple(max(2, n // 16) for n in shape[2:])).astype(np.float32)
    for axis in (2, 3):
        coarse = np.repeat(coarse, -(-shape[axis] // coarse.shape[axis]), axis=axis)
    image = coarse[:, :, : shape[2], : shape[3]]
    return (0.8 * image + 0.2 * rng.uniform(-1, 1, shape)).astype(np.float32)


def page(rng, height, width):
    """Dark text on white, in -1..1: on noise a text detector answers nothing but zeros."""
    page = Image.new("L", (width, height), 255)
    draw = ImageDraw.Draw(page)
    font = ImageFont.load_default(size=24)
    for top in range(12, height - 30, 48):
        letters = rng.integers(ord("a"), ord("z") + 1, width // 24)
        draw.text((16, top), "".join(map(chr, letters)), fill=20, font=font)
    plane = np.asarray(page, np.float32) / 127.5 - 1
    return np.broadcast_to(plane, (1, 3, height, width)).copy()


def text(rng, batch, length, vocabulary, types=False):
    ids = rng.integers(1, vocabulary, (batch, length), dtype=np.int64)
    mask = np.ones((batch, length), np.int64)
    mask[-1, -(length // 4) :] = 0
    inputs = {"input_ids": ids, "attention_mask": mask}
    if types:
        inputs["token_type_ids"] = np.zeros((batch, length), np.int64)
    return inputs


def speech(rng, batch, samples, rate):
    t = np.arange(samples) / rate
    wave = 0.3 * np.sin(2 * np.pi * 180 * t) + 0.05 * rng.standard_normal((batch, samples))
    return {
        "input": wave.astype(np.float32),
        "state": (0.1 * rng.standard_normal((2, batch, 128))).astype(np.float32),
        "sr": np.array(rate, np.int64),
    }


def normal(rng, *shape):
    return rng.standard_normal(shape).astype(np.float32)


def image_last(rng, *shape):
    """image() with its channels last: batch, height, width, channels."""
    batch, height, width, channels = shape
    return np.ascontiguousarray(image(rng, batch, channels, height, width).transpose(0, 2, 3, 1))


def wave(rng, batch, samples, rate=16000):
    """A tone in noise."""
    t = np.arange(samples) / rate
    return (0.3 * np.sin(2 * np.pi * 220 * t) + 0.05 * rng.standard_normal((batch, samples))).astype(np.float32)
