"""What the cases share: their register, and how arrays are drawn and written."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import tensorflow as tf

F32, I32, I64, BOOL = tf.float32, tf.int32, tf.int64, tf.bool
CASES, FROZEN = {}, set()
raw = tf.raw_ops


class Weights(tf.Module):
    """Variables by shape: made by the first call of a function, read by later ones."""

    def __init__(self):
        self.known = {}

    def __call__(self, *shape: int) -> tf.Variable:
        key = "x".join(map(str, shape))
        if key not in self.known:
            rng = np.random.RandomState(sum(shape))
            self.known[key] = tf.Variable(rng.uniform(0.1, 1, shape).astype(np.float32))
        return self.known[key]


def case(*specs: tf.TensorSpec, frozen: bool = False, **arrays: np.ndarray):
    """A function of these arguments; None is an open size, 3 in what is run. Frozen, it
    is a graph whose outputs have no names."""

    def register(function):
        CASES[function.__name__] = (function, specs, arrays)
        if frozen:
            FROZEN.add(function.__name__)
        return function

    return register


def spec(name: str, *shape: int | None, dtype=F32) -> tf.TensorSpec:
    return tf.TensorSpec(shape, dtype, name)


def freeze(function, lower: bool) -> bytes:
    from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

    frozen = convert_variables_to_constants_v2(function.get_concrete_function(), lower_control_flow=lower)
    graph = frozen.graph.as_graph_def()
    # Nobody reads these.
    for function in graph.library.function:
        function.ClearField("arg_attr")
    for node in (*graph.node, *(n for f in graph.library.function for n in f.node_def)):
        for name in [k for k in node.attr if k.startswith("_") or k == "output_shapes"]:
            del node.attr[name]
        node.ClearField("experimental_debug_info")
    return graph.SerializeToString()


def frozen_name(index: int) -> str:
    return f"Identity_{index}" if index else "Identity"


def write_arrays(folder: Path, feeds: dict, results: dict, suffix: str = "") -> None:
    """Further ones, of other sizes, by their suffixes."""
    np.savez_compressed(folder / f"in{suffix}.npz", **feeds)
    np.savez_compressed(folder / f"out{suffix}.npz", **results)


def draw(specs: dict, arrays: dict) -> dict[str, np.ndarray]:
    rng = np.random.RandomState(3)
    feeds = {}
    for key, s in specs.items():
        value = arrays.get(key)
        if value is None:
            value = rng.standard_normal([3 if d is None else d for d in s.shape])
            value = value if s.dtype.is_floating else np.abs(value * 9)
        feeds[key] = np.asarray(value, s.dtype.as_numpy_dtype)
    return feeds
