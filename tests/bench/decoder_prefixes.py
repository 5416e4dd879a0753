#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Time to the first token of prompts that begin alike, with and without what vm-serve keeps of them, and the memory of a short text.

    decoder_prefixes.py BUILD [--size large] [--common 480] [--own 20] [--rounds 5] [--accuracy-level 0]

The decoder is that of examples/generate; `large` has 170 million weights of 4 bits. The server has one core. All prompts have `common` tokens in common and
`own` ones behind them. Both servers must give the same tokens. The memory is that of the caches of a text of 60 tokens, of a model that
may have 2,048.

Runs in the environment of tests/serve/requirements/openai.txt.
"""
import argparse
import contextlib
import os
import pathlib
import statistics
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path += [str(ROOT / "tests/serve"), str(ROOT / "examples/generate")]
import model as language_model  # noqa: E402
from decoder_batches import generation  # noqa: E402
from hardships import metric  # noqa: E402
from vm_server import server  # noqa: E402

SETTINGS = """[server]
loops = 1
[models.decoder]
file = "step.onnx"
instances = 1
[models.decoder.sequence]
state = {{"present_*" = "past_*"}}
{sizes}
[models.decoder.generator]
tokens = "tokens"
logits = "logits"
last = "lengths"
total = "total"
context = 2048
{caches}
"""
FORMS = {"without": ("sizes = {capacity = 2048}", ""), "with": ("", 'cache_dimension = "capacity"\nprefix_bytes = 1000000000')}


def prompts_of(options):
    common = [(37 * i + 11) % 1000 for i in range(options.common)]
    return [common + [(13 * i + 17 * index) % 1000 for i in range(options.own)] for index in range(options.rounds + 1)]


def bytes_of_a_text(address):
    """Of the state of one that is being made, of at most 60 tokens."""
    thread = threading.Thread(target=generation, args=(address, [5, 6, 7], 57))
    thread.start()
    most = 0
    while thread.is_alive():
        most = max(most, metric(address, "rewire_sequence_bytes"))
        time.sleep(0.05)
    return most


def measure(binary, form, options):
    sizes, caches = FORMS[form]
    pathlib.Path("serve.toml").write_text(SETTINGS.format(sizes=sizes, caches=caches), encoding="utf-8")
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cores)})  # the server's
    try:
        with server(binary, "--config", "serve.toml") as address:
            generation(address, [1, 2, 3], 4)  # the first run takes memory
            seconds, tokens = [], []
            for prompt in prompts_of(options):
                begin = time.monotonic()
                tokens.append(generation(address, prompt, 1))
                seconds.append(time.monotonic() - begin)
            return seconds, tokens, bytes_of_a_text(address)
    finally:
        os.sched_setaffinity(0, cores)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--size", default="large", choices=language_model.SIZES)
    parser.add_argument("--common", type=int, default=480)
    parser.add_argument("--own", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--accuracy-level", type=int, default=0, help="4: products round activations to 8 bits")
    options = parser.parse_args()
    binary = options.build.resolve() / "bin"
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        language_model.write(folder, options.size, accuracy_level=options.accuracy_level, batch="texts")
        results = {form: measure(binary, form, options) for form in FORMS}
    if results["with"][1] != results["without"][1]:
        print("the tokens with and without kept prompts differ")
        return 1
    for form, (seconds, _, size) in results.items():
        later = seconds[1:]
        print(f"{form}: first prompt {seconds[0] * 1000:.0f} ms, later ones {statistics.median(later) * 1000:.0f} ms "
              f"({min(later) * 1000:.0f} to {max(later) * 1000:.0f}); state of a text of 60 tokens {size / 1e6:.2f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
