"""Tokens of a text that is too long to be encoded at once: in windows that overlap, joined where both have the same tokens.

A tokenizer's choice depends on what stands near. At the edge of a window something is missing, so its first and last tokens may be others
than those of the whole text. The common part of two windows is encoded by itself, too. It begins as the right window does and ends as the
left one does, so its tokens say where those of both are: the right window has them from the front up to where the common part's end tells,
the left one from the back down to where its beginning tells. Where both have them, they are the whole text's.
"""
import numpy

from .errors import DATA, Refused

WINDOW = 1 << 17    # characters
OVERLAP = 1 << 11
LEAST_RUN = 8       # tokens that two windows must have in common
MOST_JOINED = 16    # windows that are encoded as one, where two have no such run


class Window:
    """Its tokens, and those of the part that it shares with the next."""

    def __init__(self, tokenizer, text, is_last):
        self.ids = tokenizer.ids_of(text)
        self.common = None if is_last else tokenizer.ids_of(text[-OVERLAP:])


def _run(a, b):
    """How many tokens both have from the front."""
    length = min(len(a), len(b))
    differ = numpy.nonzero(a[:length] != b[:length])[0]
    return int(differ[0]) if len(differ) else length


def seam(left, right):
    """(index in the left window, index in the right one) where the second goes on; None: they have too little in common."""
    common = left.common
    begin, end = len(common) - _run(left.ids[::-1], common[::-1]), _run(right.ids, common)
    if end - begin < LEAST_RUN:
        return None
    middle = (begin + end) // 2
    return len(left.ids) - (len(common) - middle), middle


class Joiner:
    """Takes the windows of one text in order and gives its tokens. Keeps the last window, and its text in case it must be encoded again."""

    def __init__(self, tokenizer, path):
        self._tokenizer, self._path = tokenizer, path
        self._window, self._taken = None, 0   # how many of its tokens are out already
        self._text, self._joined = "", 1

    def add(self, window, text, begin, is_last):
        """Tokens that are certain now."""
        out = []
        place = None if self._window is None else seam(self._window, window)
        if self._window is not None and place is None:
            self._join(text, begin, is_last)
        else:
            if place is not None:
                out.append(self._window.ids[self._taken:place[0]])
            self._window, self._taken, self._text, self._joined = window, 0 if place is None else place[1], text, 1
        if is_last:
            out.append(self._window.ids[self._taken:])
        return numpy.concatenate(out) if out else numpy.empty(0, numpy.int32)

    def _join(self, text, begin, is_last):
        """The window and the next as one. What is out already stays: it lies far before."""
        self._joined += 1
        if self._joined > MOST_JOINED:
            raise Refused(DATA, f"{self._path}: around character {begin} there is no place where the tokens of the text could be told apart "
                                "(one character again and again?); give the text in documents, as JSON Lines")
        self._text += text[OVERLAP:]
        self._window = Window(self._tokenizer, self._text, is_last)


def cut(blocks):
    """(text, where it begins, is it the last) of each window of a text that comes in blocks."""
    text, begin = "", 0
    for block in blocks:
        text += block
        while len(text) > WINDOW + OVERLAP:
            yield text[:WINDOW], begin, False
            text, begin = text[WINDOW - OVERLAP:], begin + WINDOW - OVERLAP
    if text:
        yield text, begin, True
