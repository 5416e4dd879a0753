# SPDX-License-Identifier: Apache-2.0
"""How the benches of vm-serve begin: their options, a folder for their files, a server on a core of its own, and the decoder that some of
them ask."""
import argparse
import contextlib
import json
import os
import pathlib
import sys
import tempfile
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path += [str(ROOT / "tests/serve"), str(ROOT / "tests/support"), str(ROOT / "examples/generate")]
from hardships import pid_of  # noqa: E402
from model import SIZES  # noqa: E402
from model import write as write_models  # noqa: E402
from vm_server import server  # noqa: E402

CORES = sorted(os.sched_getaffinity(0))
OF_SERVER, OF_CLIENTS = CORES[0], CORES[-1]
SETTINGS = """[server]
loops = 1
[models.decoder]
file = "step.onnx"
instances = 1
{model}
[models.decoder.sequence]
state = {{"present_*" = "past_*"}}
{sequence}
[models.decoder.generator]
tokens = "tokens"
logits = "logits"
last = "lengths"
total = "total"
{generator}
"""


def options_of(description, rounds, add):
    """The options that each bench has, and those that `add` adds."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=lambda path: pathlib.Path(path).resolve())
    parser.add_argument("--rounds", type=int, default=rounds)
    parser.add_argument("--json", type=pathlib.Path)
    add(parser)
    return parser.parse_args()


@contextlib.contextmanager
def new_folder():
    """Its files go with it. It is the current folder meanwhile."""
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        yield folder


@contextlib.contextmanager
def pinned_server(build, *arguments, threads=1):
    """A server on the first core, or on all if a run has several threads. This process has the last core meanwhile."""
    os.sched_setaffinity(0, CORES if threads > 1 else {OF_SERVER})  # the server inherits it
    try:
        with server(build / "bin", *arguments) as address:
            os.sched_setaffinity(0, {OF_CLIENTS})
            yield address
    finally:
        os.sched_setaffinity(0, CORES)


def give_priority(address):
    """Runs all threads of a server by real-time priority, as slices of a measurement on a busy machine do."""
    for thread in pathlib.Path(f"/proc/{pid_of(address)}/task").iterdir():
        os.sched_setscheduler(int(thread.name), os.SCHED_RR, os.sched_param(1))


def add_decoder_options(parser):
    parser.add_argument("--size", default="large", choices=SIZES)
    parser.add_argument("--accuracy-level", type=int, default=0, help="4: products round activations to 8 bits")


def write_decoder(options):
    """The decoder of examples/generate, as step.onnx of the current folder."""
    write_models(".", options.size, accuracy_level=options.accuracy_level, batch="texts")


@contextlib.contextmanager
def decoder_server(build, model="", sequence="", generator="", threads=1):
    """A server of it. Each text is what a table of its settings has besides."""
    pathlib.Path("serve.toml").write_text(SETTINGS.format(model=model, sequence=sequence, generator=generator), encoding="utf-8")
    with pinned_server(build, "--config", "serve.toml", threads=threads) as address:
        yield address


def generation(address, prompt, tokens):
    """The tokens of one answer, each the likeliest one."""
    body = {"model": "decoder", "prompt": prompt, "max_tokens": tokens, "temperature": 0}
    request = urllib.request.Request(f"http://{address}/v1/completions", json.dumps(body).encode())
    with urllib.request.urlopen(request, timeout=300) as response:
        return json.load(response)["choices"][0]["token_ids"]
