#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What dynamic batching gives or takes for each model of tests/models: answers a second with batching on, by those with it off.

    serve_models.py BUILD --cases CASES [--model NAME]... [--rounds 3] [--seconds 2] [--clients 16] [--json FILE]

CASES is what tests/models/reference.py wrote. Each model has three servers with one instance and no delay: two that take it as it is, and one with
batches of up to as many rows as there are clients. The ratio of the two equal servers shows how far measurements differ by themselves. The servers have
one core, and the clients another one, both by real-time priority, in slices with as long a pause behind each. Each client sends the model's first inputs
over HTTP and waits for the answer. A round measures all, in turn, and a ratio is of one round. The first slice of each server is not counted, because
batching measures the model then; slow models have longer slices. Models that have no dimension for batches are named with what the server says. Exits
with 1 if the median of a model is below 0.97.

Runs in the environment of tests/models/requirements/models.txt.
"""
import contextlib
import json
import pathlib
import statistics
import subprocess
import sys
import time

from pinned_server import OF_CLIENTS, give_priority, new_folder, options_of, pinned_server

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "models"))
import check  # noqa: E402

LEAST = 0.97
ANSWERS, LONGEST = 300, 6.0  # a slice has so many answers, unless it takes longer than so many seconds
FORMS = ("off", "same", "on")


def answers(options, address, case, seconds):
    """A second."""
    command = [options.build / "bin/vm-bench", f"http://{address}/model", "--clients", options.clients, "--duration", f"{int(1000 * seconds)}ms",
               "--warmup", "2", "--json"]
    for path in sorted((case / "in").glob("*.npy")):
        command += ["--input", f"{path.stem}=@{path}"]
    (found,) = json.loads(check.call(["chrt", "-r", "1", "taskset", "-c", OF_CLIENTS, *command]))["loads"]
    time.sleep(seconds)
    if found["failed"]:
        raise RuntimeError(f"{found['failed']} requests failed")
    return found["answers_per_second"]


def refusal(options):
    """Why the server takes no batches of the model; None if it does."""
    command = [options.build / "bin/vm-serve", "model.rwx", "--http", "127.0.0.1:0", "--max-batch", str(options.clients)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        served = process.stdout.readline().startswith("serving")
        if served:
            process.terminate()
        error = process.communicate()[1]
    return None if served else error.strip()


def measure(options, folder):
    """The model's ratios and those of the equal servers, or why it has none."""
    scratch = pathlib.Path(".")
    check.compile_model(options.build / "bin", folder, "model.rwx")
    reason = refusal(options)
    if reason is not None:
        return None, reason
    case = check.split_texts(sorted(path for path in folder.iterdir() if path.is_dir())[0], scratch)
    common = ["model.rwx", "--loops", 1, "--instances", 1]
    with contextlib.ExitStack() as servers:
        forms = {form: servers.enter_context(pinned_server(options.build, *common, *more))
                 for form, more in zip(FORMS, ([], [], ["--max-batch", options.clients]))}
        for address in forms.values():
            give_priority(address)
        rate = answers(options, forms["off"], case, options.seconds)
        seconds = min(LONGEST, max(options.seconds, ANSWERS / max(rate, 1)))
        for form in FORMS[1:]:
            answers(options, forms[form], case, seconds)
        rounds = []
        for number in range(options.rounds):
            order = [FORMS[(number + place) % len(FORMS)] for place in range(len(FORMS))]
            rounds.append({form: answers(options, forms[form], case, seconds) for form in order})
    ratios = {form: [row[form] / row["off"] for row in rounds] for form in FORMS[1:]}
    return ratios, f"{statistics.median(row['off'] for row in rounds):.0f} answers/s with batching off"


def add_options(parser):
    parser.add_argument("--cases", type=lambda path: pathlib.Path(path).resolve(), required=True)
    parser.add_argument("--model", action="append")
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--clients", type=int, default=16)


def main():
    options = options_of(__doc__, 3, add_options)
    path = options.json.resolve() if options.json else None
    found, left_out, failed = {}, {}, []
    for name in options.model or sorted(path.name for path in options.cases.iterdir() if path.is_dir()):
        with new_folder():
            try:
                ratios, text = measure(options, options.cases / name)
            except (RuntimeError, OSError, AssertionError, subprocess.TimeoutExpired) as error:
                failed.append(name)
                print(f"FAILED {name}: {error}", flush=True)
                continue
        if ratios is None:
            left_out[name] = text
            print(f"left out: {name}: {text.splitlines()[0]}", flush=True)
            continue
        found[name] = ratios
        shown = {form: f"{statistics.median(each):.2f} ({min(each):.2f} to {max(each):.2f})" for form, each in ratios.items()}
        print(f"{name}: {shown['on']}, equal servers {shown['same']}, {text}", flush=True)
    low = [name for name, ratios in found.items() if statistics.median(ratios["on"]) < LEAST]
    print(f"{len(found)} models with batches, {len(low)} below {LEAST}: {', '.join(low) or 'none'}; {len(left_out)} without; "
          f"failed: {', '.join(failed) or 'none'}")
    if path:
        path.write_text(json.dumps({"ratios": found, "left_out": left_out}, indent=1), encoding="utf-8")
    return 1 if low or failed or not found else 0


if __name__ == "__main__":
    sys.exit(main())
