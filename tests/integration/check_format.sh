#!/usr/bin/env bash
# Every C++ file is as clang-format leaves it, in the one version that the repository is formatted with. MOTLEY_CLANG_FORMAT: the
# program. Prints "ok NAME" or "FAIL NAME: which files".
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
wrong=$(git ls-files '*.cc' '*.h' | xargs "${MOTLEY_CLANG_FORMAT:-clang-format}" --dry-run 2>&1 | sed -nE 's/^([^:]+):[0-9]+:[0-9]+: warning:.*/\1/p' |
        sort -u)
if [[ -n $wrong ]]; then
  echo "FAIL format: $(head -5 <<<"$wrong" | tr '\n' ' ')and others, $(wc -l <<<"$wrong") in all; \`./run format\` mends them"
  exit 1
fi
echo "ok format: $(git ls-files '*.cc' '*.h' | wc -l) files"
