#!/usr/bin/env python3
"""Checks that includes follow the layers: frontends -> graph <- codegen -> runtime/engine,
runtime -> nothing. tools/ alone may use everything.

    check_layering.py [root]      exit status 1 and one line for each include that may not be
"""

import re
import sys
from pathlib import Path

# Folder -> (what of the project it may include, which external prefixes it must not).
# The longest folder that matches a file counts.
COMPILER_ONLY = ("mlir/", "llvm/", "onnx/")
LAYERS = {
    "runtime/include": (("charonia/",), COMPILER_ONLY + ("google/", "spdlog/", "nlohmann/")),
    "runtime/engine": (("runtime/engine/", "charonia/"), COMPILER_ONLY),
    "runtime/plan": (("runtime/plan/", "runtime/engine/", "charonia/"), COMPILER_ONLY),
    "runtime": (("runtime/", "charonia/"), COMPILER_ONLY),
    "graph": (("graph/",), ("onnx/", "google/", "llvm/Target/", "mlir/Dialect/LLVMIR/")),
    "frontends": (("frontends/", "graph/"), ("llvm/Target/", "mlir/Dialect/LLVMIR/")),
    "codegen": (
        ("codegen/", "graph/", "runtime/engine/", "runtime/plan/", "charonia/"),
        ("onnx/", "google/"),
    ),
    "tools": (("tools/", "frontends/", "graph/", "codegen/", "runtime/", "charonia/"), ()),
}
OWN = ("frontends/", "graph/", "codegen/", "runtime/", "tools/", "charonia/", "tests/")
SUFFIXES = {".h", ".hpp", ".c", ".cpp", ".td"}
INCLUDE = re.compile(r'^\s*(?:#\s*)?include\s+[<"]([^>"]+)[>"]', re.M)


def layer_of(path: str):
    folders = [f for f in LAYERS if path.startswith(f + "/")]
    return max(folders, key=len) if folders else None


def check(root: Path):
    """Yields 'file:line: message' for every include against the layers; counts files."""
    count = 0
    for top in sorted({folder.split("/")[0] for folder in LAYERS}):
        for file in sorted((root / top).rglob("*")):
            if file.suffix not in SUFFIXES:
                continue
            count += 1
            path = file.relative_to(root).as_posix()
            layer = layer_of(path)
            allowed, forbidden = LAYERS[layer]
            text = file.read_text(errors="replace")
            for match in INCLUDE.finditer(text):
                header = match.group(1)
                if header.startswith(OWN):
                    wrong = not header.startswith(allowed)
                else:
                    wrong = header.startswith(forbidden)
                if wrong:
                    line = text.count("\n", 0, match.start(1)) + 1
                    yield f"{path}:{line}: {layer}/ may not include {header}"
    if not count:
        yield f"{root}: no source file found"


def main():
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent.parent
    errors = list(check(root))
    print(*errors, sep="\n" if errors else "")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
