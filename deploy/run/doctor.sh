# ./run doctor: what is missing, each with the command that mends it. Changes nothing. Exit 1 if Motley could not be built.
source deploy/run/setup.sh
source deploy/run/doctor_cards.sh

BROKEN=0
good() { printf '  ok       %s\n' "$*"; }
missing() { printf '  MISSING  %s\n           mend: %s\n' "$1" "$2"; BROKEN=1; }
note() { printf '  note     %s\n' "$*"; }
optional() { printf '  without  %s\n           mend: %s\n' "$1" "$2"; }

doctor_build() {
  local packages
  if ! is_debian; then
    missing "Debian or Ubuntu (this machine has no apt)" "use Debian 12, or install the equivalents of: ${PACKAGES[*]}"
  else
    mapfile -t packages < <(missing_packages "${PACKAGES[@]}")
    if [[ ${#packages[@]} -eq 0 ]]; then
      good "all ${#PACKAGES[@]} Debian packages"
    elif [[ $(id -u) -eq 0 ]]; then
      missing "Debian packages: ${packages[*]}" "./run setup"
    else
      missing "Debian packages: ${packages[*]}" "sudo sh -c '$(apt_command "${packages[@]}")'"
    fi
  fi
  if have_torch; then good "libtorch $TORCH_VERSION in $TORCH_DIR"; else missing "libtorch $TORCH_VERSION" "./run setup"; fi
  doctor_other_torch
  if [[ -x $BIN_DIR/motley-rank ]]; then good "binaries in $BIN_DIR"; else optional "binaries (not built yet)" "./run build"; fi
}

# Only who has such cards needs one.
doctor_other_torch() {
  local "${TORCH_VARIABLES[@]}" version program
  for version in "${TORCH_VERSIONS[@]:1}"; do
    use_torch "$version"
    program=$BIN_DIR/$(rank_of "$version")
    if ! have_torch || [[ ! -x $program ]]; then
      optional "libtorch $version and its rank, for cards that libtorch $MAIN_TORCH has no kernels for ($TORCH_KERNELS)" \
        "./run setup --libtorch $version"
    elif of_other_sources "$version"; then
      optional "a rank of libtorch $version from the sources of motley-rank" "./run setup --libtorch $version"
    else
      good "libtorch $version in $TORCH_DIR, its rank in $program"
    fi
  done
}

doctor_machine() {
  local free_gib memory_gib folder=$MOTLEY_CACHE
  while [[ ! -d $folder ]]; do folder=$(dirname "$folder"); done
  free_gib=$(df --output=avail -k "$folder" | awk 'NR == 2 {print int($1 / 1048576)}')
  memory_gib=$(awk '/MemTotal/ {print int($2 / 1048576 + 0.5)}' /proc/meminfo)
  if [[ $free_gib -ge 4 ]] || have_torch; then good "$free_gib GiB free for downloads"; else
    missing "4 GiB free in $MOTLEY_CACHE (has $free_gib)" "free some, or set MOTLEY_CACHE to a folder on another disk"; fi
  if [[ $memory_gib -ge 4 ]]; then good "$memory_gib GiB of memory, $(nproc) cores"; else
    missing "4 GiB of memory for compiling (has $memory_gib)" "use a larger machine, or add swap"; fi
  if has_landlock; then good "Landlock: the kernel holds ranks to the roots of their worker"; else
    optional "Landlock: the kernel does not hold ranks to the roots of their worker (docs/use/security.md)" \
             "boot Linux 5.13 or newer with landlock among lsm="; fi
}

# landlock_create_ruleset that asks for the version; 444 on all architectures.
has_landlock() { python3 -c 'import ctypes; raise SystemExit(ctypes.CDLL(None).syscall(444, None, 0, 1) < 1)'; }

doctor_tests() {
  local program
  if [[ -x $ORACLE_DIR/bin/python ]]; then good "the Python oracle"; else
    optional "the Python oracle (PyTorch and transformers, 4.9 GB; ./run test compares with it)" "./run test"; fi
  if command -v go >/dev/null || command -v grpcurl >/dev/null || [[ -x $TOOLS_DIR/grpcurl ]]; then good "grpcurl, or Go to build it"; else
    optional "Go, so no grpcurl" "./run test"; fi
  if command -v promtool >/dev/null || [[ -x $TOOLS_DIR/promtool ]]; then good "promtool and prometheus"; else
    optional "promtool (./run test fetches it)" "./run test"; fi
  for program in clang++-16 zsh fish man systemd-analyze; do
    if command -v "$program" >/dev/null; then good "$program"; else
      optional "$program (./run test installs it as root, and leaves its checks out otherwise)" "./run test"; fi
  done
}

doctor() {
  echo "to build and run:"; doctor_build
  echo "this machine:"; doctor_machine; doctor_cards
  echo "for ./run test:"; doctor_tests
  return $BROKEN
}
