"""What each process does with a batch of chats: mends them, writes them by the template, encodes them, says what is trained on."""
import collections

import numpy

from . import masks
from .errors import BadRecord
from .mending import mend
from .template import Template
from .tokenizer import Tokenizer


OPEN = "answers that no special token ends: a model may not learn to stop there"
BEHIND_CUT = "documents left out: what is trained on lay behind the cut"


class Result:
    def __init__(self):
        self.tokens, self.lengths = [], []      # id * 2 + trained, of one document after another
        self.bad = []                           # (place, why)
        self.texts = []                         # (text, ids), where they were asked for
        self.counts = collections.Counter()
        self.documents_of = collections.Counter()   # by how their masks were found
        self.source_bytes = 0
        self.asked_for_day = False


class ChatWork:
    def __init__(self, folder, recipe, train, seq_len, eos_id):
        self._tokenizer = Tokenizer(folder)
        self._template = Template(self._tokenizer.fast, *recipe)
        self._masks = masks.Masks(self._template, train)
        self._train, self._seq_len = train, seq_len
        self._eos = [] if eos_id is None else [eos_id]

    def __call__(self, task):
        batch, wants_texts = task
        result, tokens = Result(), []
        for place, chat in batch:
            try:
                documents = self._documents(chat, wants_texts, result)
            except BadRecord as error:
                result.bad.append((place, str(error)))
                continue
            for document, ids, trained in documents:
                result.source_bytes += len(document.text.encode("utf-8"))
                self._take(ids, trained, tokens, result)
        result.tokens = numpy.concatenate(tokens) if tokens else numpy.empty(0, numpy.int32)
        result.lengths = numpy.asarray(result.lengths, numpy.int32)
        result.asked_for_day = self._template.asked_for_day
        return result

    def _documents(self, chat, wants_texts, result):
        """(document, ids, trained) of each; BAD where none has anything to train on."""
        counts = collections.Counter()
        if "prompt" in chat:
            documents, how = [self._completion(chat)], "completion"
        else:
            messages, tools = mend(chat["messages"], chat["tools"], chat["from_parquet"], counts)
            documents, how = self._masks.documents(messages, tools, chat.get("answers_from", 0))
            self._count_dropped(messages, tools, documents, counts)
        encoded = []
        for document in documents:
            try:
                encoding = self._tokenizer.encode(document.text)
            except (UnicodeError, TypeError) as error:
                raise BadRecord("its text holds half a character (a surrogate, \\ud800 to \\udfff)") from error
            if wants_texts:
                result.texts.append((document.text, encoding.ids))
            before, behind = document.frame
            ids = [*before, *encoding.ids, *behind]
            trained, is_open = masks.trained_tokens(document, encoding, self._tokenizer.added)
            if how != "completion" and self._train != masks.ALL:
                counts[OPEN] += is_open
            trained = [self._train == masks.ALL] * len(before) + trained + [True] * len(behind)
            if any(trained[1:]):
                encoded.append((document, ids, trained))
        if not encoded:
            raise BadRecord("nothing in it is trained on")
        result.counts.update(+counts)   # without what was counted as none
        result.documents_of[how] += len(encoded)
        return encoded

    def _completion(self, chat):
        text = chat["prompt"] + chat["completion"]
        begin = 0 if self._train == masks.ALL else len(chat["prompt"])
        frame = (self._tokenizer.prefix, self._tokenizer.suffix + self._eos)
        return masks.Document(text, [(begin, len(text))], exact=True, frame=frame)

    def _count_dropped(self, messages, tools, documents, counts):
        """Of a thought it is enough that one document has it: a template that drops old ones gives each answer its own."""
        for message in messages:
            thought = message.get("reasoning_content")
            if isinstance(thought, str) and thought.strip() and not any(thought.strip() in document.text for document in documents):
                counts["reasoning_content that the template leaves out"] += 1
        for tool in tools or ():
            name = (tool.get("function") or tool).get("name", "")
            if name not in documents[-1].text:
                counts["tools that the template leaves out"] += 1

    def _take(self, ids, trained, tokens, result):
        if len(ids) > self._seq_len:
            result.counts["documents longer than a row, cut"] += 1
            ids, trained = ids[:self._seq_len], trained[:self._seq_len]
            if not any(trained[1:]):
                result.counts[BEHIND_CUT] += 1
                return
        tokens.append(numpy.asarray(ids, numpy.int32) * 2 + numpy.asarray(trained, numpy.int32))
        result.lengths.append(len(ids))
