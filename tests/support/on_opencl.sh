#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# on_opencl.sh VM_RUN COMMAND...: runs the command if OpenCL has a device here; else says why not and exits with 77.
set -euo pipefail

vm_run=$1
shift
if ! devices=$("$vm_run" --devices 2>&1) || ! grep -q 'opencl:0' <<<"$devices"; then
  echo "skipped, OpenCL has no device here:"
  echo "$devices"
  exit 77
fi
exec "$@"
