#!/usr/bin/env python3
"""`motley data`: tokens as transformers has them, masks, packed rows, and what is said of bad input. Runs in the oracle's Python.

usage: check_data.py [--long]
"""
import os
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "integration"))
os.environ.update(HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false", TRANSFORMERS_VERBOSITY="error", PYTHONDONTWRITEBYTECODE="1")

import streams  # noqa: E402
from harness import Results  # noqa: E402
from tokenizers_made import NAMES  # noqa: E402


def main():
    is_long = "--long" in sys.argv[1:]
    results = Results("data-long" if is_long else "data")
    with tempfile.TemporaryDirectory() as top:
        for kind in NAMES:
            results.prepare(f"{kind}: text is the loop's", streams.equals_the_loop, top, kind, 5_000_000 if is_long else 200_000)
            results.run(f"{kind}: a long file", streams.long_file_equals_the_whole, top, kind, 2_000_000 if is_long else 300_000)
        for test in (streams.forms_of_text, streams.ends_of_documents, streams.keeps_the_small_files, streams.shows_a_stream):
            results.run(test.__name__.replace("_", " "), test, top)
    results.exit()


if __name__ == "__main__":
    main()
