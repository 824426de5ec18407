"""`motley data prepare`: from input files to a folder of tokens."""
import json
import os

from . import environment, forms, rows, stream
from .eos import Eos
from .errors import DATA, NO_INPUT, USAGE, BadRecord, Refused
from .out_folder import OutFolder
from .pool import count_processes
from .progress import Progress, size
from .records import records_of
from .sources import open_all
from .tally import Tally
from .template import Template
from .tokenizer import FILE, Tokenizer, copy_small_files, digest_of

SMALL_INPUT = 4 << 20   # bytes that one process does before others have begun


def template_of(options, tokenizer):
    if options.chat_template is None:
        return Template(tokenizer.fast, None, tokenizer.folder, options.template_arguments, options.day)
    try:
        with open(options.chat_template, encoding="utf-8") as file:
            text = file.read()
    except FileNotFoundError as error:
        raise Refused(NO_INPUT, f"--chat-template {options.chat_template} is not there") from error
    except UnicodeDecodeError as error:
        raise Refused(DATA, f"--chat-template {options.chat_template} is not UTF-8") from error
    return Template(tokenizer.fast, text, options.chat_template, options.template_arguments, options.day)


def holds_chats(sources, column):
    """By the first record that is whole."""
    for source in sources:
        if source.kind == "text":
            return False
        for place, record in records_of(source):
            if not isinstance(record, BadRecord):
                return not forms.is_text(forms.form_of(record, column, place))
    return False


def prepare(options):
    """Returns tokens.json as it was written."""
    made_with = environment.check()
    sources = open_all(options.inputs)
    tokenizer = Tokenizer(options.tokenizer)
    progress = Progress(sources)
    is_chats = holds_chats(sources, options.column)
    if is_chats and options.seq_len is None:
        raise Refused(USAGE, f"{sources[0].path} holds chats, which become rows: give --seq-len N, the sequence length of the job")
    if not is_chats and options.seq_len is not None:
        progress.say("text is a stream for any sequence length: --seq-len is not used")
    if options.processes is None:
        options.processes = 1 if sum(source.bytes for source in sources) <= SMALL_INPUT else count_processes()
    template = template_of(options, tokenizer)
    if tokenizer.model_vocab_size is not None and tokenizer.vocab_size > tokenizer.model_vocab_size:
        progress.say(f"the tokenizer has {tokenizer.vocab_size} words and the model {tokenizer.model_vocab_size} (vocab_size in config.json): "
                     "text that has the others is refused")
    tally = Tally(options.skip_bad, tokenizer.model_vocab_size, progress.say)
    out = OutFolder(options.out)
    try:
        if is_chats:
            eos = Eos(options.eos, tokenizer, template, lambda text: None)
            part = rows.prepare(sources, options, tokenizer, eos, template, out, tally, progress)
        else:
            eos = Eos(options.eos, tokenizer, template, progress.say)
            part = stream.prepare(sources, options, tokenizer, eos, out, tally, progress)
        copy_small_files(tokenizer.folder, out.file("tokenizer"))
        manifest = {"format": "motley-tokens", "version": 1, "vocab_size": tokenizer.vocab_size, "source_bytes": tally.source_bytes,
                    "tokenizer": digest_of(os.path.join(tokenizer.folder, FILE)), "made_with": made_with, **part}
        out.finish(manifest)
    except BaseException:
        out.abandon()
        raise
    finally:
        progress.end()
    return manifest, tally


def share(part, whole):
    return f"{100 * part / whole:.1f} %" if whole else "none"


def report(path, manifest, tally):
    """The lines that a user sees."""
    lines = [f"{path}: {manifest['tokens']} tokens of {manifest['documents']} documents, {size(manifest['source_bytes'])} of text"]
    if manifest["kind"] == "rows":
        room = manifest["rows"] * manifest["seq_len"]
        lines.append(f"  {manifest['rows']} rows of up to {manifest['seq_len']} tokens, {share(manifest['tokens'], room)} full; "
                     f"{manifest['trained_tokens']} tokens are trained on, {share(manifest['trained_tokens'], manifest['tokens'])}")
        how = {"tags": "masks by the template's tags", "prefix": "masks by prefix", "turns": "a document for each answer, as the template rewrites "
               "earlier turns", "whole": "trained on whole", "last": "the last answer of each chat", "each": "a document for each answer",
               "completion": "completions of a prompt"}
        lines += [f"  {count} documents: {how[name]}" for name, count in sorted(manifest["chats"]["documents"].items())]
        if "day" in manifest["chats"]:
            lines.append(f"  the template writes the day: {manifest['chats']['day']} (--day)")
    lines += [f"  {count} {name}" for name, count in sorted(tally.counts.items())]
    if tally.bad:
        lines.append(f"  {tally.bad} records left out (--skip-bad)")
    return "\n".join(lines)


def run(options):
    manifest, tally = prepare(options)
    if options.json:
        print(json.dumps({"folder": os.path.abspath(options.out), "counts": dict(tally.counts), "left_out": tally.bad, "tokens": manifest}, indent=2))
    else:
        print(report(options.out, manifest, tally))
