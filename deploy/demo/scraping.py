"""The configuration of a Prometheus for the demo's cluster: deploy/prometheus/prometheus.yml with the ports that it drew."""
import json
import os

SHIPPED = os.path.realpath(os.path.join(os.path.dirname(__file__), "..", "prometheus", "prometheus.yml"))
FIRST_LINE = "# Written by ./run up for its cluster: prometheus --config.file THIS. ./run down removes it.\n"


def prometheus_config(coordinator, workers, shipped=SHIPPED):
    """Its text. Raises ValueError where the shipped file does not have what is to be replaced."""
    with open(shipped, encoding="utf-8") as file:
        text = file.read()
    alerts = os.path.join(os.path.dirname(shipped), "alerts.yml")
    # What JSON writes is YAML.
    for here, there in (('["127.0.0.1:7071"]', json.dumps([coordinator])), ('["127.0.0.1:7072"]', json.dumps(workers)),
                        ("- alerts.yml\n", f"- {json.dumps(alerts)}\n")):
        if text.count(here) != 1:
            raise ValueError(f"{shipped} has {text.count(here)} times {here.strip()}, and not once")
        text = text.replace(here, there)
    return FIRST_LINE + text[text.index("\n") + 1:]
