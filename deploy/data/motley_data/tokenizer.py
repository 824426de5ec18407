"""The tokenizer of a folder: what its tokenizer.json says."""
import hashlib
import json
import os
import shutil

import numpy

from .errors import DATA, NO_INPUT, Refused, one_line
from .memory import give_back

FILE = "tokenizer.json"
SMALL_FILES = (FILE, "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "vocab.json", "vocab.txt", "merges.txt",
               "chat_template.jinja", "chat_template.json", "generation_config.json", "config.json")
SMALL_FOLDER = "additional_chat_templates"


def digest_of(path):
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


def read_json(path):
    """{} where the file is not there."""
    if not os.path.exists(path):
        return {}
    try:
        with open(path, encoding="utf-8") as file:
            value = json.load(file)
    except (OSError, ValueError) as error:
        raise Refused(DATA, f"{path}: {one_line(error)}") from error
    if not isinstance(value, dict):
        raise Refused(DATA, f"{path} holds no JSON object")
    return value


def check_folder(folder):
    if not os.path.isdir(folder):
        raise Refused(NO_INPUT, f"--tokenizer {folder} is no folder; give the one that holds the model's {FILE}")
    if not os.path.isfile(os.path.join(folder, FILE)):
        models = sorted(name for name in os.listdir(folder) if name.endswith(".model"))
        if models:
            raise Refused(DATA, f"{folder} has {models[0]} and no {FILE}; transformers makes one, where sentencepiece is installed: "
                                f"AutoTokenizer.from_pretrained('{folder}').save_pretrained('{folder}')")
        raise Refused(NO_INPUT, f"{folder} has no {FILE}; it comes with the model ('hf download MODEL --include \"*.json\"')")
    if "AutoTokenizer" in (read_json(os.path.join(folder, "tokenizer_config.json")).get("auto_map") or {}):
        raise Refused(DATA, f"the tokenizer of {folder} is code of its own (auto_map in tokenizer_config.json), which is not run; "
                            "give a folder whose tokenizer.json says it all, and remove auto_map there")


class Tokenizer:
    def __init__(self, folder):
        from transformers import PreTrainedTokenizerFast   # late: it takes a second, and others need no tokenizer
        self.folder = folder
        check_folder(folder)
        try:
            self.fast = PreTrainedTokenizerFast.from_pretrained(folder, local_files_only=True)
        except Exception as error:   # the library has errors of many kinds for a bad file
            raise Refused(DATA, f"{os.path.join(folder, FILE)} does not load: {one_line(error)}") from error
        self.backend = self.fast.backend_tokenizer
        self.backend.no_truncation()
        self.backend.no_padding()
        self.added = frozenset(self.fast.added_tokens_decoder)
        self.vocab_size = max(self.backend.get_vocab(with_added_tokens=True).values(), default=-1) + 1
        self.model_vocab_size = read_json(os.path.join(folder, "config.json")).get("vocab_size")
        self.prefix, self.suffix = self._frame()
        give_back()

    def _frame(self):
        """What the tokenizer itself puts before and behind a text."""
        bare, framed = (self.backend.encode("a", add_special_tokens=special).ids for special in (False, True))
        for begin in range(len(framed) - len(bare) + 1):
            if framed[begin:begin + len(bare)] == bare:
                return framed[:begin], framed[begin + len(bare):]
        raise Refused(DATA, f"{os.path.join(self.folder, FILE)} changes a text by its special tokens; such a tokenizer is not supported")

    def id_of(self, token):
        """None where the vocabulary lacks it."""
        return self.backend.token_to_id(token)

    def encode_documents(self, texts):
        """Lists of ids, each with what the tokenizer puts around a text."""
        return [encoding.ids for encoding in self.backend.encode_batch_fast(texts, add_special_tokens=True)]

    def ids_of(self, text):
        """Of a part of a text."""
        return numpy.asarray(self.backend.encode_batch_fast([text], add_special_tokens=False)[0].ids, numpy.int32)

    def encode(self, text):
        """A text that has its special tokens already: ids and places."""
        return self.backend.encode(text, add_special_tokens=False)


def copy_small_files(folder, target):
    """Byte for byte, so that each export has them."""
    os.mkdir(target)
    for name in SMALL_FILES:
        if os.path.isfile(os.path.join(folder, name)):
            shutil.copyfile(os.path.join(folder, name), os.path.join(target, name))
    if os.path.isdir(os.path.join(folder, SMALL_FOLDER)):
        shutil.copytree(os.path.join(folder, SMALL_FOLDER), os.path.join(target, SMALL_FOLDER), copy_function=shutil.copyfile)
