#!/usr/bin/env python3
"""ONNX's node test suite against the list of what passes.

    node_suite.py                      every case, both ways; fails where the list differs
    node_suite.py --record             writes what passes to the list
    node_suite.py --filter conv --mode baked [--device cuda] [--precision fp16]
    node_suite.py --device cuda --engines DIR --compile-only, and elsewhere without it:
                                       engines made here run on a machine with the device

A case is compiled "as-is", with the inputs that give shapes and axes as data, and
"baked", with those inputs as initializers, as they are in real models. The list,
tests/e2e/node_suite_passing.txt, holds one line for each case that passes in either
way. A case that is lost fails the run; one that is gained does too, until --record has
put it down. Crashes and answers that never come fail always.
"""

from __future__ import annotations

import argparse
import collections
import hashlib
import json
import shutil
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import harness
import node_cases
import numpy as np
import onnx

STATES = ("ok", "refused", "wrong", "failed", "crashed", "timeout")
MODES = ("as-is", "baked")
LIST = harness.ROOT / "tests/e2e/node_suite_passing.txt"
HEADER = """\
# What passes of the node tests of onnx {version}, and in which way: as it stands
# ("as-is"), with the inputs that give shapes as initializers ("baked"). With ":differs"
# the case runs, but not to the expected result; docs/importing.md says why.
# Written by: scripts/node_suite.py --record
"""


class Suite:
    def __init__(self, options, cases):
        self.options = options
        self.cases = {c.name: c for c in cases}
        self.folder = Path(tempfile.mkdtemp(prefix="charonia-nodes-"))
        self.lock = threading.Lock()
        self.results: dict[tuple[str, str], dict] = {}
        self.state = None

    def open_state(self) -> None:
        path = self.options.state
        if not path:
            return
        key = dict(
            binary=hashlib.sha256(harness.binary().read_bytes()).hexdigest(),
            device=self.options.device, precision=self.options.precision,
        )  # fmt: skip
        lines = path.read_text().splitlines() if path.exists() else []
        if lines and json.loads(lines[0]) == key:
            for line in lines[1:]:
                record = json.loads(line)
                self.results[record["name"], record["mode"]] = record
            print(f"resuming after {len(self.results)} results")
            self.state = path.open("a")
        else:
            self.state = path.open("w")
            self.state.write(json.dumps(key) + "\n")

    # --- one case ---------------------------------------------------------------

    def variants(self, test, inputs):
        """mode -> (model, inputs); modes that are the same model share an entry."""
        whole = self.cases.get(node_cases.whole_name(test.name))
        fixed = node_cases.parameters(test.model)
        if whole:
            # The expansion of an operator into its body has the operator's inputs.
            fixed |= node_cases.parameters(whole.model)
        given = {i.name for i in test.model.graph.input}
        baked = node_cases.bake(test.model, inputs, fixed) if fixed & given else None
        for modes, variant in (
            (MODES[:1] if baked else MODES, (test.model, inputs)), (MODES[1:], baked),
        ):  # fmt: skip
            wanted = [m for m in modes if m in self.options.mode]
            if variant and wanted:
                yield wanted, *variant

    def run_case(self, test) -> list[dict]:
        found: dict[str, dict] = {}
        for inputs, outputs in test.data_sets:
            inputs, outputs = node_cases.arrays(inputs), node_cases.arrays(outputs)
            for modes, model, values in self.variants(test, inputs):
                if found.get(modes[0], {}).get("state", "ok") != "ok":
                    continue
                state, message = self.run_set(test, model, values, outputs)
                for mode in modes:
                    found[mode] = dict(
                        name=test.name, mode=mode, op=node_cases.operator_of(test),
                        state=state, message=message,
                    )  # fmt: skip
        return list(found.values())

    def run_set(self, test, model, inputs, outputs) -> tuple[str, str]:
        options = self.options
        folder = self.folder / test.name
        folder.mkdir()
        data = model.SerializeToString()
        try:
            engine = self.compile(data, folder)
            if options.compile_only:
                return "ok", ""
            if not node_cases.plain_tensors((*inputs, *outputs)):
                # Sequences, optionals: the compiler must refuse the model.
                return "failed", "accepted a non-tensor model"
            names = [o.name for o in model.graph.output]
            feeds = {i.name: np.asarray(v) for i, v in zip(model.graph.input, inputs)}
            got = harness.run_engine(
                engine, feeds, names, folder / "run", device=options.device,
                timeout=options.timeout,
            )  # fmt: skip
        except harness.CharoniaError as error:
            return error.kind, str(error)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        for name, want, value in zip(names, outputs, got):
            if problem := node_cases.difference(want, value, test.rtol, test.atol):
                return "wrong", f"{name}: {problem}"
        return "ok", ""

    def compile(self, data: bytes, folder: Path) -> Path:
        """The model's engine; one of --engines, if there is one for these bytes."""
        options = self.options
        how = f"{options.target} {options.precision}\n".encode()
        name = hashlib.sha256(how + data).hexdigest()[:24] + ".engine"
        kept = options.engines and options.engines / name
        if kept and kept.exists():
            return kept
        path, engine = folder / "model.onnx", folder / "model.engine"
        path.write_bytes(data)
        harness.compile_model(
            path, engine, target=options.target, precision=options.precision,
            extra=["--threads", "1", "--cache-dir", self.folder / "cache"],
            timeout=options.timeout,
        )  # fmt: skip
        return Path(shutil.move(engine, kept)) if kept else engine

    # --- all of them --------------------------------------------------------------

    def run(self) -> None:
        done = {name for name, _ in self.results}
        todo = [c for c in self.cases.values() if c.name not in done]
        todo = [c for c in todo if self.options.filter in c.name]
        start = time.time()
        finished = 0

        def work(test):
            nonlocal finished
            records = self.run_case(test)
            with self.lock:
                for record in records:
                    self.results[record["name"], record["mode"]] = record
                    if self.state:
                        self.state.write(json.dumps(record) + "\n")
                        self.state.flush()
                finished += 1
                if finished % 200 == 0:
                    print(f"{finished}/{len(todo)}, {time.time() - start:.0f} s", flush=True)

        try:
            with ThreadPoolExecutor(self.options.jobs) as pool:
                list(pool.map(work, todo))
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)

    def report(self) -> bool:
        """Prints what happened; True if nothing crashed or hung."""
        counts = collections.defaultdict(collections.Counter)
        totals = {mode: collections.Counter() for mode in MODES}
        for record in self.results.values():
            counts[record["op"]][record["state"]] += 1
            totals[record["mode"]][record["state"]] += 1
        if self.options.table:
            rows = [[op, *(counts[op][s] or "" for s in STATES)] for op in sorted(counts)]
            print(harness.table(["operator", *STATES], rows))
        for mode in self.options.mode:
            total = totals[mode]
            print(
                f"{mode}: {total['ok']} of {total.total()} cases of onnx "
                f"{onnx.__version__} pass; {total['refused']} refused, "
                f"{total['wrong']} differ, {total['failed']} failed otherwise, "
                f"{total['crashed'] + total['timeout']} crashed or hung"
            )
        harness.write_json(
            self.options.json,
            dict(onnx=onnx.__version__, cases=sorted(
                self.results.values(), key=lambda r: (r["name"], r["mode"]))),
        )  # fmt: skip
        bad = [r for r in self.results.values() if r["state"] in ("crashed", "timeout")]
        for record in bad:
            print(f"{record['state'].upper()} {record['name']} ({record['mode']}): {record['message']}")
        return not bad


# --- The list -------------------------------------------------------------------


def mark(record: dict) -> str:
    """What the list says of a result: nothing, "as-is", "baked:differs"."""
    ending = {"ok": "", "wrong": ":differs"}.get(record["state"])
    return "" if ending is None else record["mode"] + ending


def write_list(path: Path, results) -> None:
    marks = collections.defaultdict(list)
    for _, record in sorted(results.items()):
        if text := mark(record):
            marks[record["name"]].append(text)
    lines = [" ".join([name, *texts]) for name, texts in sorted(marks.items())]
    path.write_text(HEADER.format(version=onnx.__version__) + "\n".join(lines) + "\n")
    print(f"{path}: {len(lines)} cases")


def read_list(path: Path) -> dict[tuple[str, str], str]:
    """(case, mode) -> its mark."""
    listed = {}
    for line in path.read_text().splitlines():
        if line and not line.startswith("#"):
            name, *marks = line.split()
            for text in marks:
                listed[name, text.partition(":")[0]] = text
    return listed


def compare(listed, results, chosen) -> list[str]:
    """One line for each case whose result is not what the list says; `chosen` says
    which (case, mode) should have been run."""
    lines = []
    for key in sorted({*listed, *results}):
        if not chosen(*key):
            continue
        want, record = listed.get(key, ""), results.get(key)
        if record is None:
            lines.append(f"LOST {key[0]} ({key[1]}): there is no such case")
            continue
        got = mark(record)
        if got == want:
            continue
        better = got == record["mode"]
        what = "GAINED" if better else "LOST" if want else record["state"].upper()
        lines.append(f"{what} {key[0]} ({key[1]}): {record['message'] or 'passes now'}")
    return lines


def parse(arguments=None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    add = parser.add_argument
    add("--filter", default="", help="only cases whose name contains this")
    add("--mode", choices=MODES, action="append", help="default: both")
    add("--device", help="cpu (default) or cuda")
    add("--target", help="default: x86-64-v3, or sm_90 with --device cuda")
    add("--precision")
    add("--list", type=Path, default=LIST)
    add("--record", action="store_true", help="write the list instead of comparing")
    add("--jobs", type=int, default=2)
    add("--timeout", type=float, default=60, help="seconds for one command")
    add("--state", type=Path, help="file of finished cases, to resume from")
    add("--engines", type=Path, help="folder where engines of this compiler are kept, and taken from")
    add("--compile-only", action="store_true", help="compile what --engines lacks, run nothing")
    add("--json", type=Path)
    add("--table", action="store_true", help="print a row for every operator")
    options = parser.parse_args(arguments)
    options.mode = options.mode or list(MODES)
    if options.target is None:
        options.target = "sm_90" if options.device == "cuda" else "x86-64-v3"
    if options.compile_only and not options.engines:
        parser.error("--compile-only needs --engines")
    if options.engines:
        options.engines.mkdir(parents=True, exist_ok=True)
    if options.record and (options.filter or len(options.mode) < len(MODES)):
        parser.error("--record needs every case in both modes")
    return options


def main(arguments=None) -> int:
    options = parse(arguments)
    suite = Suite(options, node_cases.collect())
    suite.open_state()
    suite.run()
    healthy = suite.report()
    if options.compile_only:
        return 0 if healthy else 1
    if options.record:
        write_list(options.list, suite.results)
        return 0 if healthy else 1
    lines = compare(
        read_list(options.list), suite.results,
        lambda name, mode: options.filter in name and mode in options.mode,
    )  # fmt: skip
    for line in lines:
        print(line)
    if lines:
        print(
            f"{len(lines)} results differ from {options.list}; one case: --filter NAME; if "
            "they are meant: scripts/node_suite.py --record, and commit the list"
        )
    return 0 if healthy and not lines else 1


if __name__ == "__main__":
    sys.exit(main())
