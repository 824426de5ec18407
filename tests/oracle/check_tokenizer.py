#!/usr/bin/env python3
"""What `motley export` writes, in transformers: its tokenizer takes any bytes, and a sentence comes out of a pipeline.

Runs in the oracle's Python. A model of each family is trained for two steps, exported, and loaded by its folder alone. Models that
are trained from their seed on tokens end where their tokenizer does.
"""
import contextlib
import io
import os
import random
import re
import sys
import unicodedata

for tests in ("integration", "data"):
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), tests))
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")

import torch  # noqa: E402
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer, GenerationConfig, pipeline  # noqa: E402

import tokenizers_made  # noqa: E402
from harness import CPU_DEVICE, ROOT, Results, TestCluster, expect, job_sections  # noqa: E402
from token_folder import prepare  # noqa: E402

FAMILIES = ("gpt2", "llama3", "qwen2")
BYTES = 256
TEXTS = ["", "The", " two  spaces ", "line\nline\r\n\n\ttab", "don't, I'll; a.b , c !", "\u00fcml\u00e4ut \u4e2d\u6587 \U0001f600 e\u0301",
         "\x00\x01\x7f<s></s><|endoftext|>[UNK]"]
PROMPT = "The "
NEW_TOKENS = 40


def exported(cluster, family):
    job = f"bytes-{family}"
    cluster.submit_job(job, job_sections(cluster, family, training__steps=2, checkpoint__interval=2))
    cluster.wait_for_state(job, "SUCCEEDED")
    folder = os.path.join(cluster.top, "export", family)
    done = cluster.run_motley("export", job, "--out", folder)
    expect(done.returncode == 0, f"motley export: {done.stderr}")
    return folder


def as_taken(tokenizer, text):
    """transformers 5 has a class for Qwen 2 that it takes whatever an export says; it composes characters."""
    return unicodedata.normalize("NFC", text) if type(tokenizer).__name__ == "Qwen2Tokenizer" else text


def encodes_any_text(folder):
    tokenizer = AutoTokenizer.from_pretrained(folder)
    letters = random.Random(1)
    random_text = "".join(chr(letters.choice((letters.randrange(0xD800), letters.randrange(128)))) for _ in range(20000))
    for given in [*TEXTS, random_text]:
        text = as_taken(tokenizer, given)
        ids = tokenizer(given).input_ids
        expect(ids == list(text.encode()), f"{text[:40]!r} is {ids[:40]}")
        back = tokenizer.decode(ids)
        expect(back == text, f"{text[:40]!r} comes back as {back[:40]!r}")


def decodes_any_bytes(folder):
    """Also what is no UTF-8: as Python decodes it, a character that stands for what is wrong."""
    tokenizer = AutoTokenizer.from_pretrained(folder)
    expect(len(tokenizer) == BYTES, f"{len(tokenizer)} tokens")
    expect([tokenizer.convert_tokens_to_ids(tokenizer.convert_ids_to_tokens(i)) for i in range(BYTES)] == list(range(BYTES)), "ids")
    drawn = random.Random(2)
    for content in [bytes([i]) for i in range(BYTES)] + [drawn.randbytes(50) for _ in range(50)]:
        text = tokenizer.decode(list(content))
        expect(text == content.decode(errors="replace"), f"{content!r} is {text!r}")


def completes_a_sentence(folder):
    """The pipeline's greedy answer is that of the model, byte for byte."""
    model = AutoModelForCausalLM.from_pretrained(folder)
    with torch.no_grad():
        ids = torch.tensor([list(PROMPT.encode())])
        for _ in range(NEW_TOKENS):
            ids = torch.cat((ids, model(input_ids=ids).logits[:, -1:].argmax(-1)), dim=1)
    expected = bytes(ids[0].tolist()).decode(errors="replace")
    said = pipeline("text-generation", folder)(PROMPT, max_new_tokens=NEW_TOKENS, do_sample=False)[0]["generated_text"]
    expect(said == expected, f"{said!r}, not {expected!r}")


def begins_from_nothing(folder):
    model = AutoModelForCausalLM.from_pretrained(folder)
    ids = model.generate(max_new_tokens=NEW_TOKENS, do_sample=False)[0].tolist()
    expect(ids[0] == ord("\n") and len(ids) == 1 + NEW_TOKENS, f"{len(ids)} tokens from {ids[0]} on")
    # As long as the pipeline likes: the debug flavors have fewer positions than that.
    said = pipeline("text-generation", folder)(PROMPT)[0]["generated_text"]
    expect(len(said) > len(PROMPT), f"{said!r}")


def speaks_as_the_page_says(folder):
    """The Python of docs/use/first-own-job.md, as it stands but for the folder."""
    with open(os.path.join(ROOT, "docs", "use", "first-own-job.md"), encoding="utf-8") as file:
        code = re.search(r"^```python\n(.*?)^```", file.read(), re.MULTILINE | re.DOTALL).group(1)
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        exec(code.replace("my-model", folder), {})  # our own page
    expect(said.getvalue().startswith("The ") and len(said.getvalue()) > len("The "), f"{said.getvalue()!r}")


TESTS = (encodes_any_text, decodes_any_bytes, completes_a_sentence, begins_from_nothing, speaks_as_the_page_says)


# What the folder of a tokenizer says beside its tokens, by kind of tokenizer.
SPOKEN = {"llama3": {"eos_token": tokenizers_made.EOT, "pad_token": tokenizers_made.END}, "fallback": {"eos_token": "</s>"}, "unigram": {}}
SHAPE = {"model_type": "llama", "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 1, "num_attention_heads": 2,
         "num_key_value_heads": 2, "max_position_embeddings": 64}
WORDS = 2048  # more than the tokenizers have


def ends_as_its_tokenizer_does(cluster, kind, generation=None):
    """Of a model from the seed: the ids of config.json are those that AutoTokenizer and, where there is one, GenerationConfig say."""
    job = f"tokens-{kind}" + ("-generation" if generation else "")
    top = os.path.join(cluster.top, job)
    tokenizer = tokenizers_made.make(kind, top, **SPOKEN[kind])
    if generation:
        GenerationConfig(**generation).save_pretrained(tokenizer)
    text = os.path.join(top, "text.txt")
    with open(text, "w", encoding="utf-8") as file:
        file.write(tokenizers_made.english(60000))
    prepare(tokenizer, os.path.join(top, "tokens"), text)
    AutoConfig.for_model(**SHAPE, vocab_size=WORDS).save_pretrained(top)
    sections = job_sections(cluster, training__steps=1, checkpoint__interval=1, data__path=os.path.join(top, "tokens"))
    sections["model"] = {"config": os.path.join(top, "config.json")}
    cluster.submit_job(job, sections)
    cluster.wait_for_state(job, "SUCCEEDED")
    out = os.path.join(cluster.top, "export", job)
    done = cluster.run_motley("export", job, "--out", out)
    expect(done.returncode == 0, f"motley export: {done.stderr}")
    config, said = AutoConfig.from_pretrained(out), AutoTokenizer.from_pretrained(out)
    for name in ("bos_token_id", "eos_token_id", "pad_token_id"):
        expected = (generation or {}).get(name, getattr(said, name))
        expect(getattr(config, name) == expected, f"{name} is {getattr(config, name)}, not {expected}")
    expect(config.eos_token_id is not None, "none ends it")
    if not generation:  # then transformers makes it from the config
        generates = AutoModelForCausalLM.from_pretrained(out).generation_config
        expect(generates.eos_token_id == said.eos_token_id, f"generates until {generates.eos_token_id}")


def main():
    torch.set_num_threads(1)
    results = Results("tokenizer")
    with TestCluster() as cluster:
        cluster.start({"n1": [CPU_DEVICE]})
        for family in FAMILIES:
            folders = []
            results.run(f"{family}: export", lambda: folders.append(exported(cluster, family)))
            for test in TESTS if folders else ():
                results.run(f"{family}: {test.__name__.replace('_', ' ')}", test, folders[0])
        for kind in SPOKEN:
            results.run(f"tokens of {kind}: it ends as its tokenizer does", ends_as_its_tokenizer_does, cluster, kind)
        results.run("tokens of llama3: it ends as generation_config.json says", ends_as_its_tokenizer_does, cluster, "llama3",
                    {"eos_token_id": [0, 5], "bos_token_id": 6})
    results.exit()


if __name__ == "__main__":
    main()
