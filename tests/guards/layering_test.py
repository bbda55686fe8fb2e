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
    "support/A.cpp": ('#include "graph/ir/Shape.h"', False),
    "runtime/exec/C.cpp": ('#include "support/Text.h"', False),
    "graph/ir/D.cpp": ('#include "support/Text.h"', True),
    "codegen/emit/A.cpp": ('#include "runtime/exec/Guard.h"', False),
    "codegen/emit/B.cpp": ('#include "frontends/onnx/Importer.h"', False),
    "codegen/emit/C.cpp": ('#include "runtime/engine/Engine.h"', True),
    "graph/ir/C.cpp": ('#include "graph/ops/Common.h"', False),
    "graph/ir/C.td": ('include "graph/ops/Index.td"', False),
    "graph/ir/GraphOps.td": ('include "graph/ops/Index.td"', True),
    "graph/ops/A.cpp": ('#include "graph/analysis/Weights.h"', False),
    "graph/ops/B.cpp": ('#include "graph/ir/Dialect.h"', True),
    "graph/analysis/A.h": ('#include "graph/passes/Views.h"', False),
    "graph/passes/B.cpp": ('#include "graph/analysis/Weights.h"', True),
    "codegen/tile/ir/A.h": ('#include "codegen/emit/Schedule.h"', False),
    "codegen/layout/A.cpp": ('#include "codegen/tile/ir/TileDialect.h"', False),
    "codegen/emit/D.cpp": ('#include "codegen/gpu/LayoutPlan.h"', False),
    "codegen/emit/rules/A.cpp": ('#include "codegen/emit/Emitter.h"', True),
    "codegen/cpu/A.cpp": ('#include "codegen/gpu/Ptxas.h"', False),
    "codegen/gpu/lower/A.cpp": ('#include "codegen/tile/analysis/Access.h"', True),
    "codegen/gpu/B.cpp": ('#include "codegen/driver/Backend.h"', False),
    "codegen/driver/A.cpp": ('#include "codegen/cpu/CpuCodegen.h"', True),
    # A folder that the order does not know.
    "codegen/other/A.cpp": ('#include "codegen/tile/ir/TileDialect.h"', None),
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

expected = {path for path, (_, fine) in CASES.items() if fine is False}
expected |= {path.rsplit("/", 1)[0] for path, (_, fine) in CASES.items() if fine is None}
assert found == expected, f"missed {expected - found}, wrongly found {found - expected}"
