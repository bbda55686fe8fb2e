#!/usr/bin/env python3
"""Exports the models of zoo.py to ONNX, with sample inputs.

    export.py --output-dir DIR [NAME...]    full-size models (default: all six)
    export.py --compact [NAME...]           the committed small ones, with reference
                                            inputs and outputs of ONNX Runtime

Needs torch, torchvision, transformers, onnx, onnxscript and onnxruntime.
A full model NAME becomes DIR/NAME/model.onnx and DIR/NAME/<input>.npy.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import logging
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import torch
import zoo

HERE = Path(__file__).resolve().parent
# Above this many bytes of weights, `--external-data auto` writes a second file.
EXTERNAL_THRESHOLD = 100 << 20


def export_module(spec: zoo.ModelSpec, module: torch.nn.Module) -> onnx.ModelProto:
    """Runs the exporter that `spec` asks for, with its dynamic dimensions."""
    arrays = zoo.sample_inputs(spec, 2, 24)
    args = tuple(torch.from_numpy(a) for a in arrays.values())
    names = dict(input_names=list(arrays), output_names=list(spec.outputs))
    if spec.exporter == "legacy":
        buffer = io.BytesIO()
        dynamic = {
            name: dict(axes)
            for name, axes in (*spec.dynamic.items(), *spec.dynamic_outputs.items())
        }
        # PRESERVE keeps BatchNormalization nodes, which the other exporter folds.
        torch.onnx.export(
            module, args, buffer, dynamo=False, opset_version=spec.opset,
            dynamic_axes=dynamic, training=torch.onnx.TrainingMode.PRESERVE, **names,
        )  # fmt: skip
        return onnx.load_from_string(buffer.getvalue())
    shapes = zoo.dynamic_shapes(spec, module)
    program = torch.onnx.export(
        module, args, dynamo=True, opset_version=spec.opset,
        dynamic_shapes=shapes, verbose=False, **names,
    )  # fmt: skip
    return program.model_proto


def strip_metadata(model: onnx.ModelProto) -> None:
    """Drops stack traces and doc strings: they hold paths of this machine."""

    def strip_graph(graph):
        graph.doc_string = ""
        del graph.metadata_props[:]
        for node in graph.node:
            node.doc_string = ""
            del node.metadata_props[:]
            for attribute in node.attribute:
                if attribute.HasField("g"):
                    strip_graph(attribute.g)
                for inner in attribute.graphs:
                    strip_graph(inner)
        values = (*graph.input, *graph.output, *graph.value_info, *graph.initializer)
        for value in values:
            value.doc_string = ""
            del value.metadata_props[:]

    model.doc_string = ""
    del model.metadata_props[:]
    strip_graph(model.graph)
    for function in model.functions:
        function.doc_string = ""
        del function.metadata_props[:]
        for node in function.node:
            node.doc_string = ""
            del node.metadata_props[:]


def weight_bytes(model: onnx.ModelProto) -> int:
    return sum(t.ByteSize() for t in model.graph.initializer)


def save(model: onnx.ModelProto, path: Path, external: bool) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    data = path.with_name(path.name + ".data")
    data.unlink(missing_ok=True)
    if external:
        onnx.save(
            model, path, save_as_external_data=True, all_tensors_to_one_file=True,
            location=data.name, size_threshold=1024,
        )  # fmt: skip
    else:
        onnx.save(model, path)
    onnx.checker.check_model(str(path), full_check=True)


def session(path: Path) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(
        str(path), options, providers=["CPUExecutionProvider"]
    )


def check_healthy(name: str, value: np.ndarray) -> None:
    """Fails unless `value` is of a scale on which an error would show."""
    scale = float(np.abs(value).max())
    spread = float(value.std())
    if not np.isfinite(value).all() or not 1e-2 < spread < 1e3 or scale > 1e4:
        raise SystemExit(f"{name}: unhealthy output: std {spread:g}, max {scale:g}")


def check_export(spec, module, path: Path) -> None:
    """Compares ONNX Runtime on the exported file with the module itself."""
    runner = session(path)
    shapes = spec.shapes() if path.stat().st_size < 1 << 20 else [(1, 37), (3, 128)]
    for batch, seq in shapes:
        if seq == 37 and not spec.bench_sequence:
            seq = 0
        arrays = zoo.sample_inputs(spec, batch, seq)
        with torch.no_grad():
            expected = module(*(torch.from_numpy(a) for a in arrays.values()))
        expected = expected if isinstance(expected, tuple) else (expected,)
        for name, want, got in zip(spec.outputs, expected, runner.run(None, arrays)):
            want = want.numpy()
            check_healthy(f"{spec.name} {name} b{batch} s{seq}", want)
            error = np.abs(want - got).max() / np.abs(want).max()
            if want.shape != got.shape or not error < 1e-4:
                raise SystemExit(
                    f"{spec.name}: {name} of b{batch} s{seq} differs from PyTorch: "
                    f"{got.shape} against {want.shape}, error {error:g} of the scale"
                )


def write_references(spec: zoo.ModelSpec, path: Path) -> None:
    """Writes NAME.npz: in.<case>.<input> and out.<case>.<output> of each case.

    A case is b<batch> or b<batch>s<sequence>.
    """
    runner = session(path)
    arrays: dict[str, np.ndarray] = {}
    pairs = spec.shapes()
    if spec.seq_max:  # every batch and every length once; all pairs would be bulky
        pairs = [(1, 1), (3, 37), (8, 37), (1, 128), (3, 1), (3, 128)]
    for batch, seq in pairs:
        case = f"b{batch}s{seq}" if seq else f"b{batch}"
        inputs = zoo.sample_inputs(spec, batch, seq)
        for name, value in inputs.items():
            arrays[f"in.{case}.{name}"] = value
        for name, value in zip(spec.outputs, runner.run(None, inputs)):
            check_healthy(f"{spec.name} {name} {case}", value)
            arrays[f"out.{case}.{name}"] = value
    np.savez_compressed(path.with_suffix(".npz"), **arrays)


def export_one(spec: zoo.ModelSpec, path: Path, external: str) -> None:
    start = time.time()
    module = zoo.build(spec)
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        with torch.no_grad():
            model = export_module(spec, module)
    strip_metadata(model)
    model.producer_version = ""
    size = weight_bytes(model)
    use_external = external == "always" or (
        external == "auto" and size > EXTERNAL_THRESHOLD
    )
    save(model, path, use_external)
    check_export(spec, module, path)
    seconds = time.time() - start
    print(
        f"{spec.name}: opset {model.opset_import[0].version}, "
        f"{len(model.graph.node)} nodes, {size / 1e6:.1f} MB of weights"
        f"{' (external)' if use_external else ''}, {seconds:.0f} s: {path}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--compact", action="store_true")
    parser.add_argument("--output-dir", type=Path, default=HERE.parent / "build/models")
    parser.add_argument(
        "--external-data", choices=("auto", "always", "never"), default="auto"
    )
    options = parser.parse_args()
    logging.disable(logging.WARNING)
    # The fused multi-head attention of PyTorch's inference path has no ONNX form.
    torch.backends.mha.set_fastpath_enabled(False)
    table = zoo.COMPACT if options.compact else zoo.FULL
    for name in options.names or table:
        if name not in table:
            sys.exit(f"no model named {name!r}; there are: {', '.join(table)}")
        spec = table[name]
        if options.compact:
            path = HERE / "compact" / f"{name}.onnx"
            export_one(spec, path, "never")
            if path.stat().st_size >= 1 << 20:
                sys.exit(f"{path} has {path.stat().st_size} bytes, limit 1 MiB")
            write_references(spec, path)
            continue
        path = options.output_dir / name / "model.onnx"
        export_one(spec, path, options.external_data)
        for key, value in zoo.sample_inputs(spec, 1, spec.bench_sequence).items():
            np.save(path.parent / f"{key}.npy", value)


if __name__ == "__main__":
    main()
