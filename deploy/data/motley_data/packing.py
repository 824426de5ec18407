"""Which documents lie in a row together. Best fit, the longest first: each goes to the row in which it leaves the least room.

A bit for every room that some row has: the smallest room that is large enough is the lowest bit from there on, so a document costs one
look at a number of seq_len bits.
"""
import random


def pack(lengths, seq_len):
    """Lists of documents, a row each. Equal lengths keep their order, so the rows are the same everywhere."""
    with_room = [[] for _ in range(seq_len + 1)]   # rows by what room they have
    rooms, rows = 0, []
    for document in sorted(range(len(lengths)), key=lambda d: -lengths[d]):
        length = lengths[document]
        fitting = rooms >> length
        if fitting:
            room = length + (fitting & -fitting).bit_length() - 1
            row = with_room[room].pop()
            if not with_room[room]:
                rooms ^= 1 << room
            rows[row].append(document)
        else:
            room, row = seq_len, len(rows)
            rows.append([document])
        room -= length
        if not with_room[room]:
            rooms |= 1 << room
        with_room[room].append(row)
    return rows


def drawn_order(count):
    """Best fit sorts by length: without another order the last rows, which validate, would be the short ones."""
    draw = random.Random(1).random   # the same on every Python
    keys = [draw() for _ in range(count)]
    return sorted(range(count), key=keys.__getitem__)
