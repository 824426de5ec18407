"""Chats: which tokens are trained on, and how the chats lie in rows."""
import collections
import json
import os
import random

import numpy
from transformers import AutoTokenizer

import templates
from harness import expect
from token_folder import prepare, run, write_lines
from tokenizers_made import english, hostile, make

SYSTEM, USER, ASSISTANT = "system", "user", "assistant"


def conversations(count, seed, roles=(SYSTEM, USER, ASSISTANT), thoughts=False):
    """Of one to six turns each, of drawn lengths; each ends with an answer."""
    draw = random.Random(seed)
    text, odd = english(20000, seed), hostile(50, seed)

    def content():
        begin = draw.randrange(len(text) - 200)
        said = text[begin:begin + draw.randint(1, 200)]
        said += " " + draw.choice(odd) if draw.random() < 0.2 else ""
        return (said.strip() or "yes") + "."

    found = []
    for _ in range(count):
        messages = [{"role": SYSTEM, "content": content()}] if SYSTEM in roles and draw.random() < 0.3 else []
        for _ in range(draw.randint(1, 6)):
            thought = f"<think>\n{content()}\n</think>\n\n" if thoughts and draw.random() < 0.7 else ""
            messages += [{"role": USER, "content": content()}, {"role": ASSISTANT, "content": thought + content()}]
        found.append(messages)
    return found


def chat_tokenizer(top):
    return make("qwen", os.path.join(top, "chat"), bos_token="<|begin_of_text|>")


def write(top, name, text):
    path = os.path.join(top, name)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return path


def pairs(folder):
    return collections.Counter((tuple(tokens.tolist()), tuple(mask.tolist())) for tokens, mask in folder.documents())


def masks_are_the_tags(top, tokenizer, name, count):
    """What the tags say of a tagged template, of the same without tags, and of transformers: all three alike."""
    chats = conversations(count, len(name), (USER, ASSISTANT) if name == "inst" else (SYSTEM, USER, ASSISTANT))
    path = write_lines(os.path.join(top, name + ".jsonl"), ({"messages": messages} for messages in chats))
    tagged = templates.TAGGED[name]
    auto, wanted = AutoTokenizer.from_pretrained(tokenizer), collections.Counter()
    for messages in chats:
        said = auto.apply_chat_template(messages, chat_template=tagged, return_dict=True, return_assistant_tokens_mask=True)
        wanted[tuple(said["input_ids"]), tuple(on == 1 for on in said["assistant_masks"])] += 1
    for how, template in (("tags", tagged), ("prefix", templates.without_tags(tagged))):
        file = write(top, f"{name}-{how}.jinja", template)
        folder = prepare(tokenizer, os.path.join(top, f"{name}-{how}"), "--seq-len", 1 << 20, "--chat-template", file, path)
        expect(folder.manifest["chats"]["documents"] == {how: count}, folder.manifest["chats"])
        found = pairs(folder)
        missing = list((wanted - found).elements())
        expect(not missing and found.total() == count, f"{how}: {len(missing)} of {count} differ: {missing[:1]}")


def each_turn_is_the_published_text(top, tokenizer, count):
    chats = conversations(count, 11, thoughts=True)
    path = write_lines(os.path.join(top, "thoughts.jsonl"), ({"messages": messages} for messages in chats))
    file = write(top, "rewrites.jinja", templates.REWRITES)
    folder = prepare(tokenizer, os.path.join(top, "rewrites"), "--seq-len", 1 << 20, "--chat-template", file, path)
    auto, texts = AutoTokenizer.from_pretrained(tokenizer), collections.Counter()
    for messages in chats:
        upto = [i + 1 for i, message in enumerate(messages) if message["role"] == ASSISTANT]
        turns = [auto.apply_chat_template(messages[:i], chat_template=templates.REWRITES, tokenize=False) for i in upto]
        whole_is_enough = all(turns[-1].startswith(turn) for turn in turns)
        texts.update(turns[-1:] if whole_is_enough else turns)
    found, texts = collections.Counter(tuple(tokens.tolist()) for tokens, _ in folder.documents()), collections.Counter(
        tuple(ids) for ids in auto(list(texts.elements()), add_special_tokens=False).input_ids)
    expect(found == texts, f"{len(texts - found)} of {len(texts)} texts differ")
    end = auto.convert_tokens_to_ids("<|im_end|>")
    for tokens, mask in folder.documents():
        trained = tokens[mask]
        expect(trained[-1] == end and not mask[-1], "the end of the turn is trained on, and the newline behind it is not")
    expect(folder.manifest["chats"]["documents"]["turns"] > count, folder.manifest["chats"])


def what_train_asks_for(top, tokenizer):
    messages = [{"role": USER, "content": "a?"}, {"role": ASSISTANT, "content": "one"}, {"role": USER, "content": "b?"}, {"role": ASSISTANT, "content": "two"}]
    path = write_lines(os.path.join(top, "train.jsonl"), [{"messages": messages}])
    auto = AutoTokenizer.from_pretrained(tokenizer)
    for how, template in (("tags", templates.CHATML), ("prefix", templates.without_tags(templates.CHATML))):
        file = write(top, f"train-{how}.jinja", template)
        for train, wanted in (("assistant", ["one<|im_end|>two<|im_end|>"]), ("last", ["two<|im_end|>"]), ("each", ["one<|im_end|>", "two<|im_end|>"])):
            folder = prepare(tokenizer, os.path.join(top, f"train-{how}-{train}"), "--seq-len", 256, "--train", train, "--chat-template", file, path)
            found = sorted(auto.decode(tokens[mask]) for tokens, mask in folder.documents())
            expect(found == sorted(wanted), f"{how} {train}: {found}")
        folder = prepare(tokenizer, os.path.join(top, f"train-{how}-all"), "--seq-len", 256, "--train", "all", "--chat-template", file, path)
        expect(folder.mask is None and folder.manifest["trained_tokens"] == len(folder.tokens) - 1, folder.manifest)


def rows_are_full_and_whole(top, tokenizer, count):
    """No document lies in two rows, each is there once, and the rows are as full as best fit makes them; without packing each has its own."""
    seq_len = 1024
    path = write_lines(os.path.join(top, "many.jsonl"), ({"messages": messages} for messages in conversations(count, 21)))
    file = write(top, "rows.jinja", templates.without_tags(templates.CHATML))
    common = ("--chat-template", file, path, "--seq-len", seq_len)
    packed, apart = prepare(tokenizer, os.path.join(top, "packed"), *common), prepare(tokenizer, os.path.join(top, "apart"), "--no-pack", *common)
    expect(pairs(packed) == pairs(apart), "documents")
    expect(max(packed.rows()) <= seq_len and len(apart.rows()) == len(apart.lengths) == len(packed.lengths), "rows")
    full = sum(packed.rows()[:]) / (seq_len * len(packed.rows()))
    expect(full > 0.97, f"{full:.4f} full")
    lengths = apart.lengths
    quarter = len(lengths) // 4
    expect(abs(lengths[-quarter:].mean() / lengths.mean() - 1) < 0.3, "the order is drawn: the last rows are as long as the others")


def packs_many(count):
    from motley_data.packing import drawn_order, pack
    draw = numpy.random.default_rng(3)
    lengths = numpy.clip(draw.lognormal(5.9, 0.9, count), 1, 2048).astype(int).tolist()
    rows = pack(lengths, 2048)
    expect(sorted(document for row in rows for document in row) == list(range(count)), "each document once")
    sizes = [sum(lengths[document] for document in row) for row in rows]
    expect(max(sizes) <= 2048 and sum(sizes) / (2048 * len(rows)) > 0.995, f"{sum(sizes) / (2048 * len(rows)):.4f} full")
    expect(sorted(drawn_order(1000)) == list(range(1000)), "order")


def long_chats_are_cut(top, tokenizer):
    messages = [{"role": USER, "content": "a?"}, {"role": ASSISTANT, "content": english(2000)}]
    behind = [{"role": USER, "content": english(2000)}, {"role": ASSISTANT, "content": "yes"}]
    path = write_lines(os.path.join(top, "long.jsonl"), [{"messages": messages}, {"messages": behind}])
    file = write(top, "cut.jinja", templates.CHATML)
    words = ("prepare", "--tokenizer", tokenizer, "--out", os.path.join(top, "cut"), "--seq-len", 64, "--chat-template", file, "--json", path)
    said = json.loads(run(*words)[1])
    expect(said["counts"]["documents longer than a row, cut"] == 2, said["counts"])
    expect(said["tokens"]["documents"] == 1 and said["tokens"]["tokens"] == 64, said["tokens"])
    path = write_lines(os.path.join(top, "behind.jsonl"), [{"messages": behind}])
    code, _, err = run(*words[:4], os.path.join(top, "behind"), *words[5:-2], path)
    expect(code == 65 and "of 1 documents it lies behind the first 64 tokens; give a greater --seq-len" in err, f"{code}: {err}")


def same_with_three_processes(top, tokenizer):
    path = os.path.join(top, "many.jsonl")
    file = os.path.join(top, "rows.jinja")
    prepare(tokenizer, os.path.join(top, "three"), "--processes", 3, "--chat-template", file, "--seq-len", 1024, path)
    for name in ("tokens.bin", "mask.bin", "tokens.idx", "tokens.json"):
        with open(os.path.join(top, "three", name), "rb") as a, open(os.path.join(top, "packed", name), "rb") as b:
            expect(a.read() == b.read(), name)


def shows_rows(top):
    code, text, _ = run("show", os.path.join(top, "train-tags-each"), "--row", 0)
    expect(code == 0 and "-- document 1" in text and "+ two<|im_end|>" in text and "  b?<|im_end|>" in text, text)
    code, text, _ = run("show", os.path.join(top, "train-tags-each"), "--row", 0, "--tokens")
    expect(code == 0 and text.count('"<|im_end|>"') == 6, text)
    code, text, _ = run("show", os.path.join(top, "train-tags-each"), "--row", 0, "--json")
    documents = json.loads(text)["documents"]
    expect([document["begin"] for document in documents] == [0, documents[0]["length"]], documents)
    expect("".join(documents[1]["texts"]).startswith("<|im_start|>user"), documents[1]["texts"])
