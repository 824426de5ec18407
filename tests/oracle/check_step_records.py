#!/usr/bin/env python3
"""Step records beside the checkpoints, read back by TensorBoard's own reader and by the csv module.

Runs in the oracle's Python (tensorboard). A job loses a rank, so some steps are made twice: each step stands once in what
TensorBoard shows, with the values that the coordinator tells.
"""
import csv
import glob
import os
import signal
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "integration"))

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator  # noqa: E402

from faults_common import PACED, paced_job, rank_of  # noqa: E402
from harness import Results, TestCluster, expect  # noqa: E402

JOB = "records"
TAGS = {"training/loss": "loss", "training/grad_norm": "grad_norm", "training/lr": "lr", "training/validation_loss": "validation_loss",
        "training/validation_perplexity": "validation_perplexity", "training/validation_bits_per_byte": "validation_bits_per_byte",
        "speed/tokens_per_second": "tokens_per_second", "speed/step_seconds": "step_seconds",
        "speed/predicted_step_seconds": "predicted_step_seconds"}
FLOAT32 = 1e-6  # event files hold float32


def train(cluster):
    paced_job(cluster, JOB, metrics__enable_tensorboard=True, metrics__step_records="csv", data__validation_interval=10)
    cluster.wait_for_step(JOB, 8)
    os.kill(rank_of(cluster, "n2"), signal.SIGKILL)
    cluster.wait_for_state(JOB, "SUCCEEDED")
    generations = {int(record["generation"]) for record in cluster.steps(JOB)}
    expect(len(generations) == 2, f"generations {generations}, two expected")


def close(ours, theirs, limit):
    return abs(ours - theirs) <= limit * max(abs(theirs), 1e-12)


def tensorboard_reads(cluster):
    reader = EventAccumulator(cluster.checkpoints(JOB) + "/tb", purge_orphaned_data=True)
    reader.Reload()
    records = cluster.steps(JOB)
    expect(set(reader.Tags()["scalars"]) == {*TAGS, "training/tokens"}, f"tags {reader.Tags()['scalars']}")
    for tag, key in TAGS.items():
        wanted = [(record["step"], record[key]) for record in records if record[key] is not None]
        shown = [(event.step, event.value) for event in reader.Scalars(tag)]
        expect([step for step, _ in shown] == [step for step, _ in wanted], f"{tag}: steps {[step for step, _ in shown]}")
        for (step, value), (_, told) in zip(shown, wanted):
            expect(close(value, told, FLOAT32), f"{tag} of step {step}: {value}, the coordinator says {told}")
    last = reader.Scalars("training/tokens")[-1]
    expect(last.value == 40 * 12 * 32, f"{last.value} tokens after step {last.step}")


def some_steps_were_written_twice(cluster):
    """Otherwise the check above shows nothing: the lost generation's files hold steps that the next one made again."""
    rows = csv_rows(cluster)
    expect(len(rows) > len({row["step"] for row in rows}), f"{len(rows)} rows, each of another step")


def csv_rows(cluster):
    rows = []
    for path in sorted(glob.glob(cluster.checkpoints(JOB) + "/steps/generation-*.csv")):
        with open(path, newline="", encoding="utf-8") as file:
            rows.extend(csv.DictReader(file))
    return rows


def the_last_row_of_a_step_counts(cluster):
    newest = {int(row["step"]): row for row in csv_rows(cluster)}
    records = cluster.steps(JOB)
    expect(sorted(newest) == [record["step"] for record in records], f"steps {sorted(newest)}")
    for record in records:
        row = newest[record["step"]]
        expect(int(row["generation"]) == record["generation"], f"step {record['step']}: generation {row['generation']}")
        for key in TAGS.values():
            told = record[key]
            same = row[key] == "" if told is None else close(float(row[key]), told, 1e-12)
            expect(same, f"{key} of step {record['step']}: {row[key]}, the coordinator says {told}")


def main():
    results = Results("step records")
    with TestCluster() as cluster:
        cluster.start({"n1": [PACED], "n2": [PACED]})
        results.run("a job that loses a rank keeps records", train, cluster)
        results.run("some steps were made twice", some_steps_were_written_twice, cluster)
        results.run("TensorBoard shows each step once, as the coordinator tells it", tensorboard_reads, cluster)
        results.run("the last CSV row of a step is the one that counts", the_last_row_of_a_step_counts, cluster)
    results.exit()


if __name__ == "__main__":
    main()
