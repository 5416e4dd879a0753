#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What dynamic batching gives or takes for each model of tests/models: answers a second with batching on, by those with it off.

    serve_models.py BUILD --cases CASES [--model NAME]... [--rounds 10] [--starts 2] [--most-starts 6] [--slice 0.15] [--clients 16] [--json FILE]

CASES is what tests/models/reference.py wrote. Each model has three servers with one instance and no delay: two that take it as it is, and one with
batches of up to as many rows as there are clients. The servers have one core, and the clients another one, both by real-time priority, in slices with as
long a pause behind each. Each client sends the model's first inputs over HTTP and waits for the answer.

A round measures batching between the two equal servers, and its ratio is to their geometric mean. So what changes slowly on the machine cancels. The
ratio of the two equal servers is the control: it shows how far measurements differ by themselves. The servers are started anew a few times, because where
a process has its memory makes a difference, too. What is told is the median of all rounds with its 95 % interval, by order statistics, which
assumes nothing of how ratios are distributed. While the interval has 0.97 inside, there are further starts, up to --most-starts.

The first slices of each server are not counted, because batching measures the model then; slow models have longer slices. Models that have no dimension
for batches are named with what the server says. Exits with 1 if a model's whole interval is below 0.97.

Runs in the environment of tests/models/requirements/models.txt.
"""
import contextlib
import json
import math
import pathlib
import statistics
import subprocess
import sys
import time

from pinned_server import OF_CLIENTS, give_priority, new_folder, options_of, pinned_server

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "models"))
import check  # noqa: E402

LEAST = 0.97
ANSWERS, LONGEST = 100, 4.0  # a slice has so many answers, unless it takes longer than so many seconds
FORMS = ("off", "on", "same")  # in the order of a round, or turned around


def interval(ratios):
    """The median, and an interval that has the true one in 95 of 100 cases."""
    ordered, count = sorted(ratios), len(ratios)
    below, left_out = 0.5 ** count, 0
    while below <= 0.025:
        left_out += 1
        below += math.comb(count, left_out) * 0.5 ** count
    if left_out == 0:
        raise RuntimeError(f"{count} rounds are too few for an interval")
    return statistics.median(ordered), ordered[left_out - 1], ordered[count - left_out]


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


def rounds_of(options, case):
    """Ratios of batching, and those of the equal servers, by servers that are started anew; with the answers a second of batching off."""
    common = ["model.rwx", "--loops", 1, "--instances", 1]
    on, same, rates = [], [], []
    with contextlib.ExitStack() as servers:
        forms = {form: servers.enter_context(pinned_server(options.build, *common, *(["--max-batch", options.clients] if form == "on" else [])))
                 for form in FORMS}
        for address in forms.values():
            give_priority(address)
        rate = answers(options, forms["off"], case, max(options.slice, 0.5))
        seconds = min(LONGEST, max(options.slice, ANSWERS / max(rate, 1)))
        for form in FORMS[1:]:
            answers(options, forms[form], case, max(seconds, 0.5))
        for number in range(options.rounds):
            row = {form: answers(options, forms[form], case, seconds) for form in FORMS[::1 if number % 2 == 0 else -1]}
            on.append(row["on"] / math.sqrt(row["off"] * row["same"]))
            same.append(row["same"] / row["off"])
            rates.append(row["off"])
    return on, same, rates


def measure(options, folder):
    """The model's ratios and those of the equal servers, or why it has none."""
    scratch = pathlib.Path(".")
    check.compile_model(options.build / "bin", folder, "model.rwx")
    reason = refusal(options)
    if reason is not None:
        return None, reason
    case = check.split_texts(sorted(path for path in folder.iterdir() if path.is_dir())[0], scratch)
    on, same, rates = [], [], []
    for start in range(options.most_starts):
        if start >= options.starts and not interval(on)[1] < LEAST <= interval(on)[2]:
            break
        for all_of_them, of_start in zip((on, same, rates), rounds_of(options, case)):
            all_of_them += of_start
    return {"on": on, "same": same}, f"{statistics.median(rates):.0f} answers/s with batching off, {len(on)} rounds"


def add_options(parser):
    parser.add_argument("--cases", type=lambda path: pathlib.Path(path).resolve(), required=True)
    parser.add_argument("--model", action="append")
    parser.add_argument("--starts", type=int, default=2)
    parser.add_argument("--most-starts", type=int, default=6)
    parser.add_argument("--slice", type=float, default=0.15)
    parser.add_argument("--clients", type=int, default=16)


def main():
    options = options_of(__doc__, 10, add_options)
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
        shown = {form: "{:.3f} ({:.3f} to {:.3f})".format(*interval(each)) for form, each in ratios.items()}
        print(f"{name}: {shown['on']}, equal servers {shown['same']}, {text}", flush=True)
    bounds = {name: interval(ratios["on"]) for name, ratios in found.items()}
    low = [name for name, (_, _, most) in bounds.items() if most < LEAST]
    open_ones = [name for name, (_, least, most) in bounds.items() if least < LEAST <= most]
    print(f"{len(found)} models with batches: {len(found) - len(low) - len(open_ones)} not below {LEAST}; {len(low)} below: {', '.join(low) or 'none'}; "
          f"{len(open_ones)} not decided: {', '.join(open_ones) or 'none'}; {len(left_out)} without batches; failed: {', '.join(failed) or 'none'}")
    if path:
        path.write_text(json.dumps({"ratios": found, "left_out": left_out}, indent=1), encoding="utf-8")
    return 1 if low or failed or not found else 0


if __name__ == "__main__":
    sys.exit(main())
