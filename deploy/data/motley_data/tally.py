"""What is counted on the way: bytes of text, records that were passed over, and what was done to chats."""
import collections
import contextlib

from .errors import DATA, BadRecord, Refused


class Tally:
    def __init__(self, skip_bad, model_vocab_size, say):
        self.counts = collections.Counter()
        self.source_bytes = 0
        self.bad = 0
        self._most_bad, self._say = skip_bad, say
        self._model_vocab_size = model_vocab_size

    @contextlib.contextmanager
    def record(self, place):
        try:
            yield
        except BadRecord as error:
            self.pass_over(place, str(error))

    def pass_over(self, place, why):
        if self.bad >= self._most_bad:
            more = f", and --skip-bad {self._most_bad} allows for no more" if self._most_bad else "; --skip-bad N passes over N such"
            raise Refused(DATA, f"{place}: {why}{more}")
        self.bad += 1
        self._say(f"left out {place}: {why}")

    def bytes_of(self, text):
        try:
            return len(text.encode("utf-8"))
        except UnicodeEncodeError as error:
            raise BadRecord("its text holds half a character (a surrogate, \\ud800 to \\udfff)") from error

    def counted(self, blocks):
        for block in blocks:
            self.source_bytes += len(block.encode("utf-8"))
            yield block

    def check_greatest(self, token):
        if self._model_vocab_size is not None and token >= self._model_vocab_size:
            raise Refused(DATA, f"the text holds token {token}, and the model has a vocabulary of {self._model_vocab_size} words (vocab_size in "
                                "config.json): no model could read it; leave that text out, or take the tokenizer that belongs to the model")
