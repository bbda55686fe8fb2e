"""A guard that finds nothing proves nothing: plants violations and expects each to be found."""

import os
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, os.path.join(os.environ["CHARONIA_SOURCE_DIR"], "scripts"))
import check_layering

CASES = {
    "runtime/exec/A.cpp": ('#include "llvm/ADT/STLExtras.h"', False),
    "runtime/engine/A.h": ('#include "runtime/exec/Executor.h"', False),
    "runtime/include/charonia/a.h": ('#include "runtime/engine/Engine.h"', False),
    "graph/passes/A.cpp": ('#include "codegen/tile/ir/TileDialect.h"', False),
    "graph/ir/A.td": ('include "codegen/tile/ir/TileOps.td"', False),
    "graph/ir/B.cpp": ("# include <onnx/checker.h>", False),
    "frontends/onnx/A.cpp": ('  #include "codegen/layout/F2.h"', False),
    "codegen/emit/A.cpp": ('#include "runtime/exec/Guard.h"', False),
    "codegen/emit/B.cpp": ('#include "frontends/onnx/Importer.h"', False),
    "codegen/emit/C.cpp": ('#include "runtime/engine/Engine.h"', True),
    "frontends/onnx/B.cpp": ('#include "onnx/checker.h"', True),
    "tools/charonia/main.cpp": ('#include "runtime/exec/Guard.h"', True),
    "runtime/exec/B.cpp": ("// #include \"llvm/ADT/STLExtras.h\" only in a comment", True),
}

with tempfile.TemporaryDirectory() as folder:
    for path, (line, _) in CASES.items():
        file = Path(folder, path)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"// header\n{line}\n")
    found = {error.split(":")[0] for error in check_layering.check(Path(folder))}

expected = {path for path, (_, fine) in CASES.items() if not fine}
assert found == expected, f"missed {expected - found}, wrongly found {found - expected}"
