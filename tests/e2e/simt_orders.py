"""Orders in which charonia-simt runs threads, and lets copies arrive that are under way."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import harness
import numpy as np

# Seeds of the threads' order, and when copies arrive.
ORDERS = [(0, "late"), (1, "seeded"), (2, "early")]


def in_orders(engine, inputs, folder: Path, dump, orders=ORDERS, output="y", report=None) -> Iterator[np.ndarray]:
    """What one run in each order gives, of the engine whose programs lie in `dump`."""
    for seed, copies in orders:
        extra = ["--seed", str(seed), "--copies", copies, *(["--report", report] if report else [])]
        (got,) = harness.run_engine(engine, inputs, [output], folder / "run", device="simt", dump=dump, extra=extra)
        yield got
