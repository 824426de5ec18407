"""Tokens of a text that is too long to be encoded at once: in windows that overlap, joined where both have the same tokens.

A tokenizer's choice depends on what stands near. At the edge of a window something is missing, so the first and last tokens may be others
than those of the whole text; a few characters further both windows have the text's own. They are joined in the middle of the longest run
of tokens that both have in their common part.
"""
import numpy

from .errors import DATA, Refused

WINDOW = 1 << 18    # characters
OVERLAP = 1 << 11
LEAST_RUN = 8       # tokens that two windows must have in common
MOST_JOINED = 16    # windows that are encoded as one, where two have no such run


class Window:
    """Tokens of text[begin:end]; `heads` and `tails` are (index, begin, end, id) of those in the parts that it shares with its neighbours."""

    def __init__(self, encoding, begin, length, shares_head, shares_tail):
        self.ids = numpy.asarray(encoding.ids, numpy.int32)
        self.heads = self._tokens(encoding, begin, 0, OVERLAP) if shares_head else []
        self.tails = self._tokens(encoding, begin, length - OVERLAP, length) if shares_tail else []

    def _tokens(self, encoding, begin, first, behind):
        low, high = 0, len(self.ids)
        while low < high:   # the first that begins in the part
            middle = (low + high) // 2
            if encoding.token_to_chars(middle)[0] < first:
                low = middle + 1
            else:
                high = middle
        found = []
        while low < len(self.ids) and encoding.token_to_chars(low)[1] <= behind:
            place = encoding.token_to_chars(low)
            found.append((low, begin + place[0], begin + place[1], int(self.ids[low])))
            low += 1
        return found


def encode_window(tokenizer, text, begin, shares_head, shares_tail):
    return Window(tokenizer.encode(text), begin, len(text), shares_head, shares_tail)


def seam(left, right):
    """(index in the left window, index in the right one) where the second goes on; None: they have too little in common."""
    places = {token[1:]: i for i, token in enumerate(right.heads)}
    best, run = (0, 0), 0   # its length, and the last of it in left.tails
    shift = None
    for i, token in enumerate(left.tails):
        other = places.get(token[1:])
        if other is not None and run and other - i == shift:
            run += 1
        else:
            run, shift = (1, other - i) if other is not None else (0, None)
        if run > best[0]:
            best = (run, i, shift)
    if best[0] < LEAST_RUN:
        return None
    at = best[1] - best[0] // 2
    while at > best[1] - best[0] + 1 and left.tails[at][1] < left.tails[at - 1][2]:   # not within a character of several tokens
        at -= 1
    return left.tails[at][0], right.heads[at + best[2]][0]


class Joiner:
    """Takes the windows of one text in order and yields its tokens. Keeps the last window, and its text in case it must be encoded again."""

    def __init__(self, tokenizer, path):
        self._tokenizer, self._path = tokenizer, path
        self._window = None
        self._taken = 0      # tokens of the window that are out already
        self._text, self._begin, self._joined = "", 0, 1

    def add(self, window, text, begin, is_last):
        """Tokens that are certain now."""
        out = []
        if self._window is not None:
            place = seam(self._window, window)
            if place is None:
                self._join(text, begin, is_last)
            else:
                out.append(self._window.ids[self._taken:place[0]])
                self._window, self._taken, self._text, self._begin, self._joined = window, place[1], text, begin, 1
        else:
            self._window, self._text, self._begin = window, text, begin
        if is_last:
            out.append(self._window.ids[self._taken:])
        return numpy.concatenate(out) if out else numpy.empty(0, numpy.int32)

    def _join(self, text, begin, is_last):
        """The window and the next as one. What is out already stays: it lies far before."""
        self._joined += 1
        if self._joined > MOST_JOINED:
            raise Refused(DATA, f"{self._path}: around character {begin} there is no place where the tokens of the text could be told apart "
                                f"(one character again and again?); give the text in documents, as JSON Lines")
        self._text += text[self._begin + len(self._text) - begin:]
        self._window = encode_window(self._tokenizer, self._text, self._begin, True, not is_last)


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
