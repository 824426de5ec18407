"""Tokenizers of the kinds that published models have, trained here in a second each."""
import os
import random

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import PreTrainedTokenizerFast

LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
END, TURN, TURN_END = "<|endoftext|>", "<|im_start|>", "<|im_end|>"
HEADER, HEADER_END, EOT, BEGIN = "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>", "<|begin_of_text|>"
SPECIAL = [END, TURN, TURN_END, HEADER, HEADER_END, EOT, BEGIN, "<s>", "</s>", "<unk>"]
WORDS = 1500
NAMES = ("gpt2", "llama3", "qwen", "fallback", "unigram")


def english(characters, seed=1):
    """Sentences of drawn words, with names, numbers and quotes."""
    draw = random.Random(seed)
    syllables = ["ta", "ren", "mo", "li", "sou", "ver", "an", "ing", "the", "of", "and", "ka", "il", "est", "or", "un", "dis", "per"]
    words = ["".join(draw.choice(syllables) for _ in range(draw.randint(1, 4))) for _ in range(3000)]
    parts, size = [], 0
    while size < characters:
        sentence = [draw.choice(words) for _ in range(draw.randint(3, 14))]
        sentence[0] = sentence[0].capitalize()
        if draw.random() < 0.2:
            sentence.insert(1, str(draw.randint(0, 99999)))
        part = " ".join(sentence) + draw.choice([".", ".", "?", "!\n", ".\n\n", "; it's", ", \"said\" he."]) + " "
        parts.append(part)
        size += len(part)
    return "".join(parts)


def hostile(count, seed=2):
    """Lines of odd spaces, scripts, signs and special tokens."""
    draw = random.Random(seed)
    pieces = ["\t", "  ", "\u00a0", "\u3000", "\u4e2d\u6587", "e\u0301", "\u00e9", "\U0001f600", "\U0001f468\u200d\U0001f469", "\u0627\u0644", "\u0939\u093f",
              "'ll", "'S", "12345", "0x7f", "==", "</p>", "<|endoftext|>", "<|im_start|>", "</s>", "\r", "\x00", "\x7f", "\ufeff", "a", "B", " the", "\u2581", "\ufffd"]
    return ["".join(draw.choice(pieces) for _ in range(draw.randint(1, 40))) for _ in range(count)]


def code(count, seed=3):
    draw = random.Random(seed)
    return ["".join(f"{'    ' * draw.randint(0, 3)}if x_{draw.randint(0, 9)} != {draw.random():.3f}:  # {i}\n" for i in range(draw.randint(1, 12))) + "\treturn;\r\n"
            for _ in range(count)]


def byte_level(pattern):
    tokenizer = Tokenizer(models.BPE())
    if pattern is None:
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    else:
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
            pre_tokenizers.Split(Regex(pattern), "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer, trainers.BpeTrainer(vocab_size=WORDS, special_tokens=SPECIAL, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False)


def fallback():
    """As Llama 2's: the text is one word, spaces are signs, what is unknown becomes bytes."""
    tokenizer = Tokenizer(models.BPE(byte_fallback=True, unk_token="<unk>", fuse_unk=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first", split=True)   # to train it in words
    tokenizer.decoder = decoders.Sequence([decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse()])
    return tokenizer, trainers.BpeTrainer(vocab_size=WORDS, special_tokens=SPECIAL + [f"<0x{i:02X}>" for i in range(256)], show_progress=False)


def unigram():
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.NFKC()
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    return tokenizer, trainers.UnigramTrainer(vocab_size=WORDS, special_tokens=SPECIAL, unk_token="<unk>", show_progress=False)


def make(kind, folder, **settings):
    """Writes the folder of a tokenizer; returns its path."""
    tokenizer, trainer = {"gpt2": lambda: byte_level(None), "llama3": lambda: byte_level(LLAMA3), "qwen": lambda: byte_level(QWEN),
                          "fallback": fallback, "unigram": unigram}[kind]()
    tokenizer.train_from_iterator([english(60000), *hostile(100), *code(100)], trainer)
    if kind == "llama3":
        tokenizer.post_processor = processors.Sequence([
            processors.ByteLevel(trim_offsets=False),
            processors.TemplateProcessing(single=f"{BEGIN} $A", special_tokens=[(BEGIN, tokenizer.token_to_id(BEGIN))])])
        settings.setdefault("bos_token", BEGIN)
    if kind == "qwen":
        tokenizer.normalizer = normalizers.NFC()
        tokenizer.add_tokens([AddedToken("<think>", normalized=False), AddedToken("</think>", normalized=False)])
    if kind == "fallback":
        tokenizer.pre_tokenizer = None
        tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")])
        tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", tokenizer.token_to_id("<s>"))])
        settings.setdefault("bos_token", "<s>")
    settings.setdefault("eos_token", END)
    template = settings.pop("chat_template", None)
    made = PreTrainedTokenizerFast(tokenizer_object=tokenizer, **settings)
    made.chat_template = template
    path = os.path.join(folder, kind)
    made.save_pretrained(path)
    return path
