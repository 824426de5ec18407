"""Bad input: each is refused by name, with what to do, by its exit code, and nothing is written."""
import gzip
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile

from tokenizers import Tokenizer

import templates
from chats import ASSISTANT, USER, write
from harness import expect
from token_folder import prepare, run, write_lines
from tokenizers_made import english, make

CHAT = {"messages": [{"role": USER, "content": "a?"}, {"role": ASSISTANT, "content": "one"}]}


def refuse(top, tokenizer, code, said, *words):
    """`said`: what the message must hold."""
    out = os.path.join(top, "refused")
    found, _, err = run("prepare", "--tokenizer", tokenizer, "--out", out, *words)
    expect(found == code, f"ended with {found}, not {code}: {err}")
    for each in (said,) if isinstance(said, str) else said:
        expect(each in err, f"no {each!r} in: {err}")
    expect(err.startswith("motley: ") and "Traceback" not in err, err)
    expect(not os.path.exists(out) and not os.path.exists(os.path.join(top, ".refused.preparing")), "something is left")


def lines(top, *records):
    return write_lines(os.path.join(top, "refused.jsonl"), records)


def copied(top, tokenizer, name):
    path = os.path.join(top, name)
    shutil.rmtree(path, ignore_errors=True)
    return shutil.copytree(tokenizer, path)


def folders_of_tokenizers(top, tokenizer):
    good = write(top, "good.txt", "one")
    refuse(top, os.path.join(top, "absent"), 66, "is no folder", good)
    empty = os.path.join(top, "empty")
    os.makedirs(empty)
    refuse(top, empty, 66, "has no tokenizer.json", good)
    write(empty, "tokenizer.model", "x")
    refuse(top, empty, 65, ("has tokenizer.model and no tokenizer.json", "save_pretrained"), good)
    broken = copied(top, tokenizer, "broken")
    write(broken, "tokenizer.json", "{")
    refuse(top, broken, 65, "tokenizer.json does not load", good)
    own_code = copied(top, tokenizer, "own-code")
    settings = json.load(open(os.path.join(own_code, "tokenizer_config.json"), encoding="utf-8"))
    write(own_code, "tokenizer_config.json", json.dumps({**settings, "auto_map": {"AutoTokenizer": ["tok.Own", None]}}))
    refuse(top, own_code, 65, "is code of its own", good)


def class_that_is_another(top, llama3):
    """As GPT-4o's folder: its class says GPT-2, and AutoTokenizer splits words as GPT-2 does."""
    folder = copied(top, llama3, "other-class")
    settings = json.load(open(os.path.join(folder, "tokenizer_config.json"), encoding="utf-8"))
    write(folder, "tokenizer_config.json", json.dumps({**settings, "tokenizer_class": "GPT2Tokenizer"}))
    refuse(top, folder, 65, ("AutoTokenizer and tokenizer.json", "disagree"), write(top, "english.txt", english(3000) + "1234567 DON'T\n\n\nx"))


def vocabularies(top, tokenizer):
    """Larger than the model's is said; a token beyond it is refused."""
    folder = copied(top, tokenizer, "large")
    words = Tokenizer.from_file(os.path.join(folder, "tokenizer.json")).get_vocab_size()
    write(folder, "config.json", json.dumps({"vocab_size": words - 1}))
    code, _, err = run("prepare", "--tokenizer", folder, "--out", os.path.join(top, "large-out"), write(top, "small.txt", "one"))
    expect(code == 0 and f"the tokenizer has {words} words and the model {words - 1}" in err, err)
    last = Tokenizer.from_file(os.path.join(folder, "tokenizer.json")).id_to_token(words - 1)
    refuse(top, folder, 65, f"holds token {words - 1}", write(top, "beyond.txt", f"one{last}"))


def ends(top, tokenizer):
    good = write(top, "good.txt", "one")
    refuse(top, tokenizer, 65, "has no such token", "--eos", "<none>", good)
    folder = copied(top, tokenizer, "endless")
    settings = json.load(open(os.path.join(folder, "tokenizer_config.json"), encoding="utf-8"))
    settings.pop("eos_token")
    write(folder, "tokenizer_config.json", json.dumps(settings))
    refuse(top, folder, 65, "names no end token", "--eos", "on", good)
    code, _, err = run("prepare", "--tokenizer", folder, "--out", os.path.join(top, "endless-out"), good)
    expect(code == 0 and "names no end token" in err, err)


def files(top, tokenizer):
    refuse(top, tokenizer, 66, "absent.txt is not there", os.path.join(top, "absent.txt"))
    refuse(top, tokenizer, 66, "is a folder; give its files", top)
    texts = os.path.join(top, "texts")
    os.makedirs(texts)
    refuse(top, tokenizer, 66, f"as {texts}/*\n", texts)
    for name in ("a.txt", "b.txt", "c.md"):
        write(texts, name, "one")
    refuse(top, tokenizer, 66, f"as {texts}/*.txt\n", texts)
    for name in ("table.csv", "TABLE.TSV"):
        refuse(top, tokenizer, 65, f"{name} is a table; write each of its rows as a line of JSON", write(top, name, "a,b\n"))
    path = os.path.join(top, "latin.txt")
    with open(path, "wb") as file:
        file.write(b"caf\xe9 noir")
    refuse(top, tokenizer, 65, "is not UTF-8 at byte 3", path)
    with open(path, "wb") as file:
        file.write("one".encode("utf-16"))
    refuse(top, tokenizer, 65, "is UTF-16", path)
    path = os.path.join(top, "garbage.jsonl.gz")
    with open(path, "wb") as file:
        file.write(b"garbage")
    refuse(top, tokenizer, 65, "is no whole gzip file", path)
    whole = gzip.compress(b'{"text": "one"}\n' * 9999)
    with open(path, "wb") as file:
        file.write(whole[:len(whole) // 2])
    refuse(top, tokenizer, 65, "is no whole gzip file", path)
    refuse(top, tokenizer, 65, "holds no text", write(top, "empty.txt", ""))
    refuse(top, tokenizer, 65, "prepare each by itself", lines(top, {"text": "a"}), write(top, "chat.jsonl", json.dumps(CHAT)))


def archive(path, members):
    with tarfile.open(path, "w:gz" if path.endswith("gz") else "w") as tar:
        for name, text in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(text.encode())
            tar.addfile(info, io.BytesIO(text.encode()))
    return path


def sets_of_other_programs(top, tokenizer):
    """Folders as those programs leave them, by the files that tell them; each is told by its folder and by a file of it."""
    mds = {"version": 2, "shards": [{"version": 2, "format": "mds", "column_names": ["text"], "column_encodings": ["str"]}]}
    numbers = {"version": 2, "shards": [{"version": 2, "format": "mds", "column_names": ["tokens"], "column_encodings": ["ndarray:int32"]}]}
    chunks = {"chunks": [{"filename": "chunk-0-0.bin"}], "config": {"data_format": ["str"]}}
    tokens = {"chunks": [{"filename": "chunk-0-0.bin"}], "config": {"data_format": ["no_header_tensor:16"]}}
    saved = {"_data_files": [{"filename": "data-00000-of-00001.arrow"}], "_format_type": None}
    for name, marks, part, said in (
            ("mds", {"index.json": mds}, "shard.00000.mds", ("is a folder of Mosaic's MDS", "streaming.StreamingDataset(local=sys.argv[1]", "mosaicml-streaming")),
            ("mds-numbers", {"index.json": numbers}, "shard.00000.mds.zstd", ("is a folder of Mosaic's MDS, of numbers", "ndarray:int32")),
            ("litdata", {"index.json": chunks}, "chunk-0-0.bin", ("is a folder of litdata's", "litdata.StreamingDataset(sys.argv[1])")),
            ("litdata-numbers", {"index.json": tokens}, "chunk-0-0.bin", ("is a folder of litdata's, of numbers", "no_header_tensor:16")),
            ("saved", {"state.json": saved, "dataset_info.json": {}}, "data-00000-of-00001.arrow", ("save_to_disk; ", "datasets.load_from_disk(sys.argv[1]).to_json")),
            ("splits", {"dataset_dict.json": {"splits": ["train", "test"]}}, "dataset_dict.json", ("with the splits train, test", "splits/train.jsonl"))):
        folder = os.path.join(top, name)
        os.makedirs(folder)
        write(folder, part, "\x01\x02")
        for mark, value in marks.items():
            write(folder, mark, json.dumps(value))
        refuse(top, tokenizer, 65, (f"motley: {folder} ", *said), folder)
        refuse(top, tokenizer, 65, said, os.path.join(folder, part))
        refuse(top, tokenizer, 65, said, os.path.join(folder, next(iter(marks))))
    refuse(top, tokenizer, 65, "its folder has no index.json", write(top, "shard.00000.mds", "x"))
    refuse(top, tokenizer, 65, ("is a table of Arrow's", "datasets.Dataset.from_file(sys.argv[1])"), write(top, "cached.arrow", "x"))
    refuse(top, tokenizer, 65, ("is a table of Arrow's", "pandas.read_feather"), write(top, "table.feather", "ARROW1"))
    plain = os.path.join(top, "plain")   # an index.json of somebody else's
    os.makedirs(plain)
    for text in ("{", "[]", '{"shards": 5, "chunks": {}, "text": "a"}'):
        write(plain, "index.json", text)
        refuse(top, tokenizer, 66, "is a folder; give its files", plain)
    prepare(tokenizer, os.path.join(top, "plain-out"), os.path.join(plain, "index.json"))


def archives(top, tokenizer):
    """What is said makes lines of JSON that are taken; it needs nothing but Python."""
    texts = {"a/000.txt": "one", "a/000.json": '{"url": "x"}', "a/001.txt": "two", "a/001.json": "{}"}
    records = {"000.json": '{"text":\n "one"}', "001.json": '{"text": "two"}'}
    wanted = prepare(tokenizer, os.path.join(top, "of-lines"), lines(top, {"text": "one"}, {"text": "two"})).tokens.tolist()
    for name, members, said in (("it's.tar", texts, "is a tar archive of WebDataset's"), ("b.tar.gz", texts, "is a tar archive of WebDataset's"),
                                ("c.tgz", records, "is a tar archive of records")):
        path = archive(os.path.join(top, name), members)
        refuse(top, tokenizer, 65, said, path)
        err = run("prepare", "--tokenizer", tokenizer, "--out", os.path.join(top, "none"), path)[2]
        subprocess.run(err[err.index("python3 -c"):].strip(), shell=True, check=True)
        found = prepare(tokenizer, os.path.join(top, f"of-{name}"), path + ".jsonl").tokens.tolist()
        expect(found == wanted, f"{name}: {found}, of lines {wanted}")
    path = archive(os.path.join(top, "texts.tar"), {"a.txt": "one", "b.txt": "two"})
    refuse(top, tokenizer, 65, f"is a tar archive; unpack it, and give its files: tar -xf {path}", path)
    refuse(top, tokenizer, 65, "is no whole tar archive", write(top, "broken.tar", "x" * 2000))


def packed_files(top, tokenizer):
    import pyarrow
    import pyarrow.parquet
    import zstandard
    path = os.path.join(top, "garbage.jsonl.zst")
    with open(path, "wb") as file:
        file.write(b"garbage")
    refuse(top, tokenizer, 65, "is no whole zstd file", path)
    with open(path, "wb") as file:
        file.write(zstandard.compress(b'{"text": "one"}\n') + zstandard.compress(b'{"text": "two"}\n'))
    expect(prepare(tokenizer, os.path.join(top, "zst"), path).manifest["documents"] == 2, "two frames")
    path = os.path.join(top, "garbage.parquet")
    with open(path, "wb") as file:
        file.write(b"garbage")
    refuse(top, tokenizer, 65, "is no whole Parquet file", path)
    path = os.path.join(top, "rows.parquet")
    chats = [[{"role": USER, "content": "a?"}, {"role": ASSISTANT, "content": "one", "tool_calls": "x"}]] * 600
    pyarrow.parquet.write_table(pyarrow.table({"text": ["one", "two"] * 300, "messages": [[{**m, "tool_calls": None} for m in c] for c in chats]}), path)
    folder = prepare(tokenizer, os.path.join(top, "parquet"), "--column", "text", path)
    expect(folder.manifest["documents"] == 600, folder.manifest)
    folder = prepare(tokenizer, os.path.join(top, "parquet-chats"), "--seq-len", 64, "--chat-template", write(top, "p.jinja", templates.CHATML), path)
    expect(folder.manifest["documents"] == 600, folder.manifest)
    refuse(top, tokenizer, 65, "has no column body; it has text, messages", "--column", "body", path)


def broken_lines(top, tokenizer):
    path = write(top, "broken.jsonl", '{"text": "one"}\r\n{"text": "two"\n\n[1]\n{"text": 3}\n{"text": "\\ud800"}\n{"text": "six"}\n')
    refuse(top, tokenizer, 65, ("broken.jsonl:2: no JSON: Expecting ',' delimiter at character 15;", "--skip-bad N"), path)
    refuse(top, tokenizer, 65, ("broken.jsonl:6: its text holds half a character", "--skip-bad 3 allows for no more"), "--skip-bad", 3, path)
    code, out, err = run("prepare", "--tokenizer", tokenizer, "--out", os.path.join(top, "skipped"), "--skip-bad", 4, path)
    expect(code == 0 and "4 records left out" in out, out + err)
    for number, why in ((2, "no JSON"), (4, "a JSON object is wanted"), (5, "its text is int"), (6, "half a character")):
        expect(f"left out {path}:{number}: " in err and why in err, err)
    refuse(top, tokenizer, 65, "item 2 of the array is no JSON", write(top, "broken.json", '[{"text": "one"}, {"text": two}, {}]'))
    refuse(top, tokenizer, 65, "the array has no end", write(top, "cut.json", '[{"text": "one"}, {"text": "two"},'))
    refuse(top, tokenizer, 65, "item 2 of the array is no JSON", write(top, "cut.json", '[{"text": "one"}, {"text": "two'))


def a_line_without_end(top, tokenizer):
    import motley_data.records
    most, motley_data.records.MOST = motley_data.records.MOST, 2 << 20
    try:
        refuse(top, tokenizer, 65, ":2: the line is longer than 2 MiB", write(top, "long.jsonl", '{"text": "one"}\n{"text": "' + "x" * (5 << 20)))
    finally:
        motley_data.records.MOST = most


def columns(top, tokenizer):
    refuse(top, tokenizer, 65, ("has no column body; it has text", "refused.jsonl:1"), "--column", "body", lines(top, {"text": "a"}))
    refuse(top, tokenizer, 65, ("has the columns body", "--column NAME"), lines(top, {"body": "a"}))
    refuse(top, tokenizer, 65, "which has no column", "--column", "body", write(top, "plain.txt", "a"))


def chats_that_cannot_be(top, tokenizer):
    chatml = ("--seq-len", 64, "--chat-template", write(top, "chatml.jinja", templates.without_tags(templates.CHATML)))
    refuse(top, tokenizer, 64, "give --seq-len N", lines(top, CHAT))
    refuse(top, tokenizer, 65, ("has no chat template", "--chat-template FILE"), "--seq-len", 64, lines(top, CHAT))
    refuse(top, tokenizer, 65, ("refused.jsonl:2", "no turn is the assistant's"), *chatml, lines(top, CHAT, {"messages": CHAT["messages"][:1]}))
    refuse(top, tokenizer, 65, "no turn is the assistant's", *chatml, lines(top, {"messages": []}))
    refuse(top, tokenizer, 65, "a message has no role", *chatml, lines(top, {"messages": [{"content": "a"}]}))
    refuse(top, tokenizer, 65, "a part of type image", *chatml, lines(top, {"messages": [{"role": USER, "content": [{"type": "image"}]}]}))
    refuse(top, tokenizer, 65, "no JSON", *chatml, lines(top, {"messages": [CHAT["messages"][0], {"role": ASSISTANT, "tool_calls": [
        {"function": {"name": "f", "arguments": "{"}}]}]}))
    refuse(top, tokenizer, 65, "a turn is from 'elf'", *chatml, lines(top, {"conversations": [{"from": "elf", "value": "a"}]}))
    refuse(top, tokenizer, 65, "half a character", *chatml, write(top, "half.jsonl", '{"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "\\udc00"}]}\n'))
    refuse(top, tokenizer, 65, "nothing in it is trained on", *chatml[:2], lines(top, {"prompt": "", "completion": ""}), "--eos", "off")


def templates_that_will_not_do(top, tokenizer):
    def with_template(text):
        return ("--seq-len", 64, "--chat-template", write(top, "t.jinja", text))

    tool = {"messages": [{"role": "tool", "content": "a"}, *CHAT["messages"]]}
    refuse(top, tokenizer, 65, ("refuses the chat: only user and assistant speak here, not tool", ":1: "), *with_template(templates.INST), lines(top, tool))
    refuse(top, tokenizer, 65, ("asks for an answer with", "<think>", "--chat-template FILE"),
           *with_template(templates.without_tags(templates.PROMPTS_A_THOUGHT)), lines(top, CHAT))
    switched = with_template(templates.without_tags(templates.SWITCHES_A_THOUGHT))
    refuse(top, tokenizer, 65, "try --template-arg enable_thinking=false for answers without thoughts", *switched, lines(top, CHAT))
    folder = prepare(tokenizer, os.path.join(top, "switched"), *switched, "--template-arg", "enable_thinking=false", lines(top, CHAT))
    expect(folder.manifest["chats"]["documents"] == {"prefix": 1}, folder.manifest)
    refuse(top, tokenizer, 65, "is wrong: line 1", *with_template("{% if %}"), lines(top, CHAT))
    refuse(top, tokenizer, 65, "leaves out an answer, 'one'", *with_template(templates.without_tags(templates.CHATML).replace(
        "message.content + '<|im_end|>' -", "'<|im_end|>' -")), lines(top, CHAT))
    refuse(top, tokenizer, 66, "is not there", "--seq-len", 64, "--chat-template", os.path.join(top, "absent.jinja"), lines(top, CHAT))
    import motley_data.template
    most, motley_data.template.MOST_SECONDS = motley_data.template.MOST_SECONDS, 0.2
    try:
        refuse(top, tokenizer, 65, "had no end within 0.2 s", *with_template(templates.ENDLESS), lines(top, CHAT))
    finally:
        motley_data.template.MOST_SECONDS = most


def usage(top, tokenizer):
    for words in (["prepare"], ["prepare", "--seq-len", "x"], ["prepare", "--skip-bad", "-1"], ["nothing"], ["show"], ["prepare", "--template-arg", "a"],
                  ["prepare", "--train", "users"], ["prepare", "--day", "today"]):
        code, _, err = run(*words)
        expect(code == 64 and err.startswith("motley: "), f"{words}: {code} {err}")
    path = os.path.join(top, "shown")
    prepare(tokenizer, path, write(top, "one.txt", "one"))
    expect(run("show", path, "--row", 1)[0] == 64, "a row that is not there")
    expect(run("show", top)[0] == 66, "a folder that is none")
    code, _, err = run("show", os.path.join(top, "elsewhere"))
    expect(code == 66 and "elsewhere is not there" in err, f"{code}: {err}")
    with open(os.path.join(path, "tokens.bin"), "ab") as file:
        file.write(b"x")
    code, _, err = run("show", path, "--row", 0)
    expect(code == 65 and "it is not what was written" in err, err)


def packages_that_are_missing(top, tokenizer):
    """Each by name, and how to have it."""
    import motley_data.environment as environment
    good = write(top, "good.txt", "one")
    for name, said, file in (("transformers", "has no transformers", good), ("jinja2", "has no jinja2", good),
                             ("pyarrow", "setup --parquet", write(top, "a.parquet", "x")), ("zstandard", "zstd -d FILE", write(top, "a.txt.zst", "x"))):
        kept = {key: sys.modules.pop(key) for key in list(sys.modules) if key == name or key.startswith(name + ".")}
        sys.modules[name] = None   # an import fails then
        try:
            refuse(top, tokenizer, 69, (said, "motley data setup"), file)
        finally:
            sys.modules.pop(name)
            sys.modules.update(kept)
    oldest, environment.OLDEST_TRANSFORMERS = environment.OLDEST_TRANSFORMERS, (99,)
    try:
        refuse(top, tokenizer, 69, ("99 is the oldest that will do", "--python"), good)
    finally:
        environment.OLDEST_TRANSFORMERS = oldest


def setup_without_a_network(_top, _tokenizer):
    """pip says the same again and again; once is enough, and why is kept."""
    import motley_data.installing as installing
    tries = "".join(f"WARNING: Retrying (Retry(total={n})) after connection broken by: no name: /simple/a/\n" for n in (2, 1, 0))
    said = installing._last("Looking in indexes: b\n" + tries + "ERROR: Could not find a version\nERROR: No matching distribution\n")
    expect(said == "WARNING: Retrying (Retry(total=0)) after connection broken by: no name: /simple/a/ / Looking in indexes: b / "
           "ERROR: Could not find a version / ERROR: No matching distribution", said)


def run_all(results, top):
    tokenizer, llama3 = make("qwen", os.path.join(top, "refusals")), make("llama3", os.path.join(top, "refusals"))
    for test in (folders_of_tokenizers, vocabularies, ends, files, sets_of_other_programs, archives, packed_files, broken_lines,
                 a_line_without_end, columns, chats_that_cannot_be, templates_that_will_not_do, usage, packages_that_are_missing,
                 setup_without_a_network):
        results.run(f"refused: {test.__name__.replace('_', ' ')}", test, top, tokenizer)
    results.run("refused: class that is another", class_that_is_another, top, llama3)
