"""The demo's text as chapters of verses: the text and the chats of the example fine-tune, some chapters held out of both."""
import json
import random
import re

from text import print_text

VERSE = re.compile(r"^([0-9]?[A-Za-z]+)([0-9]+):[0-9]+ (.*)$")
BOOKS = ("Genesis", "Exodus", "Leviticus", "Numbers", "Deuteronomy", "Joshua", "Judges", "Ruth", "1 Samuel", "2 Samuel", "1 Kings",
         "2 Kings", "1 Chronicles", "2 Chronicles", "Ezra", "Nehemiah", "Esther", "Job", "Psalms", "Proverbs", "Ecclesiastes",
         "Song of Songs", "Isaiah", "Jeremiah", "Lamentations", "Ezekiel", "Daniel", "Hosea", "Joel", "Amos", "Obadiah", "Jonah",
         "Micah", "Nahum", "Habakkuk", "Zephaniah", "Haggai", "Zechariah", "Malachi", "Matthew", "Mark", "Luke", "John", "Acts",
         "Romans", "1 Corinthians", "2 Corinthians", "Galatians", "Ephesians", "Philippians", "Colossians", "1 Thessalonians",
         "2 Thessalonians", "1 Timothy", "2 Timothy", "Titus", "Philemon", "Hebrews", "James", "1 Peter", "2 Peter", "1 John",
         "2 John", "3 John", "Jude", "Revelation")
FOLLOWS, BEGINS, AND_THEN, VERSE_OF = "What follows {}", "How does {} begin?", "And then?", "{}:{}: {}"
SEED = 1


def chapters_of(printed):
    """(name, verses) of each chapter, in the book's order."""
    chapters, books, last = [], [], None
    for line in printed.splitlines():
        match = VERSE.match(line)
        if not match:
            raise SystemExit(f"demo: `bible` printed a line that is no verse: {line[:60]!r}")
        book, chapter, verse = match.groups()
        if not books or books[-1] != book:
            books.append(book)
        if last != (book, chapter):
            last = (book, chapter)
            chapters.append((f"{BOOKS[len(books) - 1]} {chapter}", []))
        chapters[-1][1].append(verse.strip())
    return chapters


def split(chapters, held_out):
    """(those to train on, every held_out-th one)"""
    return ([chapter for i, chapter in enumerate(chapters) if i % held_out != held_out - 1],
            [chapter for i, chapter in enumerate(chapters) if i % held_out == held_out - 1])


def chat(question, answers):
    messages = []
    for number, answer in enumerate(answers):
        messages += [{"role": "user", "content": AND_THEN if number > 0 else question}, {"role": "assistant", "content": answer}]
    return {"messages": messages}


def chats_of(chapters, count):
    """As many, drawn from all that can be asked of the chapters: one or two answers, each the next verse with its place."""
    draw, chats = random.Random(SEED), []
    for name, verses in chapters:
        lines = [VERSE_OF.format(name, number, verse) for number, verse in enumerate(verses, 1)]
        chats.append(chat(BEGINS.format(name), lines[:draw.randint(1, 2)]))
        first = 0
        while first + 1 < len(lines):
            answers = lines[first + 1:first + 1 + draw.randint(1, 2)]
            chats.append(chat(FOLLOWS.format(lines[first]), answers))
            first += 1 + len(answers)
    return draw.sample(chats, min(count, len(chats)))


def write_lines(path, records):
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(json.dumps(record) + "\n" for record in records)
    return path


def write(folder, sizes):
    """JSON Lines of text, a chapter each, and of chats; the paths by name."""
    trained, held_out = split(chapters_of(print_text().decode("utf-8")), sizes["held_out"])
    records = {"text": [{"text": "\n".join(verses)} for _, verses in trained],
               "chats": chats_of(trained, sizes["chats"]), "held-out": chats_of(held_out, sizes["held_out_chats"])}
    return {name: write_lines(f"{folder}/{name}.jsonl", lines) for name, lines in records.items()}
