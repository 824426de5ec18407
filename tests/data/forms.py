"""The forms in which chats come, and what is mended in them: all say the same chat, so the tokens are the same."""
import json
import os

from transformers import AutoTokenizer

import templates
from chats import ASSISTANT, USER, pairs, write
from harness import expect
from token_folder import prepare, run, write_lines

CHAT = [{"role": USER, "content": "a?"}, {"role": ASSISTANT, "content": "one"}, {"role": USER, "content": "b?"}, {"role": ASSISTANT, "content": "two"}]
CALL = {"type": "function", "function": {"name": "add", "arguments": {"a": 1}}}
TOOL = {"type": "function", "function": {"name": "add", "parameters": {"type": "object"}}}
WITH_TOOLS = """{%- for tool in tools or [] -%}{{- tool | tojson + '\\n' -}}{%- endfor -%}
{%- for message in messages -%}
{{- '<|im_start|>' + message.role + '\\n' + (message.content or '') -}}
{%- for call in message.tool_calls or [] -%}{{- call.function.name + ' ' + call.function.arguments | tojson -}}{%- endfor -%}
{{- '<|im_end|>\\n' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\\n' -}}{%- endif -%}"""

SAME = {
    "messages": {"messages": CHAT},
    "parts": {"messages": [{**message, "content": [{"type": "text", "text": message["content"][:1]}, {"type": "text", "text": message["content"][1:]}]}
                           for message in CHAT]},
    "nulls": {"messages": [{**message, "tool_calls": None, "name": None} for message in CHAT], "tools": None},
    "sharegpt": {"conversations": [{"from": "human" if message["role"] == USER else "gpt", "value": message["content"]} for message in CHAT]},
    "conversations": {"conversations": CHAT},
    "trailing": {"messages": CHAT + [{"role": USER, "content": "c?"}]},
}
SAME_CALLS = {
    "objects": {"messages": [CHAT[0], {"role": ASSISTANT, "content": "", "tool_calls": [CALL]}], "tools": [TOOL]},
    "texts": {"messages": [CHAT[0], {"role": ASSISTANT, "content": None, "tool_calls": [
        {"type": "function", "function": {"name": "add", "arguments": "{\"a\": 1}"}}]}], "tools": json.dumps([TOOL])},
    "sharegpt": {"conversations": [{"from": "human", "value": "a?"}, {"from": "function_call", "value": json.dumps({"name": "add", "arguments": {"a": 1}})}],
                 "tools": json.dumps([TOOL])},
}


def made(top, tokenizer, name, record, template, *more):
    path = write_lines(os.path.join(top, f"form-{name}.jsonl"), [record])
    words = ("--seq-len", 256, *(("--chat-template", template) if template else ()), *more, path)
    return prepare(tokenizer, os.path.join(top, f"form-{name}"), *words)


def forms_are_the_same(top, tokenizer):
    template = write(top, "forms.jinja", templates.CHATML)
    wanted = pairs(made(top, tokenizer, "first", {"messages": CHAT}, template))
    for name, record in SAME.items():
        expect(pairs(made(top, tokenizer, name, record, template)) == wanted, name)
    expect(pairs(made(top, tokenizer, "column", {"talk": CHAT}, template, "--column", "talk")) == wanted, "column")


def calls_are_the_same(top, tokenizer):
    template = write(top, "tools.jinja", WITH_TOOLS)
    found = [pairs(made(top, tokenizer, f"calls-{name}", record, template)) for name, record in SAME_CALLS.items()]
    expect(found[0] == found[1] == found[2], found)
    auto = AutoTokenizer.from_pretrained(tokenizer)
    text = auto.decode(list(next(iter(found[0])))[0])
    expect('add {"a": 1}<|im_end|>' in text and '"name": "add"' in text, text)


def completions(top, tokenizer):
    """Texts, messages and alpaca's."""
    auto = AutoTokenizer.from_pretrained(tokenizer)

    def trained(name, record, template=None):
        (tokens, mask), = made(top, tokenizer, name, record, template).documents()
        return auto.decode(tokens), auto.decode(tokens[mask])

    expect(trained("pc", {"prompt": "1 + 1 =", "completion": " 2"}) == ("1 + 1 = 2<|endoftext|>", " 2<|endoftext|>"), "prompt and completion")
    template = write(top, "completion.jinja", templates.CHATML)
    text, on = trained("pcm", {"prompt": CHAT[:3], "completion": CHAT[3:]}, template)
    expect(text.count("<|im_start|>") == 4 and on == "two<|im_end|>", on)
    text, on = trained("alpaca", {"instruction": "Add.", "input": "1 1", "output": "2"}, template)
    expect(text == "<|im_start|>user\nAdd.\n\n1 1<|im_end|>\n<|im_start|>assistant\n2<|im_end|>\n" and on == "2<|im_end|>", text)
    text, on = trained("alpaca-plain", {"instruction": "Add.", "input": "1 1", "output": "2"})
    expect(text.startswith("Below is an instruction that describes a task, paired with an input") and
           text.endswith("### Instruction:\nAdd.\n\n### Input:\n1 1\n\n### Response:\n2<|endoftext|>") and on == "2<|endoftext|>", text)


def what_is_left_out_is_counted(top, tokenizer):
    template = write(top, "counts.jinja", templates.CHATML)
    chat = [CHAT[0], {**CHAT[1], "reasoning_content": "because"}]
    path = write_lines(os.path.join(top, "counts.jsonl"), [{"messages": chat, "tools": [TOOL]}])
    words = ("--tokenizer", tokenizer, "--seq-len", 64, "--chat-template", template, "--json", path)
    counts = json.loads(run("prepare", "--out", os.path.join(top, "counts"), *words)[1])["counts"]
    expect(counts == {"reasoning_content that the template leaves out": 1, "tools that the template leaves out": 1}, counts)


def thoughts_of_documents_of_their_own(top, tokenizer):
    """Each answer's document has its thought, which the whole chat has dropped: nothing is left out."""
    template = write(top, "thinks.jinja", templates.DROPS_THOUGHTS)
    chat = [{**message, "reasoning_content": f"as {message['content']}"} if message["role"] == ASSISTANT else message for message in CHAT]
    path = write_lines(os.path.join(top, "thinks.jsonl"), [{"messages": chat}])
    words = ("--tokenizer", tokenizer, "--seq-len", 64, "--chat-template", template, "--json", path)
    said = json.loads(run("prepare", "--out", os.path.join(top, "thinks"), *words)[1])
    expect(said["tokens"]["chats"]["documents"] == {"turns": 2} and said["counts"] == {}, said)


def answers_without_an_end_are_counted(top, tokenizer):
    """GLM's turns end where the next begins. By prefix and by tags; what a model is to end a completion with is the program's."""
    path = write_lines(os.path.join(top, "open.jsonl"), [{"messages": CHAT}, {"messages": CHAT}])
    name = "answers that no special token ends: a model may not learn to stop there"
    for how, text, wanted in (("prefix", templates.without_tags(templates.PLAIN), {name: 4}), ("tags", templates.PLAIN, {name: 4}),
                              ("closed", templates.CHATML, {})):
        template = write(top, f"open-{how}.jinja", text)
        words = ("--tokenizer", tokenizer, "--seq-len", 64, "--chat-template", template, "--json", path)
        counts = json.loads(run("prepare", "--out", os.path.join(top, f"open-{how}"), *words)[1])["counts"]
        expect(counts == wanted, f"{how}: {counts}")
    path = write_lines(os.path.join(top, "closed.jsonl"), [{"prompt": "1 + 1 =", "completion": " 2"}])
    words = ("--tokenizer", tokenizer, "--seq-len", 64, "--json", path)
    counts = json.loads(run("prepare", "--out", os.path.join(top, "closed"), *words)[1])["counts"]
    expect(counts == {}, counts)


def one_day_for_the_folder(top, tokenizer):
    template = write(top, "day.jinja", templates.WRITES_THE_DAY)
    folder = made(top, tokenizer, "day", {"messages": CHAT}, template, "--day", "2026-03-01")
    auto = AutoTokenizer.from_pretrained(tokenizer)
    (tokens, _), = folder.documents()
    expect(auto.decode(tokens).startswith("Today: 01 Mar 2026\n") and folder.manifest["chats"]["day"] == "2026-03-01", auto.decode(tokens)[:40])
    template = write(top, "argument.jinja", "{{- greeting + ' ' + count | string -}}" + templates.CHATML)
    folder = made(top, tokenizer, "argument", {"messages": CHAT}, template, "--template-arg", "greeting=good day", "--template-arg", "count=3")
    (tokens, _), = folder.documents()
    expect(auto.decode(tokens).startswith("good day 3<|im_start|>") and "day" not in folder.manifest["chats"], auto.decode(tokens)[:40])
