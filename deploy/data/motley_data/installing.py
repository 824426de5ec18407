"""`motley data setup`: a Python of Motley's own with the pinned wheels, by way of pip and nothing else."""
import fcntl
import json
import os
import shutil
import subprocess
import sys

from .errors import IO, NO_INPUT, UNAVAILABLE, Refused

OLDEST, NEWEST = (3, 11), (3, 14)   # of which there are wheels in the list
LISTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LIST, PARQUET_LIST = "requirements.lock", "requirements-parquet.lock"
RETRIED = "WARNING: Retrying"
SHOWN = 5   # of the last lines that pip said


def has_parquet(venv):
    return os.path.exists(os.path.join(venv, "parquet"))


def run(options):
    """`options.venv`: the folder, whose name the client makes of the list."""
    if not OLDEST <= sys.version_info[:2] <= NEWEST:
        raise Refused(UNAVAILABLE, f"{sys.executable} is Python {sys.version_info[0]}.{sys.version_info[1]}, and the pinned wheels are for 3.11 to "
                                   "3.14; --python names another, and any Python with transformers 4.57 or newer needs no setup")
    if options.wheels is not None and not os.path.isdir(options.wheels):
        raise Refused(NO_INPUT, f"--wheels {options.wheels} is no folder")
    os.makedirs(os.path.dirname(options.venv), exist_ok=True)
    with open(options.venv + ".lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)   # a second setup waits and finds it done
        python = os.path.join(options.venv, "bin", "python")
        if not os.path.exists(python):
            _make(options)
        if options.parquet and not has_parquet(options.venv):
            _install(options.venv, PARQUET_LIST, options.wheels)
            with open(os.path.join(options.venv, "parquet"), "w", encoding="utf-8"):
                pass
    if options.json:
        print(json.dumps({"python": python, "parquet": has_parquet(options.venv)}, indent=2))
    else:
        print(f"{python} is ready" + (", with Parquet" if has_parquet(options.venv) else ""))


def _make(options):
    partial = options.venv + ".partial"
    shutil.rmtree(partial, ignore_errors=True)
    try:
        done = subprocess.run([sys.executable, "-m", "venv", partial], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        if done.returncode != 0:
            raise Refused(UNAVAILABLE, f"{sys.executable} -m venv failed: {_last(done.stdout)}; Debian and Ubuntu have it in the package "
                                       "python3-venv, which root installs by apt-get install python3-venv")
        _install(partial, LIST, options.wheels)
        try:
            os.rename(partial, options.venv)
        except OSError as error:
            raise Refused(IO, f"{options.venv}: {error.strerror}") from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _install(venv, name, wheels):
    listed = os.path.join(LISTS, name)
    command = [os.path.join(venv, "bin", "python"), "-m", "pip", "install", "--no-input", "--disable-pip-version-check", "--no-cache-dir",
               "--require-hashes", "--no-deps", "--only-binary", ":all:", "--no-compile", "--progress-bar", "off", "-r", listed]
    if wheels is not None:
        command += ["--no-index", "--find-links", wheels]
    environment = {key: value for key, value in os.environ.items() if key not in ("PIP_USER", "PIP_REQUIRE_VIRTUALENV", "PYTHONPATH")}
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment, check=False)
    if done.returncode != 0:
        fetch = f"pip download --require-hashes --no-deps --only-binary :all: -r {listed} -d FOLDER"
        raise Refused(UNAVAILABLE, f"pip did not install {name}: {_last(done.stdout)}; without a network, fetch the wheels elsewhere by "
                                   f"'{fetch}' and give --wheels FOLDER")


def _last(text):
    lines = [line for line in text.strip().splitlines() if line.strip()]
    tries = [line for line in lines if RETRIED in line]   # the same again and again; the last says why
    return " / ".join([*tries[-1:], *[line for line in lines if RETRIED not in line][-SHOWN:]])
