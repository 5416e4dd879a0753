#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""vm-serve judged by k6, as an open loop: so many requests begin each second, whether those before are answered or not.

    k6_server.py BUILD [--rate 500] [--seconds 20] [--latency-ms 10]

The model is a tiny MLP, and tensors are sent as bytes over HTTP. The run is valid, as k6 says it, if 99 % of the requests are answered within
the latency, if every answer is right to the byte, and if k6 began all of them in time. The server has one core, and k6 another one, of
which it takes some 600 us for a request. Exits with 1 if k6 says that the run is not valid.

Runs in the environment of tests/bench/requirements/k6.txt.
"""
import argparse
import contextlib
import http.client
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tests/serve"))
from tiny_mlp import X, mlp  # noqa: E402
from vm_server import server  # noqa: E402

SCRIPT = """import http from 'k6/http';
import { check } from 'k6';

const body = open('body.bin', 'b');
const expected = new Uint8Array(open('expected.bin', 'b'));
const params = { headers: { 'Inference-Header-Content-Length': __ENV.HEADER }, responseType: 'binary' };

export const options = {
  scenarios: { open: { executor: 'constant-arrival-rate', rate: Number(__ENV.RATE), timeUnit: '1s', duration: __ENV.SECONDS + 's',
                       preAllocatedVUs: 64, maxVUs: 64 } },
  thresholds: { http_req_duration: ['p(99)<' + __ENV.LATENCY], checks: ['rate==1'], dropped_iterations: ['count==0'] },
  summaryTrendStats: ['med', 'p(99)', 'max'],
};

function isRight(response) {
  const length = Number(response.headers['Inference-Header-Content-Length']);
  const tensor = new Uint8Array(response.body).subarray(length);
  return response.status === 200 && tensor.length === expected.length && tensor.every((byte, i) => byte === expected[i]);
}

export default function () {
  check(http.post(__ENV.URL, body, params), { right: isRight });
}
"""


def write_request(address):
    """The body that k6 sends, and the tensor that it must get. Returns the size of the body's header."""
    header = {"inputs": [{"name": "x", "shape": [1, 64], "datatype": "FP32", "parameters": {"binary_data_size": X.nbytes}}],
              "parameters": {"binary_data_output": True}}
    text = json.dumps(header).encode()
    pathlib.Path("body.bin").write_bytes(text + X.tobytes())
    connection = http.client.HTTPConnection(address)
    connection.request("POST", "/v2/models/mlp/infer", text + X.tobytes(), {"Inference-Header-Content-Length": str(len(text))})
    response = connection.getresponse()
    data = response.read()
    assert response.status == 200, data
    pathlib.Path("expected.bin").write_bytes(data[int(response.headers["Inference-Header-Content-Length"]):])
    connection.close()
    return len(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--rate", type=int, default=500)
    parser.add_argument("--seconds", type=int, default=20)
    parser.add_argument("--latency-ms", type=float, default=10)
    options = parser.parse_args()
    binary = options.build.resolve() / "bin"
    k6 = pathlib.Path(sys.executable).parent / "k6"
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        pathlib.Path("mlp.asm").write_text(mlp(), encoding="utf-8")
        subprocess.run([binary / "vm-as", "mlp.asm"], check=True)
        pathlib.Path("script.js").write_text(SCRIPT, encoding="utf-8")
        cores = os.sched_getaffinity(0)
        os.sched_setaffinity(0, {min(cores)})  # the server's
        with server(binary, "mlp.rwx") as address:
            os.sched_setaffinity(0, {max(cores)})
            settings = {"HEADER": write_request(address), "RATE": options.rate, "SECONDS": options.seconds,
                        "LATENCY": options.latency_ms, "URL": f"http://{address}/v2/models/mlp/infer"}
            command = [k6, "run", "--quiet", "--no-usage-report", "--summary-export", "summary.json", "script.js"]
            environment = os.environ | {name: str(value) for name, value in settings.items()} | {"GOMAXPROCS": "1"}
            done = subprocess.run(command, env=environment, capture_output=True, text=True)
        if not pathlib.Path("summary.json").is_file():
            sys.exit(done.stdout + done.stderr)
        metrics = json.loads(pathlib.Path("summary.json").read_text(encoding="utf-8"))["metrics"]
    latency, dropped = metrics["http_req_duration"], metrics.get("dropped_iterations", {"count": 0})["count"]
    print(f"k6, constant arrival rate: {'VALID' if done.returncode == 0 else 'INVALID'} at {options.rate} requests/s: "
          f"{metrics['http_reqs']['count']} answered, {metrics['checks']['fails']} wrong, {dropped} not begun in time; median {latency['med'] * 1000:.0f} us, "
          f"99 % within {latency['p(99)'] * 1000:.0f} us of {options.latency_ms * 1000:.0f}")
    return 0 if done.returncode == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
