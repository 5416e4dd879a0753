#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# no_reader.sh PROGRAM: PROGRAM, which is not stripped, has neither the reader of files nor the verifier, and nothing that only they use.
set -euo pipefail

program=${1:?usage: no_reader.sh PROGRAM}
names='rewire::(ReadModule|VerifyModule|verify::|container::|ArchiveReader|MapFile|ReadFile|Hash64|DecodeZstd)|XXH|ZSTD'
found=$(nm --demangle "$program" | grep -E "$names" || true)
# Functions without a name of their own, because they are a part of others, are known by what they say.
for words in 'is malformed at its byte' 'this is not a Rewire executable' 'two entries of {} have the name' 'the code ends here without a ret'; do
  if grep -q --text --fixed-strings "$words" "$program"; then found+=$'\n'"the words '$words'"; fi
done
found+=$(readelf --dynamic "$program" | grep -E 'NEEDED.*(xxhash|zstd)' || true)
[[ -z ${found//[$'\n']/} ]] || { echo "no_reader.sh: $program has"$'\n'"$found" >&2; exit 1; }
