"""The cases of ONNX's node test suite, as they stand and with parameters baked in.

They are made by onnx.backend.test.case.node.collect_testcases(): no download.
"""

from __future__ import annotations

import re
import warnings

import harness
import ml_dtypes
import numpy as np
import onnx

# Inputs, by position, that give shapes, axes and the like in nearly every model.
PARAMETERS = {
    "Compress": (1,),
    "MaxUnpool": (2,),
    "MelWeightMatrix": (0, 1, 2, 3, 4),
    "Reshape": (1,), "Expand": (1,), "Tile": (1,), "Slice": (1, 2, 3, 4), "Pad": (1, 2, 3),
    "Squeeze": (1,), "Unsqueeze": (1,), "Split": (1,), "ConstantOfShape": (0,),
    "Resize": (1, 2, 3), "Upsample": (1,), "Range": (0, 1, 2), "Trilu": (1,), "OneHot": (1,),
    "TopK": (1,), "Loop": (0, 1), "CumSum": (1,), "CumProd": (1,), "AffineGrid": (1,),
    "Clip": (1, 2), "Dropout": (1, 2), "CenterCropPad": (1,),
    "BlackmanWindow": (0,), "HannWindow": (0,), "HammingWindow": (0,), "DFT": (1, 2),
    "ReduceSum": (1,), "ReduceMean": (1,), "ReduceMax": (1,), "ReduceMin": (1,),
    "ReduceProd": (1,), "ReduceL1": (1,), "ReduceL2": (1,), "ReduceLogSum": (1,),
    "ReduceLogSumExp": (1,), "ReduceSumSquare": (1,),
}  # fmt: skip


def collect() -> list:
    from onnx.backend.test.case.node import collect_testcases

    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        cases = collect_testcases()
    return sorted(cases, key=lambda c: c.name)


def operator_of(test) -> str:
    """The operator that a case is about; expanded ones count under its name."""
    nodes = test.model.graph.node
    if "_expanded" in test.name and len(nodes) > 1:
        return "(function bodies)"
    return nodes[0].op_type


def arrays(values) -> list:
    """Tensors in ONNX's own form become arrays; sequences stay what they are."""
    return [
        onnx.numpy_helper.to_array(v) if isinstance(v, onnx.TensorProto) else v
        for v in values
    ]


def plain_tensors(values) -> bool:
    return all(isinstance(v, (np.ndarray, np.generic)) for v in values)


def whole_name(name: str) -> str:
    """The case of the operator itself, for one of its function body."""
    return re.sub(r"_expanded(_ver\d+)?$", "", name)


def parameters(model: onnx.ModelProto) -> set[str]:
    """The names of the inputs that give shapes and the like."""
    return {
        node.input[position]
        for node in model.graph.node
        for position in PARAMETERS.get(node.op_type, ())
        if position < len(node.input)
    }


def bake(
    model: onnx.ModelProto, values: list, fixed: set[str]
) -> tuple[onnx.ModelProto, list]:
    """Turns these inputs into initializers."""
    baked = onnx.ModelProto()
    baked.CopyFrom(model)
    del baked.graph.input[:]
    rest = []
    for info, value in zip(model.graph.input, values):
        if info.name in fixed:
            baked.graph.initializer.append(
                onnx.numpy_helper.from_array(np.asarray(value), info.name)
            )
        else:
            baked.graph.input.append(info)
            rest.append(value)
    return baked, rest


def difference(want: np.ndarray, got: np.ndarray, rtol: float, atol: float) -> str:
    """'' if the arrays agree, else one line that says how they do not."""
    want = np.asarray(want)
    got = harness.as_dtype(got, want.dtype)
    if want.shape != got.shape:
        return f"shape {list(got.shape)} instead of {list(want.shape)}"
    if want.dtype != got.dtype:
        return f"type {got.dtype} instead of {want.dtype}"
    if want.dtype.kind in "fV" or want.dtype == ml_dtypes.bfloat16:
        want, got = want.astype(np.float64), got.astype(np.float64)
    with np.errstate(all="ignore"):
        close = np.isclose(got, want, rtol, atol, equal_nan=True)
    if close.all():
        return ""
    at = tuple(np.argwhere(~close)[0])
    return (
        f"{(~close).sum()} of {close.size} wrong, at {list(map(int, at))}: "
        f"{got[at]} instead of {want[at]}"
    )
