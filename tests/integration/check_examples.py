#!/usr/bin/env python3
"""The examples run: each one's own strategy and another for two steps, on the example's cluster, to the same loss; one loses a
node and gets it back, and one trains what its cards do not hold. And of the example that tunes on chats, its text and chats; with
--long, the whole of it instead.

usage: check_examples.py [--long]   (MOTLEY_BIN: folder of the binaries)
"""
import json
import math
import os
import re
import subprocess
import sys
import tempfile

from harness import ROOT, Results, expect
from patience import patience

import verses  # of deploy/demo, whose place harness names

KEYS = {"strategy", "fits", "tokens_per_second", "step_seconds", "predicted_step_seconds", "peak_bytes", "predicted_peak_bytes",
        "devices"}
EXAMPLES = {"zorse": "zorse,megatron", "poplar": "poplar,poplar-zero2,even", "baton": "baton,megatron",
            "hexiscale": "hexiscale,megatron", "cephalo": "cephalo,cephalo-never"}
# Of a device's measured peak above the predicted one, of the fullest and of the others, and below it, of the fullest. The first
# step puts what a rank owns into its buffers, unit by unit, and a stage of one layer with small microbatches takes more for that
# than for all that follows.
FULLEST_ABOVE, ABOVE, FULLEST_BELOW = 0.05, 0.1, 0.1
LOSS_TOLERANCE = 1e-4     # between strategies
KILLED_TOLERANCE = 1e-5   # float32, of every step
CACHE = os.environ.get("MOTLEY_CACHE", os.path.expanduser("~/.cache/motley"))


def run(name, *arguments, program="example.py", seconds=300):
    """The example's result; an error with what it printed otherwise."""
    with tempfile.TemporaryDirectory() as folder:
        result = os.path.join(folder, "rows.json")
        done = subprocess.run([sys.executable, os.path.join(ROOT, "deploy", "demo", program),
                               "--example", os.path.join(ROOT, "deploy", "examples", name), "--bin", os.environ["MOTLEY_BIN"],
                               "--cache", CACHE, "--work", os.path.join(folder, "work"), "--json", result, *arguments],
                              capture_output=True, text=True, timeout=patience(seconds), check=False)
        expect(done.returncode == 0, f"status {done.returncode}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
        with open(result, encoding="utf-8") as file:
            return json.load(file)


def strategies(name, names):
    rows = run(name, "--steps", "2", "--only", names)["strategies"]
    expect([row["strategy"] for row in rows] == names.split(","), f"rows of {[row['strategy'] for row in rows]}")
    as_predicted(rows)


def as_predicted(rows):
    """All of them trained, in the memory that was predicted, to one loss."""
    for row in rows:
        missing = KEYS - row.keys()
        expect(not missing, f"{row['strategy']}: no {', '.join(sorted(missing))}: {row}")
        problem = mispredicted(row["devices"])
        expect(not problem, f"{row['strategy']}: {problem}")
    losses = [row["loss_last"] for row in rows]
    expect(max(losses) - min(losses) <= LOSS_TOLERANCE * max(losses), f"losses differ: {losses}")


def too_big():
    """Without offload it says what is lacking; with it the same job trains."""
    never, *rows = run("zorse", "--big", "--steps", "2")["strategies"]
    expect(not never["fits"] and re.search(r"(lacks .*B|B are missing)", never["why"]), f"without offload: {never}")
    as_predicted(rows)


def killed_node():
    """From one pipeline to another and back. A busy host takes its time to start the node again: the job is to last till then."""
    row, = run("zorse", "--kill", "--only", "float32", "--steps", "24")["kill"]
    expect(row["undisturbed_replans"] == 0, f"{row['undisturbed_replans']} replans of the undisturbed job")
    expect(row["replans"] == 2 and len(row["generations"]) == 3, f"{row['replans']} replans: {row['generations']}")
    before, between, after = row["generations"]
    expect(all(generation["stages"] > 1 for generation in row["generations"]), f"no pipeline: {row['generations']}")
    lost = f"{row['node']}/"
    expect(lost in before["layout"] and lost not in between["layout"] and lost in after["layout"], f"layouts: {row['generations']}")
    expect(between["steps_repeated"] <= 3 and after["steps_repeated"] == 0, f"steps repeated: {row['generations']}")
    expect(row["losses"][-1][1] == 24 and row["loss_last"] != row["losses"][0][2], f"steps and losses: {row['losses']}")
    expect(row["largest_relative_difference"] <= KILLED_TOLERANCE, f"losses differ by {row['largest_relative_difference']}")


def mispredicted(devices):
    """What is wrong with the first device that took another amount of memory than was predicted of it."""
    for device in devices:
        error, fullest = device["peak_bytes"] / device["predicted_peak_bytes"] - 1, device is devices[0]
        if error > (FULLEST_ABOVE if fullest else ABOVE) or error < -(FULLEST_BELOW if fullest else 1 - 1e-9):
            return f"its memory is {error:+.1%} off the prediction: {device}"
    return ""


def questions():
    """Of the chats that it tunes on: each answer is the next verse of its chapter, and nothing of what is held out is trained on."""
    chapters = verses.chapters_of(verses.print_text().decode("utf-8"))
    expect(len(chapters) == 1189 and sum(len(lines) for _, lines in chapters) == 31102, f"{len(chapters)} chapters")
    expect(chapters[0][0] == "Genesis 1" and chapters[-1][0] == "Revelation 22", f"from {chapters[0][0]} to {chapters[-1][0]}")
    trained, held_out = verses.split(chapters, 20)
    expect(len(trained) + len(held_out) == 1189 and len(held_out) == 59, f"{len(held_out)} chapters are held out")
    begins = {verses.BEGINS.format(name): f"{name}:1: {lines[0]}" for name, lines in chapters}
    for part, others, count in ((trained, held_out, 3000), (held_out, trained, 160)):
        follows = {(f"{name}:{i}: {lines[i - 1]}", f"{name}:{i + 1}: {lines[i]}") for name, lines in part for i in range(1, len(lines))}
        foreign = {verses.BEGINS.format(name) for name, _ in others}
        chats = verses.chats_of(part, count)
        expect(len(chats) == count and chats == verses.chats_of(part, count), f"{len(chats)} chats, or not the same ones again")
        for messages in (chat["messages"] for chat in chats):
            question, first = (message["content"] for message in messages[:2])
            answers = [message["content"] for message in messages if message["role"] == "assistant"]
            pairs = list(zip(answers, answers[1:]))
            if question.startswith(verses.FOLLOWS.format("")):
                pairs.append((question.removeprefix(verses.FOLLOWS.format("")), first))
            else:
                expect(begins[question] == first and question not in foreign, f"{question!r} is answered by {first!r}")
            wrong = [pair for pair in pairs if pair not in follows]
            expect(not wrong, f"not one after the other in a chapter of this part: {wrong[:1]}")


def fine_tuned():
    """The example itself ends with an error where perplexity does not fall far enough or the export does not load."""
    result = run("fine-tune", program="fine_tune.py", seconds=900)
    tuned, export = result["tuned"], result["export"]
    end = result["base"]["validations"][-1]
    expect(math.isclose(end["perplexity"], math.exp(end["loss"])) and 0 < end["bits_per_byte"] < end["loss"] / math.log(2), f"the base: {end}")
    expect(all(row["bits_per_byte"] is None for row in tuned["validations"]), f"bits a byte of rows: {tuned['validations']}")
    expect(tuned["factor"] == tuned["perplexity_before"] / tuned["perplexity_after"] >= 1.5, f"perplexity: {tuned}")
    expect(tuned["replans"] == 2 and len(tuned["generations"]) == 3, f"{tuned['replans']} replans: {tuned['generations']}")
    lost = f"{tuned['killed']}/"
    expect([lost in generation["layout"] for generation in tuned["generations"]] == [True, False, True], f"layouts: {tuned['generations']}")
    expect(export["class"] == "LlamaConfig" and export["words"] == 4000, f"the export: {export}")
    expect(not export["torch"] or (1e6 < export["parameters"] < 2e6 and export["answer"]), f"the export: {export}")


def main():
    if sys.argv[1:] not in ([], ["--long"]):
        sys.exit(__doc__)
    results = Results("examples")
    if sys.argv[1:]:
        results.run("fine-tune: tuned on chats while a node is killed and comes back", fine_tuned)
        results.exit()
    results.run("fine-tune: its questions and answers", questions)
    for name, names in EXAMPLES.items():
        results.run(f"{name}: {names}", strategies, name, names)
    results.run("zorse: a model that its cards do not hold", too_big)
    results.run("zorse: a node is killed and comes back", killed_node)
    results.exit()


if __name__ == "__main__":
    main()
