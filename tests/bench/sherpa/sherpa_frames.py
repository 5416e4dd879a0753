# SPDX-License-Identifier: Apache-2.0
"""The time of a frame in the voice activity detection of sherpa-onnx, on its own library of ONNX Runtime and on Rewire's.

Both processes run the same program (frames.c) and live side by side. They go through the sound in turns, so that load of the
machine meets both.
"""
import os
import pathlib
import statistics
import subprocess

HERE = pathlib.Path(__file__).resolve().parent
TURNS = 40


class Detector:
    """A process that goes through the sound once for each call."""

    def __init__(self, program, model, sound, preloaded):
        environment = {key: value for key, value in os.environ.items() if key not in ("LD_PRELOAD", "REWIRE_MODEL_CACHE")}
        if preloaded is not None:
            environment["LD_PRELOAD"] = str(preloaded)
        self.process = subprocess.Popen([program, model, sound], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)
        self.pid = self.process.pid

    def __call__(self):
        """(microseconds of a frame, frames with speech)"""
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        time, speech = self.process.stdout.readline().split()
        return float(time), int(speech)

    def mapped(self):
        return pathlib.Path(f"/proc/{self.pid}/maps").read_text(encoding="utf-8")

    def end(self):
        self.process.stdin.close()
        self.process.wait(timeout=60)


def compile_program(package, folder):
    """The compiled program, by the header and the library of the package's folder."""
    program = folder / "sherpa_frames"
    subprocess.run(["cc", "-std=c11", "-D_POSIX_C_SOURCE=200809L", "-O2", HERE / "frames.c", "-I", package / "include", "-L", package / "lib",
                    "-lsherpa-onnx-c-api", f"-Wl,-rpath,{package / 'lib'}", "-Wl,--allow-shlib-undefined", "-o", program], check=True)
    return program


def measure(program, model, sound, ours):
    """{"theirs": microseconds, "ours": microseconds, "ratio": median of the turns' quotients}. Raises RuntimeError if the two do not
    tell the same, or the wrong library answered."""
    detectors = [Detector(program, model, sound, preloaded) for preloaded in (None, ours)]
    try:
        first = [detector() for detector in detectors]  # which also warms up
        for detector, is_ours in zip(detectors, (False, True)):
            if ("librewire_kernels_cpu" in detector.mapped()) != is_ours:
                raise RuntimeError(f"{model}: the wrong library answered, expected {'Rewire' if is_ours else 'ONNX Runtime'}'s")
        if first[0][1] != first[1][1]:
            raise RuntimeError(f"{model}: {first[0][1]} frames with speech on ONNX Runtime's library, {first[1][1]} on Rewire's")
        turns = [[detector()[0] for detector in detectors] for _ in range(TURNS)]
    finally:
        for detector in detectors:
            detector.end()
    theirs, ours_times = zip(*turns)
    return {"theirs": statistics.median(theirs), "ours": statistics.median(ours_times),
            "ratio": statistics.median(mine / other for other, mine in turns)}
