"""Text: what the folder holds is what a plain loop over AutoTokenizer makes, id by id."""
import gzip
import json
import os
import subprocess
import sys

import numpy
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import AutoTokenizer, PreTrainedTokenizerFast

from harness import expect
from token_folder import PROGRAM, TokenFolder, prepare, run, start, write_lines
from tokenizers_made import END, code, english, hostile, make


def corpus(size, seed=0):
    """Documents of English, code and hostile lines."""
    text = english(size // 2, seed + 1)
    documents = [text[i:i + 700] for i in range(0, len(text), 700)]
    documents += hostile(size // 400, seed + 2) + code(size // 2000, seed + 3)
    return [document for document in documents if document]


def loop(tokenizer, documents, end=END):
    auto = AutoTokenizer.from_pretrained(tokenizer)
    last = [auto.convert_tokens_to_ids(end)] if end else []
    return [auto(document).input_ids + last for document in documents]


def expect_same(folder, wanted):
    tokens = [token for document in wanted for token in document]
    expect(len(folder.tokens) == len(tokens), f"{len(folder.tokens)} tokens, not {len(tokens)}")
    differ = numpy.nonzero(folder.tokens != numpy.asarray(tokens))[0]
    expect(not len(differ), f"token {differ[:1]} and {len(differ)} in all")
    expect(folder.lengths.tolist() == [len(document) for document in wanted], "lengths of documents")


def equals_the_loop(top, kind, size, with_three):
    """With one process here; and three of its own, where asked for: both folders have the same bytes."""
    tokenizer, documents = make(kind, top), corpus(size)
    path = write_lines(os.path.join(top, kind + ".jsonl"), ({"text": document} for document in documents))
    folder = prepare(tokenizer, os.path.join(top, kind + "-one"), "--processes", 1, path)
    expect_same(folder, loop(tokenizer, documents))
    if not with_three:
        return
    process = start("prepare", "--tokenizer", tokenizer, "--out", os.path.join(top, kind + "-three"), "--processes", 3, path)
    err = process.communicate()[1]
    expect(process.returncode == 0, err)
    same_bytes(folder.path, os.path.join(top, kind + "-three"))


def same_bytes(one, other):
    for name in ("tokens.bin", "tokens.idx", "tokens.json", "tokenizer/tokenizer.json"):
        with open(os.path.join(one, name), "rb") as a, open(os.path.join(other, name), "rb") as b:
            expect(a.read() == b.read(), f"{name} of {one} and {other}")


def long_file_equals_the_whole(top, kind, size):
    """A file of text is one document, though it is encoded in windows."""
    tokenizer = os.path.join(top, kind)
    text = english(size, 7) + "\n".join(hostile(200, 8)) + "x" * 3000 + " " * 5000 + "\n" + "".join(code(300, 9)) + english(size, 10).replace("\n", " ")
    path = os.path.join(top, kind + ".txt")
    with open(path, "w", encoding="utf-8", newline="") as file:
        file.write(text)
    folder = prepare(tokenizer, os.path.join(top, kind + "-long"), path)
    expect_same(folder, loop(tokenizer, [text]))
    expect(folder.manifest["source_bytes"] == len(text.encode()), f"{folder.manifest['source_bytes']} bytes")


def forms_of_text(top):
    """Text, gzip, zstd, an array, Parquet and a byte-order mark: the same documents."""
    tokenizer, documents = os.path.join(top, "gpt2"), [*hostile(20), "line\r\nline", "end"]
    wanted = loop(tokenizer, documents)
    lines = "".join(json.dumps({"text": document, "id": i}) + "\r\n" for i, document in enumerate(documents))
    files = {"bom.jsonl": b"\xef\xbb\xbf" + lines.encode(), "lines.jsonl.gz": gzip.compress(lines.encode()),
             "array.json": ("\n[" + ",\n".join(lines.split("\r\n")[:-1]) + "]").encode()}
    for name, data in files.items():
        with open(os.path.join(top, name), "wb") as file:
            file.write(data)
        expect_same(prepare(tokenizer, os.path.join(top, "out-" + name), os.path.join(top, name)), wanted)
    column = write_lines(os.path.join(top, "column.jsonl"), ({"body": document} for document in documents))
    expect_same(prepare(tokenizer, os.path.join(top, "out-column"), "--column", "body", column), wanted)
    texts = [os.path.join(top, "a.txt"), os.path.join(top, "b.md.gz")]
    with open(texts[0], "wb") as a, gzip.open(texts[1], "wb") as b:
        a.write(b"\xef\xbb\xbfone \xc3\xa9\r\n")
        b.write(b"two")
    expect_same(prepare(tokenizer, os.path.join(top, "out-texts"), *texts), loop(tokenizer, ["one \u00e9\r\n", "two"]))


def ends_of_documents(top):
    tokenizer, path = os.path.join(top, "llama3"), write_lines(os.path.join(top, "two.jsonl"), [{"text": "one"}, {"text": "two"}])
    expect_same(prepare(tokenizer, os.path.join(top, "eos-off"), "--eos", "off", path), loop(tokenizer, ["one", "two"], None))
    expect_same(prepare(tokenizer, os.path.join(top, "eos-on"), "--eos", "on", path), loop(tokenizer, ["one", "two"]))
    folder = prepare(tokenizer, os.path.join(top, "eos-token"), "--eos", "<|eot_id|>", path)
    expect_same(folder, loop(tokenizer, ["one", "two"], "<|eot_id|>"))
    expect(folder.manifest["eos"] == "<|eot_id|>", folder.manifest["eos"])
    code_, _, err = run("prepare", "--tokenizer", tokenizer, "--out", os.path.join(top, "eos-auto"), path)
    expect(code_ == 0 and f"documents end with {END}" in err, err)


def keeps_the_small_files(top):
    tokenizer = os.path.join(top, "gpt2")
    with open(os.path.join(tokenizer, "generation_config.json"), "w", encoding="utf-8") as file:
        file.write("{}  \n")
    os.makedirs(os.path.join(tokenizer, "additional_chat_templates"), exist_ok=True)
    with open(os.path.join(tokenizer, "additional_chat_templates", "rag.jinja"), "w", encoding="utf-8") as file:
        file.write("x")
    path = write_lines(os.path.join(top, "small.jsonl"), [{"text": "one"}])
    folder = prepare(tokenizer, os.path.join(top, "small"), path)
    for name in ("tokenizer.json", "tokenizer_config.json", "generation_config.json", "additional_chat_templates/rag.jinja"):
        with open(os.path.join(tokenizer, name), "rb") as a, open(os.path.join(folder.path, "tokenizer", name), "rb") as b:
            expect(a.read() == b.read(), name)
    os.remove(os.path.join(tokenizer, "additional_chat_templates", "rag.jinja"))
    os.rmdir(os.path.join(tokenizer, "additional_chat_templates"))


def shows_a_stream(top):
    out = os.path.join(top, "eos-on")
    code_, text, _ = run("show", out)
    expect(code_ == 0 and "stream" in text and "2 documents" in text, text)
    code_, text, _ = run("show", out, "--row", 1)
    expect(code_ == 0 and "+ <|begin_of_text|>two<|endoftext|>" in text, text)
    document, = json.loads(run("show", out, "--row", 1, "--json")[1])["documents"]
    folder = TokenFolder(out)
    expect(document["tokens"] == list(folder.documents())[1][0].tolist(), document)


def a_run_without_seams(top):
    """Where windows have nothing in common they are encoded as one, up to a limit. The tokens here are of two signs each, and the run
    begins at an odd place: no window begins where a token does."""
    import motley_data.windows as windows
    tokenizer = os.path.join(top, "gpt2")
    path = os.path.join(top, "run.txt")
    with open(path, "w", encoding="utf-8") as file:
        file.write(english(windows.WINDOW)[:windows.WINDOW - 3001] + "=" * (2 * windows.WINDOW + 1) + english(windows.WINDOW))
    with open(path, encoding="utf-8") as file:
        expect_same(prepare(tokenizer, os.path.join(top, "run"), path), loop(tokenizer, [file.read()]))
    most, windows.MOST_JOINED = windows.MOST_JOINED, 2
    try:
        code_, _, err = run("prepare", "--tokenizer", tokenizer, "--out", os.path.join(top, "run-refused"), path)
        expect(code_ == 65 and "no place where the tokens of the text could be told apart" in err, err)
    finally:
        windows.MOST_JOINED = most


def what_loading_took_is_given_back(top):
    """A process keeps a tokenizer and not what its file was read into, which for a large vocabulary is more."""
    folder = os.path.join(top, "words")
    words = {f"w{i * 7919:x}": i for i in range(150_000)}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="w0"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    PreTrainedTokenizerFast(tokenizer_object=tokenizer).save_pretrained(folder)
    looks = """
import sys
sys.path.insert(0, sys.argv[1])
from motley_data import environment
environment.quiet()
from motley_data.memory import give_back
from motley_data.tokenizer import Tokenizer

def own():
    return int(next(line for line in open("/proc/self/status") if line.startswith("RssAnon")).split()[1]) // 1024

tokenizer = Tokenizer(sys.argv[2])
before = own()
give_back()
print(before - own())
"""
    done = subprocess.run([sys.executable, "-B", "-c", looks, PROGRAM, folder], capture_output=True, text=True, check=True)
    expect(int(done.stdout) < 4, f"{done.stdout.strip()} MB were kept")
