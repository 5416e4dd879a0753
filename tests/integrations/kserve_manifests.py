#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks integrations/kserve: the manifests by KServe's own classes, and what they say by the process that they start.

    kserve_manifests.py BUILD/bin MODEL      MODEL is the .onnx file of example_model.py

Runs in the environment of requirements/kserve.txt.
"""

import asyncio
import contextlib
import copy
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import urllib.request

import kserve
import numpy
import yaml
from kubernetes import client as kubernetes

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from free_port import free_port  # noqa: E402

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "integrations/kserve"
KINDS = {"ServingRuntime": "V1alpha1ServingRuntime", "InferenceService": "V1beta1InferenceService"}
MODEL_FOLDER = "/mnt/models"


def class_of(name):
    return getattr(kserve.models, name, None) or getattr(kubernetes, name, None)


def built(kind, value, place):
    """Makes the object of a kind of KServe or Kubernetes from a part of a manifest. Raises ValueError for a wrong name or value."""
    if found := re.fullmatch(r"[lL]ist\[(.*)\]", kind):
        if not isinstance(value, list):
            raise ValueError(f"{place}: a list is expected, {value!r} is given")
        return [built(found[1], each, f"{place}[{number}]") for number, each in enumerate(value)]
    if found := re.fullmatch(r"(?:dict\(|Dict\[)str, (.*)[\])]", kind):
        return {name: built(found[1], each, f"{place}.{name}") for name, each in value.items()}
    if made := class_of(kind):
        names = {written: name for name, written in made.attribute_map.items()}
        if not isinstance(value, dict):
            raise ValueError(f"{place}: an object is expected, {value!r} is given")
        if unknown := set(value) - set(names):
            raise ValueError(f"{place}: {kind} has no {', '.join(sorted(unknown))}; it has {', '.join(sorted(names))}")
        parts = {names[written]: built(made.openapi_types[names[written]], each, f"{place}.{written}") for written, each in value.items()}
        return made(**parts)  # refuses what is missing
    expected = {"str": str, "bool": bool, "int": int}.get(kind, (str, int))  # the rest are quantities and ports
    if not isinstance(value, expected) or (kind == "int" and isinstance(value, bool)):
        raise ValueError(f"{place}: {kind} is expected, {value!r} is given")
    return value


def checked(manifest, place):
    return built(KINDS[manifest["kind"]], manifest, place)


def planted():
    """Mistakes that the check must find, each in a manifest that is right otherwise: (file, change, words)."""
    def container(manifest):
        return manifest["spec"]["containers"][0]

    yield "serving-runtime.yaml", lambda it: container(it).update(arguments=[]), "V1Container has no arguments"
    yield "serving-runtime.yaml", lambda it: container(it).update(args="--http"), "a list is expected"
    yield "serving-runtime.yaml", lambda it: container(it).pop("name"), "Field required"
    yield "serving-runtime.yaml", lambda it: it["spec"].pop("containers"), "must not be `None`"
    yield "serving-runtime.yaml", lambda it: container(it)["livenessProbe"].update(periodSeconds="10"), "int is expected"
    yield "inference-service.yaml", lambda it: it["spec"]["predictor"].update(minReplica=1), "V1beta1PredictorSpec has no minReplica"
    yield "inference-service.yaml", lambda it: it["spec"]["predictor"]["model"].pop("modelFormat"), "must not be `None`"


def test_manifests():
    manifests = {path.name: yaml.safe_load(path.read_text()) for path in sorted(FOLDER.glob("*.yaml"))}
    assert len(manifests) >= 3
    for name, manifest in manifests.items():
        checked(manifest, name)
    for name, change, words in planted():
        wrong = copy.deepcopy(manifests[name])
        change(wrong)
        try:
            checked(wrong, name)
        except ValueError as error:
            assert words in str(error), error
        else:
            raise AssertionError(f"not found in {name}: {words}")
    runtime = manifests["serving-runtime.yaml"]
    formats = {each["name"] for each in runtime["spec"]["supportedModelFormats"]}
    for name, manifest in manifests.items():
        if manifest["kind"] == "InferenceService":
            model = manifest["spec"]["predictor"]["model"]
            assert model["runtime"] == runtime["metadata"]["name"], name
            assert model["modelFormat"]["name"] in formats and model["protocolVersion"] in runtime["spec"]["protocolVersions"], name
    return manifests


@contextlib.contextmanager
def started(binaries, container, arguments, folder):
    """The process of a container, and the ports in place of those that the manifests name."""
    ports = {}

    def here(argument):
        if found := re.fullmatch(r"(--\w+)=0\.0\.0\.0:(\d+)", argument):
            ports[int(found[2])] = free_port()
            return f"{found[1]}=127.0.0.1:{ports[int(found[2])]}"
        return argument.replace(MODEL_FOLDER, str(folder))

    (name,) = container["command"]
    command = [binaries / name, *(here(each) for each in [*container["args"], *arguments])]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout.readline().startswith("serving HTTP at ")
        yield ports
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.wait()


def get(port, path):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=60) as answer:
        return answer.status, answer.read().decode()


def request_of(name):
    rows = numpy.arange(8, dtype=numpy.float32).reshape(2, 4) / 8
    given = kserve.InferInput("features", list(rows.shape), "FP32")
    given.set_data_from_numpy(rows, binary_data=False)
    return kserve.InferRequest(model_name=name, infer_inputs=[given])


def check_scores(response):
    (output,) = response.outputs
    scores = output.as_numpy()
    assert output.name == "scores" and scores.shape == (2, 3) and numpy.allclose(scores.sum(axis=1), 1, atol=1e-5), scores


async def ask_http(port, name):
    async with kserve.InferenceRESTClient(kserve.RESTConfig(protocol="v2")) as client:
        url = f"http://127.0.0.1:{port}"
        assert await client.is_server_live(url) and await client.is_server_ready(url) and await client.is_model_ready(url, name)
        check_scores(await client.infer(url, request_of(name), model_name=name))


async def ask_grpc(port, name):
    async with kserve.InferenceGRPCClient(f"127.0.0.1:{port}") as client:
        assert await client.is_server_live() and await client.is_server_ready() and await client.is_model_ready(name)
        check_scores(await client.infer(request_of(name)))


def test_processes(binaries, model, manifests):
    spec = manifests["serving-runtime.yaml"]["spec"]
    (container,) = spec["containers"]
    services = [each["spec"]["predictor"]["model"] for each in manifests.values() if each["kind"] == "InferenceService"]
    external = [metric["external"]["metric"]["query"] for each in manifests.values() if each["kind"] == "InferenceService"
                for metric in each["spec"]["predictor"].get("autoScaling", {}).get("metrics", [])]
    assert external
    with tempfile.TemporaryDirectory() as folder:
        name = "classifier"
        shutil.copy(model, f"{folder}/{name}.onnx")
        for service in services:
            with started(binaries, container, service.get("args", []), folder) as ports:
                for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
                    asked = container[probe]["httpGet"]
                    status, _ = get(ports[asked["port"]], asked["path"])
                    assert 200 <= status < 400, probe
                (port,) = service["ports"]
                ask = {"v2": ask_http, "grpc-v2": ask_grpc}[service["protocolVersion"]]
                asyncio.run(ask(ports[port["containerPort"]], name))
                metrics = spec["annotations"]
                _, text = get(ports[int(metrics["prometheus.io/port"])], metrics["prometheus.io/path"])
                for query in external:
                    wanted = re.fullmatch(r'sum\((\w+\{\w+="\w+")\}\)', query)
                    assert any(line.startswith(wanted[1]) for line in text.splitlines()), f"{query} is none of:\n{text}"


def main(binaries, model):
    manifests = test_manifests()
    print(f"kserve: {len(manifests)} manifests pass KServe's classes, which find {len(list(planted()))} planted mistakes")
    test_processes(pathlib.Path(binaries).resolve(), model, manifests)
    print("kserve: probes, metrics and the model answer as the manifests say")


if __name__ == "__main__":
    main(*sys.argv[1:])
