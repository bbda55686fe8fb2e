#!/usr/bin/env bash
# Installs what is missing, builds the release preset and runs all default tests.
#   scripts/test.sh [--preset release|dev|asan|tsan] [--quick|--exhaustive] [arguments of ctest]
# Tests that need a GPU have the label gpu and are left out, and so are those that try more of
# what others try (exhaustive); with --quick those with the label long are too. With --exhaustive
# just these are run.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

preset=release leave_out="gpu|exhaustive" only=()
while true; do
  case ${1:-} in
    --preset) preset=$2; shift 2 ;;
    --quick) leave_out="gpu|long|exhaustive"; shift ;;
    --exhaustive) leave_out=gpu only=(-L exhaustive); shift ;;
    *) break ;;
  esac
done
jobs=$(nproc)
phase() { echo "== $1 ($(date -u +%T))"; }

phase "set-up"
scripts/setup.sh
phase "configure"
cmake --preset "$preset" >build/configure.log 2>&1 || { cat build/configure.log; exit 1; }
phase "build"
ninja -C "build/$preset" -j "$jobs"
phase "test"
log=build/$preset/test.log
status=0
ctest --test-dir "build/$preset" -j "$jobs" -LE "$leave_out" ${only[@]+"${only[@]}"} --no-tests=error --output-on-failure "$@" |
  tee "$log" || status=$?

# What the entries of ctest hold, from their own closing lines.
phase "summary"
python3 - "build/$preset/Testing/Temporary/LastTest.log" <<'PYTHON'
import re, sys
text = open(sys.argv[1], errors="replace").read()
def total(pattern): return sum(int(n) for n in re.findall(pattern, text, re.M))
rows = {
    "GoogleTest cases": (r"^.  PASSED  . (\d+) tests?", r"^.  FAILED  . (\d+) tests?, listed"),
    "lit files": (r"^ *Passed *: *(\d+)", r"^ *Failed *: *(\d+)"),
    "pytest cases": (r"\b(\d+) passed", r"\b(\d+) failed(?=,| in)"),
}
for name, (passed, failed) in rows.items():
    print(f"{name + ':':18}{total(passed):5} passed, {total(failed)} failed")
PYTHON
grep -E "tests passed, .* out of" "$log" || echo "ctest did not finish"
exit $status
