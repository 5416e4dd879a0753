#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the tokens of examples/generate with those that ONNX Runtime's run of the same decoder gives.

    tests/support/environments.py --run tests/models/requirements/models.txt tests/examples/generate.py \\
        --bin build/release/bin [--work FOLDER] [--size tiny small] [--most 220]

For each size and accuracy level: several prompts, greedy and drawn from the 20 likeliest tokens by the same numbers, on
1 and 2 threads. The reference is the decoder of step.onnx, called once for the prompt and once for each token, with
numpy's argmax or the same drawing in numpy. generated_tokens also fails if a step allocates or copies a cache.

At accuracy level 0 all tokens must be the same. At level 4 both round activations to 8 bits in the same way, but what lies
between two steps goes up in one and down in the other by the last bit of a sum. So there the reference follows our
tokens, and each of them must be the one that it would choose, or as likely but for NEAR.
"""

import argparse
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnxruntime

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "examples" / "generate"))
import model as language_model  # noqa: E402

TOP_K, TEMPERATURE = 20, 0.7
NEAR = 0.05  # of the logits' deviation, and of the number that draws a token
LEAST_SAME = 0.8  # of the tokens


class Reference:
    """The decoder in ONNX Runtime, with caches of its own."""

    def __init__(self, path, capacity, threads=1):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        self.session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        inputs = self.session.get_inputs()
        self.shapes = {i.name: (1, i.shape[1], capacity, i.shape[3]) for i in inputs if i.name.startswith("past_")}

    def walk(self, prompt, most, choose):
        """The tokens that choose(logits, i) gives behind the prompt, one for each i."""
        caches = {name: np.zeros(shape, np.float32) for name, shape in self.shapes.items()}
        given, total, made = np.array([prompt], np.int64), 0, []
        for i in range(most):
            total += given.shape[1]
            results = self.session.run(None, {"tokens": given, "lengths": np.array([total - 1], np.int32),
                                              "total": np.array(total, np.int32), **caches})
            caches = dict(zip(caches, results[1:]))
            made.append(choose(results[0][0], i))
            given = np.array([[made[-1]]], np.int64)
        return made


class Greedy:
    @staticmethod
    def choose(logits, _):
        return int(np.argmax(logits))

    @staticmethod
    def is_near(logits, _, token):
        return logits.max() - logits[token] <= NEAR * logits.std()


class Drawn:
    """One of the TOP_K likeliest tokens, by a number for each."""

    def __init__(self, numbers):
        self.numbers = numbers

    @staticmethod
    def order_and_sums(logits):
        order = np.argsort(-logits, kind="stable")[:TOP_K]
        scaled = logits[order] / np.float32(TEMPERATURE)
        shares = np.exp(scaled - scaled.max())
        return order, np.cumsum(shares / shares.sum(dtype=np.float32), dtype=np.float32)

    def choose(self, logits, i):
        order, sums = self.order_and_sums(logits)
        return int(order[min(int((sums < self.numbers[i]).sum()), TOP_K - 1)])

    def is_near(self, logits, i, token):
        """Whether a neighbor of the token in the order would be chosen by a number NEAR this one."""
        order, sums = self.order_and_sums(logits)
        lower, upper = self.numbers[i] - NEAR, self.numbers[i] + NEAR
        likely = [t for t, end, share in zip(order, sums, np.diff(sums, prepend=0)) if end >= lower and end - share <= upper]
        return any(abs(logits[token] - logits[t]) <= NEAR * logits.std() for t in likely)


def compare(reference, prompt, tokens, sampler, exact):
    """How many tokens are those of the reference, and how many are not even near. With `exact` the reference goes its own
    way; otherwise it follows ours."""
    if exact:
        expected = reference.walk(prompt, len(tokens), sampler.choose)
        same = sum(a == b for a, b in zip(tokens, expected))
        return same, len(tokens) - same
    same = far = 0

    def follow(logits, i):
        nonlocal same, far
        same += sampler.choose(logits, i) == tokens[i]
        far += not sampler.is_near(logits, i, tokens[i])
        return tokens[i]

    reference.walk(prompt, len(tokens), follow)
    return same, far


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    parser.add_argument("--work", type=pathlib.Path)
    parser.add_argument("--size", nargs="+", default=["tiny", "small"], choices=language_model.SIZES)
    parser.add_argument("--most", type=int, default=220)
    options = parser.parse_args()
    work = options.work or pathlib.Path(tempfile.mkdtemp())
    runner = options.bin.parent / "tests" / "bin" / "generated_tokens"
    environment = {**os.environ, "REWIRE_LIBRARY_PATH": str(options.bin.parent / "lib" / "rewire")}
    failed = 0
    for size in options.size:
        form = language_model.SIZES[size]
        random = np.random.default_rng(11)
        prompts = [random.integers(0, form.vocabulary, count).tolist() for count in (1, 5, 24)]
        numbers = random.random(options.most, dtype=np.float32)
        numbers.tofile(work / "numbers")
        capacity = max(map(len, prompts)) + options.most
        for level in (0, 4):
            for top_k in (0, TOP_K):
                folder = work / f"{size}-{level}-{top_k}"
                language_model.write(folder, size, top_k, TEMPERATURE, level)
                compiled = folder / "generate.rwx"
                subprocess.run([options.bin / "vm-compile", folder / "generate.onnx", "-o", compiled], check=True,
                               capture_output=True)
                reference = Reference(folder / "step.onnx", capacity)
                sampler = Drawn(numbers) if top_k else Greedy()
                for threads in (1, 2):
                    given = [",".join(map(str, prompt)) for prompt in prompts]
                    command = [runner, compiled, capacity, options.most, threads, work / "numbers" if top_k else "", *given]
                    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, env=environment,
                                          check=False)
                    lines = [[int(token) for token in line.split()] for line in done.stdout.splitlines()]
                    results = [compare(reference, *pair, sampler, level == 0) for pair in zip(prompts, lines)]
                    good = done.returncode == 0 and len(lines) == len(prompts) and all(
                        len(line) == options.most and far == 0 and same >= (1 if level == 0 else LEAST_SAME) * options.most
                        for line, (same, far) in zip(lines, results))
                    failed += not good
                    print(f"{'ok' if good else 'FAILED'}: {size}, accuracy level {level}, top {top_k or 1}, {threads} threads: "
                          f"{[same for same, _ in results]} of {options.most} tokens as ONNX Runtime's, "
                          f"{[far for _, far in results]} far from them {done.stderr.strip()[:400]}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
