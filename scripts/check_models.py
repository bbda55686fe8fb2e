#!/usr/bin/env python3
"""Checks whole models: every batch and sequence length out of one engine each.

    check_models.py --models DIR [NAME...]               CPU fp32 against ONNX Runtime
    check_models.py --models DIR --device cuda --precision fp16
                    error against fp32, beside PyTorch's own fp16 error in the same run
    check_models.py --compact | --light                  other sets of models

DIR is what models/export.py --output-dir wrote (or CHARONIA_MODELS). The error is
the largest absolute difference divided by the reference output's largest value.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

import harness
import numpy as np
import onnx
from model_subjects import (
    FULL, Subject, TorchPeer, compact_models, dims_of, full_models, light_models,
    make_inputs, onnxruntime_session, scaled_error, shape_ranges,
)  # fmt: skip

FP32_LIMIT = 1e-4
# Our reduced-precision error may be this many times PyTorch's own.
PEER_FACTOR = 1.5
# Without a peer: limits of plausibility.
REDUCED_LIMIT = {"fp16": 5e-3, "bf16": 4e-2, "tf32": 5e-3}


class Checker:
    def __init__(self, options):
        self.options = options
        self.rows: list[list] = []
        self.records: list[dict] = []
        self.failed = False

    def check(self, subject: Subject) -> None:
        options = self.options
        symbols = {d for i in subject.input_infos() for d in dims_of(i) if isinstance(d, str)}
        batches = options.batches if "batch" in symbols else (1,)
        sequences = options.sequences if "seq" in symbols else (0,)
        with tempfile.TemporaryDirectory(prefix="charonia-models-") as name:
            folder = Path(name)
            engine = folder / "model.engine"
            try:
                built = harness.compile_model(
                    subject.path, engine, target=options.target,
                    precision=options.precision, timeout=options.timeout,
                    shapes=shape_ranges(subject, batches, sequences or (0,)),
                )  # fmt: skip
            except harness.CharoniaError as error:
                self.fail(subject, "compile", error)
                return
            print(f"{subject.name}: compiled in {built.seconds:.1f} s", flush=True)
            session = onnxruntime_session(subject.path)
            peer = None
            if options.precision not in (None, "fp32") and options.device == "cuda":
                if subject.name in FULL:
                    peer = TorchPeer(subject, options.precision)
            for batch in batches:
                for seq in sequences:
                    self.check_shape(subject, engine, session, peer, batch, seq, folder)

    def check_shape(self, subject, engine, session, peer, batch, seq, folder) -> None:
        options = self.options
        inputs = make_inputs(subject, batch, seq)
        names = [o.name for o in session.get_outputs()]
        want = session.run(None, inputs)
        case = f"b{batch}" + (f" s{seq}" if seq else "")
        try:
            start = time.time()
            got = harness.run_engine(
                engine, inputs, names, folder, device=options.device,
                timeout=options.timeout,
            )  # fmt: skip
            seconds = time.time() - start
        except harness.CharoniaError as error:
            self.fail(subject, case, error)
            return
        if subject.expected:
            self.check_expected(subject, got[0])
        peers = peer.run(inputs) if peer else [None] * len(names)
        for name, w, g, p in zip(names, want, got, peers):
            error = scaled_error(w, g.astype(np.float32))
            limit = FP32_LIMIT
            peer_error = None
            if p is not None:
                peer_error = scaled_error(w, p)
                limit = PEER_FACTOR * peer_error
            elif options.precision in ("fp16", "bf16", "tf32"):
                limit = REDUCED_LIMIT[options.precision]
            good = error <= limit
            self.failed |= not good
            self.rows.append([
                subject.name, case, name, f"{np.abs(w).max():.3g}", f"{error:.2e}",
                f"{peer_error:.2e}" if peer_error is not None else "",
                f"{limit:.2e}", "ok" if good else "TOO LARGE",
            ])  # fmt: skip
            self.records.append(dict(
                model=subject.name, case=case, output=name, error=error,
                torch_error=peer_error, limit=limit, ok=good, seconds=seconds,
            ))  # fmt: skip

    def check_expected(self, subject, got) -> None:
        """The wheel states the output of each light model, whatever the image is."""
        tensor = onnx.TensorProto.FromString(subject.expected.read_bytes())
        want = onnx.numpy_helper.to_array(tensor)
        error = scaled_error(want, got)
        good = error <= FP32_LIMIT
        self.failed |= not good
        self.rows.append([
            subject.name, "wheel", "", f"{np.abs(want).max():.3g}", f"{error:.2e}", "",
            f"{FP32_LIMIT:.2e}", "ok" if good else "TOO LARGE",
        ])  # fmt: skip
        self.records.append(
            dict(model=subject.name, case="wheel", error=error, limit=FP32_LIMIT, ok=good)
        )

    def fail(self, subject, case, error) -> None:
        self.failed = True
        self.rows.append([subject.name, case, "", "", "", "", "", str(error)[:200]])
        self.records.append(dict(model=subject.name, case=case, ok=False, message=str(error)))
        print(f"{subject.name} {case}: {error}", flush=True)


def subjects(options, scratch: Path) -> list[Subject]:
    found: list[Subject] = []
    if options.light:
        found += light_models(None)
        found += light_models(scratch)  # with random weights
    if options.compact:
        found += compact_models()
    if options.models:
        found += full_models(Path(options.models))
    if options.names:
        found = [s for s in found if s.name in options.names]
    if not found:
        sys.exit("nothing to check: give --models DIR, --compact or --light")
    return found


def int_list(text: str) -> tuple[int, ...]:
    return tuple(int(v) for v in text.split(","))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    add = parser.add_argument
    add("names", nargs="*", metavar="NAME")
    add("--models", type=Path, help="folder of full-size models")
    add("--compact", action="store_true")
    add("--light", action="store_true")
    add("--batches", type=int_list, default=(1, 3, 8))
    add("--sequences", type=int_list, default=(1, 37, 128))
    add("--device")
    add("--target")
    add("--precision")
    add("--timeout", type=float, default=600)
    add("--json", type=Path)
    options = parser.parse_args()
    if not (options.models or options.compact or options.light):
        options.models = os.environ.get("CHARONIA_MODELS")
    if options.target is None:
        options.target = "sm_90" if options.device == "cuda" else "cpu"
    checker = Checker(options)
    with tempfile.TemporaryDirectory(prefix="charonia-light-") as scratch:
        for subject in subjects(options, Path(scratch)):
            checker.check(subject)
    header = ["model", "case", "output", "scale", "error", "torch", "limit", "verdict"]
    print(harness.table(header, checker.rows))
    harness.write_json(options.json, checker.records)
    print("FAILED" if checker.failed else "all within limits")
    return int(checker.failed)


if __name__ == "__main__":
    sys.exit(main())
