#!/usr/bin/env bash
# Installs what is missing, builds the compiler, converts the digit classifier of
# models/digits into an engine and classifies the held-out test images with it.
# Prints the accuracy, and the latency beside ONNX Runtime in the same run.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
scripts/setup.sh
cmake --preset release >build/configure.log 2>&1 || { cat build/configure.log; exit 1; }
ninja -C build/release -j "$(nproc)" charonia
CHARONIA=$PWD/build/release/bin/charonia exec build/venv/bin/python scripts/demo.py "$@"
