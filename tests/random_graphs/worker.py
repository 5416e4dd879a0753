# SPDX-License-Identifier: Apache-2.0
"""A process of its own that draws and runs models, so that a crash or a model without end takes no other with it.

Reads requests as lines of JSON and answers with lines of JSON. Before each step it says which one, so that the last line of a
process that died names what killed it.
"""

import faulthandler
import json
import os
import pathlib
import subprocess
import select
import signal
import sys
import tempfile
import time
import traceback

HERE = pathlib.Path(__file__).parent
# Packages that are not ours: a model that ends one of them says nothing.
ORACLES = ("onnx", "onnxruntime")


# A process that waits for ever uses no CPU time, so it hangs after so many times the limit by the clock.
BY_CLOCK = 10
# CPU time until a process has imported what it needs and takes its first step.
STARTS_S = 60


class Worker:
    """The process, started again when it ends. A model hangs when it has taken `limit_s` of CPU time, which does not depend on
    what else the machine does, or BY_CLOCK times that by the clock."""

    def __init__(self, limit_s, models=2000):
        self._limit, self._models = limit_s, models
        self._process, self._done = None, 0

    def _start(self):
        self._errors = tempfile.TemporaryFile()
        self._process = subprocess.Popen([sys.executable, "-B", HERE / "worker.py"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                         stderr=self._errors)
        self._done, self._rest = 0, b""

    def stop(self):
        if self._process:
            self._process.kill()
            self._process.wait()
            self._process = None

    def ask(self, request):
        """The rows of an answer: (form, status, detail). Of a process that dies or takes too long: those until then, and
        `crashed` or `hung` for the step that it was at."""
        if self._process is None or self._done >= self._models:
            self.stop()
            self._start()
        self._done += 1
        rows, step = [], "start"
        try:
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()
            self._allow(max(self._limit, STARTS_S))
            while True:
                line = self._line()
                if line is None:
                    return rows + [self._hung(step)]
                if not line:
                    break
                said = json.loads(line)
                if "step" in said:
                    if step == "start":
                        self._allow(self._limit)
                    step = said["step"]
                elif "row" in said:
                    rows.append(said["row"])
                else:
                    return rows
        except BrokenPipeError:
            pass
        status = self._process.wait()
        self.stop()
        stack = self._stack()
        if _is_of_oracles(stack):
            return rows + [["model", "oracle crashed", stack[0]]]
        return rows + [[step, "crashed", f"exit status {status}, in {stack[0]}"]]

    def _allow(self, seconds):
        """The process may take so much more CPU time."""
        self._allowed = seconds
        self._ends, self._ends_cpu = time.monotonic() + BY_CLOCK * seconds, self._cpu() + seconds

    def _hung(self, step):
        """The row of a process that takes too long, and stops it."""
        self._process.send_signal(signal.SIGUSR1)
        time.sleep(1)  # until it has written where it is
        stack = self._stack()
        cpu = self._allowed - self._ends_cpu + self._cpu()
        self.stop()
        if step == "drawing":  # nnsmith's solver may take long; nothing of Rewire has run then
            return ["model", "undrawn", ""]
        if _is_of_oracles(stack):
            return ["model", "oracle hung", stack[0]]
        return [step, "hung", f"after {cpu:.0f} s of CPU time, in {stack[0]}"]

    def _stack(self):
        """The lines of Python that the process was at when it died or hung, the innermost first, as faulthandler writes them."""
        self._errors.seek(0)
        lines = self._errors.read().decode(errors="replace").splitlines()
        begins = [place for place, line in enumerate(lines) if "most recent call first" in line]
        stack = []
        for line in lines[begins[-1] + 1 :] if begins else []:
            if not line.startswith("  File"):
                break
            stack.append(line.strip())
        return stack or ["an unknown place"]

    def _cpu(self):
        """The seconds of CPU time that the process has used."""
        fields = pathlib.Path(f"/proc/{self._process.pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def _line(self):
        """The next line; b"" at the end, None when time is up."""
        while b"\n" not in self._rest:
            left = self._ends - time.monotonic(), self._ends_cpu - self._cpu()
            if min(left) <= 0:
                return None
            ready, _, _ = select.select([self._process.stdout], [], [], min(*left, 1 + left[1] / 4))
            if not ready:
                continue
            more = self._process.stdout.read1(1 << 16)
            if not more:
                return b""
            self._rest += more
        line, self._rest = self._rest.split(b"\n", 1)
        return line


def _is_of_oracles(stack):
    return any(f"/{package}/" in line for line in stack for package in ORACLES)


def draw(request):
    """The model that is asked for, or None where none came of its seed."""
    import evaluate
    import model

    try:
        if request["nnsmith"]:
            import nnsmith_models

            return nnsmith_models.draw(request["seed"])
        only = [tuple(each) for each in request["only"]] if request["only"] else None
        return model.draw(request["seed"], only, request["size"])
    except evaluate.Invalid:
        return None


def _spins():
    while True:
        pass


# What planted.py asks for, to see that it is noticed.
PLANTED = {"spins": _spins, "waits": signal.pause, "crashes": os.abort}


def _answer(request, say):
    import kept
    import trial

    if "planted" in request:
        say({"step": "planted"})
        PLANTED[request["planted"]]()
    say({"step": "drawing"})
    drawn = kept.read(request["folder"]) if "folder" in request else draw(request)
    if drawn is None:
        say({"row": ["model", "undrawn", ""]})
        return
    for row in trial.run(drawn, request["forms"], request.get("device", False), lambda step: say({"step": step})):
        say({"row": row})


def main():
    faulthandler.enable(all_threads=False)
    faulthandler.register(signal.SIGUSR1, all_threads=False)
    out = sys.stdout.buffer
    sys.stdout = sys.stderr

    def say(what):
        out.write(json.dumps(what).encode() + b"\n")
        out.flush()

    for line in sys.stdin.buffer:
        try:
            _answer(json.loads(line), say)
        except Exception:  # a fault of these scripts
            say({"row": ["script", "failed", traceback.format_exc()[-600:]]})
        say({"end": True})


if __name__ == "__main__":
    main()
