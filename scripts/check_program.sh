#!/usr/bin/env bash
# Checks a built file: its size, what it links, and which symbols it holds.
#   check_program.sh <file> --max-mb N [--needs 'regex']... [--no-symbols 'regex']
# --needs: every library that the file needs must match one of the expressions.
set -euo pipefail
file=$1
shift
failed=0
fail() { echo "$file: $*"; failed=1; }
needs=()
while [ $# -gt 0 ]; do
  case $1 in
    --max-mb)
      # Stripped, in units of 1e6 bytes.
      stripped=$(mktemp)
      trap 'rm -f "$stripped"' EXIT
      strip -o "$stripped" "$file"
      size=$(stat -c %s "$stripped")
      echo "$file: $size bytes stripped"
      [ "$size" -le $(($2 * 1000000)) ] || fail "more than $2 MB"
      ;;
    --needs) needs+=(-e "$2") ;;
    --no-symbols)
      # Mangled names hold their namespaces with lengths, as in N4llvm and N4mlir.
      found=$({ nm -a "$file"; nm -D "$file"; } 2>/dev/null | grep -E "$2" | head -5) || true
      [ -z "$found" ] || fail "holds symbols that match $2: $found"
      ;;
    *) echo "unknown argument $1"; exit 2 ;;
  esac
  shift 2
done
if [ ${#needs[@]} -gt 0 ]; then
  libraries=$(readelf -d "$file" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
  [ -n "$libraries" ] || fail "names no library at all"
  other=$(grep -v -x -E "${needs[@]}" <<<"$libraries") || true
  [ -z "$other" ] || fail "needs $(tr '\n' ' ' <<<"$other")"
fi
exit $failed
