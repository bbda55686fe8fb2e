"""Turns random operator cases into ONNX models, runs the oracle, compares.

Many one-node cases share one model ("pack"), because starting the compiler costs
more than compiling one operator. Nodes of a pack share nothing, so a pack means
what its cases mean; when a pack fails, its cases are run alone.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field

import numpy as np
import onnx
import onnxruntime
from onnx import helper
from onnx.reference import ReferenceEvaluator
from op_cases.base import (
    BF16, F16, F32, ONNX_TYPES, TOLERANCE, Case, size, tensor_proto, value_info,
)  # fmt: skip
from op_cases import REGISTRY

# The newest opset that the installed ONNX Runtime loads; found on first use.
ORT_OPSET_LIMIT = 26
IR_VERSION = 10


@dataclass
class Drawn:
    """A case with its identity and the values of each of its runs."""

    op: str
    opset: int
    seed: int
    index: int
    case: Case
    # Values of the operands, per run; runs differ in the sizes of open axes.
    runs: list[list[np.ndarray | None]] = field(default_factory=list)
    expected: list[list[np.ndarray]] = field(default_factory=list)
    oracle: str = ""

    def round_to(self, precision: str | None) -> None:
        """Makes float32 inputs numbers that a 16-bit precision holds.

        Where a function jumps or is steep, a rounded input has another result.
        """
        narrow = {"fp16": F16, "bf16": BF16}.get(precision)
        for row in self.runs if narrow else ():
            for k, value in enumerate(row):
                if value is None or value.dtype != F32:
                    continue
                with np.errstate(over="ignore"):
                    rounded = value.astype(narrow).astype(F32)
                row[k] = np.where(np.isfinite(rounded), rounded, value)

    @property
    def identity(self) -> str:
        return f"{self.op}@{self.opset}:{self.seed}:{self.index}"

    def describe(self) -> str:
        parts = []
        for number, tensor in enumerate(self.case.inputs):
            if tensor is None:
                parts.append("-")
                continue
            dims = (
                f"{d}({tensor.symbols[i][0]})" if i in tensor.symbols else str(d)
                for i, d in enumerate(tensor.shape)
            )
            text = f"{tensor.dtype.name}[{','.join(dims)}]"
            if tensor.constant:
                text += "!"
                if int(np.prod(tensor.shape)) <= 8:
                    text += str(self.runs[0][number].tolist())
            parts.append(text)
        attributes = {
            k: v for k, v in self.case.attributes.items()
            if not isinstance(v, onnx.TensorProto)
        }  # fmt: skip
        return f"{self.op}({', '.join(parts)}) {attributes or ''}".rstrip()


def draw(op: str, opset: int, seed: int, index: int) -> Drawn:
    """The case that (op, opset, seed, index) names, always the same one."""
    rng = np.random.default_rng([seed, index, opset, zlib.crc32(op.encode())])
    case = REGISTRY[op].generate(rng, opset)
    drawn = Drawn(op, opset, seed, index, case)
    names = {s for t in case.inputs if t for s in t.symbols.values()}
    lows = {n: low for n, low in names}
    sizes = [{}]
    if lows:
        maxima = symbol_maxima(case)
        sizes.append({})
        for name, low in sorted(lows.items()):
            top = maxima[name]
            sizes[1][name] = int(np.clip(max(low, size(rng)), low, top))
    constants: dict[int, np.ndarray] = {}
    for chosen in sizes:
        values: list[np.ndarray | None] = []
        for number, tensor in enumerate(case.inputs):
            if tensor is None:
                values.append(None)
                continue
            if number in constants:
                values.append(constants[number])
                continue
            dims = list(tensor.shape)
            for axis, (name, _low) in tensor.symbols.items():
                dims[axis] = chosen.get(name, dims[axis])
            value = np.asarray(tensor.fill(rng, tuple(dims)), tensor.dtype)
            values.append(value)
            if tensor.constant:
                constants[number] = value
        drawn.runs.append(values)
    return drawn


def symbol_maxima(case: Case) -> dict[str, int]:
    """The declared largest size of each open axis."""
    maxima: dict[str, int] = {}
    for tensor in case.inputs:
        for axis, (name, _low) in tensor.symbols.items() if tensor else ():
            maxima[name] = max(maxima.get(name, 0), 2 * tensor.shape[axis] + 8)
    return maxima


class Pack:
    """Several drawn cases as the nodes of one model."""

    def __init__(self, cases: list[Drawn]):
        self.cases = cases
        self.inputs: list[str] = []
        self.shapes: dict[str, list] = {}
        nodes, values, initializers, outputs = [], [], [], []
        for number, drawn in enumerate(cases):
            self._add(f"c{number}", drawn, nodes, values, initializers, outputs)
        graph = helper.make_graph(nodes, "pack", values, outputs, initializers)
        self.model = helper.make_model(
            graph, ir_version=IR_VERSION,
            opset_imports=[helper.make_opsetid("", cases[0].opset)],
        )  # fmt: skip

    def _add(self, prefix, drawn, nodes, values, initializers, outputs) -> None:
        names = []
        for number, tensor in enumerate(drawn.case.inputs):
            if tensor is None:
                names.append("")
                continue
            name = f"{prefix}_x{number}"
            names.append(name)
            if tensor.constant:
                initializers.append(tensor_proto(name, drawn.runs[0][number]))
                continue
            dims = [
                f"{prefix}_{tensor.symbols[i][0]}" if i in tensor.symbols else d
                for i, d in enumerate(tensor.shape)
            ]
            values.append(value_info(name, tensor.dtype, dims))
            if tensor.symbols:
                maxima = symbol_maxima(drawn.case)
                self.shapes[name] = [
                    (
                        tensor.symbols[i][1], d, maxima[tensor.symbols[i][0]]
                    ) if i in tensor.symbols else d
                    for i, d in enumerate(tensor.shape)
                ]  # fmt: skip
        results = [f"{prefix}_y{k}" for k in range(drawn.case.outputs)]
        nodes.append(
            helper.make_node(
                drawn.op, names, results, name=f"{prefix}_{drawn.op}",
                **drawn.case.attributes,
            )  # fmt: skip
        )
        for k, result in enumerate(results):
            dtype = drawn.expected[0][k].dtype if drawn.expected else F32
            info = helper.make_empty_tensor_value_info(result)
            info.type.tensor_type.elem_type = ONNX_TYPES[dtype]
            if drawn.expected:
                rank = drawn.expected[0][k].ndim
                info.type.tensor_type.shape.SetInParent()
                for _ in range(rank):
                    info.type.tensor_type.shape.dim.add()
            outputs.append(info)

    def run_count(self) -> int:
        return max(len(d.runs) for d in self.cases)

    def run_inputs(self, run: int) -> dict[str, np.ndarray]:
        values = {}
        for number, drawn in enumerate(self.cases):
            row = drawn.runs[min(run, len(drawn.runs) - 1)]
            for k, (tensor, value) in enumerate(zip(drawn.case.inputs, row)):
                if tensor is not None and not tensor.constant:
                    values[f"c{number}_x{k}"] = value
        return values

    def output_names(self, number: int) -> list[str]:
        return [f"c{number}_y{k}" for k in range(self.cases[number].case.outputs)]


def ask_oracle(drawn: Drawn) -> None:
    """Fills drawn.expected; raises ValueError if no oracle accepts the case."""
    if drawn.case.oracle:
        drawn.expected = [[drawn.case.oracle(*row)] for row in drawn.runs]
        drawn.oracle = "numpy"
        return
    model = Pack([drawn]).model
    for output in model.graph.output:  # the types are for inference to find
        output.type.tensor_type.elem_type = 0
    inputs = [
        {f"c0_x{k}": v for k, (t, v) in enumerate(zip(drawn.case.inputs, row))
         if t is not None and not t.constant}
        for row in drawn.runs
    ]  # fmt: skip
    half = {t.dtype for t in drawn.case.inputs if t} & {F16, BF16}
    convert = None
    if half and not drawn.op.startswith("Cast"):
        model, inputs, convert = widen(drawn, model, inputs)
    schema = onnx.defs.get_schema(drawn.op, drawn.opset)
    if drawn.opset > ORT_OPSET_LIMIT >= schema.since_version:
        model.opset_import[0].version = ORT_OPSET_LIMIT  # the same operator
    for name, evaluate in (
        ("onnxruntime", run_onnxruntime), ("reference", run_reference),
    ):  # fmt: skip
        try:
            drawn.expected = [evaluate(model, values) for values in inputs]
        except Exception as error:
            problem = error
            continue
        drawn.oracle = name
        break
    else:
        raise ValueError(str(problem)[:300])
    if convert:
        with np.errstate(over="ignore"):
            drawn.expected = [
                [v.astype(t) if v.dtype == F32 else v for v, t in zip(row, convert)]
                for row in drawn.expected
            ]


def widen(drawn: Drawn, model, inputs):
    """The same model in float32, and the types its results must be rounded to.

    Half types mean: compute in float32, round once at the end.
    """
    names = {v: k for k, v in ONNX_TYPES.items()}
    inferred = onnx.shape_inference.infer_shapes(model)
    # An operator without inference keeps the type of its first operand.
    first = ONNX_TYPES[drawn.case.inputs[0].dtype]
    convert = [
        names[o.type.tensor_type.elem_type or first] for o in inferred.graph.output
    ]
    wide = onnx.ModelProto()
    wide.CopyFrom(model)
    halves = (onnx.TensorProto.FLOAT16, onnx.TensorProto.BFLOAT16)
    for value in wide.graph.input:
        if value.type.tensor_type.elem_type in halves:
            value.type.tensor_type.elem_type = onnx.TensorProto.FLOAT
    for tensor in wide.graph.initializer:
        if tensor.data_type in halves:
            array = onnx.numpy_helper.to_array(tensor).astype(F32)
            tensor.CopyFrom(tensor_proto(tensor.name, array))
    widened = [
        {k: v.astype(F32) if v.dtype in (F16, BF16) else v for k, v in row.items()}
        for row in inputs
    ]
    return wide, widened, convert


def run_reference(model, values) -> list[np.ndarray]:
    with np.errstate(all="ignore"):
        return [np.asarray(v) for v in ReferenceEvaluator(model).run(None, values)]


def run_onnxruntime(model, values) -> list[np.ndarray]:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    options.graph_optimization_level = (
        onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    )
    inferred = onnx.shape_inference.infer_shapes(model)
    types = {v.type.tensor_type.elem_type for v in inferred.graph.output}
    if onnx.TensorProto.BFLOAT16 in types or any(
        v.dtype == BF16 for v in values.values()
    ):
        raise NotImplementedError("NumPy has no bfloat16 to exchange")
    session = onnxruntime.InferenceSession(
        inferred.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return session.run(None, values)


def difference(
    want: np.ndarray, got: np.ndarray, rtol: float | None = None,
    scale_tol: float = 1e-6, absolute: float = 0.0,
) -> str:  # fmt: skip
    """'' if the arrays agree, else one line that says how they do not."""
    if want.shape != got.shape:
        return f"shape {list(got.shape)} instead of {list(want.shape)}"
    if want.dtype != got.dtype:
        return f"type {got.dtype} instead of {want.dtype}"
    if want.size == 0:
        return ""
    if want.dtype not in TOLERANCE:
        wrong = want != got
        if not wrong.any():
            return ""
        return _first(wrong, want, got)
    a, b = want.astype(np.float64), got.astype(np.float64)
    finite = np.isfinite(a)
    with np.errstate(all="ignore"):
        same = (a == b) | (np.isnan(a) & np.isnan(b))
        scale = np.abs(a[finite]).max() if finite.any() else 0.0
        relative = TOLERANCE[want.dtype] if rtol is None else rtol
        if want.dtype in (F16, BF16):
            scale_tol = max(scale_tol, relative)
        allowed = relative * np.abs(a) + scale_tol * scale + absolute + 1e-37
        if want.dtype == F16:
            # Overflow to infinity may be decided one rounding apart.
            b = np.where(np.isinf(b) & (np.abs(a) > 65000), np.sign(b) * 65504, b)
            a = np.where(np.isinf(a) & (np.abs(b) > 65000), np.sign(a) * 65504, a)
        wrong = ~(same | (np.abs(a - b) <= allowed))
    return _first(wrong, want, got) if wrong.any() else ""


def _first(wrong, want, got) -> str:
    where = tuple(int(i) for i in np.argwhere(wrong)[0])
    return (
        f"{int(wrong.sum())} of {wrong.size} elements wrong, first at {list(where)}: "
        f"{got[where]} instead of {want[where]}"
    )
