#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# serve.sh BUILD_DIR: what `make demo-serve` shows. Serves digits.rwx, asks for digits with curl, and ends the server.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
build=$(cd "${1:?usage: serve.sh BUILD_DIR}" && pwd)
work=$(mktemp -d)
server=
trap 'test -z "$server" || kill "$server" 2>/dev/null || true; rm -rf "$work"' EXIT

# An image of the test set, as the body of a request: its elements are behind the header of the .npy file.
python3 - "$here" "$work" <<'END'
import json
import pathlib
import struct
import sys
data = (pathlib.Path(sys.argv[1]) / "images.npy").read_bytes()
begin = 10 + struct.unpack("<H", data[8:10])[0]
image = list(struct.unpack("<64f", data[begin:begin + 256]))
tensor = {"name": "image", "shape": [1, 1, 8, 8], "datatype": "FP32", "data": image}
pathlib.Path(sys.argv[2], "request.json").write_text(json.dumps({"inputs": [tensor]}))
END

echo "\$ vm-serve digits.rwx --max-batch 32 &"
"$build/bin/vm-serve" "$build/examples/digits/digits.rwx" --max-batch 32 --http 127.0.0.1:0 >"$work/log" &
server=$!
for _ in $(seq 100); do
  grep -q "^serving" "$work/log" && break
  sleep 0.1
done
cat "$work/log"
url=http://$(sed 's/.* //' "$work/log")/v2
show() { echo "\$ curl -s $*"; curl -sS --fail-with-body "$@"; echo; }
show "$url/models/digits"
show "$url/models/digits/infer" --data-binary "@$work/request.json"
show "$url/models/digits/stats"
kill -TERM "$server"
wait "$server"
server=
echo "The server has ended. docs/serving.md says how to serve a model of your own."
