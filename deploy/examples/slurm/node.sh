#!/bin/sh
# What srun starts once on each node of an allocation: this node's worker (docs/use/without-root.md). Set before:
#   MOTLEY          the folder of the tarball, seen by all nodes
#   MOTLEY_NODES    a folder that all nodes see and nobody else reads: token, and for each node its key and certificate
#   MOTLEY_WORKERS  host:port of the coordinator's workers.listen
#   MOTLEY_ROOT     the folder of data and checkpoints, the same on all nodes
set -eu
name=${SLURMD_NODENAME:?run this by srun}
folder=$MOTLEY_NODES/$name
mkdir -p "$folder"
# `exec`: the signal that Slurm sends before the end of the time reaches the worker itself.
exec "$MOTLEY/bin/motley-worker" --join-file "$MOTLEY_NODES/token" --coordinator "$MOTLEY_WORKERS" --node "$name" \
  --config "$folder/worker.toml" --identity "$folder" --root "$MOTLEY_ROOT" --metrics 127.0.0.1:0 --stop-seconds 100 \
  ${SLURM_CPUS_PER_TASK:+--cores "$SLURM_CPUS_PER_TASK"} --foreground "$@"
