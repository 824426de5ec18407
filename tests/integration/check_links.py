#!/usr/bin/env python3
"""Every link of every page, every page that a message or a comment names, and every heading that either names: they are there.
And each page of docs/use and docs/inside is in its folder's index. First it tries itself on links_samples.py.

usage: check_links.py [--self-test | --installed PREFIX]   (the second: only the links of pages that were installed there)
"""
import functools
import os
import re
import sys

from links_samples import SAMPLES

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
INDEXES = ["docs/use/README.md", "docs/inside/README.md"]
NOT_OURS = {".git", "build", "__pycache__", "shared"}
OWN = {"tests/integration/links_samples.py", "tests/integration/check_links.py"}   # name pages that must not be there

LINK = re.compile(r"\]\(([^()\s]+)\)")
OF_ELSEWHERE = re.compile(r"[a-z][a-z+.-]*:")
# A page by its name: in the sources, or where it is installed.
NAMED = re.compile(r"(?<![\w./-])(docs/|(?:usr/)?share/doc/motley/|@DOCDIR@/)([\w./-]*?[\w-]+\.md)(#[\w-]+)?(?:, (\"[^\"\n]+\"))?")
PLACEHOLDER = re.compile(r"(^|/)[A-Z]+\.md$")   # docs/inside/strategies/NAME.md
README = re.compile(r"(^|/)README\.md$")


def without_code(text):
    """The text with its fenced code blanked, so that places stay."""
    return re.sub(r"^```.*?^```[^\n]*", lambda match: re.sub(r"[^\n]", " ", match.group()), text, flags=re.MULTILINE | re.DOTALL)


def without_spans(text):
    return re.sub(r"`[^`\n]*`", lambda match: " " * len(match.group()), text)


def headings(text):
    return [match.group(1).strip() for match in re.finditer(r"^#{1,6} (.*)$", without_code(text), re.MULTILINE)]


def titles(text):
    """What a comment may quote: headings, and the bold words that a paragraph begins with."""
    return [plain(heading) for heading in headings(text)] + re.findall(r"^\*\*(.+?)\.\*\*", text, re.MULTILINE)


def plain(heading):
    return re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "")


def anchors(text):
    """As GitHub makes them of headings."""
    found = []
    for heading in headings(text):
        anchor = re.sub(r"[^\w\- ]", "", plain(heading).lower()).replace(" ", "-")
        found.append(f"{anchor}-{found.count(anchor)}" if anchor in found else anchor)
    return found


class Tree:
    """Files by path, with what they say; and whether a path is there."""

    def __init__(self, files, exists):
        self.files, self.exists = files, exists
        self.anchors = functools.lru_cache(None)(lambda path: anchors(files[path]))

    def wrong_target(self, path, anchor, heading=None):
        """Why a page cannot be met; None where it can."""
        if path not in self.files and not self.exists(path):
            return f"{path} is not there"
        if anchor and path in self.files and anchor.removeprefix("#") not in self.anchors(path):
            return f"{path} has no heading {anchor}"
        if heading and heading.strip('"') not in titles(self.files[path]):
            return f"{path} has no heading {heading}"
        return None


def links(path, text):
    """(position, path, anchor) of each link of a page to what is here."""
    for match in LINK.finditer(without_spans(without_code(text))):
        target, sharp, anchor = match.group(1).partition("#")
        if not OF_ELSEWHERE.match(match.group(1)):
            yield match.start(), os.path.normpath(os.path.join(os.path.dirname(path), target)) if target else path, sharp + anchor


def names(text):
    for match in NAMED.finditer(text):
        page = f"docs/{match.group(2)}"
        if page == "docs/README.md" and match.group(1) != "docs/":
            page = "README.md"   # is installed among the pages
        if README.search(page) or not PLACEHOLDER.search(page):
            yield match.start(), page, match.group(3), match.group(4)


def findings(tree, by_name=True):
    found = []
    for path, text in sorted(tree.files.items()):
        targets = list(names(text)) if by_name and path not in OWN else []
        if path.endswith(".md"):
            # What a link says in its brackets is not judged a second time.
            targets = [each for each in targets if not text[:each[0]].endswith(("](", "["))] + list(links(path, text))
        for position, *target in sorted(targets, key=lambda each: each[0]):
            if why := tree.wrong_target(*target):
                found.append(f"{path}:{text.count(chr(10), 0, position) + 1}: {why}")
    return found


def left_out(tree):
    """Pages that their folder's index does not lead to."""
    found = []
    for index in INDEXES:
        listed = {target for _, target, _ in links(index, tree.files[index])}
        pages = {path for path in tree.files if path.startswith(os.path.dirname(index) + "/") and path.endswith(".md")}
        found += [f"{index}: has no link to {path}" for path in sorted(pages - listed - {index})]
    return found


def read_tree(root, wanted=lambda path: True):
    files = {}
    for top, folders, found in os.walk(root):
        folders[:] = [name for name in folders if name not in NOT_OURS]
        for name in found:
            path = os.path.join(top, name)
            inside = os.path.relpath(path, root)
            if not wanted(inside) or not os.path.isfile(path) or os.path.islink(path):
                continue
            try:
                with open(path, encoding="utf-8") as file:
                    files[inside] = file.read()
            except UnicodeDecodeError:
                pass   # an input of the fuzzer, an archive
    return Tree(files, lambda path: os.path.exists(os.path.join(root, path)))


def main():
    results = []   # what is checked, and what is wrong there
    for what, sample, expected in SAMPLES:
        tree = Tree(sample, lambda path: False)
        found = findings(tree) + left_out(tree)
        results.append((what, [] if found == expected else [f"found {found}, not {expected}"]))
    arguments = sys.argv[1:]
    if arguments[:1] == ["--installed"]:
        tree = read_tree(arguments[1], lambda path: path.startswith("share/"))
        results.append((f"links of the {sum(path.endswith('.md') for path in tree.files)} installed pages", findings(tree, by_name=False)))
    elif arguments != ["--self-test"]:
        tree = read_tree(ROOT)
        results += [("links and names of pages", findings(tree)), ("indexes", left_out(tree))]
    for what, wrong in results:
        print("\n".join(f"FAIL links: {each}" for each in wrong) if wrong else f"ok links: {what}")
    sys.exit(1 if any(wrong for _, wrong in results) else 0)


if __name__ == "__main__":
    main()
