#!/usr/bin/env bash
# Runs fuzzers: from the inputs that scripts/fuzz_corpus.py makes and those kept in
# tests/fuzz, for a time. What a longer run has found worth keeping stays in the build
# folder, for the next one.
#   scripts/fuzz.sh [--seconds N] [--seed N] [--build build/asan] [engine] [inspect] [import] [pytorch]
#                   [tensorflow-graph] [tensorflow-text] [tensorflow-savedmodel] [tensorflow-bundle]
#     engine   manifests: loading, planning, contexts, runs (of code that does nothing)
#     inspect  manifests: charonia inspect in all its forms
#     import   ONNX models
#     pytorch  .pt2 files, and texts of programs in them
#     tensorflow-graph, -text  frozen graphs, as messages and as text
#     tensorflow-savedmodel    saved_model.pb, beside sound variables
#     tensorflow-bundle        variables.index, beside a sound graph
# Wants a build with CHARONIA_FUZZ, as the preset asan is. Exit status 1 if a fuzzer
# found something: it is then in <build>/fuzz, and the command that shows it is printed.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

seconds=600 seed=0 build=build/asan fuzzers=()
while [ $# -gt 0 ]; do
  case $1 in
    --seconds) seconds=$2; shift ;;
    --seed) seed=$2; shift ;;
    --build) build=$2; shift ;;
    engine | inspect | import | pytorch | tensorflow-*) fuzzers+=("$1") ;;
    *) echo "fuzz.sh: unknown argument $1" >&2; exit 2 ;;
  esac
  shift
done
[ ${#fuzzers[@]} -gt 0 ] || fuzzers=(engine inspect import pytorch
  tensorflow-graph tensorflow-text tensorflow-savedmodel tensorflow-bundle)
python=${CHARONIA_PYTHON:-build/venv/bin/python}
export CHARONIA=${CHARONIA:-$PWD/$build/bin/charonia} PYTHONPATH=$PWD/scripts
# As in cmake/CharoniaTests.cmake: Debian's libraries are not instrumented.
export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_container_overflow=0:allow_user_poisoning=0:use_sigaltstack=0:detect_leaks=0:abort_on_error=1}
export UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1:halt_on_error=1:abort_on_error=1}

status=0
for fuzzer in "${fuzzers[@]}"; do
  program=$(ls "$build"/bin/{,tests/}charonia-"$fuzzer"-fuzzer 2>/dev/null | head -1)
  [ -n "$program" ] || { echo "fuzz.sh: $build has no charonia-$fuzzer-fuzzer" >&2; exit 2; }
  seeds=engine
  case $fuzzer in import | pytorch | tensorflow-*) seeds=$fuzzer ;; esac
  words=()
  [ ! -e "tests/fuzz/$fuzzer.dict" ] || words=(-dict="tests/fuzz/$fuzzer.dict")
  work=$build/fuzz/$fuzzer start=$build/fuzz/start-$fuzzer kept=tests/fuzz/$seeds
  mkdir -p "$work" "$start"
  folders=("$work" "$start")
  [ ! -d "$kept" ] || folders+=("$kept")
  "$python" scripts/fuzz_corpus.py $seeds "$start" || exit 1
  log=$build/fuzz/$fuzzer.log
  # An input that takes half a minute, or 4 GB, is a finding too.
  if "$program" "${folders[@]}" -max_total_time="$seconds" -seed="$seed" \
    -timeout=30 -rss_limit_mb=4096 -max_len=65536 -close_fd_mask=1 -print_final_stats=1 \
    "${words[@]}" -artifact_prefix="$build/fuzz/$fuzzer-" >"$log" 2>&1; then
    echo "$fuzzer: $(sed -n 's/^stat::number_of_executed_units: *//p' "$log") inputs in $seconds s, nothing found"
  else
    status=1
    grep -v '^#' "$log" | tail -60
    found=$(sed -n 's/.*Test unit written to //p' "$log" | tail -1)
    echo "$fuzzer: FAILED; again: $program $found; once mended, keep it in $kept"
  fi
done
exit $status
