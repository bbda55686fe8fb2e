#!/usr/bin/env bash
# All checks that need a GPU, in one go; prints a line for each, and the end of the log
# of those that failed. Exit status 1 if any did.
#   scripts/test_gpu.sh [--models DIR] [--seconds N] [--logs DIR]
# DIR holds what models/export.py wrote: with it the full-size models are checked too.
# N is how long random operators are tested (60). Wants build/release as scripts/test.sh
# leaves it, or the programs named by CHARONIA and CHARONIA_GPU_TEST; and an interpreter
# with PyTorch, onnx and onnxruntime: python3, or the one that CHARONIA_PYTHON names.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

models="" seconds=60 logs=""
while [ $# -gt 0 ]; do
  case $1 in
    --models) models=$(realpath "$2") ;;
    --seconds) seconds=$2 ;;
    --logs) logs=$2 ;;
    *) echo "test_gpu.sh: unknown argument $1" >&2; exit 2 ;;
  esac
  shift 2
done
logs=${logs:-$(mktemp -d)}
mkdir -p "$logs"
logs=$(realpath "$logs")
export CHARONIA=${CHARONIA:-$PWD/build/release/bin/charonia}
gpu_test=${CHARONIA_GPU_TEST:-$PWD/build/release/bin/tests/gpu_test}
python=${CHARONIA_PYTHON:-python3}
export PYTHONPATH=$PWD/scripts:$PWD/models CHARONIA_SOURCE_DIR=$PWD
failures=0

# check NAME COMMAND...: 77 means that the machine does not allow the check.
check() {
  local name=$1 start=$SECONDS status=0
  shift
  "$@" >"$logs/$name.log" 2>&1 || status=$?
  case $status in
    0) verdict=ok ;;
    77) verdict="not possible here" ;;
    *) verdict=FAILED failures=$((failures + 1)) ;;
  esac
  printf '%-28s %-8s %4d s   %s\n' "$name" "$verdict" $((SECONDS - start)) \
    "$(grep -v '^ *$' "$logs/$name.log" | tail -1 | cut -c1-100)"
  [ "$verdict" != FAILED ] || tail -25 "$logs/$name.log"
}

nvidia-smi --query-gpu=name,driver_version --format=csv,noheader
check runtime "$gpu_test"
engines=""
"$python" scripts/branches.py "$logs" # kernels that run side by side
for model in models/compact/{bert,gpt2,mobilenet_v2,resnet,vit}.onnx "$logs"/{inception,exchanging,rows}.onnx; do
  name=$(basename "$model" .onnx)
  for target in sm_90 sm_90a; do
    "$CHARONIA" compile -q "$model" -o "$logs/$name-$target.engine" --target $target --precision fp16 &&
      engines+=$logs/$name-$target.engine:
  done
done
CHARONIA_GPU_ENGINES=$engines check overtaking "$gpu_test" --gtest_filter='Given/*'
for precision in fp32 tf32 fp16 bf16; do
  check "compact-$precision" "$python" scripts/check_models.py --compact --device cuda --precision $precision
done
check operators "$python" tests/e2e/ops_test.py --device cuda --seconds "$seconds" --jobs "$(nproc)"
check sanitizer "$python" scripts/sanitize_gpu.py
if [ -n "$models" ]; then
  for precision in fp16 bf16 fp32; do
    check "full-$precision" "$python" scripts/check_models.py --models "$models" --device cuda --precision $precision
  done
fi
echo "logs: $logs"
exit $((failures > 0))
