# SPDX-License-Identifier: Apache-2.0
"""The layers of the digit classifier, forward and backward, in numpy.

Layouts are those of the stock kernels, so that a weight goes from here to the executable untouched:
activations NCHW, convolution weights OIHW, dense weights [out, in], flattening in C, H, W order.

A layer keeps what its backward pass needs from the last forward pass. `backward` takes the loss's gradient with respect
to the layer's output, stores the gradients of the layer's own parameters in `gradients` (the same keys as
`parameters`), and returns the gradient with respect to the layer's input.
"""

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view


class Layer:
    """A layer without parameters; the base of those that have some."""

    def __init__(self):
        self.parameters = {}
        self.gradients = {}


class Conv3x3(Layer):
    """A 3x3 convolution (cross-correlation) with bias, stride 1 and one pixel of zero padding: [N, C, H, W] to
    [N, O, H, W]."""

    def __init__(self, in_channels, out_channels, rng):
        super().__init__()
        # He initialization: keeps the variance of the activations through a ReLU.
        scale = np.sqrt(2.0 / (in_channels * 9))
        self.parameters = {
            "weight": rng.normal(0.0, scale, (out_channels, in_channels, 3, 3)),
            "bias": np.zeros(out_channels),
        }

    def forward(self, x):
        self.windows = _windows3x3(x)
        y = np.tensordot(self.windows, self.parameters["weight"], axes=((1, 4, 5), (1, 2, 3)))
        return y.transpose(0, 3, 1, 2) + self.parameters["bias"][:, None, None]

    def backward(self, dy):
        self.gradients = {
            "weight": np.tensordot(dy, self.windows, axes=((0, 2, 3), (0, 2, 3))),
            "bias": dy.sum(axis=(0, 2, 3)),
        }
        # The input's gradient is the output's, correlated with the kernels turned by half a turn.
        turned = self.parameters["weight"][:, :, ::-1, ::-1]
        dx = np.tensordot(_windows3x3(dy), turned, axes=((1, 4, 5), (0, 2, 3)))
        return dx.transpose(0, 3, 1, 2)


class Dense(Layer):
    """y = x weight^T + bias: [N, in] to [N, out]."""

    def __init__(self, in_features, out_features, rng):
        super().__init__()
        scale = np.sqrt(2.0 / in_features)
        self.parameters = {
            "weight": rng.normal(0.0, scale, (out_features, in_features)),
            "bias": np.zeros(out_features),
        }

    def forward(self, x):
        self.input = x
        return x @ self.parameters["weight"].T + self.parameters["bias"]

    def backward(self, dy):
        self.gradients = {"weight": dy.T @ self.input, "bias": dy.sum(axis=0)}
        return dy @ self.parameters["weight"]


class Relu(Layer):
    def forward(self, x):
        self.positive = x > 0
        return np.where(self.positive, x, 0)

    def backward(self, dy):
        return np.where(self.positive, dy, 0)


class MaxPool2x2(Layer):
    """The maximum over 2x2 blocks, stride 2, no padding. H and W must be even."""

    def forward(self, x):
        n, c, h, w = x.shape
        self.input_shape = x.shape
        blocks = x.reshape(n, c, h // 2, 2, w // 2, 2).transpose(0, 1, 2, 4, 3, 5)
        blocks = blocks.reshape(n, c, h // 2, w // 2, 4)
        # One winner a block, the first of equals: the gradient must not be counted twice.
        self.winner = blocks.argmax(axis=-1)[..., None]
        return np.take_along_axis(blocks, self.winner, axis=-1)[..., 0]

    def backward(self, dy):
        n, c, h, w = self.input_shape
        blocks = np.zeros((n, c, h // 2, w // 2, 4), dy.dtype)
        np.put_along_axis(blocks, self.winner, dy[..., None], axis=-1)
        blocks = blocks.reshape(n, c, h // 2, w // 2, 2, 2).transpose(0, 1, 2, 4, 3, 5)
        return blocks.reshape(self.input_shape)


class Flatten(Layer):
    """[N, C, H, W] to [N, C*H*W]."""

    def forward(self, x):
        self.input_shape = x.shape
        return x.reshape(len(x), -1)

    def backward(self, dy):
        return dy.reshape(self.input_shape)


class DigitClassifier:
    """Images [N, 1, 8, 8] with values 0 to 1 in, logits [N, 10] out."""

    def __init__(self, rng):
        self.layers = {
            "conv1": Conv3x3(1, 16, rng),
            "relu1": Relu(),
            "pool1": MaxPool2x2(),
            "conv2": Conv3x3(16, 32, rng),
            "relu2": Relu(),
            "pool2": MaxPool2x2(),
            "flatten": Flatten(),
            "fc1": Dense(32 * 2 * 2, 64, rng),
            "relu3": Relu(),
            "fc2": Dense(64, 10, rng),
        }

    def forward(self, images):
        x = images
        for layer in self.layers.values():
            x = layer.forward(x)
        return x

    def backward(self, dlogits):
        for layer in reversed(self.layers.values()):
            dlogits = layer.backward(dlogits)

    def parameters(self):
        """The parameters by their full names, `conv1.weight` and so on."""
        return self._collect("parameters")

    def gradients(self):
        """The gradients of the last backward pass, under the names of the parameters."""
        return self._collect("gradients")

    def load(self, parameters):
        """Takes over every parameter by its full name. A missing name is a KeyError."""
        for name, layer in self.layers.items():
            layer.parameters = {key: parameters[f"{name}.{key}"] for key in layer.parameters}

    def _collect(self, attribute):
        return {
            f"{name}.{key}": value
            for name, layer in self.layers.items()
            for key, value in getattr(layer, attribute).items()
        }


def softmax(logits):
    """Probabilities over the last axis."""
    # Shifted by the maximum so that exp cannot overflow.
    exponentials = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return exponentials / exponentials.sum(axis=-1, keepdims=True)


def _windows3x3(x):
    """The zero-padded 3x3 neighborhood of every pixel: [N, C, H, W] to [N, C, H, W, 3, 3], a view."""
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    return sliding_window_view(padded, (3, 3), axis=(2, 3))
