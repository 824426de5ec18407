"""What check_links.py tries itself on: (what is tried, {path: text}, what has to be found)."""
INDEXES = {"docs/use/README.md": "[a](a.md)", "docs/inside/README.md": ""}
PAGE = "# A\n\n## One's way, `--x` and [two](b.md)\n\n## Twice\n\n## Twice\n"


def _tree(**more):
    return {**INDEXES, "docs/use/a.md": "# A\n", **{name.replace("__", "/").replace("_md", ".md"): text for name, text in more.items()}}


SAMPLES = [
    ("passes what is there", _tree(README_md="[a](docs/use/a.md#a), [web](https://x.org/y.md), [b](#c)\n# C"), []),
    ("finds a page that is not there", _tree(README_md="see [a](docs/a.md)"), ["README.md:1: docs/a.md is not there"]),
    ("finds a file that is not there", _tree(README_md="\n![a](docs/a.svg)"), ["README.md:2: docs/a.svg is not there"]),
    ("finds a link whose text goes over two lines", _tree(README_md="[a\nb](c.md)"), ["README.md:2: c.md is not there"]),
    ("finds a heading that is not there",
     _tree(README_md="[a](docs/use/a.md#b)"), ["README.md:1: docs/use/a.md has no heading #b"]),
    ("finds one of the same page", _tree(README_md="[a](#b)"), ["README.md:1: README.md has no heading #b"]),
    ("knows headings with signs, code and links, and those that come twice",
     {**INDEXES, "docs/use/a.md": PAGE, "README.md": "[x](docs/use/a.md#ones-way---x-and-two) [y](docs/use/a.md#twice-1)"},
     ["docs/use/a.md:3: docs/use/b.md is not there"]),
    ("takes no heading from code",
     {**INDEXES, "docs/use/a.md": "# A\n```\n# B\n```\n    # C\n[b](#b)"}, ["docs/use/a.md:6: docs/use/a.md has no heading #b"]),
    ("takes no link from code", _tree(README_md="```\n[b](c)\n```\n`d[1](2)`\n"), []),
    ("finds a page that a message names", _tree(**{"common/x.cc": 'Error("a (docs/b.md)")'}), ["common/x.cc:1: docs/b.md is not there"]),
    ("finds a heading that a comment quotes", _tree(**{"common/x.h": '\n// docs/use/a.md, "B"; docs/use/a.md, "A"'}),
     ['common/x.h:2: docs/use/a.md has no heading "B"']),
    ("takes a paragraph's bold words for a heading", {**INDEXES, "docs/use/a.md": "**B.** C", "x.h": '// docs/use/a.md, "B"'}, []),
    ("finds an installed page", _tree(**{"x.txt": "share/doc/motley/b.md, @DOCDIR@/use/a.md, share/doc/motley/README.md", "README.md": ""}),
     ["x.txt:1: docs/b.md is not there"]),
    ("lets a placeholder be", _tree(**{"docs/inside/README.md": "`docs/inside/NAME.md`"}), []),
    ("finds a page that its index leaves out",
     _tree(**{"docs/inside/c.md": "# C"}), ["docs/inside/README.md: has no link to docs/inside/c.md"]),
]
