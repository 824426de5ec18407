"""deploy/compose.yml and deploy/Dockerfile, read without Docker: what they name is there, and the programs know their flags."""
import os
import re
import shlex
import subprocess

from harness import BIN, ROOT, expect
from patience import patience

DEPLOY = os.path.join(ROOT, "deploy")


def compose():
    import yaml   # python3-yaml; who calls has looked
    with open(os.path.join(DEPLOY, "compose.yml"), encoding="utf-8") as file:
        return yaml.safe_load(file)


def why_not():
    try:
        import yaml   # noqa: F401
    except ImportError:
        return "python3-yaml is not on this machine"
    return None


def networks_of(service):
    return service.get("networks", {}) if isinstance(service.get("networks"), dict) else {}


def compose_file():
    described = compose()
    services = described["services"]
    expect(set(services) == {"coordinator", "worker-a", "worker-b", "prometheus", "grafana"}, f"services {sorted(services)}")
    for name, service in services.items():
        for volume in service["volumes"]:
            source = volume.split(":")[0]
            if source.startswith("."):
                expect(os.path.exists(os.path.join(DEPLOY, source)), f"{name} mounts {source}, which is not there")
            else:
                expect(source in described["volumes"], f"{name}: no volume {source}")
        for other in service.get("depends_on", []):
            expect(other in services, f"{name} depends on {other}")
        addresses = [network["ipv4_address"] for network in networks_of(service).values()]
        for said in re.findall(r"\d+\.\d+\.\d+\.\d+", service.get("command", "")):
            expect(said in addresses, f"{name} says {said} and has {addresses}")


def programs_take_their_flags():
    """Each command with a flag more that nobody knows: that one alone is what is wrong."""
    for name, service in compose()["services"].items():
        if "command" not in service:
            continue
        program, *words = shlex.split(service["command"])
        done = subprocess.run([os.path.join(BIN, program), *words, "--nothing-of-this-name"], capture_output=True, text=True, check=False,
                              timeout=patience(30))
        expect(done.returncode == 64 and "argument was not expected: --nothing-of-this-name\n" in done.stderr + done.stdout,
               f"{name}: status {done.returncode}: {done.stderr}")


def targets_are_the_services():
    import yaml
    with open(os.path.join(DEPLOY, "prometheus", "prometheus-compose.yml"), encoding="utf-8") as file:
        scraped = {target for job in yaml.safe_load(file)["scrape_configs"] for config in job["static_configs"] for target in config["targets"]}
    served = {match[1] for service in compose()["services"].values() for match in re.finditer(r"--metrics (\S+)", service.get("command", ""))}
    expect(scraped == served, f"scraped {sorted(scraped)}, served {sorted(served)}")


def image(packages):
    with open(os.path.join(DEPLOY, "Dockerfile"), encoding="utf-8") as file:
        text = file.read()
    wanted = set(re.findall(r"\bmotley-(?:coordinator|worker|client|libtorch\S*)\b", re.search(r"apt-get install [^\n]*", text)[0]))
    expect(wanted and wanted <= set(packages), f"the image installs {sorted(wanted)}; there are {sorted(packages)}")
    source = re.search(r"source=(\S+?),", text)[1]
    expect(os.path.isfile(os.path.join(ROOT, source, "Packages")), f"{source} is no source of packages")


def check(results, packages):
    if why_not():
        results.skip("the files for containers", why_not())
        return
    results.run("the compose file names what is there", compose_file)
    results.run("programs take the compose file's flags", programs_take_their_flags)
    results.run("Prometheus scrapes the compose file's services", targets_are_the_services)
    results.run("the image installs packages that are made", image, packages)
