#!/usr/bin/env bash
# Builds the runtime alone (no LLVM), installs it, builds the example against the
# installed package and runs it.
#   install_test.sh <source> <work folder> <write_engine> <image> <cmake arguments>...
set -euo pipefail
source=$1 work=$2 write_engine=$3 image=$4
shift 4

rm -rf "$work"
mkdir -p "$work"
quiet() { "$@" >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }; }

quiet cmake -G Ninja -S "$source" -B "$work/build" "$@" \
  -DCHARONIA_BUILD_COMPILER=OFF -DCHARONIA_BUILD_TESTS=OFF
if grep -qi '^\(llvm\|mlir\)_dir:' "$work/build/CMakeCache.txt"; then
  echo "the runtime alone looked for LLVM" >&2
  exit 1
fi
quiet cmake --build "$work/build"
quiet cmake --install "$work/build" --prefix "$work/prefix" --component runtime

# The build is out of reach: only what was installed counts.
mv "$work/build" "$work/gone"
quiet cmake -G Ninja -S "$source/examples/run_engine" -B "$work/example" "$@" \
  -DCMAKE_PREFIX_PATH="$work/prefix"
quiet cmake --build "$work/example"

"$write_engine" "$image" "$work/test.engine"
out=$("$work/example/run_engine" "$work/test.engine" cpu)
echo "$out"
grep -q '^x86-64-v3 on ' <<<"$out"
grep -qF 'input  x: float32 [batch, 16], here 3x16' <<<"$out"
grep -qF 'output y: 3x16 0 0 1 2 3 4 5 6' <<<"$out"
out=$("$work/example/run_engine_c" "$work/test.engine")
echo "$out"
grep -qF 'output y: 3 16' <<<"$out"

# Without CMake, by pkg-config, from a place it was not configured for.
cp -r "$work/prefix" "$work/moved"
export PKG_CONFIG_PATH
PKG_CONFIG_PATH=$(dirname "$(find "$work/moved" -name charonia.pc)")
compiler=cc
for argument in "$@"; do
  case $argument in -DCMAKE_C_COMPILER=*) compiler=${argument#*=} ;; esac
done
if [ -z "$(sed -n 's/^-DCHARONIA_SANITIZE=//p' <(printf '%s\n' "$@"))" ]; then
  read -ra flags <<<"$(pkg-config --cflags --libs charonia)"
  quiet "$compiler" "$source/examples/run_engine/main.c" -o "$work/by_pkg_config" "${flags[@]}"
  out=$(LD_LIBRARY_PATH=$(pkg-config --variable=libdir charonia) "$work/by_pkg_config" "$work/test.engine")
  grep -qF 'output y: 3 16' <<<"$out"
  # With the static library as well, which needs no other either.
  read -ra flags <<<"$(pkg-config --cflags --libs charonia-static)"
  quiet "$compiler" "$source/examples/run_engine/main.c" -o "$work/by_archive" \
    "${flags[@]}"
  grep -qF 'output y: 3 16' <<<"$("$work/by_archive" "$work/test.engine")"
fi

# runtime.h says what it needs.
for standard in 17 20; do
  message=$("$compiler" -x c++ -std=c++$standard -fsyntax-only -I"$work/prefix/include" \
    -include charonia/runtime.h /dev/null 2>&1) && works=yes || works=no
  if [ $standard = 20 ]; then [ $works = yes ]; else grep -qF 'runtime.h needs C++20 (-std=c++20)' <<<"$message"; fi
done

# Folders that packagers give as absolute paths; nothing is installed there.
quiet cmake -G Ninja -S "$source" -B "$work/absolute" "$@" \
  -DCHARONIA_BUILD_COMPILER=OFF -DCHARONIA_BUILD_TESTS=OFF -DCMAKE_INSTALL_PREFIX="$work/p" \
  -DCMAKE_INSTALL_LIBDIR=/elsewhere/lib -DCMAKE_INSTALL_INCLUDEDIR=/elsewhere/include
for name in charonia charonia-static; do
  flags=$(PKG_CONFIG_PATH=$work/absolute/runtime pkg-config --cflags --libs "$name")
  grep -qF -- "-I/elsewhere/include -L/elsewhere/lib " <<<"$flags" || { echo "$flags" >&2; exit 1; }
done
grep -q 'LLVM Exceptions' "$(find "$work/prefix" -name LICENSE)"
grep -q 'protozero' "$(find "$work/prefix" -name THIRD_PARTY)"

# Errors end with a message and a status, here as everywhere.
if message=$("$work/example/run_engine" "$image" 2>&1); then
  echo "an image was taken for an engine" >&2
  exit 1
fi
echo "$message"
grep -qF 'it is not a Charonia engine' <<<"$message"
