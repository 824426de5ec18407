#!/usr/bin/env bash
# Our own declarations of a library against the library's real header, by the compiler alone.
# usage: check_header.sh NAME CHECK.cc HEADER INCLUDE...
# Prints "ok NAME" or "FAIL NAME: the first error", and "skip NAME: why" where there is no header.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
name="declarations of $1" check=$2 header=$3
shift 3
if [[ ! -e $header ]]; then
  echo "skip $name: no $header"
  exit 0
fi
includes=(-isystem "$(dirname "$header")")
for folder in "$@"; do includes+=(-isystem "$folder"); done
if errors=$("${CXX:-c++}" -std=c++20 -fsyntax-only -I. "${includes[@]}" "$check" 2>&1); then
  echo "ok $name: as in $(basename "$header") $(awk '$1 == "#define" && ($2 == "CUDA_VERSION" || $2 ~ /^NCCL_(MAJOR|MINOR|PATCH)$/) {
    printf "%s%s", dot, $3; dot = "."}' "$header")"
else
  echo "FAIL $name: $(grep -m 1 -E 'error:' <<<"$errors")"
  exit 1
fi
