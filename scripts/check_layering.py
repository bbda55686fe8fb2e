#!/usr/bin/env python3
"""Checks that includes follow the layers: frontends -> graph <- codegen -> runtime/engine,
runtime -> nothing; all but the runtime -> support. tools/ alone may use everything. Inside graph/ and codegen/ the folders have
an order too: see ORDER.

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
    "support": (("support/",), COMPILER_ONLY + ("google/",)),
    "graph": (("graph/", "support/"), ("onnx/", "google/", "llvm/Target/", "mlir/Dialect/LLVMIR/")),
    "frontends": (("frontends/", "graph/", "support/"), ("llvm/Target/", "mlir/Dialect/LLVMIR/")),
    "codegen": (
        ("codegen/", "graph/", "runtime/engine/", "runtime/plan/", "charonia/", "support/"),
        ("onnx/", "google/"),
    ),
    "tools": (
        ("tools/", "frontends/", "graph/", "codegen/", "runtime/", "charonia/", "support/"),
        (),
    ),
}
# Inside of a layer: folder -> the folders beside it that it may include, itself apart.
ORDER = {
    "graph/ir": (),
    "graph/ops": ("graph/ir",),
    "graph/analysis": ("graph/ir", "graph/ops"),
    "graph/passes": ("graph/ir", "graph/ops", "graph/analysis"),
    "codegen/layout": (),
    "codegen/llvm": (),
    "codegen/math": (),
    "codegen/target": (),
    "codegen/tile": (),
    "codegen/emit": ("codegen/target", "codegen/tile"),
    "codegen/cpu": ("codegen/llvm", "codegen/math", "codegen/tile"),
    "codegen/gpu": ("codegen/layout", "codegen/llvm", "codegen/math", "codegen/target", "codegen/tile"),
    "codegen/driver": ("codegen/target", "codegen/tile", "codegen/emit", "codegen/cpu", "codegen/gpu"),
}
# File -> what it may include against the order.
EXCEPTIONS = {
    # The dialect is one, its operators are defined in families: this file lists them.
    "graph/ir/GraphOps.td": "graph/ops/",
}
OWN = (
    "frontends/", "graph/", "codegen/", "runtime/", "tools/", "charonia/", "support/", "tests/"
)  # fmt: skip
SUFFIXES = {".h", ".hpp", ".c", ".cpp", ".td"}
INCLUDE = re.compile(r'^\s*(?:#\s*)?include\s+[<"]([^>"]+)[>"]', re.M)


def layer_of(path: str):
    folders = [f for f in LAYERS if path.startswith(f + "/")]
    return max(folders, key=len) if folders else None


def against_order(path: str, header: str):
    """Whether a file includes a folder of its own layer that is not below its own."""
    folder = next((f for f in ORDER if path.startswith(f + "/")), None)
    if folder is None or not header.startswith(folder.split("/")[0] + "/"):
        return False
    if path in EXCEPTIONS and header.startswith(EXCEPTIONS[path]):
        return False
    return not header.startswith(tuple(f + "/" for f in (folder, *ORDER[folder])))


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
                    wrong = not header.startswith(allowed) or against_order(path, header)
                else:
                    wrong = header.startswith(forbidden)
                if wrong:
                    line = text.count("\n", 0, match.start(1)) + 1
                    own = next((f for f in ORDER if path.startswith(f + "/")), layer)
                    yield f"{path}:{line}: {own}/ may not include {header}"
    for top in sorted({folder.split("/")[0] for folder in ORDER}):
        for folder in sorted(f for f in (root / top).glob("*") if f.is_dir()):
            path = folder.relative_to(root).as_posix()
            if path not in ORDER:
                yield f"{path}: has no place in ORDER of scripts/check_layering.py"
    if not count:
        yield f"{root}: no source file found"


def main():
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent.parent
    errors = list(check(root))
    print(*errors, sep="\n" if errors else "")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
