"""Which token ends a document of text."""
from .errors import DATA, BadRecord, Refused

QUESTION = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]


class Eos:
    """`token`: its text, or "off". `id`: what is put behind a document; None where nothing is, or the tokenizer does so itself."""

    def __init__(self, asked, tokenizer, template, say):
        own = tokenizer.fast.eos_token
        if asked == "off":
            self.token, self.id = "off", None
            return
        if asked == "on" and own is None:
            raise Refused(DATA, f"the tokenizer of {tokenizer.folder} names no end token (eos_token in tokenizer_config.json); --eos TOKEN names one")
        if asked == "auto" and own is None:
            say("the tokenizer names no end token: documents follow one another without; --eos TOKEN names one")
            self.token, self.id = "off", None
            return
        self.token = own if asked in ("auto", "on") else asked
        self.id = tokenizer.id_of(self.token)
        if self.id is None:
            raise Refused(DATA, f"--eos {self.token}: the vocabulary of {tokenizer.folder} has no such token")
        if asked == "auto":
            turn = " It also ends a turn of a chat there; if documents are to end otherwise, --eos TOKEN." if self._ends_turns(template) else ""
            say(f"documents end with {self.token}.{turn}")
        if self.id in tokenizer.suffix:   # it is there already
            self.id = None

    def _ends_turns(self, template):
        try:
            return self.token in template.render(QUESTION, None)
        except (Refused, BadRecord):   # it has none, or one that wants other chats
            return False
