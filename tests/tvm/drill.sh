#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Damages the files that TVM made: tests/tvm/drill.sh IMPORT_DRILL CASES [MUTANTS [SEED]]. Relay VM executables,
# graphs, parameter files, what exported libraries carry and the libraries themselves; MUTANTS of each kind, 10,000
# unless told.
set -euo pipefail
drill=$1
cases=$2
exec "$drill" "${3:-10000}" "${4:-1}" "$cases"/relay-*/relay/*/code.ro "$cases"/relay-*/graph/*/graph.json \
  "$cases"/relay-*/graph/*/weights.params "$cases"/relay-*/onefile/*/lib.so
