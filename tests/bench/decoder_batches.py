#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tokens a second of a decoder that vm-serve serves, with one client and with several whose steps run together.

    decoder_batches.py BUILD [--size large] [--clients 8] [--tokens 48] [--rounds 3] [--threads 1]
                       [--accuracy-level 0] [--json FILE]

The decoder is that of examples/generate; `large` has 170 million weights of 4 bits. The server has one core (with --threads 2
both), and the clients another one. Every client asks for one generation of so many tokens behind a short prompt, without sampling. All
must get the tokens that the first one gets alone. A figure is the tokens of all over the time from the first request to the last answer.

Runs in the environment of tests/serve/requirements/openai.txt.
"""
import argparse
import contextlib
import json
import os
import pathlib
import statistics
import sys
import tempfile
import threading
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path += [str(ROOT / "tests/serve"), str(ROOT / "examples/generate")]
import model as language_model  # noqa: E402
from vm_server import server  # noqa: E402

SETTINGS = """[server]
loops = 1
[models.decoder]
file = "step.onnx"
instances = 1
threads = {threads}
[models.decoder.batching]
max_batch_size = {rows}
[models.decoder.sequence]
state = {{"present_*" = "past_*"}}
sizes = {{capacity = 128}}
[models.decoder.generator]
tokens = "tokens"
logits = "logits"
last = "lengths"
total = "total"
context = 128
"""


def generation(address, prompt, tokens):
    body = {"model": "decoder", "prompt": prompt, "max_tokens": tokens, "temperature": 0}
    request = urllib.request.Request(f"http://{address}/v1/completions", json.dumps(body).encode())
    with urllib.request.urlopen(request, timeout=300) as response:
        return json.load(response)["choices"][0]["token_ids"]


def run(address, prompts, tokens):
    """The answers, and all tokens a second."""
    made = [None] * len(prompts)

    def ask(index):
        made[index] = generation(address, prompts[index], tokens)

    threads = [threading.Thread(target=ask, args=(index,)) for index in range(len(prompts))]
    begin = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return made, len(prompts) * tokens / (time.monotonic() - begin)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--size", default="large", choices=language_model.SIZES)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--tokens", type=int, default=48)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--accuracy-level", type=int, default=0, help="4: products round activations to 8 bits")
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    binary = options.build.resolve() / "bin"
    figures = {}
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        language_model.write(folder, options.size, accuracy_level=options.accuracy_level, batch="texts")
        prompts = [[1 + index, 5, 7, 9] for index in range(options.clients)]
        pathlib.Path("serve.toml").write_text(SETTINGS.format(threads=options.threads, rows=options.clients), encoding="utf-8")
        cores = os.sched_getaffinity(0)
        os.sched_setaffinity(0, cores if options.threads > 1 else {min(cores)})  # the server's
        with server(binary, "--config", "serve.toml") as address:
            os.sched_setaffinity(0, {max(cores)})
            alone = [run(address, [prompt], options.tokens)[0][0] for prompt in prompts]
            one, all_of_them = [], []
            for _ in range(options.rounds):
                one.append(run(address, prompts[:1], options.tokens)[1])
                made, rate = run(address, prompts, options.tokens)
                all_of_them.append(rate)
                if made != alone:
                    print("the tokens of clients together are not those that each gets alone")
                    return 1
        ratios = [many / single for many, single in zip(all_of_them, one)]
        figures = {"one": statistics.median(one), "together": statistics.median(all_of_them), "ratio": statistics.median(ratios),
                   "ratios": ratios, "clients": options.clients, "size": options.size, "threads": options.threads}
    print(f"{options.size}: one client {figures['one']:.1f} tokens/s, {options.clients} together {figures['together']:.1f}: "
          f"{figures['ratio']:.2f} times ({min(ratios):.2f} to {max(ratios):.2f}); equal to alone")
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
