"""Where AutoTokenizer reads a folder otherwise than its tokenizer.json has it, a model would be asked in other tokens than it was taught."""
from .errors import DATA, Refused, one_line
from .memory import give_back

LOOKED_AT = 1 << 20   # characters


class Agreement:
    """Compares the ids of the first texts with AutoTokenizer's."""

    def __init__(self, tokenizer, say):
        from transformers import AutoTokenizer
        self._tokenizer, self._left = tokenizer, LOOKED_AT
        try:
            self._auto = AutoTokenizer.from_pretrained(tokenizer.folder, local_files_only=True, trust_remote_code=False)
        except Exception as error:   # a folder of a tokenizer alone has no class to find, and tokenizer.json is enough for us
            self._auto = None
            say(f"AutoTokenizer does not load {tokenizer.folder} ({one_line(error)}); the tokens are those of its tokenizer.json")
        give_back()

    def is_done(self):
        return self._auto is None

    def __call__(self, text, ids, special):
        if self._auto is None:
            return
        if self._left <= 0:
            self._auto = None
            give_back()
            return
        self._left -= len(text) + 1
        theirs = self._auto(text, add_special_tokens=special).input_ids
        if list(theirs) == list(ids):
            return
        at = next((i for i, (a, b) in enumerate(zip(theirs, ids)) if a != b), min(len(theirs), len(ids)))
        ours = self._tokenizer.fast.convert_ids_to_tokens(list(ids[at:at + 3]))
        other = self._tokenizer.fast.convert_ids_to_tokens(list(theirs[at:at + 3]))
        raise Refused(DATA, f"AutoTokenizer and tokenizer.json of {self._tokenizer.folder} disagree: token {at} of {text[:40]!r} begins "
                            f"{other} there and {ours} here, {len(theirs)} tokens and {len(ids)}; tokenizer_class in its "
                            f"tokenizer_config.json ({type(self._auto).__name__}) is not what made tokenizer.json: "
                            "set it to PreTrainedTokenizerFast there, or take the folder as its makers published it")
