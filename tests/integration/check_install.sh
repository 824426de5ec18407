#!/usr/bin/env bash
# `cmake --install` into a folder: the binaries run from there, and systemd accepts the units.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
build=${MOTLEY_BIN:-build/release/bin}
build=$(dirname "$build")
suite=install
source tests/integration/checks.sh

install_tree() { cmake --install "$build" --prefix "$folder/usr" >/dev/null; }

# version_of FILE [LIBTORCH]: a rank of another libtorch is a motley-rank, too.
version_of() { [[ $("$folder/usr/bin/$1" --version) =~ ^"${1%-[0-9]*} "[0-9]+\.[0-9]+\.[0-9]+", commit "[^\ ]+", protocol motley.v1, libtorch "${2:-[0-9]} ]]; }

# Of libtorch and what it needs, nothing comes from outside the installed tree.
brings_libtorch() {
  local found
  # Without the addresses, in which "c10" stands now and then.
  found=$(ldd "$folder/usr/bin/$1" | sed 's/ (0x.*//' | grep -E 'torch|c10|cudart|cupti|not found')
  grep -q libtorch_cpu <<<"$found" && ! grep -vF "$folder/usr/" <<<"$found"
}

verify_units() {
  local output
  output=$(systemd-analyze verify --man=no "$folder/usr/lib/systemd/system/$1.service" 2>&1)
  # Machines without a booted systemd complain about other units; ours must not be named.
  ! grep -F "$1" <<<"$output"
}

# systemd rates the unit 0 (closed) to 10; the second argument is the most that is allowed.
exposure_is_low() {
  local line exposure
  line=$(systemd-analyze security --offline=true --no-pager "$folder/usr/lib/systemd/system/$1.service" 2>/dev/null | tail -n 1)
  exposure=$(grep -oE '[0-9]+\.[0-9]' <<<"$line" | head -n 1)
  awk -v e="${exposure:-10}" -v most="$2" 'BEGIN { exit !(e <= most) }' || { echo "$line"; return 1; }
}

unit_says() { grep -qxF "$2" "$folder/usr/lib/systemd/system/$1.service"; }

# With wheels that look as ./run setup --gpu leaves them, and with those of a machine without cards.
installs_cards() {
  local wheels=$folder/wheels cards=$folder/cards
  mkdir -p "$wheels/torch/lib" "$wheels/nvidia/cu13/lib" "$wheels/nvidia/cu13/include" "$wheels/nvidia/nccl/lib"
  touch "$wheels/torch/lib/"{libtorch_cuda.so,libtorch_cuda_linalg.so,libtorch_python.so} "$wheels/nvidia/cu13/include/cublas.h"
  for cublas in "" libcublas.so.13; do
    if [[ -n $cublas ]]; then touch "$wheels/nvidia/cu13/lib/$cublas" "$wheels/nvidia/nccl/lib/libnccl.so.2"; fi
    cmake -DMOTLEY_TORCH_DIR="$wheels" -DMOTLEY_RANK_LIBRARIES=lib/motley -DCMAKE_INSTALL_PREFIX="$cards" \
      -P deploy/cmake/install_cards.cmake || return
    if [[ -z $cublas && -e $cards ]]; then echo "installed without cuBLAS"; return 1; fi
  done
  [[ $(cd "$cards" && find . -type f | sort | tr '\n' ' ') == "./lib/motley/nvidia/cu13/lib/libcublas.so.13 \
./lib/motley/nvidia/nccl/lib/libnccl.so.2 ./lib/motley/torch/lib/libtorch_cuda.so " ]] ||
    { find "$cards" -type f; return 1; }
}

# With the installed configuration and the units' UMask; state and addresses as a machine without the service's users allows. The
# worker comes by the socket, as the installed files have it: there is no other door.
start_installed() {
  local state="$folder/state" coordinator worker code=1
  mkdir -p "$state/data"
  grep -qxE 'coordinator = "unix:/run/motley/workers.sock" .*' "$folder/usr/etc/motley/worker.toml" || { echo "worker.toml dials elsewhere"; return 1; }
  sed -e 's|^coordinator = .*|coordinator = "unix:'"$folder"'/workers.sock"|' -e 's/^metrics = .*/metrics = ""/' -e 's/^# name = .*/name = "installed"/' \
    "$folder/usr/etc/motley/worker.toml" >"$folder/worker.toml"
  (umask 0077; exec "$folder/usr/bin/motley-coordinator" --config "$folder/usr/etc/motley/coordinator.toml" --no-metrics \
    --socket "$folder/c.sock" --state-dir "$state/coordinator") >"$folder/coordinator.log" 2>&1 &
  coordinator=$!
  (umask 0027; exec "$folder/usr/bin/motley-worker" --config "$folder/worker.toml") >"$folder/worker.log" 2>&1 &
  worker=$!
  for _ in $(seq 100); do
    "$folder/usr/bin/motley" --coordinator "unix:$folder/c.sock" nodes 2>/dev/null | grep -q installed && code=0 && break
    sleep 0.2
  done
  [[ $(stat -c %a "$folder/c.sock") == 660 ]] || { echo "the socket's mode is $(stat -c %a "$folder/c.sock")"; code=1; }
  kill "$worker" "$coordinator"
  wait "$worker" "$coordinator"
  ((code == 0)) || tail -n 5 "$folder/coordinator.log" "$folder/worker.log"
  return $code
}

check "cmake --install" install_tree
for program in motley motley-coordinator motley-worker motley-rank; do
  check "$program --version" version_of "$program"
done
check "motley-rank brings its libtorch" brings_libtorch motley-rank
# A rank of another libtorch, where one was compiled, beside the first.
for second in "$build"-*/; do
  [[ -d $second/bin ]] || continue
  rank=motley-rank-${second#"$build"-} rank=${rank%/}
  check "cmake --install of $rank" cmake --install "$second" --prefix "$folder/usr"
  check "$rank --version" version_of "$rank" "${rank#motley-rank-}"
  check "$rank brings its libtorch" brings_libtorch "$rank"
  check "motley-rank keeps its libtorch beside $rank" brings_libtorch motley-rank
done
check "NVIDIA's libraries, where they were fetched" installs_cards
for file in usr/etc/motley/coordinator.toml usr/etc/motley/worker.toml usr/share/motley/prometheus/alerts.yml \
            usr/share/motley/grafana/dashboards/job.json usr/share/motley/examples/gpt-text.toml \
            usr/share/motley/proto/motley/v1/worker.proto usr/share/motley/config/worker.toml \
            usr/share/motley/data/__main__.py usr/share/motley/data/requirements.lock \
            usr/lib/sysusers.d/motley-worker.conf usr/share/doc/motley/LICENSE usr/share/doc/motley/NOTICE \
            usr/share/doc/motley/README.md usr/share/doc/motley/inside/design.md; do
  check "$file" test -s "$folder/$file"
done
check "motley data finds its program" bash -c "'$folder/usr/bin/motley' data show --python echo T | grep -qxF -- '-B $folder/usr/share/motley/data show -- T'"
check "links of the installed pages" python3 tests/integration/check_links.py --installed "$folder/usr"
for file in man/man1/motley.1 bash-completion/completions/motley zsh/site-functions/_motley fish/vendor_completions.d/motley.fish; do
  check "share/$file" grep -q undrain "$folder/usr/share/$file"
done
check "bash takes the completion and completes" bash -c "source '$folder/usr/share/bash-completion/completions/motley'
  COMP_WORDS=(motley nodes dr); COMP_CWORD=2; _motley; [[ \${COMPREPLY[*]} == drain ]]"
for shell in zsh fish; do
  if ! command -v "$shell" >/dev/null; then
    echo "skip install: $shell takes the completion: not on this machine"
  elif [[ $shell == zsh ]]; then
    check "zsh takes the completion" zsh -n "$folder/usr/share/zsh/site-functions/_motley"
  else
    check "fish takes the completion" fish --no-execute "$folder/usr/share/fish/vendor_completions.d/motley.fish"
  fi
done
if command -v man >/dev/null; then
  check "the man page has no errors" bash -c "[[ -z \$(man --warnings -l '$folder/usr/share/man/man1/motley.1' 2>&1 >/dev/null) ]]"
else
  echo "skip install: the man page: man is not on this machine"
fi
check "the worker's service outlives a rank that is killed for memory" unit_says motley-worker OOMPolicy=continue
for unit in motley-coordinator motley-worker; do
  check "$unit is started again without an end" unit_says "$unit" StartLimitIntervalSec=0
  check "$unit has a user of its own" unit_says "$unit" "User=$unit"
done
check "what the coordinator writes is its own" unit_says motley-coordinator UMask=0077
check "the group reads the checkpoints that the worker writes" unit_says motley-worker UMask=0027
check "the coordinator's service waits for the user database" \
  unit_says motley-coordinator "After=network-online.target nss-user-lookup.target"
check "the coordinator's memory is bounded" unit_says motley-coordinator MemoryMax=8G
check "motley-worker lets NCCL list the network interfaces" \
  unit_says motley-worker "RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX AF_NETLINK"
check "motley-worker waits for the module of nvidia-uvm" \
  unit_says motley-worker "Wants=network-online.target modprobe@nvidia_uvm.service"
check "coordinator and worker start from the installed tree" start_installed
if command -v systemd-analyze >/dev/null; then
  for unit in motley-coordinator:1.4 motley-worker:1.7; do
    check "systemd-analyze verify ${unit%:*}" verify_units "${unit%:*}"
    check "systemd-analyze security ${unit%:*}" exposure_is_low "${unit%:*}" "${unit#*:}"
  done
  python3 tests/integration/check_unit_filter.py "$folder/usr/lib/systemd/system/motley-worker.service" \
    "$folder/usr/bin/motley-worker" "$folder/worker.toml" || failed=1
else
  echo "skip install: systemd-analyze: not on this machine (apt-get install systemd)"
fi
exit $failed
