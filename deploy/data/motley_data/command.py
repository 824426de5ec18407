"""The command line of the program. `motley data` gives it the same words; what they mean is said there."""
import argparse
import datetime
import json
import os
import signal
import sys

from . import environment, stopping
from .errors import SOFTWARE, USAGE, Refused, from_os
from .masks import ASSISTANT, TRAINS


class Parser(argparse.ArgumentParser):
    def error(self, message):
        raise Refused(USAGE, f"{message}; see 'motley help data'")


def whole(least):
    def parse(text):
        value = int(text)
        if value < least:
            raise ValueError
        return value

    parse.__name__ = f"number from {least} on"
    return parse


def argument(text):
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise ValueError
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


def day(text):
    return datetime.date.fromisoformat(text).isoformat()


def parser():
    top = Parser(prog="motley data", add_help=False)
    commands = top.add_subparsers(dest="command", required=True, parser_class=Parser)
    prepare = commands.add_parser("prepare", add_help=False)
    prepare.add_argument("inputs", nargs="+")
    prepare.add_argument("--tokenizer", required=True)
    prepare.add_argument("--out", required=True)
    prepare.add_argument("--seq-len", type=whole(2))
    prepare.add_argument("--eos", default="auto")
    prepare.add_argument("--no-pack", dest="pack", action="store_false")
    prepare.add_argument("--train", choices=TRAINS, default=ASSISTANT)
    prepare.add_argument("--chat-template")
    prepare.add_argument("--template-arg", type=argument, action="append", default=[], dest="template_args")
    prepare.add_argument("--day", type=day, default=datetime.date.today().isoformat())
    prepare.add_argument("--skip-bad", type=whole(0), default=0)
    prepare.add_argument("--processes", type=whole(1))
    prepare.add_argument("--column")
    show = commands.add_parser("show", add_help=False)
    show.add_argument("folder")
    show.add_argument("--row", type=int)
    show.add_argument("--tokens", action="store_true")
    setup = commands.add_parser("setup", add_help=False)
    setup.add_argument("--venv", required=True)
    setup.add_argument("--wheels")
    setup.add_argument("--parquet", action="store_true")
    for each in (prepare, show, setup):
        each.add_argument("--json", action="store_true")
    return top


def run(words):
    options = parser().parse_args(words)
    if options.command == "prepare":
        stopping.install()   # first: threads that libraries start have its mask then
    if options.command != "setup":
        environment.check()
    if options.command == "prepare":
        from . import prepare   # late: setup runs in a Python that has nothing yet
        options.template_arguments = dict(options.template_args)
        prepare.run(options)
    elif options.command == "show":
        from . import show
        show.run(options)
    else:
        from . import installing
        installing.run(options)


def main(words):
    """The exit code."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)   # a file that may not grow is an error that names it
    try:
        run(words)
        sys.stdout.flush()
        return 0
    except Refused as error:
        return complain(error)
    except BrokenPipeError:   # `motley data show | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        return complain(from_os(error, "a file"))
    except MemoryError:
        return complain(Refused(SOFTWARE, "there is not enough memory; --processes 1 needs the least"))


def complain(error):
    sys.stderr.write(f"motley: {error.message}\n")
    return error.code
