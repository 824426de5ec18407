#!/usr/bin/env bash
# Our declarations of NCCL (worker/engine/nccl/nccl_api.h) against the real nccl.h, by the compiler alone.
# usage: check_nccl_header.sh NCCL_INCLUDE CUDA_INCLUDE...
# Prints "ok NAME" or "FAIL NAME: the first error", and "skip NAME: why" where there is no header.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
name="declarations of NCCL"
nccl=$1
if [[ ! -e $nccl/nccl.h ]]; then
  echo "skip $name: no nccl.h in $nccl"
  exit 0
fi
includes=()
for folder in "$@"; do includes+=(-isystem "$folder"); done
if errors=$("${CXX:-c++}" -std=c++20 -fsyntax-only -I. "${includes[@]}" tests/worker/engine/nccl/nccl_header_check.cc 2>&1); then
  echo "ok $name: as in nccl.h $(awk '$2 == "NCCL_MAJOR" || $2 == "NCCL_MINOR" || $2 == "NCCL_PATCH" {printf "%s%s", dot, $3; dot = "."}' \
    "$nccl/nccl.h")"
else
  echo "FAIL $name: $(grep -m 1 -E 'error:' <<<"$errors")"
  exit 1
fi
