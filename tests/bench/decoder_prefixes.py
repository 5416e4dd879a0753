#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Time to the first token of prompts that begin alike, with and without what vm-serve keeps of them, and the memory of a short text.

    decoder_prefixes.py BUILD [--size large] [--common 480] [--own 20] [--rounds 5] [--accuracy-level 0] [--json FILE]

The decoder is that of examples/generate; `large` has 170 million weights of 4 bits. The server has one core. All prompts have `common` tokens in common and
`own` ones behind them. Both servers must give the same tokens. The memory is that of the caches of a text of 60 tokens, of a model that
may have 2,048 (`large`).

Runs in the environment of tests/serve/requirements/openai.txt.
"""
import json
import statistics
import sys
import threading
import time

from pinned_server import SIZES, add_decoder_options, decoder_server, generation, new_folder, options_of, write_decoder

from hardships import metric

FORMS = {"without": ("sizes = {{capacity = {positions}}}", ""), "with": ("", 'cache_dimension = "capacity"\nprefix_bytes = 1000000000')}


def prompts_of(options):
    kinds = min(1000, SIZES[options.size].vocabulary)
    common = [(37 * i + 11) % kinds for i in range(options.common)]
    return [common + [(13 * i + 17 * index) % kinds for i in range(options.own)] for index in range(options.rounds + 1)]


def bytes_of_a_text(address):
    """Of the state of one that is being made, of at most 60 tokens."""
    thread = threading.Thread(target=generation, args=(address, [5, 6, 7], 57))
    thread.start()
    most = 0
    while thread.is_alive():
        most = max(most, metric(address, "rewire_sequence_bytes"))
        time.sleep(0.05)
    return most


def measure(form, options):
    sizes, caches = FORMS[form]
    positions = SIZES[options.size].positions
    with decoder_server(options.build, "", sizes.format(positions=positions), f"context = {positions}\n{caches}") as address:
        generation(address, [1, 2, 3], 4)  # the first run takes memory
        seconds, tokens = [], []
        for prompt in prompts_of(options):
            begin = time.monotonic()
            tokens.append(generation(address, prompt, 1))
            seconds.append(time.monotonic() - begin)
        return seconds, tokens, bytes_of_a_text(address)


def add_options(parser):
    add_decoder_options(parser)
    parser.add_argument("--common", type=int, default=480)
    parser.add_argument("--own", type=int, default=20)


def main():
    options = options_of(__doc__, 5, add_options)
    with new_folder():
        write_decoder(options)
        results = {form: measure(form, options) for form in FORMS}
    if results["with"][1] != results["without"][1]:
        print("the tokens with and without kept prompts differ")
        return 1
    figures = {}
    for form, (seconds, _, size) in results.items():
        later = seconds[1:]
        figures[form] = {"first": seconds[0], "later": later, "bytes": size}
        print(f"{form}: first prompt {seconds[0] * 1000:.0f} ms, later ones {statistics.median(later) * 1000:.0f} ms "
              f"({min(later) * 1000:.0f} to {max(later) * 1000:.0f}); state of a text of 60 tokens {size / 1e6:.2f} MB")
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
