#!/usr/bin/env bash
# The entry ./run itself: wrong arguments, no root, a deep folder with a space, up and down twice.
set -uo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
suite=run
source "$root/tests/integration/checks.sh"
source "$root/tests/integration/run_doctor.sh"
source "$root/tests/integration/run_libtorch.sh"
status_is() { local wanted=$1; shift; "$@" >"$folder/output" 2>&1; [[ $? -eq $wanted ]] || { cat "$folder/output"; return 1; }; }
says() { grep -q -- "$1" "$folder/output"; }
prints() { local wanted=$1; shift; "$@" 2>&1 | grep -q -- "$wanted"; }

unknown_command() { status_is 64 "$root/run" fly && status_is 64 "$root/run" dmeo && says "did you mean 'demo'"; }
unknown_benchmark() { status_is 64 "$root/run" bench nothing; }

# Asked for help, a command does nothing else: the fakes would say so.
help_of_every_command() {
  local command
  for command in setup build demo up down test pack package bench format doctor clean; do
    PATH=$(fakes):$PATH status_is 0 "$root/run" "$command" --help && says "^usage: ./run $command" &&
      ! says "was called" || { echo "$command --help"; return 1; }
    status_is 0 "$root/run" help "$command" && says "^usage: ./run $command" || { echo "help $command"; return 1; }
  done
}

unknown_flag() {
  local command
  for command in setup build demo up down test pack package bench format doctor clean; do
    PATH=$(fakes):$PATH status_is 64 "$root/run" "$command" --helq && says "did you mean '--help'" &&
      ! says "was called" || { echo "$command --helq"; return 1; }
  done
  status_is 64 "$root/run" clean --cahce && says "did you mean '--cache'" &&
    status_is 64 "$root/run" down --delete && says "did you mean '--delete-checkpoints'" && status_is 64 "$root/run" demo --json &&
    status_is 64 "$root/run" demo --kill && says "--example" && status_is 64 "$root/run" demo --big && says "--example" &&
    status_is 64 "$root/run" demo --example baton --big && says "cluster.toml has no \[big\]" &&
    status_is 64 "$root/run" demo --example fine-tune --big && says "leave out --kill, --big and --only" &&
    status_is 64 "$root/run" demo --example fine-tune --kill && says "a node is killed in any case" &&
    status_is 64 "$root/run" demo --example fine-tone && says "did you mean 'fine-tune'"
}

# By name: one suite, in a clone of its own, as the results of a run are the clone's.
suites_by_name() {
  local clone=$folder/by-name
  clone_to "$clone"
  PATH=$(fakes):$PATH status_is 64 "$root/run" test faultz && says "no suite 'faultz'; did you mean 'faults'" && ! says "was called" &&
    status_is 0 "$clone/run" test includes && says "include rules: [1-9][0-9]* passed, 0 failed" && says "^[1-9][0-9]* passed, 0 failed" &&
    status_is 1 "$clone/run" test run-units "no test of this name" && says "has 'no test of this name' in its name"
}

# A tarball that cannot be made is refused before anything is compiled, with the command that fetches what it lacks.
pack_without_its_libraries() {
  local cache=$folder/empty-cache
  mkdir -p "$cache"
  PATH=$(fakes):$PATH MOTLEY_CACHE=$cache status_is 69 "$root/run" pack --gpu && says "'./run setup --gpu' fetches" && ! says "was called" &&
    PATH=$(fakes):$PATH MOTLEY_CACHE=$cache status_is 69 "$root/run" pack --libtorch 2.7.1 --gpu &&
    says "'./run setup --libtorch 2.7.1 --gpu' fetches" && ! says "was called" &&
    PATH=$(fakes):$PATH status_is 64 "$root/run" pack --libtorch 2.7 && says "the known versions are" && ! says "was called"
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

# A clone with its own cache folder, whose cmake and ninja compile nothing: build_in CLONE [COMMAND...].
build_in() {
  local clone=$1
  shift
  mkdir -p "$folder/compilers" "$folder/cache"
  ln -sfn "$MOTLEY_CACHE_HERE"/torch-* "$MOTLEY_CACHE_HERE"/cuda-headers-* "$folder/cache/"
  cat >"$folder/compilers/cmake" <<'TEXT'
#!/bin/sh
for argument; do last=$argument; done
mkdir -p "$last"
echo "CMAKE_HOME_DIRECTORY:INTERNAL=$PWD" >"$last/CMakeCache.txt"
for argument; do
  echo "$argument" | sed -n 's/^-D\([^=]*_DIR\)=/\1:PATH=/p; s/^-D\([^=]*_NAME\)=/\1:STRING=/p'
done >>"$last/CMakeCache.txt"
touch "$last/build.ninja"
TEXT
  # Its rank says which commit it is of: what stands in the clone's file "commit".
  cat >"$folder/compilers/ninja" <<'TEXT'
#!/bin/sh
printf "%s compiled\n" "$PWD" >>"$2/.ninja_log"
name=$(sed -n 's/^MOTLEY_RANK_NAME:STRING=//p' "$2/CMakeCache.txt")
mkdir -p "$2/bin"
printf '#!/bin/sh\necho "motley-rank 0.1.0, commit %s, protocol motley.v1, libtorch %s"\n' \
  "$(cat commit 2>/dev/null)" "${name#motley-rank-}" >"$2/bin/$name"
chmod +x "$2/bin/$name"
TEXT
  chmod +x "$folder/compilers/"*
  if [[ $# -eq 0 ]]; then set -- build; fi
  PATH=$folder/compilers:$PATH MOTLEY_CACHE=$folder/cache status_is 0 "$clone/run" "$@"
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

# The very first step of a fresh machine: nothing is remembered yet, and then nothing but this step.
first_step_of_a_fresh_machine() {
  mkdir -p "$folder/first-step"
  cat >"$folder/first-step/run" <<TEXT
set -euo pipefail
ROOT=$folder/first-step MOTLEY_CACHE=$folder/first-step/cache
cd "$root"
source deploy/run/common.sh; source deploy/run/durations.sh
long_step packages 60 "install packages" true
long_step packages 60 "install packages" true
echo "goes on"
TEXT
  status_is 0 bash "$folder/first-step/run" && says "a guess: the first time" && says "the last time [0-9][0-9]* s" && says "goes on"
}

copied_clone() {
  local clone=$folder/original
  clone_to "$clone"
  build_in "$clone" && cp -r "$clone" "$folder/copy" && build_in "$folder/copy" && says "was made for $clone" &&
    grep -qx "CMAKE_HOME_DIRECTORY:INTERNAL=$folder/copy" "$folder/copy/build/release/CMakeCache.txt" &&
    build_in "$folder/copy" && ! says "was made for" && mv "$clone" "$folder/moved" && ln -s "$folder/moved" "$clone" &&
    build_in "$clone" && ! says "was made for"
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

# As root they are installed; otherwise the command is said and the tests go on without them.
packages_of_the_tests() {
  local user
  mkdir -p "$folder/apt"
  printf '#!/bin/sh\nexit 1\n' >"$folder/apt/dpkg-query"
  printf '#!/bin/sh\necho "$*" >>"%s/apt/asked"\n' "$folder" >"$folder/apt/apt-get"
  cat >"$folder/test-packages" <<TEXT
set -euo pipefail
ROOT=$root MOTLEY_CACHE=$folder/apt-cache
cd "$root"
source deploy/run/common.sh; source deploy/run/tools.sh
setup_test_packages
echo "goes on"
TEXT
  for user in 1000 0; do
    printf '#!/bin/sh\necho %s\n' "$user" >"$folder/apt/id"
    chmod +x "$folder/apt/"{dpkg-query,apt-get,id}
    PATH=$folder/apt:$PATH status_is 0 bash "$folder/test-packages" && says "goes on" || return 1
    [[ $user -ne 0 ]] || break
    says "only root may install: apt-get update && apt-get install .* clang-16 zsh fish man-db systemd" && [[ ! -e $folder/apt/asked ]] || return 1
  done
  grep -q "install -y --no-install-recommends clang-16 zsh fish man-db systemd" "$folder/apt/asked"
}

deep_folder() {
  local deep="$folder/a folder/with a space/$(printf 'deep/%.0s' {1..25})clone"
  clone_to "$deep"
  status_is 0 "$deep/run" setup && status_is 0 "$deep/run" down && status_is 0 "$deep/run" clean
}

# make_checkpoint FOLDER: what a job leaves there.
make_checkpoint() { mkdir -p "$1/step-00000010-gen-2" && echo '{}' >"$1/step-00000010-gen-2/manifest.json"; }

down_keeps_checkpoints() {
  local kept=$root/build/cluster/checkpoints/some-job copy=$folder/copied-cluster
  status_is 0 "$root/run" up && make_checkpoint "$kept" && clone_to "$copy" && mkdir -p "$copy/build/cluster" &&
    cp "$root/build/cluster/cluster.json" "$copy/build/cluster/" && status_is 0 "$copy/run" down && says "is left alone" &&
    status_is 0 "$root/run" up && says "already up" &&
    status_is 0 "$root/run" down && says "ended 4 daemons" && says "$kept" &&
    [[ -e $kept/step-00000010-gen-2/manifest.json && $(ls "$root/build/cluster") == checkpoints ]] &&
    status_is 0 "$root/run" up && status_is 0 "$root/run" down --delete-checkpoints && [[ ! -e $root/build/cluster ]]
}

# Names of older builds, too. What lies beside it is the user's: a text in a root of the cluster, an export, notes.
down_deletes_what_jobs_wrote() {
  local work=$folder/work job=$folder/work/checkpoints/some-job
  down_there() { status_is 0 python3 "$root/deploy/demo/up.py" down --bin none --cache none --work "$work" "$@"; }
  make_checkpoint "$job" && cp -r "$job/step-00000010-gen-2" "$job/step-00000005" && mkdir -p "$job/.tmp-step-00000020-gen-3" \
      "$job/.tmp-step-00000020-epoch-1" "$job/tb" "$job/steps" "$job/exported" "$work/my texts/step-2" &&
    touch "$job/tb/events.out.tfevents.0000000002.motley" "$job/steps/generation-00000002.csv" "$job/.token-some-job" \
      "$job/exported/model.safetensors" "$work/my texts/step-2/manifest.json" &&
    echo "my own words" >"$work/my texts/text.txt" && ln -s "$work/my texts" "$job/step-00000030-gen-3" && down_there &&
    says "some-job" && [[ -e $job/step-00000010-gen-2 ]] && down_there --delete-checkpoints && says "deleted 4 checkpoints" &&
    says "stays: checkpoints, my texts" &&
    [[ $(cd "$work" && find . ! -type d | sort | tr '\n' ' ') == "./checkpoints/some-job/exported/model.safetensors \
./checkpoints/some-job/step-00000030-gen-3 ./my texts/step-2/manifest.json ./my texts/text.txt " ]] ||
    { find "$work"; return 1; }
  rm -r "$job" "$work/my texts" && make_checkpoint "$job" && down_there --delete-checkpoints && [[ ! -e $work ]]
}

# A cluster whose coordinator does not end: Ctrl-C is said in a line, and what is known of it stays for the next time.
down_can_be_interrupted() {
  local work=$folder/interrupted up=$root/deploy/demo/up.py pid rc=0
  mkdir -p "$work"
  (trap '' TERM; exec sleep 60) &
  pid=$!
  printf '{"folder": "%s", "job_file": "demo.toml", "processes": {"coordinator": {"pid": %s, "program": "%s"}}}' "$work" "$pid" \
    "$(realpath "$(command -v sleep)")" >"$work/cluster.json"
  # A shell's job in the background ignores it.
  timeout --preserve-status --signal INT 2 env --default-signal=INT \
    python3 "$up" down --bin none --cache none --work "$work" >"$folder/output" 2>&1 || rc=$?
  [[ -e $work/cluster.json ]] && says "down: interrupted; run it again" && ! says Traceback || { cat "$folder/output"; rc=1; }
  kill -KILL "$pid"
  [[ $rc -eq 130 ]] && status_is 0 python3 "$up" down --bin none --cache none --work "$work" && [[ ! -e $work ]]
}

# The shipped file at other addresses; promtool reads it where it is.
up_writes_what_prometheus_reads() {
  local written=$folder/prometheus.yml
  PYTHONPATH=$root/deploy/demo python3 -c 'import scraping
print(scraping.prometheus_config("127.0.0.1:1", ["127.0.0.1:2", "127.0.0.1:3"]), end="")' >"$written" &&
    grep -q '"127.0.0.1:1"' "$written" && grep -q '"127.0.0.1:2", "127.0.0.1:3"' "$written" && ! grep -q "7071\|7072" "$written" && grep -q "$root/deploy/prometheus/alerts.yml" "$written" || return 1
  if command -v promtool >/dev/null; then status_is 0 promtool check config "$written" && says "SUCCESS"; fi
}

# The folder of the downloads is a root of the demo's cluster: jobs write there, and users put their texts there.
clean_removes_its_own() {
  local clone=$folder/cleaned downloads=$folder/downloads kept=$folder/cleaned/build/cluster/checkpoints/some-job
  clone_to "$clone"
  make_checkpoint "$kept" && mkdir -p "$clone/build/release" "$downloads/torch-1" && make_checkpoint "$downloads/some-job" &&
    touch "$downloads/torch.lock" && echo "my own words" >"$downloads/text.txt" && export MOTLEY_CACHE=$downloads &&
    status_is 0 "$clone/run" clean --cache && says "$kept" && says "$downloads stays: some-job text.txt" &&
    says "$downloads/some-job/step-00000010-gen-2" &&
    [[ -e $kept/step-00000010-gen-2/manifest.json && ! -e $clone/build/release ]] &&
    [[ -e $downloads/some-job/step-00000010-gen-2/manifest.json && ! -e $downloads/torch-1 ]] &&
    status_is 0 "$clone/run" clean --cache --delete-checkpoints &&
    [[ ! -e $clone/build && $(ls -A "$downloads") == text.txt && $(cat "$downloads/text.txt") == "my own words" ]] &&
    rm "$downloads/text.txt" && status_is 0 "$clone/run" clean --cache && [[ ! -e $downloads ]]
}

# A folder of the user's is a root of jobs, named from where ./run is called; a cluster that runs without it is not taken for one.
up_and_down() {
  local data="$folder/my data" worker=$root/build/cluster/worker-a.toml
  mkdir -p "$data" && echo "my own words" >"$data/text.txt"
  status_is 66 "$root/run" up --data "$folder/absent" && says "absent is no folder" &&
    (cd "$folder" && status_is 0 "$root/run" up --data "my data") && says "your data     $data" && grep -q "$data" "$worker" &&
    MOTLEY_CACHE=${MOTLEY_CACHE:-$HOME/.cache/motley} HOME=$folder status_is 0 "$root/run" up --data "~/my data" && says "already up" &&
    status_is 64 "$root/run" up --data "$folder" && status_is 0 "$root/run" down --delete-checkpoints &&
    [[ $(cat "$data/text.txt") == "my own words" ]] || return 1
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
check "./run test NAME runs one suite, and names the nearest of an unknown one" suites_by_name
check "a tarball without its libraries is refused at once" pack_without_its_libraries
check "what a long step took is said the next time" durations_of_this_machine
check "a fresh machine goes on after its first long step" first_step_of_a_fresh_machine
check "a copied clone compiles its own sources" copied_clone
check "an unknown libtorch is a usage error that names the known ones" unknown_libtorch
check "a second libtorch has a rank beside the first" second_rank
check "a rank of other sources is named" old_second_rank
check "a second libtorch is fetched whole, and goes with the cache" fetched_wheels
check "doctor" doctor_is_satisfied
check "doctor names the other versions of libtorch" doctor_names_other_versions
check "doctor names NVIDIA cards and their driver" doctor_names_nvidia_cards
check "doctor names what cards need beside the driver" doctor_names_what_cards_need_beside
check "the worker and the scripts know the same builds" builds_are_the_scripts
check "all libtorches come with one NCCL" one_nccl_for_all
check "setup --gpu brings the libraries that are missing" setup_gpu_brings_libraries
check "setup --gpu compiles kernels beside each rank" setup_gpu_compiles_kernels
check "setup --gpu asks for what the wheel asks for" gpu_table_is_the_wheels
check "without root it prints the one command and stops" without_root
check "the packages of the tests are installed, or named" packages_of_the_tests
check "clean removes what ./run made and, asked, what jobs wrote" clean_removes_its_own
check "down --delete-checkpoints deletes what jobs wrote and nothing else" down_deletes_what_jobs_wrote
check "down says that it was interrupted, and can be run again" down_can_be_interrupted
check "up writes what Prometheus reads" up_writes_what_prometheus_reads
check "a deep folder with a space in its name" deep_folder
if [[ -e $root/build/cluster ]]; then
  echo "skip run: up and down: the demo cluster of this clone is in use, or its checkpoints are there"
else
  check "up and down, twice each" up_and_down
  check "up starts again what died, and nothing else" up_revives_the_dead
  check "down keeps checkpoints, and a copy's leaves the cluster alone" down_keeps_checkpoints
fi
exit $failed
