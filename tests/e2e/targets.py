"""Instruction sets of CPUs that tests are written for."""

from __future__ import annotations

import harness
import pytest


def runnable(target: str, *, extended: bool = False) -> str:
    """The target; where this machine does not run it, the test is skipped. `extended`: see harness.cpu_targets."""
    if target not in harness.cpu_targets(extended=extended):
        pytest.skip(f"this machine does not run {target}")
    return target
