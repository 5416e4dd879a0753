# SPDX-License-Identifier: Apache-2.0
"""The models, and the inputs that each is run with."""

import numpy as np

from inputs import image, normal, text
from packaged import OPTIONS, PACKAGED

GENERATED = {
    "bert_mini": [lambda r: text(r, 1, 128, 1000), lambda r: text(r, 3, 20, 1000)],
    "kv_decode": [
        lambda r: {"steps": np.array(12, np.int64), "first": np.array([5], np.int64),
                   "past_keys": normal(r, 0, 64), "past_values": normal(r, 0, 64)},
        lambda r: {"steps": np.array(30, np.int64), "first": np.array([17], np.int64),
                   "past_keys": normal(r, 9, 64), "past_values": normal(r, 9, 64)},
    ],
    "scan_filter": [
        lambda r: {"h0": normal(r, 2, 24), "peak0": normal(r, 2, 24), "sequence": normal(r, 7, 2, 24)},
        lambda r: {"h0": normal(r, 1, 24), "peak0": normal(r, 1, 24), "sequence": normal(r, 50, 1, 24)},
    ],
    "lm_body": [
        lambda r: {"ids": r.integers(0, 2000, (1, 1), dtype=np.int64), "h0": normal(r, 1, 1, 128), "c0": normal(r, 1, 1, 128)},
        lambda r: {"ids": r.integers(0, 2000, (12, 3), dtype=np.int64), "h0": normal(r, 1, 3, 128), "c0": normal(r, 1, 3, 128)},
    ],
    "lm_output": [lambda r: {"hidden": normal(r, 1, 1, 128)}, lambda r: {"hidden": normal(r, 12, 3, 128)}],
    "mlp_dynamic": [lambda r: {"x": normal(r, 1, 128, 256)}, lambda r: {"x": normal(r, 2, 7, 256)}],
    "qlinear_cnn": [lambda r: {"image": image(r, 1, 3, 64, 64)}, lambda r: {"image": image(r, 2, 3, 96, 80)}],
    "qdq_cnn": [lambda r: {"image": image(r, 1, 3, 64, 64)}, lambda r: {"image": image(r, 2, 3, 96, 80)}],
}


def _rows(name, most=50):
    """Rows of a data set of scikit-learn: one, and many."""

    def of(count):
        def make(random):
            import trained  # check.py does without scikit-learn

            return {"X": trained.rows(name, random, count)}

        return make

    return [of(1), of(most)]


def _word_rows(count):
    def make(random):
        import trained

        return {"X": trained.word_rows(random, count)}

    return make


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
    "neighbors": _rows("iris"),
    "categories": [_word_rows(1), _word_rows(50)],
}

# Together these use every pass. Only they are compiled with each pass off.
EACH_PASS = {
    "ocr_det", "ocr_rec", "ocr_cls", "silero_vad", "magika", "minilm_int8", "paraphrase", "end_of_turn", "logistic", *GENERATED,
}

# Outputs that are not made in the host's memory, with vm-run --explain-outputs' reasons: what a loop of no turns leaves
# is its initial value, what it stacks up is joined behind it.
INPUT, CONSTANT = "it is an input, or part of one", "it is a constant or a parameter"
RETURNED = "a kernel or a closure returns it"
COPIED = {
    "kv_decode": {"tokens": RETURNED, "new_keys": INPUT, "new_values": INPUT},
    "paraphrase": {"output": INPUT, "463": INPUT},  # the mask in another shape
    "scan_filter": {"h_end": INPUT, "track": CONSTANT},
}

# A rounding that falls the other way moves a quantized value by one step: these are judged by the step of their result.
# end_of_turn quantizes within: ONNX Runtime with and without its optimizations differs from itself by 0.0027.
# seal_det answers 1e-7 where it sees nothing: a sigmoid by way of 1 - x has steps of 1.2e-7.
QUANTIZED_STEP = {"end_of_turn": 0.0027, "seal_det": 2.4e-7, "qdq_cnn": 0.02, "qlinear_cnn": 0.02}
