# SPDX-License-Identifier: Apache-2.0
"""A process of its own that draws and runs models, so that a crash or a model without end takes no other with it.

Reads requests as lines of JSON and answers with lines of JSON. Before each step it says which one, so that the last line of a
process that died names what killed it.
"""

import faulthandler
import json
import pathlib
import subprocess
import select
import sys
import tempfile
import time
import traceback

HERE = pathlib.Path(__file__).parent
# Packages that are not ours: a model that ends one of them says nothing.
ORACLES = ("onnx", "onnxruntime")


class Worker:
    """The process, started again when it ends."""

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
            ends = time.monotonic() + self._limit
            while True:
                line = self._line(ends)
                if line is None:
                    self.stop()
                    # nnsmith's solver may take long; nothing of Rewire has run then.
                    return rows + [["model", "undrawn", ""] if step == "drawing" else [step, "hung", f"after {self._limit} s"]]
                if not line:
                    break
                said = json.loads(line)
                if "step" in said:
                    step = said["step"]
                elif "row" in said:
                    rows.append(said["row"])
                else:
                    return rows
        except BrokenPipeError:
            pass
        status = self._process.wait()
        self.stop()
        where = self._where()
        if any(f"/{package}/" in where for package in ORACLES):
            return rows + [["model", "oracle crashed", where]]
        return rows + [[step, "crashed", f"exit status {status}, in {where}"]]

    def _where(self):
        """The innermost line of Python that the process was at when it died, as faulthandler writes it."""
        self._errors.seek(0)
        lines = self._errors.read().decode(errors="replace").splitlines()
        begins = [place for place, line in enumerate(lines) if "most recent call first" in line]
        return lines[begins[-1] + 1].strip() if begins and begins[-1] + 1 < len(lines) else "an unknown place"

    def _line(self, ends):
        """The next line; b"" at the end, None when time is up."""
        while b"\n" not in self._rest:
            ready, _, _ = select.select([self._process.stdout], [], [], max(0, ends - time.monotonic()))
            if not ready:
                return None
            more = self._process.stdout.read1(1 << 16)
            if not more:
                return b""
            self._rest += more
        line, self._rest = self._rest.split(b"\n", 1)
        return line


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


def _answer(request, say):
    import kept
    import trial

    say({"step": "drawing"})
    drawn = kept.read(request["folder"]) if "folder" in request else draw(request)
    if drawn is None:
        say({"row": ["model", "undrawn", ""]})
        return
    for row in trial.run(drawn, request["forms"], request.get("device", False), lambda step: say({"step": step})):
        say({"row": row})


def main():
    faulthandler.enable()
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
