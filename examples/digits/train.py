#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains the digit classifier of this example and writes the files that the example is built from.

    python train.py           trains, then writes weights.safetensors, images.npy, labels.npy and expected.npy here
    python train.py --check   trains nothing: checks that the committed files belong together

README.md in this folder says what each file holds.
"""

import argparse
import pathlib
import sys

import numpy as np
from safetensors.numpy import load_file, save_file
from sklearn.datasets import load_digits

from network import DigitClassifier, softmax

FOLDER = pathlib.Path(__file__).resolve().parent
SEED = 2024
# The last three of the data set's 14 forms; see load_data.
HELD_OUT = 382
EPOCHS = 120
BATCH = 32
PEAK_LEARNING_RATE = 3e-3
WEIGHT_DECAY = 1e-2
# Labels a little short of certain keep the probabilities away from exact 0 and 1, where a comparison with
# expected.npy would hardly notice a wrong logit.
LABEL_SMOOTHING = 0.1
# What the data must reach, one point above what the demo promises, so that rounding cannot break the promise.
REQUIRED_ACCURACY = 0.98


def load_data():
    """Returns (training images, training labels), (held-out images, held-out labels).

    The data set lists its images form by form: about 128 images in one hand, whose labels repeat in the same order from
    form to form. Whole forms are held out, because a shuffled split would show the network every hand and flatter it.
    """
    digits = load_digits()
    images = (digits.images / 16.0).astype(np.float32)[:, None]
    labels = digits.target.astype(np.int64)
    return (images[:-HELD_OUT], labels[:-HELD_OUT]), (images[-HELD_OUT:], labels[-HELD_OUT:])


def warp(images, rng):
    """Turns, stretches, slants and shifts each image by a small random amount, sampling bilinearly.

    Images are [N, 1, 8, 8]; what comes in from outside is background.
    """
    n, _, height, width = images.shape
    angle = rng.uniform(-0.2, 0.2, n)
    stretch = rng.uniform(0.9, 1.1, (2, n))
    slant = rng.uniform(-0.15, 0.15, n)
    shift = rng.uniform(-0.7, 0.7, (2, n, 1, 1))
    cos, sin = np.cos(angle), np.sin(angle)
    matrix = np.array([[stretch[0] * cos, -sin + slant], [sin, stretch[1] * cos]])[..., None, None]

    center = (height - 1) / 2
    y, x = np.mgrid[:height, :width] - center
    # One pixel of background around the image, and positions limited to it.
    source_y = np.clip(matrix[1, 0] * x + matrix[1, 1] * y + shift[0] + center + 1, 0, height + 0.999)
    source_x = np.clip(matrix[0, 0] * x + matrix[0, 1] * y + shift[1] + center + 1, 0, width + 0.999)
    padded = np.pad(images[:, 0], ((0, 0), (1, 1), (1, 1)))
    row, column = source_y.astype(int), source_x.astype(int)
    down, right = source_y - row, source_x - column
    image = np.arange(n)[:, None, None]
    top = padded[image, row, column] * (1 - right) + padded[image, row, column + 1] * right
    bottom = padded[image, row + 1, column] * (1 - right) + padded[image, row + 1, column + 1] * right
    return (top * (1 - down) + bottom * down)[:, None]


class Adam:
    """Adam with decoupled weight decay on the weights, none on the biases."""

    def __init__(self, parameters):
        self.parameters = parameters
        self.mean = {name: np.zeros_like(value) for name, value in parameters.items()}
        self.square = {name: np.zeros_like(value) for name, value in parameters.items()}
        self.steps = 0

    def step(self, gradients, learning_rate, beta1=0.9, beta2=0.999, epsilon=1e-8):
        """Updates the parameters in place."""
        self.steps += 1
        for name, gradient in gradients.items():
            value, mean, square = self.parameters[name], self.mean[name], self.square[name]
            mean += (1 - beta1) * (gradient - mean)
            square += (1 - beta2) * (gradient**2 - square)
            direction = mean / (1 - beta1**self.steps) / (np.sqrt(square / (1 - beta2**self.steps)) + epsilon)
            decay = WEIGHT_DECAY * value if name.endswith(".weight") else 0.0
            value -= learning_rate * (direction + decay)


def train(images, labels):
    """Trains a fresh network for a fixed number of epochs; the held-out images play no part. Returns the network."""
    rng = np.random.default_rng(SEED)
    network = DigitClassifier(rng)
    optimizer = Adam(network.parameters())
    targets = np.eye(10)[labels] * (1 - LABEL_SMOOTHING) + LABEL_SMOOTHING / 10
    for epoch in range(EPOCHS):
        learning_rate = PEAK_LEARNING_RATE * 0.5 * (1 + np.cos(np.pi * epoch / EPOCHS))
        warped = warp(images, rng)
        loss = 0.0
        for batch in np.array_split(rng.permutation(len(images)), len(images) // BATCH):
            probabilities = softmax(network.forward(warped[batch]))
            loss -= np.sum(targets[batch] * np.log(probabilities + 1e-12))
            network.backward((probabilities - targets[batch]) / len(batch))
            optimizer.step(network.gradients(), learning_rate)
        if (epoch + 1) % 10 == 0:
            print(f"epoch {epoch + 1:3}: training loss {loss / len(images):.4f}")
    return network


def predict(weights, images):
    """Probabilities [N, 10] of float32 weights, as a reference: computed in float64, rounded once to float32."""
    network = DigitClassifier(np.random.default_rng(SEED))
    network.load({name: value.astype(np.float64) for name, value in weights.items()})
    return softmax(network.forward(images.astype(np.float64))).astype(np.float32)


def accuracy(probabilities, labels):
    return np.mean(probabilities.argmax(axis=1) == labels)


def require_accuracy(probabilities, labels):
    reached = accuracy(probabilities, labels)
    print(f"held-out accuracy: {np.sum(probabilities.argmax(axis=1) == labels)} of {len(labels)}, {reached:.2%}")
    if reached < REQUIRED_ACCURACY:
        sys.exit(f"train.py: held-out accuracy is {reached:.2%}, expected at least {REQUIRED_ACCURACY:.0%}")


def write_files():
    (train_images, train_labels), (images, labels) = load_data()
    network = train(train_images, train_labels)
    weights = {name: value.astype(np.float32) for name, value in network.parameters().items()}
    print(f"training accuracy: {accuracy(predict(weights, train_images), train_labels):.2%}")
    expected = predict(weights, images)
    require_accuracy(expected, labels)
    save_file(weights, FOLDER / "weights.safetensors")
    np.save(FOLDER / "images.npy", images)
    np.save(FOLDER / "labels.npy", labels)
    np.save(FOLDER / "expected.npy", expected)


def check_files():
    _, (images, labels) = load_data()
    for name, wanted in (("images.npy", images), ("labels.npy", labels)):
        if not np.array_equal(np.load(FOLDER / name), wanted):
            sys.exit(f"train.py: {name} is not the held-out part of the data set; run train.py without --check")
    expected = np.load(FOLDER / "expected.npy")
    difference = np.abs(predict(load_file(FOLDER / "weights.safetensors"), images) - expected).max()
    if difference > 1e-6:
        sys.exit(f"train.py: expected.npy differs by {difference:.3g} from what weights.safetensors gives")
    require_accuracy(expected, labels)


def main():
    parser = argparse.ArgumentParser(description="Trains the digit classifier of this example.")
    parser.add_argument("--check", action="store_true", help="check the committed files instead of writing them")
    if parser.parse_args().check:
        check_files()
    else:
        write_files()


if __name__ == "__main__":
    main()
