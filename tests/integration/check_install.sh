#!/usr/bin/env bash
# `cmake --install` into a folder: the binaries run from there, and systemd accepts the units.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
build=${MOTLEY_BIN:-build/release/bin}
build=$(dirname "$build")
suite=install
source tests/integration/checks.sh

install_tree() { cmake --install "$build" --prefix "$folder/usr" >/dev/null; }

version_of() { [[ $("$folder/usr/bin/$1" --version) =~ [0-9]+\.[0-9]+\.[0-9]+ ]]; }

verify_units() {
  local output
  output=$(systemd-analyze verify --man=no "$folder/usr/lib/systemd/system/$1.service" 2>&1)
  # Machines without a booted systemd complain about other units; ours must not be named.
  ! grep -F "$1" <<<"$output"
}

exposure_is_low() {
  local line
  line=$(systemd-analyze security --offline=true "$folder/usr/lib/systemd/system/$1.service" 2>/dev/null | tail -n 1)
  grep -qE 'OK|SAFE|MEDIUM' <<<"$line" || { echo "$line"; return 1; }
}

check "cmake --install" install_tree
for program in motley motley-coordinator motley-worker motley-rank; do
  check "$program --version" version_of "$program"
done
for file in usr/etc/motley/coordinator.toml usr/etc/motley/worker.toml usr/share/motley/prometheus/alerts.yml \
            usr/share/motley/grafana/dashboards/job.json usr/share/motley/examples/gpt-text.toml; do
  check "$file" test -s "$folder/$file"
done
if command -v systemd-analyze >/dev/null; then
  for unit in motley-coordinator motley-worker; do
    check "systemd-analyze verify $unit" verify_units "$unit"
    check "systemd-analyze security $unit" exposure_is_low "$unit"
  done
else
  echo "skip install: systemd-analyze: not on this machine (apt-get install systemd)"
fi
exit $failed
