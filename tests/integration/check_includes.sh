#!/usr/bin/env bash
# The dependency rules of docs/inside/design.md, checked in the include lines:
#   common <- planner <- coordinator;  common <- worker;  torch only under worker/engine;
#   generated protocol code only in common/wire, coordinator, worker/daemon and worker/rank; torch and protocol never together.
# Prints one line a rule: "ok NAME" or "FAIL NAME: where".
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
failed=0

# rule NAME PATTERN FOLDER...: no include line under the folders matches the pattern. Excluded paths: EXCEPT (a regex).
rule() {
  local name=$1 pattern=$2
  shift 2
  never "$name" "^[[:space:]]*#[[:space:]]*include[[:space:]]*[<\"]($pattern)" "$@"
}

# never NAME PATTERN FOLDER...: the same of any line.
never() {
  local name=$1 pattern=$2 found
  shift 2
  found=$(grep -rnE "$pattern" --include='*.h' --include='*.cc' "$@" 2>/dev/null |
          grep -vE "${EXCEPT:-^$}" | head -3 | tr '\n' ' ')
  if [[ -n $found ]]; then
    echo "FAIL include-rule $name: $found"
    failed=1
  else
    echo "ok include-rule $name"
  fi
}

TORCH='torch/|ATen/|c10/'
WIRE='proto/|grpc|google/protobuf|common/wire/'
rule "common includes nobody above it" 'planner/|coordinator/|worker/' common
rule "planner includes neither coordinator nor worker" 'coordinator/|worker/' planner
rule "coordinator never includes worker" 'worker/' coordinator
rule "worker never includes coordinator or planner" 'coordinator/|planner/' worker
rule "torch only in the engine" "$TORCH" common planner coordinator worker/daemon worker/files worker/rank worker/records worker/kernel_compiler worker/engine/kernels worker/engine/lanes worker/engine/nccl worker/engine/transport
EXCEPT='^common/(rpc|wire)/' rule "no protocol in common outside rpc and wire" "$WIRE" common
rule "no protocol in planner and engine" "$WIRE" planner worker/engine
EXCEPT='^worker/daemon/(carrier|carry_child|coordinator_stream|files_child|files_process|join|session|rank_process|rank_session|storage_checker)\.' rule "the worker's protocol only at its edges" "$WIRE" worker/daemon
rule "the engine's boundary shows no torch" "$TORCH" worker/engine/engine.h
rule "never torch/torch.h" 'torch/torch\.h' common planner coordinator worker tests
EXCEPT='^common/base/logging\.cc:' rule "spdlog only in common/base/logging.cc" 'spdlog/' common planner coordinator worker
EXCEPT='^common/rpc/channel\.cc:' never "channels are opened by common/rpc alone, past any proxy" 'Create(Custom)?Channel\(' common coordinator worker tests
rule "includes start at the root" '\.\./' common planner coordinator worker tests
exit $failed
