"""What the demo and the examples have in common as scripts: their arguments, a cluster that ends with them, the result as JSON."""
import argparse
import json
import os
import shutil
import signal
import sys

from cluster import Cluster, ClusterError


def parser_of(description):
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--bin", required=True, help="folder of the binaries")
    parser.add_argument("--cache", required=True, help="folder in which the text is kept")
    parser.add_argument("--work", required=True, help="new folder for logs, state and checkpoints; removed after success")
    parser.add_argument("--json", help="file for the result")
    parser.add_argument("--setup-seconds", type=float, default=0, help="what came before: packages, wheel, build")
    return parser


def run(arguments, body, print_result):
    """body(cluster) gives the result, which is printed and written. Returns the exit status."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with Cluster(arguments.bin, arguments.work, file_roots=[arguments.cache]) as cluster:
        try:
            result = body(cluster)
        except ClusterError as error:
            print(f"demo: {error}\ndemo: logs are in {arguments.work}", file=sys.stderr)
            return 70
        except KeyboardInterrupt:
            print("demo: interrupted", file=sys.stderr)
            return 130
    print_result(result)
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as file:
            json.dump(result, file, indent=2)
            file.write("\n")
        print(f"  written: {os.path.abspath(arguments.json)}")
    shutil.rmtree(arguments.work, ignore_errors=True)
    return 0
