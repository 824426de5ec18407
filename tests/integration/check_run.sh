#!/usr/bin/env bash
# The entry ./run itself: wrong arguments, no root, a deep folder with a space, up and down twice.
set -uo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
suite=run
source "$root/tests/integration/checks.sh"
status_is() { local wanted=$1; shift; "$@" >"$folder/output" 2>&1; [[ $? -eq $wanted ]] || { cat "$folder/output"; return 1; }; }
says() { grep -q -- "$1" "$folder/output"; }
prints() { local wanted=$1; shift; "$@" 2>&1 | grep -q -- "$wanted"; }

unknown_command() { status_is 64 "$root/run" fly && status_is 64 "$root/run" dmeo && says "did you mean 'demo'"; }
unknown_benchmark() { status_is 64 "$root/run" bench nothing; }

# Asked for help, a command does nothing else: the fakes would say so.
help_of_every_command() {
  local command
  for command in setup build demo up down test bench format doctor clean; do
    PATH=$(fakes):$PATH status_is 0 "$root/run" "$command" --help && says "^usage: ./run $command" &&
      ! says "was called" || { echo "$command --help"; return 1; }
    status_is 0 "$root/run" help "$command" && says "^usage: ./run $command" || { echo "help $command"; return 1; }
  done
}

unknown_flag() {
  local command
  for command in setup build demo up down test bench format doctor clean; do
    PATH=$(fakes):$PATH status_is 64 "$root/run" "$command" --helq && says "did you mean '--help'" &&
      ! says "was called" || { echo "$command --helq"; return 1; }
  done
  status_is 64 "$root/run" clean --cahce && says "did you mean '--cache'" && status_is 64 "$root/run" demo --json &&
    status_is 64 "$root/run" demo --kill && says "--example"
}

# Programs that would change something, and only say that they were called.
fakes() {
  local program
  mkdir -p "$folder/fakes"
  for program in apt-get dpkg-query cmake ninja python3 ctest; do
    printf '#!/bin/sh\necho "%s was called" >&2; exit 99\n' "$program" >"$folder/fakes/$program"
    chmod +x "$folder/fakes/$program"
  done
  echo "$folder/fakes"
}

# A clone with its own cache folder, whose cmake and ninja compile nothing: build_in CLONE.
build_in() {
  local clone=$1
  mkdir -p "$folder/compilers" "$folder/cache"
  ln -sfn "$MOTLEY_CACHE_HERE"/torch-* "$folder/cache/"
  cat >"$folder/compilers/cmake" <<'TEXT'
#!/bin/sh
mkdir -p build/release
echo "CMAKE_HOME_DIRECTORY:INTERNAL=$PWD" >build/release/CMakeCache.txt
echo "MOTLEY_TORCH_DIR:PATH=${3#*=}" >>build/release/CMakeCache.txt
touch build/release/build.ninja
TEXT
  printf '#!/bin/sh\nprintf "%%s compiled\\n" "$PWD" >>"$2/.ninja_log"\n' >"$folder/compilers/ninja"
  chmod +x "$folder/compilers/"*
  PATH=$folder/compilers:$PATH MOTLEY_CACHE=$folder/cache status_is 0 "$clone/run" build
}
MOTLEY_CACHE_HERE=${MOTLEY_CACHE:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/motley}

clone_to() { mkdir -p "$1" && (cd "$root" && tar --exclude=./build --exclude=./.git -cf - .) | tar -xf - -C "$1"; }

durations_of_this_machine() {
  local clone=$folder/durations
  clone_to "$clone"
  build_in "$clone" && says "compile (about .*a guess: the first time on this machine)" &&
    build_in "$clone" && says "compile (what is not up to date)" && rm -r "$clone/build" &&
    build_in "$clone" && says "compile (the last time "
}

copied_clone() {
  local clone=$folder/original
  clone_to "$clone"
  build_in "$clone" && cp -r "$clone" "$folder/copy" && build_in "$folder/copy" && says "was made for $clone" &&
    grep -qx "CMAKE_HOME_DIRECTORY:INTERNAL=$folder/copy" "$folder/copy/build/release/CMakeCache.txt" &&
    build_in "$folder/copy" && ! says "was made for" && mv "$clone" "$folder/moved" && ln -s "$folder/moved" "$clone" &&
    build_in "$clone" && ! says "was made for"
}

doctor_is_satisfied() { status_is 0 "$root/run" doctor; }

# A driver's files as recorded on a machine with cards, and none.
doctor_names_nvidia_cards() {
  MOTLEY_NVIDIA_PROC=$root/tests/worker/daemon/nvidia status_is 0 "$root/run" doctor &&
    says "NVIDIA cards: 2 x NVIDIA A100-SXM4-40GB, Quadro RTX 8000; driver 535.129.03. This version cannot use them yet" &&
    MOTLEY_NVIDIA_PROC=$folder/nowhere status_is 0 "$root/run" doctor && ! says NVIDIA
}

# A dpkg-query that knows no package, a user that is not root: one command is printed, nothing is changed.
without_root() {
  mkdir -p "$folder/bin"
  printf '#!/bin/sh\nexit 1\n' >"$folder/bin/dpkg-query"
  printf '#!/bin/sh\necho 1000\n' >"$folder/bin/id"
  printf '#!/bin/sh\necho "apt-get was called" >&2; exit 99\n' >"$folder/bin/apt-get"
  chmod +x "$folder/bin/"*
  PATH=$folder/bin:$PATH status_is 77 "$root/run" setup && says "sudo sh -c 'apt-get update && apt-get install" &&
    ! says "apt-get was called"
}

deep_folder() {
  local deep="$folder/a folder/with a space/$(printf 'deep/%.0s' {1..25})clone"
  clone_to "$deep"
  status_is 0 "$deep/run" setup && status_is 0 "$deep/run" down && status_is 0 "$deep/run" clean
}

# make_checkpoint FOLDER: what a job leaves there.
make_checkpoint() { mkdir -p "$1/step-00000010" && echo '{}' >"$1/step-00000010/manifest.json"; }

down_keeps_checkpoints() {
  local kept=$root/build/cluster/checkpoints/some-job copy=$folder/copied-cluster
  status_is 0 "$root/run" up && make_checkpoint "$kept" && clone_to "$copy" && mkdir -p "$copy/build/cluster" &&
    cp "$root/build/cluster/cluster.json" "$copy/build/cluster/" && status_is 0 "$copy/run" down && says "is left alone" &&
    status_is 0 "$root/run" up && says "already up" &&
    status_is 0 "$root/run" down && says "ended 4 daemons" && says "$kept" &&
    [[ -e $kept/step-00000010/manifest.json && $(ls "$root/build/cluster") == checkpoints ]] &&
    status_is 0 "$root/run" up && status_is 0 "$root/run" down --delete-checkpoints && [[ ! -e $root/build/cluster ]]
}

clean_keeps_checkpoints() {
  local clone=$folder/cleaned kept=$folder/cleaned/build/cluster/checkpoints/some-job
  clone_to "$clone"
  make_checkpoint "$kept" && mkdir -p "$clone/build/release" && make_checkpoint "$folder/downloads/some-job" &&
    MOTLEY_CACHE=$folder/downloads status_is 0 "$clone/run" clean --cache && says "$kept" &&
    says "$folder/downloads stays" && [[ -e $kept/step-00000010/manifest.json && ! -e $clone/build/release ]] &&
    [[ -e $folder/downloads/some-job/step-00000010/manifest.json ]] &&
    MOTLEY_CACHE=$folder/downloads status_is 0 "$clone/run" clean --cache --delete-checkpoints &&
    [[ ! -e $clone/build && ! -e $folder/downloads ]]
}

up_and_down() {
  status_is 0 "$root/run" up && status_is 0 "$root/run" up && says "already up" && status_is 0 "$root/run" down &&
    status_is 0 "$root/run" down && says "no demo cluster"
}

# What the others do goes on: the coordinator keeps its process.
up_revives_the_dead() {
  local state=$root/build/cluster/cluster.json before
  status_is 0 "$root/run" up || return 1
  before=$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["processes"]["coordinator"]["pid"])' "$state")
  python3 -c 'import json, os, sys; os.kill(json.load(open(sys.argv[1]))["processes"]["worker-c"]["pid"], 9)' "$state"
  sleep 0.5
  status_is 0 "$root/run" up && says "started again: worker-c" &&
    [[ $before == "$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["processes"]["coordinator"]["pid"])' "$state")" ]] &&
    status_is 0 "$root/run" down && says "ended 4 daemons"
}

check "unknown command is a usage error" unknown_command
check "unknown benchmark is a usage error" unknown_benchmark
check "help lists the commands" prints "./run COMMAND" "$root/run" help
check "--help of every command, and nothing else" help_of_every_command
check "an unknown flag is a usage error that names the nearest" unknown_flag
check "what a long step took is said the next time" durations_of_this_machine
check "a copied clone compiles its own sources" copied_clone
check "doctor" doctor_is_satisfied
check "doctor names NVIDIA cards and their driver" doctor_names_nvidia_cards
check "without root it prints the one command and stops" without_root
check "clean keeps checkpoints" clean_keeps_checkpoints
check "a deep folder with a space in its name" deep_folder
if [[ -e $root/build/cluster ]]; then
  echo "skip run: up and down: the demo cluster of this clone is in use, or its checkpoints are there"
else
  check "up and down, twice each" up_and_down
  check "up starts again what died, and nothing else" up_revives_the_dead
  check "down keeps checkpoints, and a copy's leaves the cluster alone" down_keeps_checkpoints
fi
exit $failed
