#!/usr/bin/env python3
"""Random tests of every operator against ONNX Runtime (or ONNX's reference).

    ops_test.py [--seconds 60] [--seed N] [--op Conv,Gemm] [--device cuda --target sm_90]
    ops_test.py --rounds 8 --seed 1         always the same cases: what ctest runs
    ops_test.py --device simt [--rounds 1]  GPU kernels without a GPU (charonia-simt)
    ops_test.py --reproduce Conv@13:5:2     one case, with its model kept
    ops_test.py --check-generators          only the oracles; needs no charonia

Prints the seed, every 20 seconds what is done and what takes long, and for each failure the
command that shows it again. Exit status 0 only if no case is wrong, refused, failed, crashed
or invalid (understood by no oracle), and, with --rounds, if every operator was drawn.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import shutil
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent.parent / "scripts")]

import harness
import numpy as np
import onnx
import op_model
from op_cases import REGISTRY

OPSETS = (7, 9, 10, 11, 12, 13, 15, 17, 18, 20, 21, 23, 24, 26, 28)
STATES = ("ok", "wrong", "refused", "failed", "crashed", "timeout")
# What decides how a case is compiled and run, to be named with a failure.
SETTINGS = ("device", "precision")


class Tester:
    """Draws packs of cases, runs them, collects what happened to each case."""

    def __init__(self, options):
        self.options = options
        self.folder = Path(tempfile.mkdtemp(prefix="charonia-ops-"))
        self.lock = threading.Lock()
        self.counts = collections.defaultdict(collections.Counter)
        self.failures: list[dict] = []
        self.oracles = collections.Counter()
        self.invalid: list[str] = []
        self.serial = 0
        self.started = time.time()
        # What each thread is at, and since when.
        self.doing: dict[int, tuple[float, str]] = {}

    @contextlib.contextmanager
    def step(self, what: str, cases):
        names = ", ".join(dict.fromkeys(getattr(c, "op", c) for c in cases))
        thread = threading.get_ident()
        with self.lock:
            self.doing[thread] = time.time(), f"{what} {names}"
        try:
            yield
        finally:
            with self.lock:
                del self.doing[thread]

    def progress(self) -> str:
        """What was done so far, and what has been under way for longer than some seconds."""
        now = time.time()
        with self.lock:
            total = sum(self.counts.values(), collections.Counter())
            slow = [(now - t, what) for t, what in self.doing.values() if now - t > 5]
        done = ", ".join(f"{total[s]} {s}" for s in STATES if total[s])
        waits = "".join(f"\n  for {t:.0f} s: {what}" for t, what in sorted(slow, reverse=True))
        return f"{now - self.started:.0f} s: {done or 'nothing yet'}{waits}"

    def target(self, keys) -> str:
        """Instruction sets take turns; a case's own number decides, so that it can be
        run again."""
        targets = self.options.target
        return targets[keys[0][3] % len(targets)]

    def packs(self):
        """Endless packs; every operator comes up once a round."""
        options = self.options
        wanted = options.op or sorted(REGISTRY)
        rng = np.random.default_rng(options.seed)
        index = 0
        while options.rounds == 0 or index < options.rounds:
            # The newest first, in which every operator is drawn.
            choice = rng.choice(OPSETS) if index else OPSETS[-1]
            opset = int(options.opset or choice)
            names = [op for op in wanted if REGISTRY[op].since <= opset]
            names = list(rng.permutation(names)) * options.repeat
            drawn = []
            for count, op in enumerate(names):
                number = index * options.repeat + count // max(1, len(set(names)))
                drawn.append((str(op), opset, options.seed, number))
            for start in range(0, len(drawn), options.pack):
                yield drawn[start : start + options.pack]
            index += 1

    def valid_cases(self, keys) -> list[op_model.Drawn]:
        cases = []
        for key in keys:
            drawn = op_model.draw(*key)
            drawn.round_to(self.options.precision)
            try:
                op_model.ask_oracle(drawn)
            except ValueError as error:
                with self.lock:
                    self.invalid.append(f"{drawn.identity} {drawn.describe()}: {error}")
                continue
            with self.lock:
                self.oracles[drawn.oracle] += 1
            cases.append(drawn)
        return cases

    def test(self, keys) -> None:
        with self.step("drawing", [op for op, *_ in keys]):
            cases = self.valid_cases(keys)
        if self.options.check_generators:
            for drawn in cases:
                self.record(drawn, "", "ok", "")
            return
        targets = [self.target(keys)] if len(keys) > 1 else self.options.target
        for target in targets if cases else ():
            if not self.test_pack(cases, target):
                for drawn in cases:
                    self.test_pack([drawn], target)

    def test_pack(self, cases: list[op_model.Drawn], target: str) -> bool:
        """Runs a pack; False if it must be taken apart to know what failed."""
        options = self.options
        alone = len(cases) == 1
        pack = op_model.Pack(cases)
        with self.lock:
            self.serial += 1
            folder = self.folder / str(self.serial)
        folder.mkdir()
        model, engine = folder / "model.onnx", folder / "model.engine"
        dump = folder / "dump" if options.device == "simt" else None
        onnx.save(pack.model, model)
        try:
            with self.step("compiling", cases):
                harness.compile_model(
                    model, engine, target=target, precision=options.precision,
                    shapes=pack.shapes, extra=["--no-cache"], dump=dump,
                    timeout=options.timeout,
                )  # fmt: skip
            problems = [""] * len(cases)
            names = [n for i in range(len(cases)) for n in pack.output_names(i)]
            for run in range(pack.run_count()):
                with self.step("running", cases):
                    outputs = harness.run_engine(
                        engine, pack.run_inputs(run), names, folder / "run",
                        device=options.device, dump=dump,
                        extra=self.simt_options(run), timeout=options.timeout,
                    )  # fmt: skip
                self.compare(cases, run, iter(outputs), problems)
        except harness.CharoniaError as error:
            if alone:
                self.record(cases[0], target, error.kind, str(error), folder)
            shutil.rmtree(folder, ignore_errors=True)
            return alone
        if not alone and any(problems):
            # A case that is wrong only in company is a finding of its own kind.
            for drawn, problem in zip(cases, problems):
                if not problem:
                    self.record(drawn, target, "ok", "")
                    continue
                before = len(self.failures)
                self.test_pack([drawn], target)
                if len(self.failures) == before:
                    problem = f"only in a pack: {problem}"
                    self.record(drawn, target, "wrong", problem, folder)
        else:
            for drawn, problem in zip(cases, problems):
                state = "wrong" if problem else "ok"
                self.record(drawn, target, state, problem, folder)
        shutil.rmtree(folder, ignore_errors=True)
        return True

    def simt_options(self, run: int) -> list[str]:
        """Runs differ in the order of warps and in when copies land."""
        if self.options.device != "simt":
            return []
        number = self.options.seed + run
        copies = ("late", "seeded", "early")[number % 3]
        return ["--seed", str(number), "--copies", copies]

    def compare(self, cases, run, outputs, problems) -> None:
        loose = {"tf32": 2e-3, "fp16": 4e-3, "bf16": 3e-2}.get(self.options.precision)
        for number, drawn in enumerate(cases):
            case = drawn.case
            for k, want in enumerate(drawn.expected[min(run, len(drawn.expected) - 1)]):
                got = harness.as_dtype(next(outputs), want.dtype)
                rtol, scale_tol = case.rtol, case.scale_tol
                if loose and want.dtype.kind == "f":
                    rtol, scale_tol = loose, max(scale_tol, loose)
                text = op_model.difference(want, got, rtol, scale_tol, case.absolute)
                if text and not problems[number]:
                    problems[number] = f"run {run}, output {k}: {text}"

    def record(
        self, drawn, target: str, state: str, message: str, folder: Path | None = None
    ) -> None:
        with self.lock:
            self.counts[drawn.op][state] += 1
            if state == "ok":
                return
            if message and len(self.failures) < 2000:
                self.failures.append(
                    dict(case=drawn.identity, target=target, state=state,
                         what=drawn.describe(), message=message, oracle=drawn.oracle)
                )  # fmt: skip
            if self.options.keep and folder and (folder / "model.onnx").exists():
                self.options.keep.mkdir(parents=True, exist_ok=True)
                name = drawn.identity.replace(":", "_")
                shutil.copy(folder / "model.onnx", self.options.keep / f"{name}.onnx")

    def report(self) -> int:
        rows = []
        total = collections.Counter()
        for op in sorted(self.counts):
            counts = self.counts[op]
            total.update(counts)
            if self.options.table or counts["ok"] != counts.total():
                rows.append([op, *(counts[s] or "" for s in STATES)])
        rows.append(["all", *(total[s] or "" for s in STATES)])
        print(harness.table(["operator", *STATES], rows))
        for failure in self.failures[: self.options.show]:
            print(f"\n{failure['state'].upper()} {failure['case']} {failure['what']}")
            print(f"  {failure['message']}")
            print(f"  {self.command(failure['case'], failure['target'])}")
        if len(self.failures) > self.options.show:
            print(f"\n... and {len(self.failures) - self.options.show} more failures")
        for line in self.invalid[: self.options.show]:
            print(f"INVALID CASE {line}"[:700])
        untested = [op for op in (self.options.op or REGISTRY) if op not in self.counts]
        print(
            f"\nseed {self.options.seed}; {total.total()} cases of {len(self.counts)} "
            f"operators; oracles {dict(self.oracles)}; {len(self.invalid)} invalid"
            + (f"; never drawn: {', '.join(untested)}" if untested else "")
        )
        harness.write_json(
            self.options.json,
            dict(seed=self.options.seed, counts={k: dict(v) for k, v in self.counts.items()},
                 failures=self.failures, invalid=self.invalid),
        )  # fmt: skip
        missed = untested and self.options.rounds
        done = total["ok"] == total.total() > 0
        return 0 if done and not self.invalid and not missed else 1

    def command(self, identity: str, target: str) -> str:
        """What shows a failure again."""
        settings = dict(vars(self.options), target=target)
        words = [f"--{k} {settings[k]}" for k in ("target", *SETTINGS) if settings[k]]
        return " ".join(["tests/e2e/ops_test.py --reproduce", identity, *words])


def parse(arguments=None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    add = parser.add_argument
    add("--seconds", type=float, help="start no new pack after this time; default: 60")
    add("--rounds", type=int, default=0, help="as many rounds, however long they take")
    add("--repeat", type=int, default=1, help="cases of each operator in a round")
    add("--seed", type=int, default=None)
    add("--op", type=lambda t: t.split(","), help="only these operators")
    add("--opset", type=int, help="only this opset")
    add("--device", help="cpu (default), cuda or simt")
    add("--target", type=lambda t: t.split(","),
        help="several take turns; default: this CPU's, or sm_90 with --device cuda or simt")
    add("--precision", help="as of charonia compile")
    add("--jobs", type=int, default=2)
    add("--pack", type=int, default=12, help="cases in one model")
    add("--timeout", type=float, default=300, help="seconds for one command")
    add("--progress", type=float, default=20, help="seconds between lines on what is done; 0: none")
    add("--keep", type=Path, help="folder for the models of failing cases")
    add("--json", type=Path)
    add("--show", type=int, default=40, help="failures printed")
    add("--table", action="store_true", help="print every operator, not only failing ones")
    add("--reproduce", metavar="OP@OPSET:SEED:INDEX")
    add("--check-generators", action="store_true")
    options = parser.parse_args(arguments)
    for op in options.op or ():
        if op not in REGISTRY:
            sys.exit(f"no cases for {op!r}; there are: {', '.join(sorted(REGISTRY))}")
    if options.seed is None:
        options.seed = int(time.time()) % 1000000
    if options.target is None:
        gpu = options.device in ("cuda", "simt")
        options.target = ["sm_90"] if gpu else harness.cpu_targets()
    if options.seconds is None:
        options.seconds = float("inf") if options.rounds else 60
    return options


def main(arguments=None) -> int:
    options = parse(arguments)
    if not options.check_generators:
        print(f"{harness.binary()}, seed {options.seed}", flush=True)
    tester = Tester(options)
    if options.reproduce:
        op, _, rest = options.reproduce.partition("@")
        opset, options.seed, index = map(int, rest.split(":"))
        options.keep = options.keep or harness.ROOT / "build/failing-ops"
        tester.test([(op, opset, options.seed, index)])
        return tester.report()
    deadline = time.time() + options.seconds
    packs = tester.packs()

    def work():
        while time.time() < deadline:
            with tester.lock:
                keys = next(packs, None)
            if keys is None:
                return
            tester.test(keys)

    finished = threading.Event()

    def report_progress():
        while not finished.wait(options.progress):
            print(tester.progress(), flush=True)

    if options.progress:
        threading.Thread(target=report_progress, daemon=True).start()
    try:
        with ThreadPoolExecutor(options.jobs) as pool:
            for future in [pool.submit(work) for _ in range(options.jobs)]:
                future.result()
    finally:
        finished.set()
        shutil.rmtree(tester.folder, ignore_errors=True)
    return tester.report()


if __name__ == "__main__":
    sys.exit(main())
