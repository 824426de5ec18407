#!/usr/bin/env bash
# The entry ./run itself: wrong arguments, no root, a deep folder with a space, up and down twice.
set -uo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
suite=run
source "$root/tests/integration/checks.sh"
status_is() { local wanted=$1; shift; "$@" >"$folder/output" 2>&1; [[ $? -eq $wanted ]] || { cat "$folder/output"; return 1; }; }
prints() { local wanted=$1; shift; "$@" 2>&1 | grep -q -- "$wanted"; }

unknown_command() { status_is 64 "$root/run" fly; }
unknown_benchmark() { status_is 64 "$root/run" bench nothing; }
doctor_is_satisfied() { status_is 0 "$root/run" doctor; }

# A dpkg-query that knows no package, a user that is not root: one command is printed, nothing is changed.
without_root() {
  mkdir -p "$folder/bin"
  printf '#!/bin/sh\nexit 1\n' >"$folder/bin/dpkg-query"
  printf '#!/bin/sh\necho 1000\n' >"$folder/bin/id"
  printf '#!/bin/sh\necho "apt-get was called" >&2; exit 99\n' >"$folder/bin/apt-get"
  chmod +x "$folder/bin/"*
  PATH=$folder/bin:$PATH status_is 77 "$root/run" setup && grep -q "sudo sh -c 'apt-get update && apt-get install" "$folder/output" &&
    ! grep -q "apt-get was called" "$folder/output"
}

deep_folder() {
  local deep="$folder/a folder/with a space/$(printf 'deep/%.0s' {1..25})clone"
  mkdir -p "$deep"
  (cd "$root" && tar --exclude=./build --exclude=./.git -cf - .) | tar -xf - -C "$deep"
  status_is 0 "$deep/run" setup && status_is 0 "$deep/run" down && status_is 0 "$deep/run" clean
}

up_and_down() {
  status_is 0 "$root/run" up && status_is 0 "$root/run" up && grep -q "already up" "$folder/output" && status_is 0 "$root/run" down &&
    status_is 0 "$root/run" down && grep -q "no demo cluster" "$folder/output"
}

check "unknown command is a usage error" unknown_command
check "unknown benchmark is a usage error" unknown_benchmark
check "help lists the commands" prints "./run COMMAND" "$root/run" help
check "doctor" doctor_is_satisfied
check "without root it prints the one command and stops" without_root
check "a deep folder with a space in its name" deep_folder
if [[ -e $root/build/cluster/cluster.json ]]; then
  echo "skip run: up and down: the demo cluster of this clone is in use"
else
  check "up and down, twice each" up_and_down
fi
exit $failed
