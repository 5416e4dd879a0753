#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""vm-serve as OpenAI's own client sees it, unmodified: a decoder whose caches stay in the server.

    openai_clients.py --bin BUILD/bin      starts servers and calls them; prints a line for each test

The decoder is examples/generate's, whose tokens are compared with those of a loop that has the caches itself and asks by
`v2/models/step/infer`.
"""
import argparse
import json
import os
import pathlib
import sys
import tempfile
import threading
import time
import urllib.request

import numpy
import openai
import sentencepiece
from vm_server import server

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "examples/generate"))
import model as language_model  # noqa: E402

CAPACITY = 64
SETTINGS = f"""models_in = ["models"]
[models.step.sequence]
state = {{"present_*" = "past_*"}}
sizes = {{capacity = {CAPACITY}}}
[models.step.generator]
tokens = "tokens"
logits = "logits"
last = "lengths"
total = "total"
context = {CAPACITY}
[models.chat]
file = "models/step.onnx"
[models.chat.sequence]
state = {{"present_*" = "past_*"}}
sizes = {{capacity = {CAPACITY}}}
[models.chat.generator]
tokens = "tokens"
logits = "logits"
last = "lengths"
total = "total"
context = {CAPACITY}
tokenizer = "words.model"
begin = [1]
roles = {{system = "S:", user = "U:", assistant = "A:"}}
message_end = ";"
[models.rows]
file = "rows/step.onnx"
instances = 1
[models.rows.batching]
max_batch_size = 8
[models.rows.sequence]
state = {{"present_*" = "past_*"}}
sizes = {{capacity = {CAPACITY}}}
[models.rows.generator]
tokens = "tokens"
logits = "logits"
last = "lengths"
total = "total"
context = {CAPACITY}
[models.shared]
file = "rows/step.onnx"
instances = 1
[models.shared.batching]
max_batch_size = 8
[models.shared.sequence]
state = {{"present_*" = "past_*"}}
[models.shared.generator]
tokens = "tokens"
logits = "logits"
last = "lengths"
total = "total"
context = {2 * CAPACITY}
cache_dimension = "capacity"
prefix_bytes = 1000000
"""
TEXT = "the server keeps the caches of a decoder and sends each token when it is made; users ask and the assistant answers US:A "
PROMPTS = [[3, 1, 4, 1, 5], [9], list(range(20))]


def likeliest(address, prompt, most):
    """The tokens behind a prompt, by a loop of this process."""
    size = language_model.SIZES["tiny"]
    shape = [1, size.kv_heads, CAPACITY, size.head]
    caches = {name: numpy.zeros(shape, numpy.float32) for name in language_model.cache_names(size, "past")}
    given, total, made = numpy.array([prompt], numpy.int64), 0, []
    while len(made) < most:
        total += given.shape[1]
        arrays = {"tokens": given, "lengths": numpy.array([total - 1], numpy.int32), "total": numpy.array(total, numpy.int32), **caches}
        inputs = [{"name": name, "shape": list(array.shape), "datatype": {"f": "FP32", "i": f"INT{8 * array.itemsize}"}[array.dtype.kind],
                   "data": array.ravel().tolist()} for name, array in arrays.items()]
        request = urllib.request.Request(f"http://{address}/v2/models/step/infer", json.dumps({"inputs": inputs}).encode())
        with urllib.request.urlopen(request) as response:
            outputs = {o["name"]: numpy.array(o["data"], numpy.float32).reshape(o["shape"]) for o in json.load(response)["outputs"]}
        caches = {name: outputs[name.replace("past", "present")] for name in caches}
        made.append(int(outputs["logits"].ravel().argmax()))
        given = numpy.array([made[-1:]], numpy.int64)
    return made


def write_tokenizer():
    """Pieces of a few words; as many as the decoder has tokens, or fewer."""
    pathlib.Path("words.txt").write_text("\n".join([TEXT] * 20), encoding="utf-8")
    sentencepiece.SentencePieceTrainer.train(input="words.txt", model_prefix="words", vocab_size=60, hard_vocab_limit=False,
                                             minloglevel=2)
    return sentencepiece.SentencePieceProcessor(model_file="words.model")


def answer_of(words, prompt, made):
    """The text of an answer: that of the prompt's last tokens and the answer, without what the former have alone."""
    last = prompt[-5:]
    inside = [token for token in last + made if token < words.get_piece_size()]
    return words.decode(inside)[len(words.decode(last)):]


def metric(address, name):
    with urllib.request.urlopen(f"http://{address}/metrics") as response:
        lines = [line for line in response.read().decode().splitlines() if line.startswith(name + '{model="step"')]
    assert len(lines) == 1, lines
    return float(lines[0].split()[-1])


def refused(call, kind, words):
    try:
        call()
    except kind as error:
        assert words in str(error), error
    else:
        raise AssertionError(f"not refused: {words}")


def test_models_are_listed(client, _):
    assert [model.id for model in client.models.list()] == ["chat", "rows", "shared", "step"]
    assert client.models.retrieve("step").owned_by == "rewire"
    refused(lambda: client.models.retrieve("other"), openai.NotFoundError, "there is no model 'other'")


def test_tokens_are_those_of_a_loop_of_the_client(client, address):
    for prompt in PROMPTS:
        expected = likeliest(address, prompt, 30)
        whole = client.completions.create(model="step", prompt=prompt, max_tokens=30, temperature=0)
        assert whole.choices[0].token_ids == expected, (whole, expected)
        assert whole.choices[0].finish_reason == "length"
        assert whole.usage.total_tokens == len(prompt) + 30
        stream = client.completions.create(model="step", prompt=prompt, max_tokens=30, temperature=0, stream=True,
                                           stream_options={"include_usage": True})
        events = list(stream)
        assert sum((event.choices[0].token_ids for event in events[:-1]), []) == expected
        assert [event.choices[0].finish_reason for event in events[-3:-1]] == [None, "length"]
        assert events[-1].usage.completion_tokens == 30 and not events[-1].choices


def test_streams_at_once_do_not_mix(client, address):
    made = {}

    def ask(i):
        prompt = PROMPTS[i % len(PROMPTS)]
        stream = client.completions.create(model="step", prompt=prompt, max_tokens=20, temperature=0, stream=True)
        made[i] = sum((event.choices[0].token_ids for event in stream), [])

    threads = [threading.Thread(target=ask, args=(i,)) for i in range(9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    expected = [likeliest(address, prompt, 20) for prompt in PROMPTS]
    assert made == {i: expected[i % len(PROMPTS)] for i in range(9)}, made


def test_a_seed_gives_the_same_tokens_again(client, _):
    def made(seed, **options):
        answer = client.completions.create(model="step", prompt=[1, 2], max_tokens=20, seed=seed, **options)
        return answer.choices[0].token_ids
    assert made(5) == made(5)
    assert made(5, temperature=1.5, top_p=0.9) == made(5, temperature=1.5, top_p=0.9)
    assert len({tuple(made(seed)) for seed in range(6)}) > 1


def test_closing_a_stream_ends_its_steps_and_its_state(client, address):
    stream = client.completions.create(model="step", prompt=[1, 2], max_tokens=60, temperature=0, stream=True)
    next(iter(stream))
    stream.close()
    end = time.monotonic() + 60
    while metric(address, "rewire_sequences") > 0:
        assert time.monotonic() < end, "the sequence is still there"
        time.sleep(0.01)


def test_clients_at_once_get_what_each_gets_alone(client, address):
    prompts = [[index, 3, 1] if index % 2 else [index] * (1 + index) for index in range(12)]
    alone = [likeliest(address, prompt, 24) for prompt in prompts]
    found = [None] * len(prompts)

    def ask(index):
        answer = client.completions.create(model="rows", prompt=prompts[index], max_tokens=24, temperature=0)
        found[index] = answer.choices[0].token_ids

    for _ in range(3):
        threads = [threading.Thread(target=ask, args=(index,)) for index in range(len(prompts))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert found == alone, (found, alone)


def test_prompts_that_begin_alike_share_what_was_computed(client, address):
    system = [(7 * i + 3) % 100 for i in range(40)]
    prompts = [system + [index, 5] for index in range(6)]
    alone = [likeliest(address, prompt, 20) for prompt in prompts]

    def ask(index):
        answer = client.completions.create(model="shared", prompt=prompts[index], max_tokens=20, temperature=0)
        return answer.choices[0].token_ids, answer.usage.prompt_tokens_details.cached_tokens

    assert ask(0) == (alone[0], 0)
    assert ask(1) == (alone[1], 32)
    # Together they share it, too.
    found = [None] * len(prompts)

    def keep(index):
        found[index] = ask(index)

    threads = [threading.Thread(target=keep, args=(index,)) for index in range(len(prompts))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [(tokens, 32) for tokens in alone], (found, alone)
    # An answer goes beyond the 64 places that a state has at first.
    assert client.completions.create(model="shared", prompt=system, max_tokens=60, temperature=0).usage.total_tokens == 100


def test_a_text_is_continued(client, address):
    words = sentencepiece.SentencePieceProcessor(model_file="words.model")
    for text in ("the server", "a token and", "US"):
        prompt = [1, *words.encode(text)]
        made = likeliest(address, prompt, 20)
        expected = answer_of(words, prompt, made)
        asked = {"model": "chat", "prompt": text, "max_tokens": 20, "temperature": 0}
        whole = client.completions.create(**asked)
        assert whole.choices[0].text == expected, (whole, expected)
        assert whole.choices[0].token_ids == made and whole.usage.prompt_tokens == len(prompt)
        parts = [event.choices[0].text for event in client.completions.create(**asked, stream=True)]
        assert "".join(parts) == expected, (parts, expected)
        stop = expected[len(expected) // 2:][:2]
        stopped = client.completions.create(**asked, stop=[stop, "nowhere"])
        assert stopped.choices[0].text == expected[:expected.index(stop)], (stopped, expected, stop)
        assert stopped.choices[0].finish_reason == "stop"


def test_a_conversation_goes_on(client, address):
    words = sentencepiece.SentencePieceProcessor(model_file="words.model")
    messages = [{"role": "system", "content": "answer"}, {"role": "user", "content": [{"type": "text", "text": "ask"}]}]
    prompt = [1, *words.encode("S:answer;U:ask;A:")]
    made = likeliest(address, prompt, CAPACITY - len(prompt))
    asked = {"model": "chat", "messages": messages, "temperature": 0}
    whole = client.chat.completions.create(**asked)
    assert whole.choices[0].message.role == "assistant"
    assert whole.choices[0].message.content == answer_of(words, prompt, made), whole
    assert whole.choices[0].finish_reason == "length"
    assert whole.usage.prompt_tokens == len(prompt) and whole.usage.total_tokens == CAPACITY
    short = client.chat.completions.create(**asked, max_completion_tokens=5)
    assert short.choices[0].token_ids == made[:5]
    events = list(client.chat.completions.create(**asked, stream=True, stream_options={"include_usage": True}))
    assert "".join(event.choices[0].delta.content or "" for event in events[:-1]) == whole.choices[0].message.content
    assert events[0].choices[0].delta.role == "assistant" and events[-1].usage == whole.usage
    for wrong, words_of_it in [
            ({"model": "step"}, "model 'step' has no tokenizer"),
            ({"messages": [{"role": "tool", "content": "a", "tool_call_id": "b"}]}, "'tool_call_id' of a message is not supported"),
            ({"messages": [{"role": "critic", "content": "a"}]}, "model 'chat' has no role 'critic'"),
            ({"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "a"}}]}]},
             "a part of the type 'image_url' in 'content' is not supported"),
            ({"tools": [{"type": "function", "function": {"name": "f"}}]}, "the parameter 'tools' is not supported"),
            ({"response_format": {"type": "json_object"}}, "the parameter 'response_format' is not supported"),
            ({"n": 2}, "the parameter 'n' is not supported")]:
        refused(lambda options=wrong: client.chat.completions.create(**{**asked, **options}), openai.APIStatusError, words_of_it)
    for wrong in ([], "text", [{"role": "user", "content": 5}], [{"content": "a"}]):
        refused(lambda given=wrong: client.chat.completions.create(**{**asked, "messages": given}), openai.BadRequestError, "must be")


def test_what_is_not_there_is_refused_by_name(client, _):
    def asked(**options):
        return lambda: client.completions.create(**{"model": "step", "prompt": [1], **options})
    refused(asked(model="other"), openai.NotFoundError, "there is no model 'other'")
    refused(asked(prompt="text"), openai.APIStatusError, "model 'step' has no tokenizer")
    refused(asked(n=2), openai.APIStatusError, "the parameter 'n' is not supported")
    refused(asked(logprobs=3), openai.APIStatusError, "the parameter 'logprobs' is not supported")
    refused(asked(prompt=[1] * CAPACITY), openai.BadRequestError, f"the prompt has {CAPACITY} tokens")
    refused(asked(temperature=3), openai.BadRequestError, "'temperature' must be a number from 0 to 2")
    refused(lambda: client.embeddings.create(model="step", input="a"), openai.NotFoundError, "there is nothing at the path")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    binary = parser.parse_args().bin.resolve()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        language_model.write("written", "tiny")
        pathlib.Path("models").mkdir()
        pathlib.Path("written/step.onnx").rename("models/step.onnx")
        language_model.write("rows", "tiny", batch="texts")
        write_tokenizer()
        pathlib.Path("serve.toml").write_text(SETTINGS, encoding="utf-8")
        with server(binary, "--config", "serve.toml") as address:
            with openai.OpenAI(base_url=f"http://{address}/v1", api_key="none", max_retries=0) as client:
                for name, test in sorted(globals().items()):
                    if name.startswith("test_"):
                        begin = time.monotonic()
                        test(client, address)
                        print(f"ok {name} {time.monotonic() - begin:.1f} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
