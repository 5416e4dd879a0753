# SPDX-License-Identifier: Apache-2.0
"""Small models with the inputs, outputs and metadata that published programs ask for. Their weights are random, by a fixed seed."""

import json
import pathlib

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper

FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64


class Graph:
    """Collects nodes and weights; a method adds a node and returns its output's name."""

    def __init__(self, seed):
        self.nodes, self.weights, self.random = [], [], numpy.random.default_rng(seed)

    def node(self, kind, inputs, output=None, **attributes):
        output = output or f"value{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, [output], **attributes))
        return output

    def constant(self, array):
        name = f"weight{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(numpy.asarray(array), name))
        return name

    def weight(self, *shape):
        return self.constant(self.random.standard_normal(shape).astype(numpy.float32) / shape[0] ** 0.5)

    def save(self, path, inputs, outputs, metadata=None):
        infos = [[helper.make_tensor_value_info(*value) for value in values] for values in (inputs, outputs)]
        graph = helper.make_graph(self.nodes, "toy", *infos, self.weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        for key, value in (metadata or {}).items():
            model.metadata_props.add(key=key, value=str(value))
        onnx.checker.check_model(model)
        pathlib.Path(path).parent.mkdir(parents=True, exist_ok=True)
        onnx.save(model, path)
        return str(path)


def speaker_embedding(folder):
    """Features [N, T, 80] to embeddings [N, 16], with the metadata of a model of WeSpeaker."""
    graph = Graph(1)
    hidden = graph.node("Tanh", [graph.node("MatMul", ["x", graph.weight(80, 16)])])
    graph.node("ReduceMean", [graph.node("Relu", [hidden])], "embedding", axes=[1], keepdims=0)
    return graph.save(folder / "speaker.onnx", [("x", FLOAT, ["N", "T", 80])], [("embedding", FLOAT, ["N", 16])], {
        "framework": "wespeaker", "language": "Chinese", "url": "none", "comment": "toy", "sample_rate": 16000,
        "output_dim": 16, "normalize_samples": 1, "feature_normalize_type": "global-mean"})


def recognizer(folder):
    """A recognizer with the metadata of NeMo's CTC models: every other frame, as letters. Returns model and tokens."""
    graph = Graph(2)
    frames = graph.node("Transpose", ["audio_signal"], perm=[0, 2, 1])
    half = graph.node("Slice", [frames] + [graph.constant(numpy.array([n], numpy.int64)) for n in (0, 2 ** 31, 1, 2)])
    hidden = graph.node("Tanh", [graph.node("MatMul", [half, graph.weight(80, 32)])])
    graph.node("LogSoftmax", [graph.node("MatMul", [hidden, graph.weight(32, 27)])], "logprobs", axis=-1)
    tokens = folder / "tokens.txt"
    tokens.parent.mkdir(parents=True, exist_ok=True)
    tokens.write_text("".join(f"{chr(97 + i)} {i}\n" for i in range(26)) + "<blk> 26\n")
    model = graph.save(
        folder / "nemo.onnx", [("audio_signal", FLOAT, ["N", 80, "T"]), ("length", INT64, ["N"])],
        [("logprobs", FLOAT, ["N", "U", 27])],
        {"vocab_size": 26, "subsampling_factor": 2, "normalize_type": "per_feature", "model_type": "EncDecCTCModelBPE"})
    return model, str(tokens)


def words(folder, extra=()):
    """A tokenizer.json that cuts at white space, with the words of the tests."""
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "<<ENT>>", "<<SEP>>", "the", "cat", "of", "Paris", "person", "city", "010", "1234",
                  "5678", "-", *extra]
    tokenizer = {
        "version": "1.0", "truncation": None, "padding": None,
        "added_tokens": [{"id": i, "content": word, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
                          "special": True} for i, word in enumerate(vocabulary[:6])],
        "normalizer": None, "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {"type": "TemplateProcessing",
                           "single": [{"SpecialToken": {"id": "[CLS]", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}},
                                      {"SpecialToken": {"id": "[SEP]", "type_id": 0}}],
                           "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
                           "special_tokens": {"[CLS]": {"id": "[CLS]", "ids": [2], "tokens": ["[CLS]"]},
                                              "[SEP]": {"id": "[SEP]", "ids": [3], "tokens": ["[SEP]"]}}},
        "decoder": None,
        "model": {"type": "WordLevel", "vocab": {word: i for i, word in enumerate(vocabulary)}, "unk_token": "[UNK]"}}
    path = folder / "tokenizer.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(tokenizer))
    return str(path), len(vocabulary)


def token_classifier(folder, labels):
    """A bundle of a BERT for tokens: config.json, tokenizer.json and onnx/model.onnx."""
    _, count = words(folder)
    graph = Graph(3)
    hidden = graph.node("Gather", [graph.weight(count, 24), "input_ids"])
    mask = graph.node("Unsqueeze", [graph.node("Cast", ["attention_mask"], to=FLOAT), graph.constant(numpy.array([2], numpy.int64))])
    hidden = graph.node("Tanh", [graph.node("Mul", [hidden, mask])])
    graph.node("MatMul", [hidden, graph.weight(24, len(labels))], "logits")
    tokens = ["N", "T"]
    graph.save(folder / "onnx" / "model.onnx", [("input_ids", INT64, tokens), ("attention_mask", INT64, tokens)],
               [("logits", FLOAT, ["N", "T", len(labels)])])
    config = {"model_type": "bert", "id2label": {str(i): label for i, label in enumerate(labels)},
              "label2id": {label: i for i, label in enumerate(labels)}, "max_position_embeddings": 128}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "tokenizer_config.json").write_text(json.dumps({"model_max_length": 128}))
    return str(folder)


def span_classifier(folder):
    """A model with the inputs of GLiNER: scores of spans for entities. Returns model and tokenizer."""
    tokenizer, count = words(folder)
    graph = Graph(4)
    scalar = lambda n: graph.constant(numpy.array(n, numpy.int64))
    ones = lambda n: graph.constant(numpy.array([n], numpy.int64))
    # The mean over tokens, spread over spans and entities, with the span's place mixed in.
    hidden = graph.node("Gather", [graph.weight(count, 8), "input_ids"])
    mask = graph.node("Unsqueeze", [graph.node("Cast", ["attention_mask"], to=FLOAT), ones(2)])
    mean = graph.node("ReduceMean", [graph.node("Mul", [hidden, mask])], axes=[1], keepdims=1)
    spans = graph.node("Cast", ["span_idx"], to=FLOAT)
    scores = graph.node("Add", [graph.node("MatMul", [spans, graph.weight(2, 8)]), mean])
    shape = graph.node("Shape", ["span_idx"])
    words_count = graph.node("Cast", [graph.node("ReduceMax", ["text_lengths"], keepdims=0)], to=INT64)
    batch = graph.node("Gather", [shape, scalar(0)])
    of_words = graph.node("Concat", [graph.node("Unsqueeze", [batch, ones(0)]), graph.node("Unsqueeze", [words_count, ones(0)]),
                                     ones(-1), ones(8)], axis=0)
    by_word = graph.node("Reshape", [graph.node("Sin", [scores]), of_words])
    labels = graph.node("Slice", [by_word, ones(0), ones(2), ones(3)])
    words_seen = graph.node("ReduceSum", [graph.node("Cast", ["words_mask"], to=FLOAT)], keepdims=0)
    valid = graph.node("ReduceSum", [graph.node("Cast", ["span_mask"], to=FLOAT)], keepdims=0)
    bias = graph.node("Mul", [graph.node("Add", [words_seen, valid]), graph.constant(numpy.array(0.001, numpy.float32))])
    graph.node("Add", [labels, bias], "logits")
    tokens = ["N", "T"]
    inputs = [("input_ids", INT64, tokens), ("attention_mask", INT64, tokens), ("words_mask", INT64, tokens),
              ("text_lengths", INT64, ["N", 1]), ("span_idx", INT64, ["N", "S", 2]), ("span_mask", TensorProto.BOOL, ["N", "S"])]
    model = graph.save(folder / "gliner.onnx", inputs, [("logits", FLOAT, ["N", "W", "K", "C"])])
    return model, tokenizer


def language_model(folder, layers=2, heads=2, size=8, vocabulary=64):
    """A tiny decoder as onnxruntime-genai runs it: past keys and values in, present ones out. Returns the folder."""
    graph = Graph(5)
    inputs = [("input_ids", INT64, ["N", "T"]), ("attention_mask", INT64, ["N", "L"])]
    outputs = [("logits", FLOAT, ["N", "T", vocabulary])]
    width = heads * size
    ints = lambda *numbers: graph.constant(numpy.array(numbers, numpy.int64))
    hidden = graph.node("Gather", [graph.weight(vocabulary, width), "input_ids"])
    mask = graph.node("Cast", ["attention_mask"], to=FLOAT)
    mask = graph.node("Mul", [graph.node("Sub", [mask, graph.constant(numpy.float32(1))]), graph.constant(numpy.float32(1e4))])
    mask = graph.node("Unsqueeze", [mask, ints(1, 2)])
    for layer in range(layers):
        parts = {}
        for part in ("query", "key", "value"):
            made = graph.node("Reshape", [graph.node("MatMul", [hidden, graph.weight(width, width)]), ints(0, 0, heads, size)])
            parts[part] = graph.node("Transpose", [made], perm=[0, 2, 1, 3])
        for part in ("key", "value"):
            past, present = f"past_key_values.{layer}.{part}", f"present.{layer}.{part}"
            inputs.append((past, FLOAT, ["N", heads, "P", size]))
            outputs.append((present, FLOAT, ["N", heads, "L", size]))
            parts[part] = graph.node("Concat", [past, parts[part]], present, axis=2)
        scores = graph.node("MatMul", [parts["query"], graph.node("Transpose", [parts["key"]], perm=[0, 1, 3, 2])])
        seen = graph.node("MatMul", [graph.node("Softmax", [graph.node("Add", [scores, mask])], axis=-1), parts["value"]])
        seen = graph.node("Reshape", [graph.node("Transpose", [seen], perm=[0, 2, 1, 3]), ints(0, 0, width)])
        hidden = graph.node("Add", [hidden, graph.node("Tanh", [graph.node("MatMul", [seen, graph.weight(width, width)])])])
    graph.node("MatMul", [hidden, graph.weight(width, vocabulary)], "logits")
    graph.save(folder / "model.onnx", inputs, outputs)
    decoder = {
        "session_options": {"log_id": "onnxruntime-genai", "provider_options": []}, "filename": "model.onnx", "head_size": size,
        "hidden_size": width, "num_attention_heads": heads, "num_hidden_layers": layers, "num_key_value_heads": heads,
        "inputs": {"input_ids": "input_ids", "attention_mask": "attention_mask", "past_key_names": "past_key_values.%d.key",
                   "past_value_names": "past_key_values.%d.value"},
        "outputs": {"logits": "logits", "present_key_names": "present.%d.key", "present_value_names": "present.%d.value"}}
    config = {
        "model": {"bos_token_id": 1, "eos_token_id": vocabulary - 1, "pad_token_id": 0, "context_length": 64, "type": "llama",
                  "vocab_size": vocabulary, "decoder": decoder},
        "search": {"do_sample": False, "max_length": 48, "min_length": 0, "num_beams": 1, "num_return_sequences": 1,
                   "past_present_share_buffer": False, "repetition_penalty": 1.0, "temperature": 1.0, "top_k": 1, "top_p": 1.0,
                   "early_stopping": True, "length_penalty": 1.0, "no_repeat_ngram_size": 0, "diversity_penalty": 0.0}}
    (folder / "genai_config.json").write_text(json.dumps(config))
    return str(folder)
