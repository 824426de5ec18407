"""A byte-level BPE tokenizer made of JSON Lines, as a folder that transformers loads. Runs in the Python of `motley data`.

usage: make_tokenizer.py TEXT.jsonl WORDS TEMPLATE FOLDER
"""
import json
import os
import shutil
import sys

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

END = "<|end|>"   # of a text and of a turn; the first word, as eos_token_id of config.json says
SPECIAL = [END, "<|user|>", "<|assistant|>"]


def texts(path):
    with open(path, encoding="utf-8") as file:
        for line in file:
            yield json.loads(line)["text"]


def write_json(path, value):
    with open(path, "w", encoding="utf-8") as file:
        json.dump(value, file, indent=2)
        file.write("\n")


def main():
    path, words, template, folder = sys.argv[1:]
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=int(words), special_tokens=SPECIAL, show_progress=False,
                                  initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()))
    tokenizer.train_from_iterator(texts(path), trainer)
    tokenizer.save(os.path.join(folder, "tokenizer.json"))
    shutil.copyfile(template, os.path.join(folder, "chat_template.jinja"))
    write_json(os.path.join(folder, "tokenizer_config.json"),
               {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": END, "clean_up_tokenization_spaces": False,
                "additional_special_tokens": SPECIAL[1:]})
    # Where an answer ends; an export of what began from a seed says it by no other file.
    write_json(os.path.join(folder, "generation_config.json"), {"eos_token_id": SPECIAL.index(END), "pad_token_id": SPECIAL.index(END)})


if __name__ == "__main__":
    main()
