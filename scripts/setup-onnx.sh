#!/usr/bin/env bash
# Builds ONNX's own C++ library once per machine and installs it into a cache
# folder that every checkout and build preset shares.
#
#   scripts/setup-onnx.sh          builds and installs it unless it is there
#   scripts/setup-onnx.sh --print  only prints the folder it is installed into
#
# Debian's libonnx-dev stops at opset 17, hence the source package from PyPI.
# CHARONIA_CACHE moves the cache (default: $XDG_CACHE_HOME/charonia).
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
version=1.23.2
sha256=008cb0467b2bbee41448acc7da8b6f4e704624cb0d327a2d5adafc7ce19bc5b8
compiler=${CXX:-clang++-22}

# The key holds what the library's bytes depend on, so that an upgrade of the
# compiler or of protobuf, or an edit of this file, builds a new one.
key=$({ "$compiler" --version | head -1; protoc --version; cat "${BASH_SOURCE[0]}"; } 2>&1 |
  sha256sum | cut -c1-12)
cache=${CHARONIA_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/charonia}
prefix=$cache/onnx-$version-$key

if [ "${1:-}" = --print ]; then
  echo "$prefix"
  exit
fi
[ -f "$prefix/lib/libonnx.a" ] && exit

python=${CHARONIA_PYTHON:-$root/build/venv/bin/python}
work=$(mktemp -d)
staged=$prefix.tmp.$$
trap 'rm -rf "$work" "$staged"' EXIT
say() { echo "setup-onnx: $*" >&2; }

# ONNX asks for CMake 3.26; Debian 12 has 3.25, PyPI has any.
run_cmake=cmake
newest=$(printf '3.26\n%s\n' "$(cmake --version | sed -n '1s/[^0-9]*//p')" | sort -V | tail -1)
if [ "$newest" = 3.26 ]; then
  "$python" -m pip install --quiet --target "$work/cmake" 'cmake>=3.26,<5'
  run_cmake="env PYTHONPATH=$work/cmake $work/cmake/bin/cmake"
fi

say "fetching the source of ONNX $version from PyPI"
"$python" -m pip download --quiet --no-deps --no-binary onnx "onnx==$version" -d "$work"
tarball=$work/onnx-$version.tar.gz
echo "$sha256  $tarball" | sha256sum --check --quiet
tar -xf "$tarball" -C "$work"

say "building it (about two minutes on two cores)"
launcher=()
command -v ccache >/dev/null && launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
# No documentation strings and optimized for size: they would be a tenth of the
# compiler's binary, and nothing here is hot.
$run_cmake -S "$work/onnx-$version" -B "$work/build" -G Ninja "${launcher[@]}" \
  -DCMAKE_BUILD_TYPE=MinSizeRel -DCMAKE_CXX_COMPILER="$compiler" -DCMAKE_CXX_STANDARD=20 \
  -DCMAKE_CXX_FLAGS="-D__ONNX_NO_DOC_STRINGS -ffunction-sections -fdata-sections" \
  -DCMAKE_POSITION_INDEPENDENT_CODE=ON -DCMAKE_INSTALL_LIBDIR=lib \
  -DCMAKE_INSTALL_PREFIX="$staged" -DPython3_EXECUTABLE="$(command -v python3)" \
  -DONNX_ML=ON -DONNX_USE_LITE_PROTO=ON >"$work/log" 2>&1 &&
  $run_cmake --build "$work/build" --target install >>"$work/log" 2>&1 ||
  { tail -50 "$work/log" >&2; say "the build failed"; exit 1; }

# Renamed into place at the end: an interrupted build leaves nothing behind.
mkdir -p "$cache"
mv -T "$staged" "$prefix" 2>/dev/null || [ -f "$prefix/lib/libonnx.a" ]
say "installed into $prefix"
