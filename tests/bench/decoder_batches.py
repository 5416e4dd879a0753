#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tokens a second of a decoder that vm-serve serves, with one client and with several whose steps run together.

    decoder_batches.py BUILD [--size large] [--clients 8] [--tokens 48] [--rounds 3] [--threads 1]
                       [--accuracy-level 0] [--json FILE]

The decoder is that of examples/generate; `large` has 170 million weights of 4 bits. The server has one core (with --threads 2
both), by real-time priority, and the clients another one. Every client asks for one generation of so many tokens behind a short prompt, without sampling. All
must get the tokens that the first one gets alone. A figure is the tokens of all over the time from the first request to the last answer.

Runs in the environment of tests/serve/requirements/openai.txt.
"""
import json
import statistics
import sys
import threading
import time

from pinned_server import add_decoder_options, decoder_server, generation, give_priority, new_folder, options_of, write_decoder


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


def add_options(parser):
    add_decoder_options(parser)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--tokens", type=int, default=48)
    parser.add_argument("--threads", type=int, default=1)


def main():
    options = options_of(__doc__, 3, add_options)
    prompts = [[1 + index, 5, 7, 9] for index in range(options.clients)]
    with new_folder():
        write_decoder(options)
        model = f"threads = {options.threads}\nbatching = {{max_batch_size = {options.clients}}}"
        with decoder_server(options.build, model, "sizes = {capacity = 128}", "context = 128", options.threads) as address:
            give_priority(address)
            alone = [run(address, [prompt], options.tokens)[0][0] for prompt in prompts]
            one, all_of_them = [], []
            for _ in range(options.rounds):
                one.append(run(address, prompts[:1], options.tokens)[1])
                time.sleep(1)  # other programs have the core
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
