#!/usr/bin/env bash
# Formats all C++ files of the repository in LLVM's style; --check only lists those that differ.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
tool=$(command -v clang-format-22 || command -v clang-format) ||
  { echo "format: apt-get install clang-format-22" >&2; exit 2; }
mapfile -d '' files < <(git ls-files -z '*.cpp' '*.h')
if [ "${1:-}" != --check ]; then
  exec "$tool" -i "${files[@]}"
fi
differing=$("$tool" --dry-run "${files[@]}" 2>&1 | sed -n 's/^\([^:]*\):[0-9].*/\1/p' | sort -u)
[ -z "$differing" ] || { printf 'not formatted: %s\n' $differing; exit 1; }
