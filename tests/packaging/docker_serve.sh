#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# docker_serve.sh BUILD_DIR: does what the stage `serve` of packaging/Dockerfile and those below it say, in a fresh root of Debian in place of
# Docker's image, with the packages of BUILD_DIR (the preset `packages`) in place of those of the stage `build`. Then starts the command of the
# stage as its user, over a folder with a model, and asks the probes of integrations/kserve, the metrics and the model.
# Exits with 77 and says why where no root can be made.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
top=$(cd "$here/../.." && pwd)
build=$(cd "${1:?usage: docker_serve.sh BUILD_DIR}" && pwd)
skip() { echo "docker_serve.sh: SKIPPED: $*"; exit 77; }
fail() { echo "docker_serve.sh: $*" >&2; exit 1; }

described=$("$here/docker_stage.py" "$top/packaging/Dockerfile" serve)
eval "$described"
[[ $image =~ ^debian:([a-z]+)(-slim)?$ ]] || fail "the stage begins with $image, which is no Debian"
suite=${BASH_REMATCH[1]}

work=$(mktemp -d)
server=
clean() {
  [[ -z $server ]] || kill "$server" 2>/dev/null || true
  clean_root
}
. "$here/root.sh"
trap clean EXIT
make_root "$suite" || skip "$why_no_root"
answer_apt
in_root apt-get update >"$work/log" 2>&1 || { tail -n 5 "$work/log"; skip "apt finds no mirror"; }
copy() { fail "COPY is not known in the stage serve"; }
run() { in_root sh -c "cd $1 && $2" >"$work/log" 2>&1 || { tail -n 20 "$work/log" >&2; fail "RUN $2"; }; }

for bind in "${binds[@]}"; do
  IFS=: read -r stage source target <<<"$bind"
  [[ $stage:$source == build:/rewire/build/packages/packages ]] || fail "RUN binds $source of the stage $stage, which is not known here"
  mkdir -p "$root$target"
  cp "$build"/packages/*.deb "$root$target"
done
steps
for bind in "${binds[@]}"; do rm -r "${root:?}${bind##*:}"; done

# The container's own port may be in use on this machine.
free=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
[[ " ${command[*]} " == *":$port "* ]] || fail "the command ${command[*]} does not listen at port $port, which EXPOSE names"
mkdir "$root/models"
cp "$here/first_screen.onnx" "$root/models/model.onnx"
chmod 755 "$root" "$root/models"
exec_in_root_as "$user" "${command[@]/%:$port/:$free}" >"$work/out" 2>"$work/err" &
server=$!
"$here/ask_server.py" "http://127.0.0.1:$free" "$top/integrations/kserve/serving-runtime.yaml" model ||
  { cat "$work/out" "$work/err" >&2; fail "the server of the stage does not answer"; }
[[ $(stat -c %u:%g "/proc/$server") == "$user" ]] || fail "the server runs as $(stat -c %u:%g "/proc/$server"), not as $user"
kill -TERM "$server"
status=0
wait "$server" || status=$?
server=
((status == 0)) || { cat "$work/err" >&2; fail "the server ended with $status when it was told to stop"; }
echo "docker_serve.sh: the stage serve was made in a root of $suite, and its server answered as user $user"
