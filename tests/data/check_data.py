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

import chats  # noqa: E402
import forms  # noqa: E402
import interrupted  # noqa: E402
import refusals  # noqa: E402
import streams  # noqa: E402
import templates  # noqa: E402
from harness import Results  # noqa: E402
from tokenizers_made import NAMES  # noqa: E402


def main():
    is_long = "--long" in sys.argv[1:]
    results = Results("data-long" if is_long else "data")
    with tempfile.TemporaryDirectory() as top:
        check_streams(results, top, is_long)
        check_chats(results, top, is_long)
        refusals.run_all(results, top)
        interrupted.run_all(results, top)
    results.exit()


def check_streams(results, top, is_long):
    for kind in NAMES:
        results.prepare(f"{kind}: text is the loop's", streams.equals_the_loop, top, kind, 5_000_000 if is_long else 200_000,
                        is_long or kind in ("gpt2", "fallback"))
        results.run(f"{kind}: a long file", streams.long_file_equals_the_whole, top, kind, 2_000_000 if is_long else 300_000)
    for test in (streams.forms_of_text, streams.ends_of_documents, streams.a_run_without_seams, streams.keeps_the_small_files, streams.shows_a_stream,
                 streams.what_loading_took_is_given_back):
        results.run(test.__name__.replace("_", " "), test, top)


def check_chats(results, top, is_long):
    tokenizer = chats.chat_tokenizer(top)
    for name in templates.TAGGED:
        results.run(f"masks of {name} are its tags'", chats.masks_are_the_tags, top, tokenizer, name, 400 if is_long else 40)
    results.run("each turn is the published text", chats.each_turn_is_the_published_text, top, tokenizer, 400 if is_long else 40)
    results.prepare("what --train asks for", chats.what_train_asks_for, top, tokenizer)
    results.prepare("rows are full and whole", chats.rows_are_full_and_whole, top, tokenizer, 4000 if is_long else 400)
    results.run("many documents are packed", chats.packs_many, 300_000 if is_long else 20_000)
    for test in (chats.long_chats_are_cut, chats.same_with_three_processes, forms.forms_are_the_same, forms.calls_are_the_same, forms.completions,
                 forms.what_is_left_out_is_counted, forms.thoughts_of_documents_of_their_own,
                 forms.answers_without_an_end_are_counted, forms.one_day_for_the_folder):
        results.run(test.__name__.replace("_", " "), test, top, tokenizer)
    results.run("shows rows", chats.shows_rows, top)


if __name__ == "__main__":
    main()
