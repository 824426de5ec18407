"""The records of an input file: lines or items of JSON, rows of Parquet. Each with its place: FILE:NUMBER."""
import json
import re

from .environment import need_parquet
from .errors import DATA, BadRecord, Refused, one_line

MOST = 64 << 20      # bytes of one line, characters of one item of an array
PARQUET_ROWS = 256   # at a time
NEAR_END = 16        # a value that is cut off fails as close to the end as this
SEPARATOR = re.compile(r"[\s,]*")


def records_of(source):
    """Yields (place, record); a record may be a BadRecord."""
    if source.kind == "parquet":
        return _rows(source)
    if source.kind == "json" and _first_character(source) == "[":
        return _items(source)
    return _lines(source)


def _first_character(source):
    for block in source.text_blocks():
        if block.strip():
            return block.strip()[0]
    return ""


def _object(value):
    return value if isinstance(value, dict) else BadRecord(f"a JSON object is wanted, and this is {type(value).__name__}")


def _what_is_wrong(error):
    """Of a line: Python would count lines anew in it."""
    return f"{error.msg} at character {error.pos + 1}" if isinstance(error, json.JSONDecodeError) else one_line(error)


def _lines(source):
    for number, line in source.lines(MOST):
        if number == 1 and line.startswith(b"\xef\xbb\xbf"):
            line = line[3:]
        if not line.strip():
            continue
        try:
            record = _object(json.loads(line))
        except (ValueError, RecursionError) as error:
            record = BadRecord(f"no JSON: {_what_is_wrong(error)}")
        yield f"{source.path}:{number}", record


def _is_cut_off(error, text):
    if isinstance(error, RecursionError):
        return False
    return error.msg.startswith("Unterminated string") or error.pos >= len(text) - NEAR_END


def _items(source):
    """One JSON array, item by item: it may be larger than memory."""
    decoder, blocks = json.JSONDecoder(), source.text_blocks()
    text, number, at_end = next(blocks).lstrip(), 0, False
    place = 1   # behind the bracket
    while True:
        place = SEPARATOR.match(text, place).end()
        if text.startswith("]", place):
            return
        value, end = None, len(text)
        try:
            if place < len(text):
                value, end = decoder.raw_decode(text, place)
        except (json.JSONDecodeError, RecursionError) as error:
            if at_end or not _is_cut_off(error, text) or len(text) - place > MOST:
                raise Refused(DATA, f"{source.path}: item {number + 1} of the array is no JSON: {one_line(error)}") from error
        # What ends with the block may go on in the next.
        if end == len(text) and not at_end:
            more = next(blocks, None)
            text, place, at_end = text[place:] + (more or ""), 0, more is None
            continue
        if place == len(text):
            raise Refused(DATA, f"{source.path}: the array has no end; the file is cut off behind item {number}")
        number, place = number + 1, end
        yield f"{source.path}: item {number}", _object(value)


def _rows(source):
    parquet = need_parquet()
    try:
        file = parquet.ParquetFile(source.path)
        rows, number = max(file.metadata.num_rows, 1), 0
        for batch in file.iter_batches(batch_size=PARQUET_ROWS):
            for row in batch.to_pylist():
                number += 1
                yield f"{source.path}: row {number}", row
            source.done = source.bytes * number // rows
    except (OSError, ValueError) as error:   # pyarrow's errors are of these two
        raise Refused(DATA, f"{source.path} is no whole Parquet file: {one_line(error)}") from error

