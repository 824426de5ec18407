#!/usr/bin/env bash
# The Prometheus files by promtool: rules parse, each alert fires, an alert without a test is an error.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
suite=promtool
source ./checks.sh
cd ../../deploy/prometheus

every_alert_has_a_test() {
  local alert
  for alert in $(sed -n 's/^ *- alert: //p' alerts.yml); do
    # Once in the silent case, and at least once with what it says when it fires.
    grep -A1 -E "alertname: $alert\$" alerts_test.yml | grep -q exp_alerts || { echo "no test fires $alert"; return 1; }
  done
}

check "check rules" promtool check rules alerts.yml
check "check config" promtool check config prometheus.yml
check "check config of the containers" promtool check config prometheus-compose.yml
check "test rules" promtool test rules alerts_test.yml
check "every alert has a test that fires it" every_alert_has_a_test
exit $failed
