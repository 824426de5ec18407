#!/usr/bin/env python3
"""One name, one type: no struct, class, union, enum or alias that a reader or the compiler can take for another one.

Reads the .h and .cc files of the four libraries and fails where
- one fully qualified name is defined in two files: two .cc files may disagree about it, and no linker says so;
- two headers of one library have types of one name, whatever their namespaces;
- a type hides one of its name in a namespace around its own (motley::planner::X hides motley::X), in any two files.
Types nested in a class count under the class's name; those in functions and in a .cc file's anonymous namespace do not count. ALLOWED
says what may stay. Prints "ok NAME" or "FAIL NAME: why". Tries itself on type_names_samples.py first; `--self-test` does that alone.
"""
import collections
import itertools
import pathlib
import re
import sys

from type_names_samples import SAMPLES

ROOT = pathlib.Path(__file__).resolve().parents[2]
LIBRARIES = ["planner", "common", "coordinator", "worker"]
# {(one qualified name, the other), in order: why both may stay}. An entry that allows nothing any more fails.
ALLOWED = {}
# What is no code: a raw string, a comment, a string, a character (the ' of 1'000 is none), a directive.
NO_CODE = re.compile(r'R"([^\s()\\]*)\(.*?\)\1"|//(?:\\\n|[^\n])*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"'
                     r"|(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'|^[ \t]*#(?:\\\n|(?!//|/\*)[^\n])*", re.DOTALL | re.MULTILINE)
TOKEN = re.compile(r"\w+|::|\[\[|\]\]|\S")
OPEN, CLOSE = {"(", "<", "[", "[["}, {")", ">", "]", "]]"}

# name: qualified; scope: its namespace, None where a class has it; same: of an alias, the name that it stands for.
Type = collections.namedtuple("Type", "name scope path line same")


def outer(tokens):
    """[(place, token)] of what stands outside of all brackets: of templates' parameters, attributes, macros' arguments."""
    depth, found = 0, []
    for place, token in enumerate(tokens):
        depth -= token in CLOSE
        if depth <= 0 and token not in CLOSE | OPEN:
            found.append((place, token))
        depth += token in OPEN
    return found


def type_head(tokens):
    """The name of the type whose body follows the tokens; "" where it has none or is a specialisation; None where no type does."""
    head = outer(tokens)
    keys = [at for at, (_, token) in enumerate(head) if token in ("struct", "class", "union", "enum")]
    if not keys or "=" in (token for _, token in head):
        return None
    name = list(itertools.takewhile(lambda one: one[1] not in (":", "final"), head[keys[-1] + 1:]))
    after = tokens[name[-1][0] + 1:][:1] if name else []
    if after == ["("]:  # a function that returns the type
        return None
    if not name or after == ["<"]:
        return ""
    return "".join(token for _, token in name) if "::" in (token for _, token in name) else name[-1][1]


def types_of(path, text):
    """The types that the file defines. A scope on the stack is (kind, names): a "namespace", a "class", or "skip": not looked into."""
    text = NO_CODE.sub(lambda no: ('"' if no.group()[0] in "R\"'" else " ") + "\n" * no.group().count("\n"), text)
    found, stack, head = [], [], []

    def add(name, line, same=None):
        kinds = [kind for kind, _ in stack]
        if "skip" not in kinds:
            scope = "::".join(itertools.chain.from_iterable(names for _, names in stack))
            in_class = "class" in kinds or "::" in name
            found.append(Type(f"{scope}::{name}" if scope else name, None if in_class else scope, path, line, same))

    def enter(line):
        name = type_head(head)
        if "namespace" in head:
            names = [part for _, part in outer(head[head.index("namespace") + 1:]) if part not in ("::", "inline")]
            # A header's anonymous namespace is every includer's.
            stack.append(("namespace" if names or path.endswith(".h") else "skip", names))
        elif head == ["extern", '"']:
            stack.append(("namespace", []))
        else:
            if name:
                add(name, line)
            stack.append(("class" if name else "skip", [name]))

    for line, code in enumerate(text.split("\n"), 1):
        for token in TOKEN.findall(code):
            if token == "{":
                enter(line)
            elif token == "}" and stack:
                stack.pop()
            elif token == ";" and "using" in head and head[head.index("using") + 2:][:1] == ["="]:
                at = head.index("using")
                add(head[at + 1], line, "".join(head[at + 3:]))
            head = [] if token in "{};" else head + [token]
    return found


def why_wrong(one, other):
    """Of two types of one name and different qualified ones; None where both may be."""
    where = f"{one.path}:{one.line} and {other.path}:{other.line}"
    if any(a.same and f"::{b.name}".endswith("::" + a.same.removeprefix("::")) for a, b in ((one, other), (other, one))):
        return None
    for around, within in ((one, other), (other, one)):
        if f"::{within.scope}::".startswith(f"::{around.scope}::" if around.scope else "::"):
            return f"{within.name} hides {around.name}: {where}"
    if all(a.path.endswith(".h") and a.path.split("/")[0] == one.path.split("/")[0] for a in (one, other)):
        return f"in one library: {where}"
    return None


def findings(files):
    """{(name, name): why} of {path: text}, in order."""
    by_name, by_last, wrong = collections.defaultdict(dict), collections.defaultdict(list), {}
    for one in itertools.chain.from_iterable(types_of(path, files[path]) for path in sorted(files)):
        by_name[one.name].setdefault(one.path, one)
    for name, places in sorted(by_name.items()):
        if len(places) > 1 and (name.rpartition("::")[0],) * 2 not in wrong:
            wrong[name, name] = "twice: " + " and ".join(f"{one.path}:{one.line}" for one in places.values())
        by_last[name.rpartition("::")[2]] += [one for one in places.values() if one.scope is not None]
    for types in by_last.values():
        for one, other in itertools.combinations(types, 2):
            if one.name != other.name and (why := why_wrong(one, other)):
                wrong.setdefault((one.name, other.name), why)
    return wrong


def main():
    results, files = [], {}  # what is checked, and why it is wrong
    for what, sample, expected in SAMPLES:
        found = list(findings(sample))
        results.append((what, "" if found == expected else f"found {found}, not {expected}"))
    if "--self-test" not in sys.argv[1:]:
        paths = [path for library in LIBRARIES for path in (ROOT / library).rglob("*") if path.suffix in (".h", ".cc")]
        files = {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in paths}
        found = findings(files)
        results += [(library, "" if any(path.startswith(library + "/") for path in files) else "no files") for library in LIBRARIES]
        results += [(" and ".join(dict.fromkeys(pair)), why) for pair, why in found.items() if pair not in ALLOWED]
        results += [(" and ".join(dict.fromkeys(pair)), "" if pair in found else "is in ALLOWED and gone") for pair in ALLOWED]
    for what, wrong in results:
        print(f"FAIL type names: {what}: {wrong}" if wrong else f"ok type names: {what}")
    sys.exit(1 if any(wrong for _, wrong in results) else 0)


if __name__ == "__main__":
    main()
