#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes what clients send, from which the fuzzers of the front ends begin: FOLDER/http, FOLDER/grpc and FOLDER/openai.

    front_end_seeds.py FOLDER
"""
import json
import pathlib
import struct
import sys

X = struct.pack("<4f", 1, -2, 3.5, 4)


def post(path, body, headers=""):
    body = body if isinstance(body, bytes) else json.dumps(body).encode()
    return f"POST {path} HTTP/1.1\r\nHost: a\r\n{headers}Content-Length: {len(body)}\r\n\r\n".encode() + body


def get(path, method="GET", version="1.1"):
    return f"{method} {path} HTTP/{version}\r\nHost: a\r\n\r\n".encode()


def with_bytes(body, tensors):
    text = json.dumps(body).encode()
    return text + tensors, f"Inference-Header-Content-Length: {len(text)}\r\n"


def http():
    x = {"name": "x", "shape": [1, 4], "datatype": "FP32"}
    infer = "/v2/models/double/infer"
    yield "json", post(infer, {"id": "1", "inputs": [dict(x, data=[[1, -2, 3.5, 4e0]])], "outputs": [{"name": "y"}],
                               "parameters": {"timeout": 5000000, "sequence_id": 7, "sequence_start": True}})
    body, headers = with_bytes({"inputs": [dict(x, parameters={"binary_data_size": 16})],
                                "parameters": {"binary_data_output": True}}, X)
    yield "bytes", post(infer, body, headers)
    yield "two", post("/v2/models/double/versions/1/infer", body, headers) * 2
    yield "texts", post(infer, {"inputs": [{"name": "x", "shape": [2], "datatype": "BYTES", "data": ["a", "\u00e9"]}]})
    yield "classes", post(infer, {"inputs": [dict(x, data=[1, 2, 3, 4])], "outputs": [{"name": "y", "parameters": {"classification": 2}}]})
    place = {"shared_memory_region": "r", "shared_memory_byte_size": 16, "shared_memory_offset": 0}
    yield "region", (post("/v2/systemsharedmemory/region/r/register", {"key": "/rewire_no_such_object", "offset": 0, "byte_size": 16})
                     + post(infer, {"inputs": [dict(x, parameters=place)]}) + post("/v2/systemsharedmemory/region/r/unregister", b""))
    yield "held", post("/v2/models/hold/infer", {"inputs": [dict(x, data=[1, 2, 3, 4])]})
    yield "fails", post("/v2/models/fail/infer", {"inputs": [dict(x, data=[1, 2, 3, 4])]})
    yield "expects", post(infer, body, headers + "Expect: 100-continue\r\nConnection: close\r\n")
    yield "generate", post("/v2/models/double/generate", {"x": [1, 2, 3, 4], "id": "7"})
    yield "stream", post("/v2/models/double/generate_stream", {"x": [[1, 2, 3, 4]], "parameters": {"timeout": 100}})
    prompt = {"model": "double", "prompt": [3, 1, 4], "max_tokens": 4, "temperature": 0.5, "top_p": 0.9, "seed": 1, "stop": ["a"],
              "stream": True, "stream_options": {"include_usage": True}}
    yield "completions", post("/v1/completions", prompt)
    yield "chat", post("/v1/chat/completions", {"model": "double", "messages": [{"role": "user", "content": "a"}]})
    asked = ["v2", "v2/health/ready", "v2/models/double", "v2/models/double/config", "v2/models/double/stats", "v2/models/stats",
             "v2/systemsharedmemory/status", "v2/cudasharedmemory/status", "v2/trace/setting", "v2/logging", "metrics", "v1/models"]
    yield "asks", b"".join(get("/" + path) for path in asked)
    yield "head", get("/v2/health/live", "HEAD") + get("/v2/models/d%6Fuble/ready", version="1.0")
    yield "repository", (post("/v2/repository/index", {"ready": True}) + post("/v2/repository/models/double/load", b"")
                         + post("/v2/repository/models/double/unload", b""))
    yield "settings", (post("/v2/trace/setting", {"trace_level": ["TIMESTAMPS"], "trace_rate": "100", "trace_count": None})
                       + post("/v2/logging", {"log_verbose_level": 1}))
    yield "chunked", b"POST /v2 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"


def frame(kind, flags, stream, payload):
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload


def headers(stream, method, end=False, **more):
    """Literal fields, which no table remembers."""
    fields = {":method": "POST", ":scheme": "http", ":path": f"/inference.GRPCInferenceService/{method}", ":authority": "a",
              "content-type": "application/grpc", "te": "trailers", **more}
    block = b"".join(b"\0" + bytes([len(name)]) + name.encode() + bytes([len(value)]) + value.encode() for name, value in fields.items())
    return frame(1, 5 if end else 4, stream, block)


def data(stream, message, end=True):
    return frame(0, 1 if end else 0, stream, b"\0" + len(message).to_bytes(4, "big") + message)


def field(number, value):
    """Of protobuf: a text or a message, or a number."""
    if isinstance(value, int):
        return bytes([number << 3]) + bytes([value])
    value = value if isinstance(value, bytes) else value.encode()
    return bytes([number << 3 | 2, len(value)]) + value


def infer(model, contents=None, parameters=b""):
    tensor = field(1, "x") + field(2, "FP32") + field(3, bytes([1, 4])) + (field(5, contents) if contents else b"")
    message = field(1, model) + field(3, "id") + parameters + field(5, tensor) + field(6, field(1, "y"))
    return message if contents else message + field(7, X)


def parameter(name, value):
    return field(4, field(1, name) + field(2, value))


def grpc():
    def call(method, message, stream=1, **more):
        return headers(stream, method, **more) + data(stream, message)

    yield "infer", call("ModelInfer", infer("double"))
    yield "contents", call("ModelInfer", infer("double", field(6, X)))
    yield "timeout", call("ModelInfer", infer("hold"), **{"grpc-timeout": "1n"})
    yield "parameters", call("ModelInfer", infer("double", parameters=parameter("sequence_id", field(2, 7)) + parameter("a", field(3, "b"))
                                                 + parameter("sequence_start", field(1, 1))))
    yield "stream", (headers(1, "ModelStreamInfer") + data(1, infer("double"), False) + data(1, infer("fail"), False)
                     + data(1, infer("hold")))
    yield "reset", call("ModelInfer", infer("hold")) + frame(3, 0, 1, (8).to_bytes(4, "big"))
    asked = ["ServerLive", "ServerReady", "ServerMetadata", "ModelReady", "ModelMetadata", "ModelConfig", "ModelStatistics", "RepositoryIndex",
             "SystemSharedMemoryStatus", "CudaSharedMemoryStatus", "TraceSetting", "LogSettings", "None"]
    yield "asks", b"".join(call(method, field(1, "double"), 2 * i + 1) for i, method in enumerate(asked))
    region = field(1, "r") + field(2, "/rewire_no_such_object") + field(4, 16)
    yield "regions", (call("SystemSharedMemoryRegister", region) + call("SystemSharedMemoryUnregister", field(1, "r"), 3)
                      + call("RepositoryModelLoad", field(2, "double"), 5))
    yield "settings", (call("TraceSetting", field(1, field(1, "trace_rate") + field(2, field(1, "5"))))
                       + call("LogSettings", field(1, field(1, "log_info") + field(2, field(1, 1))), 3))
    yield "frames", (frame(4, 0, 0, bytes([0, 4, 0, 1, 0, 0])) + frame(6, 0, 0, b"12345678") + frame(8, 0, 0, (100).to_bytes(4, "big"))
                     + headers(1, "ServerLive", end=True) + frame(7, 0, 0, bytes(8)))
    yield "pieces", headers(1, "ModelInfer") + frame(0, 0, 1, b"\0\0\0") + frame(0, 1, 1, b"\0\3abc")
    yield "compressed", headers(1, "ModelInfer", **{"grpc-encoding": "gzip"}) + frame(0, 1, 1, b"\1\0\0\0\3abc")


def openai():
    """A byte that chooses the path, and a body. How it ends decides in which pieces it is sent (fuzzed_connection.cc)."""
    def body(path, fields, end=" "):
        return bytes([path]) + (fields if isinstance(fields, str) else json.dumps(fields)).encode() + end.encode()

    completion, chat, whole, stream = range(4)
    model = {"model": "double"}
    yield "tokens", body(completion, {**model, "prompt": [3, 97, 255], "max_tokens": 8, "temperature": 0})
    yield "text", body(completion, {**model, "prompt": "abc", "max_tokens": 30, "seed": 7, "top_p": 0.5, "stop": "b"})
    yield "stops", body(completion, {**model, "prompt": "b", "max_tokens": 40, "stop": ["ab", "aab", "\u00e9", "dcba"], "stream": True})
    yield "usage", body(completion, {**model, "prompt": "\u00e9\U0001f600", "stream": True, "stream_options": {"include_usage": True,
                                                                                                        "include_obfuscation": False}}, "\n")
    yield "neutral", body(completion, {**model, "prompt": [1], "best_of": 1, "echo": False, "logit_bias": {}, "n": 1.0, "suffix": None,
                                       "frequency_penalty": 0, "user": "a", "logprobs": None, "max_tokens": None, "seed": None})
    yield "refused", body(completion, {**model, "prompt": [1], "n": 2})
    yield "several", body(completion, {**model, "prompt": [[1], [2]]})
    yield "nothing", body(completion, {**model, "prompt": "", "max_tokens": 0})
    yield "unknown", body(completion, {"model": "none", "prompt": [1]}, "\t")
    yield "escapes", body(completion, '{"model": "dou\\u0062le", "prompt": "\\ud83d\\ude00\\n\\t\\\\\\"", "max_tokens": 1e0}')
    yield "numbers", body(completion, '{"model": "double", "prompt": [9223372036854775807, -1, 18446744073709551615], "temperature": 1e-400}')
    messages = [{"role": "system", "content": "a"}, {"role": "user", "content": [{"type": "text", "text": "b"}, {"type": "text", "text": "c"}]},
                {"role": "assistant", "content": "d", "refusal": None}, {"role": "user", "content": "e", "name": "f"}]
    yield "chat", body(chat, {**model, "messages": messages[:3], "max_tokens": 9})
    yield "chat_stream", body(chat, {**model, "messages": messages[1:2], "max_completion_tokens": 20, "stream": True, "stop": ["c"],
                                     "stream_options": {"include_usage": True}})
    yield "named", body(chat, {**model, "messages": messages, "response_format": {"type": "text"}, "tools": []})
    yield "image", body(chat, {**model, "messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "a"}}]}]})
    yield "role", body(chat, {**model, "messages": [{"role": "tool", "content": "a", "tool_call_id": "b"}]})
    yield "generate", body(whole, {"text_input": "ab", "id": "1", "parameters": {"max_tokens": 12, "temperature": 0.1, "stop": ["d"]}})
    yield "generate_stream", body(stream, {"text_input": "ab", "max_tokens": 12})
    yield "generate_tensors", body(whole, {"x": [1, 2, 3, 4], "id": "7"})


def main():
    for folder, seeds in (("http", http()), ("grpc", grpc()), ("openai", openai())):
        path = pathlib.Path(sys.argv[1]) / folder
        path.mkdir(parents=True)
        for name, seed in seeds:
            (path / name).write_bytes(seed)


if __name__ == "__main__":
    main()
