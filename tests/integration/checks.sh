# Sourced by the check scripts: `check NAME COMMAND...` prints "ok SUITE: NAME", or "FAIL SUITE: NAME: " and the output's end. With
# MOTLEY_TEST_FILTER only tests that have it in their name run.
# The script sets `suite` before, and ends with `exit $failed`. $folder is a temporary folder that goes with the script.
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failed=0

check() {
  local name=$1 output
  shift
  [[ "$suite: $name" == *"${MOTLEY_TEST_FILTER:-}"* ]] || return 0
  if output=$("$@" 2>&1); then
    echo "ok $suite: $name"
  else
    echo "FAIL $suite: $name: $(tr '\n' ' ' <<<"$output" | tail -c 600)"
    failed=1
  fi
}
