#!/usr/bin/env python3
"""Counts which cases of ONNX's node test suite pass.

    node_suite.py [--device cuda --target sm_90] [--state results.jsonl] [--json out.json]

The cases are made by onnx.backend.test.case.node.collect_testcases(): no download.
Each is compiled as it stands, shape-giving inputs included; what only works when
such inputs are constants is counted as refused. With --bake those inputs become
initializers, as they are in real models, and the count is reported as baked.

The state file makes a run resumable; it is ignored when the command has changed.
"""

from __future__ import annotations

import argparse
import collections
import hashlib
import json
import re
import shutil
import sys
import tempfile
import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import harness
import ml_dtypes
import numpy as np
import onnx

STATES = ("ok", "refused", "wrong", "failed", "crashed", "timeout")
# Inputs, by position, that give shapes, axes and the like in nearly every model.
PARAMETERS = {
    "Reshape": (1,), "Expand": (1,), "Tile": (1,), "Slice": (1, 2, 3, 4), "Pad": (1, 2, 3),
    "Squeeze": (1,), "Unsqueeze": (1,), "Split": (1,), "ConstantOfShape": (0,),
    "Resize": (1, 2, 3), "Upsample": (1,), "Range": (0, 1, 2), "Trilu": (1,), "OneHot": (1,),
    "TopK": (1,), "Loop": (0, 1), "CumSum": (1,), "CumProd": (1,), "AffineGrid": (1,), "Clip": (1, 2), "Dropout": (1, 2), "CenterCropPad": (1,),
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


def same(want: np.ndarray, got: np.ndarray, rtol: float, atol: float) -> str:
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
    return f"{(~close).sum()} of {close.size} wrong, at {list(map(int, at))}: {got[at]} instead of {want[at]}"


class Suite:
    def __init__(self, options):
        self.options = options
        self.folder = Path(tempfile.mkdtemp(prefix="charonia-nodes-"))
        self.lock = threading.Lock()
        self.results: dict[str, dict] = {}
        self.state = None

    def open_state(self) -> None:
        path = self.options.state
        if not path:
            return
        key = dict(
            binary=hashlib.sha256(harness.binary().read_bytes()).hexdigest(),
            device=self.options.device, precision=self.options.precision,
            bake=self.options.bake,
        )  # fmt: skip
        lines = path.read_text().splitlines() if path.exists() else []
        if lines and json.loads(lines[0]) == key:
            for line in lines[1:]:
                record = json.loads(line)
                self.results[record["name"]] = record
            print(f"resuming after {len(self.results)} cases")
            self.state = path.open("a")
        else:
            self.state = path.open("w")
            self.state.write(json.dumps(key) + "\n")

    def run_case(self, test) -> dict:
        record = dict(name=test.name, op=operator_of(test), state="ok", message="")
        folder = self.folder / test.name
        folder.mkdir()
        try:
            for inputs, outputs in test.data_sets:
                inputs, outputs = arrays(inputs), arrays(outputs)
                if not plain_tensors(inputs) or not plain_tensors(outputs):
                    # Sequences, optionals: the compiler must refuse the model.
                    self.compile(test.model, folder)
                    record.update(state="failed", message="accepted a non-tensor model")
                    break
                problem = self.run_set(test, inputs, outputs, folder)
                if problem:
                    record.update(state="wrong", message=problem)
                    break
        except harness.CharoniaError as error:
            record.update(state=error.kind, message=str(error))
        shutil.rmtree(folder, ignore_errors=True)
        return record

    def compile(self, model, folder: Path) -> None:
        path = folder / "model.onnx"
        path.write_bytes(model.SerializeToString())
        harness.compile_model(
            path, folder / "model.engine", target=self.options.target,
            precision=self.options.precision, timeout=self.options.timeout,
        )  # fmt: skip

    def run_set(self, test, inputs, outputs, folder: Path) -> str:
        model = test.model
        if self.options.bake:
            # The expansion of an operator into its body has the operator's inputs.
            whole = self.models.get(re.sub(r"_expanded(_ver\d+)?$", "", test.name))
            fixed = parameters(model) | (parameters(whole) if whole else set())
            model, inputs = bake(model, inputs, fixed)
        self.compile(model, folder)
        names = [o.name for o in model.graph.output]
        feeds = {i.name: np.asarray(v) for i, v in zip(model.graph.input, inputs)}
        got = harness.run_engine(
            folder / "model.engine", feeds, names, folder / "run",
            device=self.options.device, timeout=self.options.timeout,
        )  # fmt: skip
        for name, want, value in zip(names, outputs, got):
            if problem := same(want, value, test.rtol, test.atol):
                return f"{name}: {problem}"
        return ""

    def run(self, cases) -> None:
        self.models = {c.name: c.model for c in cases}
        todo = [c for c in cases if c.name not in self.results]
        start = time.time()

        def work(test):
            record = self.run_case(test)
            with self.lock:
                self.results[test.name] = record
                if self.state:
                    self.state.write(json.dumps(record) + "\n")
                    self.state.flush()
                done = len(self.results)
                if done % 100 == 0:
                    print(f"{done}/{len(cases)}, {time.time() - start:.0f} s", flush=True)

        try:
            with ThreadPoolExecutor(self.options.jobs) as pool:
                list(pool.map(work, todo))
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)

    def report(self) -> int:
        counts = collections.defaultdict(collections.Counter)
        total = collections.Counter()
        for record in self.results.values():
            counts[record["op"]][record["state"]] += 1
            total[record["state"]] += 1
        rows = [
            [op, *(counts[op][s] or "" for s in STATES)]
            for op in sorted(counts)
            if self.options.table or counts[op]["ok"] or counts[op]["wrong"]
            or counts[op]["failed"] or counts[op]["crashed"] or counts[op]["timeout"]
        ]  # fmt: skip
        rows.append(["all", *(total[s] or "" for s in STATES)])
        print(harness.table(["operator", *STATES], rows))
        refused = sorted(op for op in counts if set(counts[op]) == {"refused"})
        if not self.options.table:
            print(f"\nrefused in every case: {', '.join(refused)}")
        shown = 0
        for record in sorted(self.results.values(), key=lambda r: (r["state"], r["op"])):
            if record["state"] in ("ok", "refused") or shown >= self.options.show:
                continue
            print(f"{record['state'].upper()} {record['name']}: {record['message']}")
            shown += 1
        print(
            f"\n{total['ok']} of {total.total()} cases of onnx {onnx.__version__} pass"
            f"{' (baked parameters)' if self.options.bake else ''}; "
            f"{total['refused']} refused, {total['wrong']} wrong, {total['failed']} "
            f"failed otherwise, {total['crashed'] + total['timeout']} crashed or hung"
        )
        harness.write_json(
            self.options.json,
            dict(onnx=onnx.__version__, total=dict(total),
                 cases=sorted(self.results.values(), key=lambda r: r["name"])),
        )  # fmt: skip
        return 1 if total["crashed"] or total["timeout"] or total["wrong"] else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    add = parser.add_argument
    add("--filter", default="", help="only cases whose name contains this")
    add("--device")
    add("--target")
    add("--precision")
    add("--bake", action="store_true", help="make shape-giving inputs constants")
    add("--jobs", type=int, default=2)
    add("--timeout", type=float, default=60)
    add("--state", type=Path, help="file of finished cases, to resume from")
    add("--json", type=Path)
    add("--show", type=int, default=200, help="failures printed")
    add("--table", action="store_true", help="print every operator")
    options = parser.parse_args()
    if options.target is None:
        options.target = "sm_90" if options.device == "cuda" else "cpu"
    cases = [c for c in collect() if options.filter in c.name]
    suite = Suite(options)
    suite.open_state()
    suite.run(cases)
    return suite.report()


if __name__ == "__main__":
    sys.exit(main())
