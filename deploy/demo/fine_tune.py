#!/usr/bin/env python3
"""The example fine-tune: a base model from its seed on tokens of a tokenizer made here, exported, and tuned on chats while a node
is killed and comes back.

usage: fine_tune.py --example FOLDER --bin FOLDER --cache FOLDER --work FOLDER [--json FILE]

The folder has cluster.toml (nodes, sizes of data, what is killed), config.json and chat_template.jinja (the model), base.toml and
tune.toml (the two jobs, whose paths are filled in).
"""
import json
import os
import shutil
import sys
import time
import tomllib

import kill
import script
import verses
from cluster import ClusterError
from data_python import DataPython
from demo import say
from example_cluster import read_example, start_cluster

NO_LEARNING = {"training__steps": 1, "optimizer__lr": 1e-12, "lr_scheduler__warmup_steps": 0}   # smaller than what float32 keeps
REPLANS = 2
JOB_PATIENCE_SECONDS = 1200   # hundreds of steps, on a host that may be busy


class FineTune:
    def __init__(self, cluster, arguments):
        self.cluster, self.folder, self.example = cluster, arguments.example, read_example(arguments.example)
        self.data = DataPython(cluster, arguments.cache)
        self.model, self.base, self.tuned = (cluster.path(name) for name in ("model", "base", "tuned"))

    def make_model(self):
        """The lines of text and chats by name, and the folder that a model begins as: shape, tokenizer, template."""
        lines, words = verses.write(self.cluster.folder, self.example["text"]), self.example["text"]["words"]
        os.mkdir(self.model)
        shutil.copy(os.path.join(self.folder, "config.json"), self.model)
        self.data.script("make_tokenizer.py", lines["text"], str(words), os.path.join(self.folder, "chat_template.jinja"), self.model)
        say(f"a tokenizer of {words} words, made of the text")
        return lines

    def prepare(self, lines, name, *options):
        return self.data.prepare(self.model, lines[name], self.cluster.path("tokens", name), *options)

    def train(self, job_file, job_id, **settings):
        """Submitted, not waited for."""
        return kill.Training(self.cluster, os.path.join(os.path.abspath(self.folder), job_file), job_id, settings, JOB_PATIENCE_SECONDS,
                             every=10, poll_seconds=1)

    def export(self, job_id, out):
        self.cluster.motley("export", job_id, "--out", out)
        say(f"motley export {job_id}: {', '.join(sorted(os.listdir(out)))}")

    def train_base(self, lines):
        """Returns its records, and leaves the model in self.base."""
        say()
        say("the base: a Llama from its seed, on text")
        training = self.train("base.toml", "base", model__config=os.path.join(self.model, "config.json"),
                              data__path=self.prepare(lines, "text"))
        training.until("the base job's end", lambda: False)
        self.export("base", self.base)
        return training.records

    def tune(self, lines):
        """(perplexity of the held-out chats before, the training that was killed and ended)"""
        say()
        say("the same model on chats")
        length = ("--seq-len", str(seq_len_of(os.path.join(self.folder, "tune.toml"))))
        settings = {"checkpoint__initial": self.base, "data__path": self.prepare(lines, "chats", *length),
                    "data__validation_path": self.prepare(lines, "held-out", *length)}
        say("held-out chats before: one step that learns nothing, and its validation")
        before = self.train("tune.toml", "before", **settings, **NO_LEARNING)
        before.until("the validation before", lambda: False)
        say()
        training = self.train("tune.toml", "tuned", **settings)
        kill.train_killed(self.cluster, self.example, training)
        self.export("tuned", self.tuned)
        return validations(before.records)[-1]["perplexity"], training

    def load(self):
        question = verses.FOLLOWS.format("Genesis 1:3: And God said, Let there be light: and there was light.")
        return {"question": question, **json.loads(self.data.script("load_export.py", self.tuned, question))}


def seq_len_of(job_path):
    with open(job_path, "rb") as file:
        return tomllib.load(file)["training"]["seq_len"]


def validations(records):
    """One for each step that was validated, the newest where it was made twice."""
    newest = {int(r["step"]): r for r in records if r["validation_perplexity"] is not None}
    return [{"step": step, "loss": newest[step]["validation_loss"], "perplexity": newest[step]["validation_perplexity"],
             "bits_per_byte": newest[step]["validation_bits_per_byte"]} for step in sorted(newest)]


def check(result, expected):
    """What the example is to show."""
    tuned = result["tuned"]
    if tuned["replans"] < REPLANS:
        raise ClusterError(f"{tuned['replans']} replans of the job whose node was killed and came back, and not {REPLANS}")
    if tuned["factor"] < expected["factor"]:
        raise ClusterError(f"perplexity of the held-out chats fell from {tuned['perplexity_before']:.1f} to {tuned['perplexity_after']:.1f}, "
                           f"by {tuned['factor']:.2f} and not by {expected['factor']}")


def fine_tune(cluster, arguments):
    begin = time.monotonic()
    work = FineTune(cluster, arguments)
    lines = work.make_model()
    start_cluster(cluster, work.example)
    base = validations(work.train_base(lines))
    base_seconds = time.monotonic() - begin
    before, training = work.tune(lines)
    after = validations(training.records)
    result = {"schema_version": 1, "example": "fine-tune", "base": {"validations": base, "seconds": base_seconds},
              "tuned": {"perplexity_before": before, "perplexity_after": after[-1]["perplexity"],
                        "factor": before / after[-1]["perplexity"], "validations": after, "killed": work.example["kill"]["node"],
                        "replans": training.replans(), "generations": training.generations,
                        "seconds": time.monotonic() - begin - base_seconds},
              "export": work.load()}
    check(result, work.example["expected"])
    return result | {"setup_seconds": arguments.setup_seconds, "total_seconds": arguments.setup_seconds + time.monotonic() - begin}


def print_result(result):
    base, tuned, export = result["base"], result["tuned"], result["export"]
    end = base["validations"][-1]
    print(f"\n  the base      of the text's end, which it was not trained on: perplexity {end['perplexity']:.1f}, "
          f"{end['bits_per_byte']:.2f} bits a byte; {base['seconds']:.0f} s")
    print(f"  held-out chats, of what the assistant says\n  {'step':>6}   perplexity\n  {0:6d}   {tuned['perplexity_before']:10.1f}")
    for row in tuned["validations"]:
        print(f"  {row['step']:6d}   {row['perplexity']:10.1f}")
    print(f"  lower by a factor of {tuned['factor']:.2f}; {tuned['replans']} replans, as node {tuned['killed']} was killed and came back;"
          f" {tuned['seconds']:.0f} s")
    print(f"\n  the export loads in transformers: {export['class']}, a tokenizer of {export['words']} words")
    if export["torch"]:
        print(f"  {export['parameters']} parameters; asked: {export['question']}\n  it says: {export['answer']}")
    else:
        print("  there is no torch in that Python to ask it with")
    sys.stdout.flush()


def main():
    parser = script.parser_of("Motley's example of a model of one's own")
    parser.add_argument("--example", required=True, help="its folder")
    arguments = parser.parse_args()
    return script.run(arguments, lambda cluster: fine_tune(cluster, arguments), print_result)


if __name__ == "__main__":
    sys.exit(main())
