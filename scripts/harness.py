"""Drives the `charonia` command from Python: used by the test and bench scripts.

The command is found in the environment variable CHARONIA, else in the build
folders of this checkout. Failures are classified, because "refused politely",
"wrong" and "crashed" are different findings.
"""

from __future__ import annotations

import json
import os
import re
import resource
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
# Words by which the compiler says that it understood and declines.
REFUSAL_WORDS = ("unsupported", "not supported", "does not support")
CRASH_WORDS = (
    "assertion", "stack dump", "please submit a bug report", "sanitizer:",
    "runtime error:", "llvm error", "unreachable executed", "terminate called",
)  # fmt: skip


def binary() -> Path:
    """The `charonia` command under test."""
    if named := os.environ.get("CHARONIA"):
        return Path(named).resolve()
    for preset in ("release", "dev", "asan"):
        path = ROOT / "build" / preset / "bin" / "charonia"
        if path.exists():
            return path
    raise SystemExit("no charonia command: build it or set CHARONIA to its path")


@dataclass
class Result:
    """What one run of the command did."""

    code: int
    stdout: str
    stderr: str
    seconds: float
    peak_bytes: int = 0
    timed_out: bool = False

    @property
    def kind(self) -> str:
        """'ok', 'refused', 'failed', 'crashed' or 'timeout'."""
        if self.timed_out:
            return "timeout"
        text = self.stderr.lower()
        if self.code < 0 or self.code >= 128 or any(w in text for w in CRASH_WORDS):
            return "crashed"
        if self.code == 0:
            return "ok"
        if any(word in text for word in REFUSAL_WORDS):
            return "refused"
        return "failed"

    @property
    def message(self) -> str:
        """The most telling line of the output, for tables of failures."""
        lines = [line.strip() for line in self.stderr.splitlines() if line.strip()]
        if self.timed_out:
            return f"no answer after {self.seconds:.0f} s"
        for line in lines:
            if any(word in line.lower() for word in (*CRASH_WORDS, "error")):
                return line[:300]
        if self.code < 0:
            return signal.Signals(-self.code).name
        return (lines[0] if lines else f"exit status {self.code}")[:300]


class CharoniaError(Exception):
    """A command that did not succeed."""

    def __init__(self, step: str, result: Result):
        super().__init__(f"{step}: {result.kind}: {result.message}")
        self.step = step
        self.result = result
        self.kind = result.kind


def invoke(
    *arguments: str | Path, timeout: float = 600,
    env: Mapping[str, str] | None = None, program: str = "charonia",
) -> Result:  # fmt: skip
    """Runs `charonia`, or a program beside or below it; the child's peak memory is measured."""
    command = [str(binary().parent / program), *map(str, arguments)]
    start = time.perf_counter()
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = subprocess.Popen(
            command, stdout=out, stderr=err, stdin=subprocess.DEVNULL,
            env={**os.environ, **(env or {})},
        )  # fmt: skip
        timed_out = False
        usage = None
        deadline = start + timeout
        delay = 0.001
        while True:
            pid, status, usage = os.wait4(process.pid, os.WNOHANG)
            if pid:
                break
            if time.perf_counter() > deadline and not timed_out:
                process.kill()
                timed_out = True
            time.sleep(delay)
            delay = min(delay * 1.5, 0.02)
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        err.seek(0)
        return Result(
            code=process.returncode,
            stdout=out.read().decode(errors="replace"),
            stderr=err.read().decode(errors="replace"),
            seconds=time.perf_counter() - start,
            peak_bytes=usage.ru_maxrss * 1024,
            timed_out=timed_out,
        )


def cpu_targets(*, extended: bool = False) -> list[str]:
    """The instruction sets that this machine runs, the best one last; `extended`: those too
    that differ from another in few kernels."""
    flags = set(re.findall(r"\w+", Path("/proc/cpuinfo").read_text()))
    targets = ["x86-64-v3"]
    if {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"} <= flags:
        targets.append("x86-64-v4")
        if extended and "avx512_vnni" in flags:
            targets.append("x86-64-v4-vnni")
    return targets


def shape_text(dims: Sequence[int | tuple[int, int, int]]) -> str:
    """1..8..64x3 for ((1, 8, 64), 3): the syntax of --shape."""
    return "x".join(
        "..".join(map(str, d)) if isinstance(d, tuple) else str(d) for d in dims
    )


def compile_model(
    model: Path, engine: Path, *, target: str | None = None, precision: str | None = None,
    shapes: Mapping[str, Sequence] | None = None, dump: Path | None = None,
    extra: Sequence[str] = (), timeout: float = 600,
) -> Result:  # fmt: skip
    """`charonia compile`; raises CharoniaError unless it succeeds. Without a target for the
    best instruction set of this machine alone: "cpu" is kernels for all, of which no other
    one runs here, and takes twice as long."""
    arguments = ["compile", model, "-o", engine, "--target", target or cpu_targets()[-1]]
    if precision:
        arguments += ["--precision", precision]
    if dump:
        arguments += ["--dump-dir", dump]
    for name, dims in (shapes or {}).items():
        arguments += ["--shape", f"{name}={shape_text(dims)}"]
    result = invoke(*arguments, *extra, timeout=timeout)
    if result.kind != "ok":
        raise CharoniaError("compile", result)
    return result


def run_all_outputs(
    engine: Path, inputs: Mapping[str, np.ndarray], folder: Path, *,
    device: str | None = None, dump: Path | None = None,
    extra: Sequence[str] = (), timeout: float = 600,
) -> dict[str, np.ndarray]:  # fmt: skip
    """`charonia run`: outputs by name, in the engine's order; files are in `folder`.

    On the device "simt" it is charonia-simt that runs, with the `dump` of the compiler;
    whatever it finds wrong is an error.
    """
    folder.mkdir(parents=True, exist_ok=True)
    out = folder / "out"
    shutil.rmtree(out, ignore_errors=True)
    simt = device == "simt"
    arguments: list[str | Path] = [] if simt else ["run"]
    arguments += [engine, "--output-dir", out]
    if dump:
        arguments += ["--dump-dir", dump]
    for index, (name, value) in enumerate(inputs.items()):
        path = folder / f"in{index}.npy"
        save_array(path, value)
        arguments += ["--input", f"{name}={path}"]
    if device and not simt:
        arguments += ["--device", device]
    program = "charonia-simt" if simt else "charonia"
    result = invoke(*arguments, *extra, timeout=timeout, program=program)
    if result.kind != "ok":
        raise CharoniaError("run", result)
    # A line for each output: its name and its file.
    lines = [line.rpartition(f": {out}/") for line in result.stdout.splitlines()]
    return {name: np.load(out / file) for name, separator, file in lines if separator}


def run_engine(
    engine: Path, inputs: Mapping[str, np.ndarray], outputs: Sequence[str], folder: Path, **how
) -> list[np.ndarray]:
    """The named ones of run_all_outputs."""
    values = run_all_outputs(engine, inputs, folder, **how)
    if missing := [name for name in outputs if name not in values]:
        what = f"error: run wrote no {missing[0]!r}; it wrote {sorted(values)}"
        raise CharoniaError("run", Result(1, "", what, 0.0))
    return [values[name] for name in outputs]


def is_raw(dtype: np.dtype) -> bool:
    """Whether a type is in .npy as raw bytes."""
    return dtype.name == "bfloat16" or dtype.name.startswith("float8")


def save_array(path: Path, value: np.ndarray) -> None:
    """Writes .npy; bfloat16 and floats of 8 bits, which NumPy has no code for, as raw bytes."""
    if is_raw(value.dtype):
        value = value.view(f"V{value.itemsize}")
    np.save(path, value)


def save_safetensors(path: Path, tensors: Mapping[str, np.ndarray]) -> Path:
    """Tensors by name in the safetensors format."""
    words = {"float32": "F32", "float16": "F16", "int64": "I64", "int32": "I32"}
    header, data = {}, b""
    for name, value in tensors.items():
        end = len(data) + value.nbytes
        header[name] = {"dtype": words[str(value.dtype)], "shape": value.shape, "data_offsets": [len(data), end]}
        data += value.tobytes()
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)
    return path


def as_dtype(value: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Undoes save_array: gives raw bytes their meaning back."""
    if is_raw(dtype) and value.dtype != dtype and value.itemsize == dtype.itemsize:
        return value.view(dtype)
    return value


def draw_input(rng: np.random.Generator, shape: Sequence[int], dtype, high: int) -> np.ndarray:
    """As models get them: masks have padded rows, indices are `high` at most, images and
    sequences are a coarse pattern and noise in multiples of 1/32, since on noise alone
    deep networks give nearly constants."""
    if dtype == np.bool_:
        return rng.random(shape) < 0.7
    if np.issubdtype(dtype, np.integer):
        if high <= 1 and len(shape) == 2:
            lengths = rng.integers((shape[1] + 1) // 2, shape[1] + 1, (shape[0], 1))
            lengths[0] = shape[1]
            return (np.arange(shape[1])[None, :] < lengths).astype(dtype)
        return rng.integers(0, high + 1, shape).astype(dtype)
    x = rng.standard_normal(shape)
    if len(shape) >= 3:
        coarse = rng.standard_normal([max(1, -(-s // 16)) for s in shape])
        for axis, size in enumerate(shape):
            coarse = np.repeat(coarse, 16, axis).take(range(size), axis)
        x = 0.5 * x + coarse
    return (np.round(x * 32) / 32).astype(dtype)


def scaled_error(want: np.ndarray, got: np.ndarray) -> float:
    """The largest difference by the largest wanted value; infinite where NaN or shape differ."""
    if want.shape != got.shape:
        return float("inf")
    if want.size == 0:
        return 0.0
    a, b = want.astype(np.float64), got.astype(np.float64)
    if (np.isnan(a) != np.isnan(b)).any():
        return float("inf")
    scale = np.nanmax(np.abs(np.where(np.isfinite(a), a, 0)))
    with np.errstate(invalid="ignore"):
        difference = np.where((a == b) | np.isnan(a), 0, np.abs(a - b))
    return float(difference.max() / (scale or 1))


def gigabytes(count: float) -> str:
    return f"{count / 1e9:.2f} GB"


def table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A Markdown table: text to the left, numbers to the right."""
    text = [[str(cell) for cell in row] for row in (header, *rows)]
    widths = [max(len(row[i]) for row in text) for i in range(len(header))]
    numeric = [
        all(isinstance(row[i], (int, float)) or _looks_numeric(row[i]) for row in rows)
        for i in range(len(header))
    ]
    lines = []
    for number, row in enumerate(text):
        cells = (
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(row, widths, numeric)
        )
        lines.append("| " + " | ".join(cells) + " |")
        if number == 0:
            rules = (
                "-" * (w - 1) + ":" if r else "-" * w for w, r in zip(widths, numeric)
            )
            lines.append("| " + " | ".join(rules) + " |")
    return "\n".join(lines)


def _looks_numeric(cell: object) -> bool:
    text = str(cell).strip().removesuffix("%").removesuffix("x")
    try:
        float(text)
    except ValueError:
        return text in ("", "-")
    return True


def write_json(path: Path | None, value: object) -> None:
    if path:
        path.write_text(json.dumps(value, indent=1) + "\n")


def own_peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
