#!/usr/bin/env bash
# Installs what is missing to build and test Charonia; does nothing when all is there.
#   1. packages of the distribution (Debian 12; Ubuntu 24.04 with apt.llvm.org)
#   2. build/venv: Python packages of the tests and the demo
#   3. ONNX's own C++ library, once per machine (scripts/setup-onnx.sh)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
say() { echo "setup: $*" >&2; }

packages=(
  clang-22 lld-22 llvm-22-dev llvm-22-tools libmlir-22-dev mlir-22-tools libclang-rt-22-dev
  cmake ninja-build ccache git
  libprotobuf-dev protobuf-compiler libspdlog-dev libcli11-dev nlohmann-json3-dev libxxhash-dev libprotozero-dev
  pkg-config
  libgtest-dev libgmock-dev libzstd-dev zlib1g-dev
  python3 python3-venv ca-certificates
)

missing=()
for package in "${packages[@]}"; do
  [ "$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null)" = installed ] ||
    missing+=("$package")
done

if [ ${#missing[@]} -gt 0 ]; then
  as_root=()
  if [ "$(id -u)" != 0 ]; then
    if ! sudo -n true 2>/dev/null; then
      say "these packages are missing and installing them needs root:"
      say "  sudo apt-get update && sudo apt-get install --no-install-recommends ${missing[*]}"
      exit 1
    fi
    as_root=(sudo)
  fi
  # With its lists at hand apt needs no update; a fresh image has none.
  known() { for p in "${missing[@]}"; do apt-cache show "$p" >/dev/null 2>&1 || return 1; done; }
  install() {
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
      apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
  }
  say "installing ${missing[*]}"
  if ! { known && install; }; then
    "${as_root[@]}" apt-get update -qq
    if ! known; then
      for p in "${missing[@]}"; do
        apt-cache show "$p" >/dev/null 2>&1 || say "apt knows no package $p"
      done
      say "LLVM 22 for Ubuntu: wget https://apt.llvm.org/llvm.sh && sudo bash llvm.sh 22, then run this again"
      exit 1
    fi
    install
  fi
fi

venv=build/venv
if ! cmp -s scripts/requirements.txt $venv/requirements.txt; then
  say "installing the Python packages of scripts/requirements.txt into $venv"
  python3 -m venv --clear $venv
  $venv/bin/python -m pip install --quiet --disable-pip-version-check -r scripts/requirements.txt
  cp scripts/requirements.txt $venv/
fi

scripts/setup-onnx.sh
