#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Damages the files that TVM made, 10,000 times a kind: tests/tvm/drill.sh IMPORT_DRILL CASES. Relay VM executables,
# graphs, parameter files and what exported libraries carry.
set -euo pipefail
drill=$1
cases=$2
exec "$drill" 10000 "$cases"/relay-*/relay/*/code.ro "$cases"/relay-*/graph/*/graph.json \
  "$cases"/relay-*/graph/*/weights.params "$cases"/relay-*/onefile/*/lib.so
