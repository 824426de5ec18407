# Shared by the parts of ./run: where things are, locks, and the progress line. Sourced with the clone's root as ROOT.

EX_USAGE=64 EX_UNAVAILABLE=69 EX_NOPERM=77

# Python leaves no compiled files in the clone.
export PYTHONDONTWRITEBYTECODE=1

# Downloads outlive the clone and are shared by all clones of one user.
MOTLEY_CACHE=${MOTLEY_CACHE:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/motley}
export MOTLEY_CACHE
TOOLS_DIR=$MOTLEY_CACHE/tools
BIN_DIR=$ROOT/build/release/bin
LOG_DIR=$ROOT/build/logs
STARTED=$SECONDS

PRINTER_PID=
stop_printer() {
  if [[ -n $PRINTER_PID ]]; then
    kill "$PRINTER_PID" 2>/dev/null || true
    wait "$PRINTER_PID" 2>/dev/null || true
    PRINTER_PID=
  fi
}
trap stop_printer EXIT

say() { printf '%5d s  %s\n' $((SECONDS - STARTED)) "$*"; }
fail() { printf 'run: %s\n' "$*" >&2; }
source deploy/run/torch_versions.sh

ORACLE_DIR=$MOTLEY_CACHE/oracle-torch-$MAIN_TORCH-transformers-5.23.0

# Prints how long `what` has been going on, with the log's last line: every second on a terminal, else every 30 s.
progress_printer() {
  local what=$1 log=$2 begin=$SECONDS last
  # The sleep must not outlive this printer: it holds the locks that were open when it began.
  trap 'kill $! 2>/dev/null; exit 0' TERM
  while true; do
    if [[ -t 1 ]]; then
      sleep 1 & wait $!
      last=$(tail -c 400 "$log" 2>/dev/null | tr '\r' '\n' | grep -av '^[[:space:]]*$' | tail -n 1 | cut -c 1-60 || true)
      printf '\r\033[K%5d s  %s ... %d s  %s' $((SECONDS - STARTED)) "$what" $((SECONDS - begin)) "$last"
    else
      sleep 30 & wait $!
      last=$(tail -c 400 "$log" 2>/dev/null | tr '\r' '\n' | grep -av '^[[:space:]]*$' | tail -n 1 | cut -c 1-60 || true)
      say "$what ... $((SECONDS - begin)) s  $last"
    fi
  done
}

# step WHAT COMMAND...: runs the command with its output in a log; one line on success, the log's tail on failure.
# A function given as command must return on its own errors: `set -e` is off where a status is asked for.
step() {
  local what=$1 begin=$SECONDS log rc=0
  shift
  mkdir -p "$LOG_DIR"
  log=$(mktemp "$LOG_DIR/$(date +%H%M%S)-$(tr -cs 'a-zA-Z0-9' '-' <<<"$what" | cut -c 1-40)XXXX.log")
  # Bash has words of its own for a printer that is ended before its first wait.
  progress_printer "$what" "$log" 2>/dev/null &
  PRINTER_PID=$!
  "$@" >"$log" 2>&1 </dev/null || rc=$?
  stop_printer
  [[ -t 1 ]] && printf '\r\033[K'
  if [[ $rc -ne 0 ]]; then
    fail "failed after $((SECONDS - begin)) s: $what. The end of $log:"
    tail -n 40 "$log" | sed 's/^/    /' >&2
    return "$rc"
  fi
  say "$what ($((SECONDS - begin)) s)"
}

# with_lock FILE COMMAND...: one at a time, over all processes that use the same file.
with_lock() {
  local file=$1 rc=0
  shift
  mkdir -p "$(dirname "$file")"
  exec {lock_fd}>"$file"
  if ! flock --nonblock "$lock_fd"; then
    say "another ./run is at work here; waiting for it"
    flock "$lock_fd"
  fi
  "$@" || rc=$?
  exec {lock_fd}>&-
  return "$rc"
}

# Compiling one file that sees torch takes up to 2 GB.
parallel_jobs() {
  local cpus memory_gib jobs
  cpus=$(nproc)
  memory_gib=$(awk '/MemAvailable/ {print int($2 / 1048576)}' /proc/meminfo)
  jobs=$((memory_gib / 2 < cpus ? memory_gib / 2 : cpus))
  echo $((jobs < 1 ? 1 : jobs))
}
