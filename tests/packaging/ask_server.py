#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Asks a vm-serve what Kubernetes and a client ask it.

    ask_server.py URL RUNTIME MODEL

The probes and the path of the metrics are those of RUNTIME, a ServingRuntime of KServe. MODEL, which is first_screen.onnx, is run over the
Open Inference Protocol.
"""

import json
import math
import re
import sys
import time
import urllib.error
import urllib.request

START_SECONDS = 120  # a model is compiled before the server listens


def answer(url, body=None):
    data = None if body is None else json.dumps(body).encode()
    with urllib.request.urlopen(urllib.request.Request(url, data, {"Content-Type": "application/json"}), timeout=60) as given:
        return given.read().decode()


def wait_for(url):
    end = time.monotonic() + START_SECONDS
    while True:
        try:
            return answer(url)
        except (urllib.error.URLError, ConnectionError):
            if time.monotonic() > end:
                raise
            time.sleep(0.5)


def main(server, runtime, model):
    with open(runtime, encoding="utf-8") as file:
        text = file.read()
    probes = re.findall(r"(\w+Probe):\s+httpGet: \{path: ([^,]+),", text)
    assert {name for name, _ in probes} == {"startupProbe", "livenessProbe", "readinessProbe"}, probes
    for _, path in probes:  # the first one waits for the start
        wait_for(server + path)
    (metrics,) = re.findall(r"prometheus.io/path: (\S+)", text)
    signature = json.loads(answer(f"{server}/v2/models/{model}"))
    inputs = []
    for each in signature["inputs"]:
        shape = [1 if size < 0 else size for size in each["shape"]]
        inputs.append({"name": each["name"], "datatype": each["datatype"], "shape": shape, "data": [0.5] * math.prod(shape)})
    outputs = json.loads(answer(f"{server}/v2/models/{model}/infer", {"inputs": inputs}))["outputs"]
    assert outputs and all(math.isfinite(value) for output in outputs for value in output["data"]), outputs
    assert re.search(rf'model="{model}"', answer(server + metrics)), "the metrics do not name the model"
    print(f"ask_server.py: {len(probes)} probes, the metrics and the model answer")


if __name__ == "__main__":
    main(*sys.argv[1:])
