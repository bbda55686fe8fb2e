#!/usr/bin/env python3
"""Makes the models of tests/e2e/tf (needs tensorflow, keras and tf_keras).

    tf_cases.py [NAME...]

Each case is a function of operators with awkward attributes, a small Keras model, or
one of the forms that files have: a SavedModel, or graph.pb and graph.pbtxt; options.txt
has what `charonia compile` is told.
Its inputs, of other sizes than those that it was traced at, and TensorFlow's results lie
beside the model's files: in.npz, out.npz. What no reader needs is left out.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")

import numpy as np
import tensorflow as tf

FOLDER = Path(__file__).resolve().parent / "tf"
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


@case(spec("x", None, 9, 8, 2), frozen=True)
def patches(m, x):
    extract = tf.image.extract_patches
    return {
        "beside": extract(x, (1, 2, 3, 1), (1, 2, 3, 1), (1, 1, 1, 1), "VALID"),
        "over": extract(x, (1, 3, 2, 1), (1, 2, 1, 1), (1, 2, 3, 1), "SAME"),
        "same": extract(x, (1, 4, 4, 1), (1, 4, 4, 1), (1, 1, 1, 1), "SAME"),
    }


@case(spec("x", None, None, 6, 2), frozen=True)
def patches_of_open_size(m, x):
    extract = tf.image.extract_patches
    return {
        "beside": extract(x, (1, 2, 2, 1), (1, 2, 2, 1), (1, 1, 1, 1), "VALID"),
        "over": extract(x, (1, 2, 3, 1), (1, 1, 2, 1), (1, 1, 1, 1), "SAME"),
    }


BEHIND = np.random.RandomState(3).randint(0, 4, (3, 2, 5))


@case(spec("x", 3, 2, 6, 4), spec("i", None, 2, 5, dtype=I32), frozen=True, i=BEHIND)
def gather_behind_a_batch(m, x, i):
    return {
        "last": tf.gather(x, i, axis=-1, batch_dims=1),
        "last_of_two": tf.gather(x, i, axis=3, batch_dims=2),
        "all": tf.gather(x, i[..., 0], axis=-1, batch_dims=-1),
        "next": tf.gather(x, i, axis=2, batch_dims=-1),
    }


@case(spec("x", None, 5), spec("n", None, 5, dtype=I32), frozen=True,
      x=np.array([[0, 1, -1, 0.5, 3], [2, 0, 0, -4, 0.25], [np.nan, np.inf, -np.inf, 1, 2]], np.float32),
      n=np.array([[-7, 6, 5, 4, -3], [2, 1, 0, 9, -8], [100, -100, 1, 2, 3]]))  # fmt: skip
def seldom_numbers(m, x, n):
    y = tf.abs(x) + 0.5
    cut = [-1.0, 0.0, 0.5, 2.0]
    return {
        "xlogy": tf.math.xlogy(x, y), "xlog1py": tf.math.xlog1py(x, y), "xdivy": tf.math.xdivy(x, y - 0.5),
        "left": tf.bitwise.left_shift(n, 3), "right": tf.bitwise.right_shift(n, tf.abs(n) % 4),
        "bucket": raw.Bucketize(input=x, boundaries=cut), "buckets": raw.Bucketize(input=n, boundaries=cut),
        "one": raw.Bucketize(input=x, boundaries=[]),
        # Far below 0: elsewhere TensorFlow rounds each step to bfloat16.
        "selu": tf.cast(tf.nn.selu(tf.cast(-16.0 - tf.abs(x), tf.bfloat16)), tf.float16),
    }  # fmt: skip


@case(spec("x", None, 4), spec("y", None, 4), spec("rows", 3, dtype=BOOL), frozen=True, rows=[True, False, True])
def chosen_rows(m, x, y, rows):
    """A condition of one dimension chooses rows, not columns."""
    return {"rows": raw.Select(condition=rows, x=x, y=y), "one": raw.Select(condition=rows[1], x=x, y=y),
            "all": raw.Select(condition=x > y, x=x, y=y)}  # fmt: skip


@case(spec("x", 3, 4), frozen=True)
def growing_lists(m, x):
    rows = tf.TensorArray(F32, size=0, dynamic_size=True, element_shape=[4])
    for i in range(3):
        rows = rows.write(i, x[i] * (i + 1.0))
    return {"stack": rows.stack(), "some": rows.gather([2, 0, 2])}


@case(spec("x", 3, 4), frozen=True)
def lists_with_holes(m, x):
    """What is not set is 0, in the shape that the list or the reader says."""
    some = raw.TensorListReserve(element_shape=[4], num_elements=4, element_dtype=F32)
    some = raw.TensorListSetItem(input_handle=some, index=2, item=x[1])
    none = raw.TensorListReserve(element_shape=[2, 3], num_elements=2, element_dtype=I32)
    shorter, last = raw.TensorListPopBack(input_handle=some, element_shape=[4], element_dtype=F32)
    resized = lambda count: raw.TensorListResize(input_handle=shorter, size=count)  # noqa: E731
    stack = lambda handle: raw.TensorListStack(input_handle=handle, element_shape=[4], element_dtype=F32)  # noqa: E731
    return {
        "all": stack(some), "last": last, "longer": stack(resized(5)), "shorter": stack(resized(3)),
        "one": raw.TensorListGetItem(input_handle=some, index=0, element_shape=[4], element_dtype=F32),
        "none": raw.TensorListStack(input_handle=none, element_shape=[2, 3], element_dtype=I32),
    }  # fmt: skip


@case(spec("x", None, 3))
def table_of_nobody(m, x):
    """A lookup in a called function whose result nobody needs."""
    if not hasattr(m, "table"):
        pairs = tf.lookup.KeyValueTensorInitializer(tf.constant([1, 2], I64), tf.constant([3.0, 4.0]))
        m.table = tf.lookup.StaticHashTable(pairs, 0.0)
        m.other = tf.lookup.experimental.MutableHashTable(I64, F32, 0.0)

    @tf.function
    def inner(x):
        keys = tf.cast(x, I64)
        return x * 2.0, m.table.lookup(keys) + m.other.lookup(keys)

    return {"y": inner(x)[0]}


@case(spec("x", None, 9, 7, 4))
def windows(m, x):
    a, b, c, d = m(3, 2, 4, 6), m(2, 3, 2, 6), m(3, 3, 4, 2), m(2, 3, 3, 3, 5)
    conv, pool = tf.nn.conv2d, tf.nn.pool
    return {
        "same": conv(x, a, (2, 1), "SAME"),
        "valid": conv(x, a, 1, "VALID", dilations=(2, 3)),
        "explicit": conv(x, a, 2, [[0, 0], [1, 2], [0, 1], [0, 0]]),
        "grouped": conv(x, b, (3, 2), "SAME"),
        "depthwise": tf.nn.depthwise_conv2d(x, c, (1, 2, 2, 1), "SAME"),
        "dilated": tf.nn.depthwise_conv2d(x, c, (1, 1, 1, 1), "SAME", dilations=(2, 2)),
        "solid": tf.nn.conv3d(x[..., None] + tf.zeros(3), d, (1, 2, 1, 1, 1), "SAME"),
        "max": pool(x, (3, 4), "MAX", (2, 3), "SAME"),
        "average": pool(x, (2, 3), "AVG", (2, 3), "SAME"),
        "negative": pool(-tf.abs(x) - 1, (3, 3), "MAX", (2, 2), "SAME"),
        "least": pool(x, (2, 3), "AVG", (1, 1), "VALID"),
        "bias": tf.nn.bias_add(x, a[0, 0, :, 0]),
    }


@case(spec("x", None, None, None, 2))
def quotients(m, x):
    """Sizes and shifts by whole quotients of open sizes."""
    n = tf.shape(x)[1]
    return {
        "half": x[:, : n // 2],
        "rest": x[:, n // 2 :],
        "below": x[:, : (n - 20) // 7 + 5],
        "open": x[:, : n * 5 // tf.shape(x)[2]],
        "split": tf.split(x, [n // 2, n - n // 2], axis=1)[1],
        "padded": tf.pad(x, [[0, 0], [n // 2, 1], [0, 0], [0, 0]]),
        "rolled": tf.roll(x, n // 2, axis=1),
        "resized": tf.image.resize(x, (tf.shape(x)[1:3] + 1) // 2, method="nearest"),
        "frames": tf.signal.frame(x[:, :, 0, 0], 2, 1),
    }


@case(spec("x", None, 5), spec("y", 5), x=np.linspace(-4, 4, 15).reshape(3, 5))
def functions(m, x, y):
    positive = tf.abs(x) + 0.25
    small = tf.tanh(x) * 0.9
    both = [tf.math.erf, tf.math.erfc, tf.nn.elu, tf.nn.selu, tf.nn.relu, tf.nn.relu6, tf.nn.softplus,
            tf.nn.softsign, tf.sigmoid, tf.tanh, tf.sin, tf.cos, tf.exp, tf.math.expm1, tf.floor,
            tf.math.ceil, tf.round, tf.math.rint, tf.sign, tf.atan, tf.sinh, tf.cosh, tf.asinh]  # fmt: skip
    result = {f.__name__: f(x) for f in both}
    result |= {f.__name__: f(positive) for f in (tf.math.log, tf.sqrt, tf.math.rsqrt,
                                                  tf.math.log1p, tf.math.reciprocal)}  # fmt: skip
    result |= {f.__name__: f(small) for f in (tf.asin, tf.acos, tf.atanh)}
    return result | {
        "leaky": tf.nn.leaky_relu(x), "steep": tf.nn.leaky_relu(x, 0.7),
        "pow": tf.pow(positive, y), "floordiv": tf.math.floordiv(x, y),
        "mod": tf.math.floormod(x, y), "difference": tf.math.squared_difference(x, y),
        "nonan": tf.math.divide_no_nan(x, tf.nn.relu(y)), "max": tf.maximum(x, y),
        "where": tf.where(x > y, x, y), "isfinite": tf.math.is_finite(tf.math.log(x)),
        "gelu": tf.nn.gelu(x), "tanhgelu": tf.nn.gelu(x, True), "swish": tf.nn.swish(x),
        "clip": tf.clip_by_value(x, -0.5, 1.5), "ge": x >= y, "ne": tf.not_equal(x, 0.0),
        "sum": tf.add_n([x, x, x]), "half": tf.cast(tf.cast(x, tf.float16) * 2, F32),
    }  # fmt: skip


@case(spec("a", None, 8, dtype=I32), spec("b", 8, dtype=I32),
      a=np.arange(-12, 12).reshape(3, 8), b=np.array([1, -1, 2, -2, 3, -3, 7, -128]))  # fmt: skip
def integers(m, a, b):
    narrow = tf.cast(a * 11, tf.int8), tf.cast(b, tf.int8)
    return {
        "floordiv": a // b, "mod": a % b, "truncatediv": raw.TruncateDiv(x=a, y=b),
        "truncatemod": tf.math.mod(a, b), "narrow": narrow[0] // narrow[1],
        "and": tf.bitwise.bitwise_and(a, b), "or": tf.bitwise.bitwise_or(a, b),
        "xor": tf.bitwise.bitwise_xor(a, b), "not": tf.bitwise.invert(a),
        "real": a / b, "float": tf.cast(a, F32) * 0.5, "down": tf.cast(tf.cast(a, F32) / 3, I32),
        "logical": tf.logical_and(a > 0, tf.logical_not(b > 0)), "long": tf.cast(a, I64) * 3,
    }  # fmt: skip


@case(spec("x", None, 4, 6))
def reductions(m, x):
    return {
        "sum": tf.reduce_sum(x, 1), "mean": tf.reduce_mean(x, (0, -1), keepdims=True),
        "max": tf.reduce_max(x), "min": tf.reduce_min(x, [2, 1]), "prod": tf.reduce_prod(x, -1),
        "any": tf.reduce_any(x > 1, 1), "all": tf.reduce_all(x > -1, -1),
        "norm": tf.norm(x, axis=-1), "argmax": tf.argmax(x, -1), "none": tf.reduce_sum(x, []),
        "argmin": tf.argmin(x, 1, output_type=I32), "logsumexp": tf.reduce_logsumexp(x, 1),
        "cumsum": tf.cumsum(x, 1), "exclusive": tf.cumsum(x, -1, exclusive=True, reverse=True),
        "cumprod": tf.math.cumprod(x, 2, exclusive=True), "std": tf.math.reduce_std(x, 1),
        "softmax": tf.nn.softmax(x), "logsoftmax": tf.nn.log_softmax(x, 1),
    }  # fmt: skip


@case(spec("x", None, None, 8))
def slices(m, x):
    n = tf.shape(x)
    return {
        "open": x[:, 1:, ::3], "last": x[:, -1], "back": x[..., ::-2], "ends": x[:, :-1, -3:],
        "new": x[:, None, 0, ..., tf.newaxis], "skip": x[0, ..., 2], "slice": tf.slice(x, [0, 1, 2], [-1, 2, 5]),
        "half": x[:, : n[1] - 1], "split": tf.split(x, 4, -1)[2], "sizes": tf.split(x, [3, -1, 1], 2)[1],
        "stack": tf.stack([x, x + 1], 1), "unstack": tf.unstack(x, 8, -1)[5],
        "concat": tf.concat([x, x[:, :1]], 1), "pad": tf.pad(x, [[0, 0], [2, 1], [0, 3]], constant_values=2.5),
        "reflect": tf.pad(x, [[0, 0], [0, 0], [3, 7]], "REFLECT"),
        "symmetric": tf.pad(x, [[0, 0], [0, 0], [3, 8]], "SYMMETRIC"),
        "reverse": tf.reverse(x, [1, 2]), "roll": tf.roll(x, [3, -10], [2, 2]),
        "behind": x[..., -100::-1], "front": x[..., -5:0:-1],
    }  # fmt: skip


@case(spec("x", None, 4, 6, 8))
def views(m, x):
    n = tf.shape(x)
    flat = tf.reshape(x, [n[0], -1])
    return {
        "flat": flat, "heads": tf.transpose(tf.reshape(x, [-1, n[1] * n[2], 2, 4]), [0, 2, 1, 3]),
        "squeeze": tf.squeeze(x[:, :1, :, :1], [1, -1]), "expand": tf.expand_dims(x, -2),
        "tile": tf.tile(x, [1, 2, 1, 3]), "broadcast": tf.broadcast_to(x[:, :1], n),
        "depth": tf.nn.depth_to_space(x, 2), "space": tf.nn.space_to_depth(x, 2),
        "batch": tf.space_to_batch(x, [2, 3], [[0, 0], [2, 1]]),
        "back": tf.batch_to_space(tf.tile(x, [6, 1, 1, 1]), [2, 3], [[1, 0], [2, 4]]),
        "size": tf.cast(tf.size(x), F32) + tf.cast(tf.rank(x), F32), "shape": n,
        "zeros": tf.zeros_like(x[..., 0]) + tf.cast(tf.range(6), F32), "ones": tf.ones_like(x[0]),
        "fill": tf.fill([n[0], 2], 0.5), "range": tf.range(3, 20, 4), "prod": tf.reshape(x, [tf.reduce_prod(n[:3]), 8]),
    }  # fmt: skip


@case(spec("x", None, 5), spec("i", None, dtype=I32), i=np.array([4, 0, 2]))
def indices(m, x, i):
    return {
        "rows": tf.gather(m(7, 3), i), "columns": tf.gather(x, [1, 1, 4], axis=1),
        "batched": tf.gather(x, tf.stack([i, i * 0], 1), batch_dims=1),
        "nd": tf.gather_nd(x, tf.stack([i * 0, i], 1)), "onehot": tf.one_hot(i, 6, 2.0, -1.0),
        "first": tf.one_hot(i, 4, axis=0), "band": tf.linalg.band_part(x, 1, -1),
        "lower": tf.linalg.band_part(x, -1, 0), "scatter": tf.tensor_scatter_nd_update(x, [[0], [2]], x[1:]),
        "added": tf.tensor_scatter_nd_add(x, [[1, 2], [1, 2]], x[0, :2]),
    }  # fmt: skip


@case(spec("x", None, 6, 5, 4))
def norms(m, x):
    scale, shift, mean, variance = (tf.reshape(m(4, i), [-1])[-4:] for i in (1, 2, 3, 4))
    batch = raw.FusedBatchNormV3(x=x, scale=scale, offset=shift, mean=mean,
                                 variance=variance, is_training=False, epsilon=1e-2)  # fmt: skip
    training = raw.FusedBatchNormV3(x=x, scale=scale, offset=shift, mean=[], variance=[])
    moments = tf.nn.moments(x, [-1], keepdims=True)
    return {
        "inference": batch.y, "training": training.y,
        "lrn": tf.nn.local_response_normalization(x, 2, 1.5, 0.3, 0.75),
        "layer": tf.nn.batch_normalization(x, *moments, shift, scale, 1e-3),
    }  # fmt: skip


@case(spec("x", None, 5, 4, 6))
def images(m, x):
    n = tf.shape(x)
    size, v1 = [9, 7], tf.compat.v1.image
    upward = lambda f, s, pad, h, w: tf.nn.conv2d_transpose(x, f, [n[0], h, w, f.shape[2]], s, pad)  # noqa: E731
    return {
        "bilinear": tf.image.resize(x, size), "nearest": tf.image.resize(x, size, "nearest"),
        "smaller": tf.image.resize(x, [2, 3]), "fewer": tf.image.resize(x, [3, 2], "nearest"),
        "corners": v1.resize_bilinear(x, size, align_corners=True), "legacy": v1.resize_bilinear(x, size),
        "legacynearest": v1.resize_nearest_neighbor(x, size),
        "cornersnearest": v1.resize_nearest_neighbor(x, size, align_corners=True),
        "same": upward(m(3, 2, 5, 6), 2, "SAME", 10, 8), "odd": upward(m(3, 3, 4, 6), 2, "SAME", 9, 7),
        "valid": upward(m(2, 4, 5, 6), (3, 2), "VALID", 14, 10), "apart": upward(m(1, 2, 4, 6), 3, "SAME", 15, 12),
        "more": upward(m(2, 2, 3, 6), 3, "VALID", 15, 12),
        "heads": tf.einsum("bhwc,cde->bhwde", x, m(6, 2, 3)), "sum": tf.einsum("...c,...c->...", x, x),
        "scores": tf.einsum("aecd,abcd->acbe", x, x), "top": tf.math.top_k(x, 2)[0], "which": tf.math.top_k(x, 3)[1],
    }  # fmt: skip


@case(spec("x", None, 6, 3), spec("h", None, 4))
def loops(m, x, h):
    steps = tf.TensorArray(F32, 6)
    for t in tf.range(6):
        h = tf.tanh(x[:, t] @ m(3, 4) + tf.matmul(h, m(4, 4), transpose_b=True))
        steps = steps.write(t, h)
    if tf.shape(x)[1] > 3:
        h = h * 2
    if h[0, 0] > 0.125:
        h = h + 1
    return {"states": tf.transpose(steps.stack(), [1, 0, 2]), "last": h}


@case(spec("x", None, None, 3), spec("y", None, None, None, 2), spec("z", None, 6, 7, 2),
      x=np.random.RandomState(1).uniform(-1, 1, (3, 11, 3)),
      y=np.random.RandomState(2).uniform(-1, 1, (3, 10, 7, 2)))  # fmt: skip
def dilated(m, x, y, z):
    """Convolutions over blocks, which are dilated ones, of open sizes."""
    line = lambda f, rate, pad: tf.nn.convolution(x, f, padding=pad, dilations=[rate])  # noqa: E731
    plane = m(3, 2, 2, 4)
    blocks = lambda f, pads: tf.space_to_batch(f, [2, 3], pads)  # noqa: E731
    spread = tf.nn.depthwise_conv2d(blocks(z, [[2, 2], [1, 1]]), m(2, 2, 2, 2), (1, 1, 1, 1), "VALID")
    return {
        "same": line(m(3, 3, 5), 2, "SAME"), "valid": line(m(2, 3, 4), 3, "VALID"),
        "causal": tf.nn.convolution(tf.pad(x, [[0, 0], [8, 0], [0, 0]]), m(3, 3, 5), padding="VALID", dilations=[4]),
        "plane": tf.nn.convolution(y, plane, padding="SAME", dilations=[2, 3]),
        "strided": tf.nn.conv2d(y, plane, (2, 1), "SAME"),
        "blocks": tf.batch_to_space(spread, [2, 3], [[1, 0], [0, 2]]),
        "relu": tf.batch_to_space(tf.nn.relu(blocks(z[:, :, :6], [[0, 0], [0, 0]]) - 0.25), [2, 3], [[0, 1], [1, 0]]),
    }  # fmt: skip


@case(spec("x", None, 5, 4, 6))
def weights(m, x):
    """What TensorFlow interpolates in its own way."""
    v1 = tf.compat.v1.image
    solid = x[..., None]
    upward = lambda f, s, pad, *size: tf.nn.conv3d_transpose(  # noqa: E731
        solid, f, [tf.shape(x)[0], *size, f.shape[3]], s, pad)
    return {
        "cubic": tf.image.resize(x, [9, 7], "bicubic"), "fewer": tf.image.resize(x, [3, 3], "bicubic"),
        "legacy": v1.resize_bicubic(x, [9, 7]), "corners": v1.resize_bicubic(x, [9, 7], align_corners=True),
        "area": tf.image.resize(x, [3, 3], "area"), "larger": tf.image.resize(x, [8, 6], "area"),
        "even": tf.image.resize(x, [5, 2], "area"),
        "same": upward(m(2, 3, 2, 2, 1), (1, 2, 1, 1, 1), "SAME", 10, 4, 6),
        "valid": upward(m(2, 3, 3, 2, 1), 2, "VALID", 10, 9, 13),
    }  # fmt: skip


@case(spec("x", None, None, None, 2), x=np.random.RandomState(3).uniform(-1, 1, (3, 9, 8, 2)))
def padding(m, x):
    """Pools that keep sizes which are open."""
    pool = tf.nn.pool
    return {
        "average": pool(x, (3, 4), "AVG", (2, 3), "SAME"),
        "sparse": raw.MaxPool(input=x, ksize=[1, 1, 1, 1], strides=[1, 2, 3, 1], padding="SAME"),
        "solid": pool(x[..., None], (2, 3, 1), "AVG", (1, 2, 1), "SAME"),
    }  # fmt: skip


@case(spec("x", None, 4), spec("a", 2, 4, 5, dtype=tf.int8), spec("b", 2, 5, 3, dtype=tf.int8))
def details(m, x, a, b):
    """What a general rule gets wrong."""
    filters = m(3, 3, 2, 6)
    groups = raw.Conv2DBackpropInput(input_sizes=[1, 8, 8, 4], filter=filters, strides=[1, 2, 2, 1],
                                     padding="SAME", out_backprop=tf.reshape(tf.range(96.0), [1, 4, 4, 6]))  # fmt: skip
    return {
        "wide": raw.BatchMatMulV3(x=a * 50, y=b * 40, Tout=I32), "groups": groups,
        "range": tf.range(0.0, 0.3, 0.1) + x[0, 0], "down": tf.range(5.0, 2.0, -0.7) + x[0, 0],
        "ensured": tf.ensure_shape(x, [3, 4]),
    }  # fmt: skip


@case(spec("x", None, 3), spec("u", None, 5, dtype=tf.uint8), spec("f", 4, 4),
      u=np.array([[1, 200, 255, 7, 0], [255] * 5, [9, 8, 7, 6, 6]], np.uint8),
      f=np.array([[np.nan, 1, -np.inf, 2], [3, np.nan, 3, 1], [np.nan] * 4,
                  [-np.inf, -2, np.nan, -2]], np.float32))
def positions(m, x, u, f):
    """Rows of a table by place, which end where the table does; means of small integers,
    extremes beside NaN."""
    places = tf.range(tf.shape(x)[0])
    return (tf.gather(m(5, 3), places) + x, tf.reduce_mean(u, 1), tf.reduce_mean(tf.cast(u, tf.int16), 0),
            tf.argmax(f, 1), tf.argmin(f, 1), tf.raw_ops.ResizeNearestNeighbor(images=x[None, :1, :, None], size=[1, 1]))  # fmt: skip


@case(spec("x", None, 4, 6), spec("i", None, dtype=I32), i=[2, 0, 3])
def scatters(m, x, i):
    return {
        "zeros": tf.scatter_nd(tf.stack([i, i], 1), x[0, :3], [4, 4, 6]),
        "sub": tf.tensor_scatter_nd_sub(x, [[0], [0]], x[1:]),
        "onehot": tf.one_hot(tf.stack([i - 2, i], 1), 4, axis=1, on_value=3, off_value=-3),
    }  # fmt: skip


@case(spec("x", None, 4))
def branches(m, x):
    total = tf.reduce_sum(x[0])
    y = x * 2 if total > 0 else x - 1
    y = y + 1 if tf.shape(x)[1] > 3 else tf.tile(y, [2, 1])
    for i in tf.range(3):
        y = tf.sin(y) * (1.5 if i > 1 else tf.cast(i, F32))
    which = tf.cast(total * 3, I32)
    chosen = tf.switch_case(which, [lambda: y, lambda: y + 5, lambda: y * 7])
    fixed = tf.switch_case(tf.shape(x)[1] - 3, [lambda: y, lambda: y + 5, lambda: y * 7])
    return {"y": y, "chosen": chosen, "fixed": fixed}


@case(spec("x", None, 4))
def training(m, x):
    """What draws random numbers is in a branch that is never taken."""
    drawn = tf.cond(tf.shape(x)[1] > 9, lambda: tf.nn.dropout(x, 0.5), lambda: x + 1)
    return {"y": drawn}


# Operators that TensorFlow's own functions do not give any more, or seldom.


@case(spec("x", None, 5), spec("i", 6, dtype=I32), spec("u", 6, dtype=tf.uint8), spec("h", 2, 3, dtype=tf.float16),
      frozen=True, x=[[-3, -0.5, -0.0, 0.75, 1.5], [np.nan, np.inf, -np.inf, 2, 1e-3], [1, 4, 9, -16, 25]],
      i=[-(2**31), -7, -1, 0, 8, 2**31 - 1], u=[0, 1, 127, 128, 254, 255])  # fmt: skip
def seldom(m, x, i, u, h):
    y, zero = tf.reverse(x, [0, 1]), tf.constant([0.0, 1, 0, 2, 0])
    finite = tf.where(tf.math.is_finite(x), x, 0)
    pass_on = raw.Snapshot(input=raw.PreventGradient(input=raw.CheckNumerics(tensor=finite, message="")))
    return {
        "tan": tf.tan(finite), "acosh": tf.acosh(tf.abs(finite) + 1), "inv": raw.Inv(x=x), "isinf": tf.math.is_inf(x),
        "isnan": tf.math.is_nan(x), "div": raw.Div(x=x, y=zero), "idiv": raw.Div(x=i, y=[3, 2, -1, 5, -3, -2]),
        "udiv": raw.Div(x=u, y=tf.constant([1, 2, 3, 255, 127, 2], tf.uint8)), "mod": raw.Mod(x=finite, y=[2.0, -0.3, 1, 0.5, -4]),
        "imod": raw.TruncateMod(x=i, y=[3, 2, -4, 5, -3, 10]), "mulnonan": raw.MulNoNan(x=x, y=zero), "add": raw.Add(x=x, y=y[:1]),
        "or": tf.logical_or(x > 0, y > 0), "le": x <= y, "eq": tf.equal(i, [0, -7, 1, 0, 8, 8]), "clip": raw.ClipByValue(t=x, clip_value_min=-1.0, clip_value_max=2.0),
        "ones": raw.OnesLike(x=u), "rank": raw.Rank(input=x), "shapes": tf.concat(raw.ShapeN(input=[x, tf.zeros([2, 7]), y]), 0),
        "bits": tf.bitcast(finite, I32), "signed": tf.bitcast(u, tf.int8), "norm": raw.EuclideanNorm(input=finite, axis=[-1], keep_dims=True),
        "concat": raw.Concat(concat_dim=1, values=[x, y]), "gather": raw.Gather(params=x, indices=[[2, 0], [1, 1]]), "on": pass_on,
        "pad": raw.Pad(input=i, paddings=[[2, 1]]), "wrap": i + i * 3, "umax": tf.reduce_max(u), "usum": tf.reduce_sum(u),
        "isum": tf.reduce_prod(tf.cast(u, tf.int8)), "half": tf.matmul(h, h, transpose_b=True) / 3, "hsoft": tf.nn.softmax(h),
        "hsum": tf.reduce_sum(h * 100, 1), "bf": tf.cast(tf.cast(h, tf.bfloat16) * 2, F32),
    }  # fmt: skip


@case(spec("a", None, 4, 5), spec("b", None, 5, 3), spec("x", None, 5, 6, 2), spec("s", 2), frozen=True)
def older(m, a, b, x, s):
    """Forms of products, normalizations and lists of earlier years."""
    mean, variance = s / 2, tf.abs(s) + 0.5
    one = raw.FusedBatchNorm(x=x, scale=s, offset=mean, mean=mean, variance=variance, is_training=False, epsilon=1e-3)
    two = raw.FusedBatchNormV2(x=x, scale=s, offset=mean, mean=[], variance=[], is_training=True)
    listed = raw.EmptyTensorList(element_shape=[2], max_num_elements=-1, element_dtype=F32)
    for part in (s, s + 1, s * 2):
        listed = raw.TensorListPushBack(input_handle=listed, tensor=part)
    stacked = raw.TensorListStack(input_handle=listed, element_shape=[2], element_dtype=F32)
    array = raw.TensorArrayV3(size=4, dtype=F32)
    rows = [[0], [2], [0]]
    return {
        "size": raw.TensorArraySizeV3(handle=array.handle, flow_in=array.flow),
        "matmul": raw.BatchMatMul(x=a, y=b), "adjoint": raw.BatchMatMulV2(x=a[:1], y=b, adj_x=False),
        "both": raw.BatchMatMulV2(x=b, y=a, adj_x=True, adj_y=True), "one": one.y, "two": two.y,
        "bias": raw.BiasAddV1(value=x, bias=s), "count": raw.TensorListLength(input_handle=listed), "list": stacked,
        "most": raw.TensorScatterMax(tensor=a, indices=rows, updates=a[::-1]), "least": raw.TensorScatterMin(tensor=a, indices=rows, updates=a[::-1]),
        "solid": tf.nn.max_pool3d(x[..., None], (2, 3, 2), (1, 2, 1), "SAME"), "line": raw.Pad(input=a[0], paddings=[[0, 2], [1, 0]]),
    }  # fmt: skip


@case(spec("x", None, 6, 5, 2), spec("y", 3, 4), frozen=True,
      x=np.random.RandomState(4).choice([np.nan, -np.inf, np.inf, 1, -2, 3], (3, 6, 5, 2), p=[0.1, 0.3, 0.1, 0.2, 0.2, 0.1]))
def extremes(m, x, y):
    """Infinities where extremes are taken."""
    finite = tf.where(tf.math.is_nan(x), -3.0, x)
    return {
        "pool": tf.nn.max_pool2d(tf.maximum(finite, tf.float32.min), 2, 2, "SAME"), "max": tf.reduce_max(x, [1, 2]),
        "min": tf.reduce_min(x, -1), "argmax": tf.argmax(finite, 2), "sum": tf.reduce_sum(x, 1), "exp": tf.exp(x),
        "softmax": tf.nn.softmax(tf.where(y > 0, y * 1e30, -np.inf * tf.ones_like(y)), 0), "tanh": tf.tanh(x), "round": tf.round(y * 4.5),
    }  # fmt: skip


@case(spec("x", None, None, None, 2), frozen=True, x=np.random.RandomState(5).uniform(-1, 1, (2, 7, 9, 2)))
def resizing(m, x):
    """Weights of interpolation that follow from sizes."""
    n, v1 = tf.shape(x)[1:3], tf.compat.v1.image
    resize = lambda size, method: tf.image.resize(x, size, method, antialias=True)  # noqa: E731
    methods = ("bilinear", "bicubic", "lanczos3", "lanczos5", "gaussian", "mitchellcubic")
    moved = raw.ScaleAndTranslate(images=x, size=[8, 5], scale=[1.3, 0.4], translation=[-2.0, 1.5], kernel_type="box", antialias=False)
    return {f"{k}{i}": resize([5, 12], k) for i, k in enumerate(methods)} | {
        "half": resize(n - 3, "bilinear"), "moved": moved, "area": tf.image.resize(x, [3, 4], "area"),
        "more": tf.image.resize(x, n + 2, "area"), "cubic": tf.image.resize(x, [4, 13], "bicubic"),
        "grown": tf.image.resize(x, n * 2 - 1, "bicubic"), "corners": v1.resize_bicubic(x, n + 3, align_corners=True),
        "one": v1.resize_bicubic(x, [1, 1], align_corners=True), "legacy": v1.resize_bicubic(x, n * 3),
        "ends": raw.ResizeArea(images=x, size=n // 2 + 1, align_corners=True),
    }  # fmt: skip


@case(spec("x", 1, None, 7, 2), frozen=True, x=np.random.RandomState(3).uniform(-1, 1, (1, 10, 7, 2)))
def jumps(m, x):
    """Filters with a jump, at distances that lie just there."""
    at = lambda kind, *a: raw.ScaleAndTranslate(images=x, size=a[0], scale=a[1], translation=a[2], kernel_type=kind)  # noqa: E731
    places = ([6, 12], [0.6, 1.7], [0.3, -1.2]), ([7, 9], [0.7, 1.3], [-0.5, 0.1]), ([5, 5], [1 / 3, 0.9], [0.0, 2.5])
    return {f"{kind}{i}": at(kind, *a) for kind in ("box", "gaussian", "triangle") for i, a in enumerate(places)}


@case(spec("x", None, 4, 6), spec("d", 2, 3, 4), spec("v", None), frozen=True, v=[1, 2, 3, 4])
def diagonals(m, x, d, v):
    part, diag, put = tf.linalg.diag_part, tf.linalg.diag, tf.linalg.set_diag
    result, two, square = {}, tf.ensure_shape(x[:2], [2, 4, 6]), diag(v) + v
    for align in ("RIGHT_LEFT", "LEFT_RIGHT", "LEFT_LEFT", "RIGHT_RIGHT"):
        result |= {
            f"part{align}": part(x, k=(-2, 3), padding_value=7, align=align), f"diag{align}": diag(d, k=(-1, 1), align=align),
            f"put{align}": put(two, part(two, k=(-1, 4), align=align) * 2, k=(-1, 4), align=align),
        }  # fmt: skip
    return result | {
        "main": part(x), "above": part(x, k=2), "below": part(x, k=-3), "old": raw.MatrixDiagPart(input=x), "two": raw.MatrixDiagPartV2(input=x, k=[-1, 0], padding_value=0.5),
        "matrix": diag(v), "from": raw.MatrixDiag(diagonal=d), "wide": diag(d[:, :2], k=(1, 2), num_rows=4, num_cols=9, padding_value=-1),
        "v2": raw.MatrixDiagV2(diagonal=v, k=-2, num_rows=-1, num_cols=-1, padding_value=3.0), "set": raw.MatrixSetDiag(input=square, diagonal=-v), "set2": raw.MatrixSetDiagV2(input=square, diagonal=v[1:], k=1),
        "trace": tf.linalg.trace(square), "square": part(square, k=-2),
    }  # fmt: skip


@case(spec("x", None, None, 4), spec("i", None, dtype=I32), spec("u", 6, dtype=tf.uint8), frozen=True,
      x=np.random.RandomState(6).uniform(-2, 2, (3, 5, 4)), i=[2, -1, 2], u=[3, 200, 7, 0, 9, 255])
def sequences(m, x, i, u):
    """What is put together by number, taken in reverse, counted by floats or moved, of open sizes."""
    n, segment = tf.shape(x), tf.math
    floats = tf.cast(n, F32)
    which = tf.stack([i, i - 1, i * 0, i + 1, i], 1)
    return {
        "sum": segment.unsorted_segment_sum(x, i, 4), "all": segment.unsorted_segment_sum(x, which, n[1]),
        "max": segment.unsorted_segment_max(x, i, 3), "min": segment.unsorted_segment_min(u, [1, 0, 1, 3, -1, 1], 4),
        "imax": segment.unsorted_segment_max(tf.cast(u, I32) - 300, [1, 0, 1, 3, -1, 1], 4), "prod": segment.unsorted_segment_prod(x, i, 3),
        "mean": segment.unsorted_segment_mean(x, i, 3), "reverse": tf.reverse_sequence(x, [5, 0, 3], 1, 0),
        "columns": tf.reverse_sequence(x, tf.constant([1, 2, 3, 4, 0], I64), seq_axis=2, batch_axis=1),
        "range": tf.range(0.0, floats[1], 0.75), "down": tf.range(floats[1] * 1.5, -1.0, -1.25), "none": tf.range(floats[1], floats[1], 2.0),
        "line": raw.LinSpace(start=-1.0, stop=x[0, 0, 0], num=n[1]), "single": raw.LinSpace(start=2.5, stop=7.0, num=1),
        "shape": tf.broadcast_dynamic_shape(n[:2], [3, 1, 5]), "roll": tf.roll(x, [7, -2, 1], [1, 0, 2]), "half": tf.roll(x, n[1] - 1, 1),
    }  # fmt: skip


def keras_cnn():
    import keras

    layers = keras.layers
    x = keras.Input((12, 12, 3), name="image")
    y = layers.Conv2D(8, 3, strides=2, padding="same", use_bias=False)(x)
    y = layers.Activation("swish")(layers.BatchNormalization()(y))
    y = layers.SeparableConv2D(6, 3, padding="same", activation="relu")(y)
    y = layers.MaxPooling2D(3, 2, "same")(y)
    y = layers.LayerNormalization()(y)
    y = layers.GlobalAveragePooling2D()(y)
    return keras.Model(x, layers.Dense(5, activation="softmax", name="class")(y))


def keras_transformer():
    import keras

    layers = keras.layers
    x = keras.Input((None,), dtype="int32", name="tokens")
    y = layers.Embedding(30, 8)(x)
    y = layers.LayerNormalization()(y + layers.MultiHeadAttention(2, 4)(y, y, use_causal_mask=True))
    return keras.Model(x, layers.Dense(8, activation="gelu")(y))


def keras_recurrent():
    import keras

    layers = keras.layers
    x = keras.Input((7, 3), name="sequence")
    y = layers.LSTM(5, return_sequences=True)(x)
    y = layers.Bidirectional(layers.GRU(4, return_sequences=True))(y)
    y = layers.SimpleRNN(3, go_backwards=True)(y)
    return keras.Model(x, y)


def keras2_model():
    import tf_keras

    layers = tf_keras.layers
    x = tf_keras.Input((12, 10, 3), name="image")
    y = layers.CenterCrop(9, 7)(layers.Resizing(11, 9, crop_to_aspect_ratio=False)(x))
    y = layers.BatchNormalization()(layers.Conv2D(6, 3, padding="same", activation="swish")(y))
    y = layers.LayerNormalization()(layers.Reshape((9, 42))(y))
    y = layers.Bidirectional(layers.LSTM(3, return_sequences=True))(y)
    return tf_keras.Model(x, layers.GRU(4, name="state")(y))


# The forms of files.


def save_tf1(folder: Path, resource: bool) -> dict[str, np.ndarray]:
    """Variables, of which a restoring node knows, and choices by Switch and Merge."""
    v1 = tf.compat.v1
    v1.disable_control_flow_v2()
    (v1.enable_resource_variables if resource else v1.disable_resource_variables)()
    rng = np.random.RandomState(4)
    feed = rng.standard_normal((3, 6, 5, 2)).astype(np.float32)
    with tf.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(F32, [None, 6, 5, 2], "image")
        training = v1.placeholder_with_default(False, [], "training")
        w = v1.get_variable("w", initializer=rng.uniform(-1, 1, (3, 3, 2, 4)).astype(np.float32))
        b = v1.get_variable("b", initializer=rng.uniform(0.5, 1, 4).astype(np.float32))
        y = tf.nn.relu(v1.nn.bias_add(v1.nn.conv2d(x, w, [1, 2, 1, 1], "SAME"), b))
        y = v1.cond(training, lambda: v1.nn.dropout(y, rate=0.5), lambda: y * 1.5)
        positive = v1.reduce_sum(y) > 1e6
        y = v1.cond(positive, lambda: tf.zeros_like(y), lambda: v1.cond(training, lambda: y, lambda: y + b))
        y, _, _ = v1.nn.fused_batch_norm(y, b, b - 1, mean=b / 2, variance=b * 2, is_training=False)
        mean = v1.reduce_mean(y, [1, 2])
        session.run(v1.global_variables_initializer())
        v1.saved_model.simple_save(session, str(folder), {"image": x}, {"mean": mean, "map": y})
        wanted = session.run({"mean": mean, "map": y}, {x: feed})
    v1.enable_control_flow_v2()
    write_arrays(folder, {"image": feed}, wanted)


def tf1_reference(folder: Path) -> None:
    save_tf1(folder, False)


def tf1_resource(folder: Path) -> None:
    save_tf1(folder, True)


def tf1_loop(folder: Path) -> None:
    """A loop over TensorArrays inside of another, as a graph that is text."""
    v1 = tf.compat.v1
    v1.disable_control_flow_v2()
    rng = np.random.RandomState(5)
    weights = rng.uniform(-0.5, 0.5, (7, 4)).astype(np.float32)
    feed = rng.standard_normal((3, 6, 3)).astype(np.float32)
    with tf.Graph().as_default() as graph, v1.Session() as session:
        x = v1.placeholder(F32, [None, 6, 3], "x")
        rows = v1.TensorArray(F32, 6).unstack(tf.transpose(x, [1, 0, 2]))

        def step(t, h, states):
            h = tf.tanh(tf.concat([rows.read(t), h], 1) @ weights)
            h = v1.while_loop(lambda i, h: i < t % 3, lambda i, h: (i + 1, h * 0.5 + 1), [0, h])[1]
            h = v1.cond(tf.equal(t, 4), lambda: -h, lambda: h)
            return t + 1, h, states.write(t, h)

        start = [0, tf.zeros([tf.shape(x)[0], 4]), v1.TensorArray(F32, 6)]
        _, h, states = v1.while_loop(lambda t, h, states: t < 6, step, start)
        names = {"last": tf.identity(h, "last"), "states": tf.transpose(states.stack(), [1, 0, 2], name="states")}
        wanted = session.run(names, {x: feed})
        v1.train.write_graph(graph.as_graph_def(), str(folder), "graph.pbtxt")
    v1.enable_control_flow_v2()
    (folder / "options.txt").write_text("--inputs x --outputs last,states")
    write_arrays(folder, {"x": feed}, wanted)


def freeze(function, lower: bool) -> bytes:
    from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

    frozen = convert_variables_to_constants_v2(function.get_concrete_function(), lower_control_flow=lower)
    return frozen.graph.as_graph_def().SerializeToString()


def frozen_name(index: int) -> str:
    return f"Identity_{index}" if index else "Identity"


def lowered(folder: Path) -> None:
    """A recurrent layer, loops and choices as Switch and Merge."""
    import keras

    rng = np.random.RandomState(6)
    layer = keras.layers.LSTM(4, return_sequences=True)
    feed = rng.standard_normal((3, 5, 4)).astype(np.float32)
    layer.build((None, 5, 4))
    for w in layer.weights:
        w.assign(rng.uniform(-0.7, 0.7, w.shape))

    @tf.function(input_signature=[spec("x", None, 5, 4)])
    def function(x):
        y = layer(x)
        return y, *branches(None, y[:, 0]).values()

    (folder / "graph.pb").write_bytes(freeze(function, True))
    wanted = {frozen_name(i): v.numpy() for i, v in enumerate(function(feed))}
    write_arrays(folder, {"x": feed}, wanted)


def channels_first(folder: Path) -> None:
    """Channels behind the batch, which TensorFlow's CPU does not run: what is wanted is
    computed with channels last."""
    m = Weights()

    def function(x, first: bool):
        form = "NCHW" if first else "NHWC"
        order = (lambda four: [four[0], four[3], four[1], four[2]]) if first else lambda four: four
        filters, depth, up, c = m(3, 2, 4, 6), m(2, 3, 4, 2), m(2, 3, 3, 4), m(1, 4)[0]
        pads = sum(order([[0, 0], [1, 0], [2, 1], [0, 0]]), [])
        norm = raw.FusedBatchNormV3(x=x, scale=c, offset=c - 1, mean=c / 3, variance=c, is_training=False, data_format=form)
        same = raw.FusedBatchNormV3(x=x, scale=c, offset=c, mean=[], variance=[], is_training=True, data_format=form)
        window = {"ksize": order([1, 3, 2, 1]), "strides": order([1, 2, 1, 1]), "data_format": form}
        return {
            "conv": raw.Conv2D(input=x, filter=filters, strides=order([1, 2, 1, 1]), padding="SAME", data_format=form),
            "explicit": raw.Conv2D(input=x, filter=filters, strides=[1, 1, 1, 1], padding="EXPLICIT", explicit_paddings=pads,
                                   dilations=order([1, 1, 2, 1]), data_format=form),
            "depth": raw.DepthwiseConv2dNative(input=x, filter=depth, strides=[1, 1, 1, 1], padding="VALID", data_format=form),
            "up": raw.Conv2DBackpropInput(input_sizes=order([3, 13, 14, 3]), filter=up, out_backprop=x, strides=order([1, 2, 2, 1]),
                                          padding="VALID", data_format=form),
            "bias": tf.nn.bias_add(x, c, form), "norm": norm.y, "training": same.y,
            "max": raw.MaxPool(input=x, padding="SAME", **window), "average": raw.AvgPool(value=x, padding="SAME", **window),
        }  # fmt: skip

    feed = np.random.RandomState(10).standard_normal((3, 6, 6, 4)).astype(np.float32)
    wanted = function(tf.constant(feed), False)
    bound = tf.function(lambda x: function(x, True), input_signature=[spec("x", 3, 4, 6, 6)])
    (folder / "graph.pb").write_bytes(freeze(bound, False))
    write_arrays(folder, {"x": feed.transpose(0, 3, 1, 2)},
                 {frozen_name(i): wanted[key].numpy().transpose(0, 3, 1, 2) for i, key in enumerate(sorted(wanted))})  # fmt: skip


def nans(folder: Path) -> None:
    """Where Charonia is not TensorFlow (docs/importing.md): a NaN is not left out."""
    feed = np.random.RandomState(11).choice([np.nan, -np.inf, 1, -2, 3], (3, 4, 4, 5), p=[0.1, 0.5, 0.1, 0.2, 0.1])
    feed[2, :, :, 0] = 0.5
    feed = feed.astype(np.float32)
    function = tf.function(lambda x: (tf.nn.max_pool2d(x, 2, 2, "VALID"), tf.nn.softmax(x, 1)), input_signature=[spec("x", 3, 4, 4, 5)])
    (folder / "graph.pb").write_bytes(freeze(function, False))
    blocks = feed.reshape(3, 2, 2, 2, 2, 5).max((2, 4))
    with np.errstate(invalid="ignore"):
        parts = np.exp(feed - feed.max(1, keepdims=True))
        write_arrays(folder, {"x": feed}, {"Identity": blocks, "Identity_1": parts / parts.sum(1, keepdims=True)})


def open_steps(folder: Path) -> None:
    """As many steps as an open size says: refused, so nothing is run."""

    @tf.function(input_signature=[spec("x", None, None, 3)])
    def function(x):
        return tf.while_loop(
            lambda i, s: i < tf.shape(x)[1], lambda i, s: (i + 1, s + x[:, i]), [0, tf.zeros([tf.shape(x)[0], 3])]
        )[1]

    (folder / "graph.pb").write_bytes(freeze(function, False))


class Functions(tf.Module):
    def __init__(self):
        super().__init__()
        rng = np.random.RandomState(7)
        self.narrow = tf.Variable(rng.uniform(-1, 1, (5, 3)).astype(np.float32))
        self.wide = tf.Variable(rng.uniform(-1, 1, (300, 3)).astype(np.float32))

    @tf.function(input_signature=[spec("a", None, 5)])
    def forward(self, a):
        return {"scores": a @ self.narrow}

    @tf.function(input_signature=[spec("b", None, 3), spec("k")])
    def backward(self, b, k):
        rows = tf.matmul(b, self.narrow, transpose_b=True) * k
        return {"rows": rows, "wide": tf.reduce_sum(self.wide, 0) + b}


def signatures(folder: Path) -> None:
    """One of several signatures; variables in several shards, one in parts."""
    from tensorflow.python.checkpoint.sharding import sharding_policies

    module = Functions()
    policy = sharding_policies.MaxShardSizePolicy(max_shard_size=1024)
    tf.saved_model.save(
        module, str(folder), signatures={"forward": module.forward, "backward": module.backward},
        options=tf.saved_model.SaveOptions(experimental_sharding_callback=policy),
    )  # fmt: skip
    assert len(list((folder / "variables").glob("*.data-*"))) > 1
    (folder / "options.txt").write_text("--signature backward")
    b = np.random.RandomState(8).standard_normal((3, 3)).astype(np.float32)
    wanted = {name: value.numpy() for name, value in module.backward(b, 2.5).items()}
    write_arrays(folder, {"b": b, "k": np.float32(2.5)}, wanted)


def saved_text(folder: Path) -> None:
    """A SavedModel that is text."""
    module = Functions()
    tf.saved_model.save(module, str(folder), signatures={"only": module.forward})
    from tensorflow.core.protobuf import saved_model_pb2

    saved = saved_model_pb2.SavedModel.FromString((folder / "saved_model.pb").read_bytes())
    (folder / "saved_model.pbtxt").write_text(str(saved))
    (folder / "saved_model.pb").unlink()
    a = np.random.RandomState(9).standard_normal((3, 5)).astype(np.float32)
    write_arrays(folder, {"a": a}, {"scores": module.forward(a)["scores"].numpy()})


FILES = {f.__name__: f for f in (tf1_reference, tf1_resource, tf1_loop, lowered, open_steps, channels_first, nans, signatures, saved_text)}


def write_arrays(folder: Path, feeds: dict, results: dict) -> None:
    np.savez_compressed(folder / "in.npz", **feeds)
    np.savez_compressed(folder / "out.npz", **results)


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


def save_frozen(folder: Path, function, specs, arrays) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    (folder / "graph.pb").write_bytes(freeze(function, False))
    feeds = draw({s.name: s for s in specs}, arrays)
    results = function(*(tf.constant(feeds[s.name]) for s in specs))
    write_arrays(folder, feeds, {frozen_name(i): results[k].numpy() for i, k in enumerate(sorted(results))})


def save(name: str, model, function=None, specs=(), arrays=None) -> None:
    folder = FOLDER / name
    shutil.rmtree(folder, ignore_errors=True)
    if function is None:
        rng = np.random.RandomState(5)
        for w in model.weights:
            w.assign(rng.uniform(0.3, 0.9, w.shape))
        # Keras 2 has no verbosity to set; its save() adds functions for training.
        model.export(folder, **({} if name.startswith("keras2") else {"verbose": False}))
    else:
        tf.saved_model.save(model, folder, signatures={"serving_default": function})
    (folder / "fingerprint.pb").unlink()
    shutil.rmtree(folder / "assets", ignore_errors=True)
    loaded = tf.saved_model.load(str(folder))
    signature = loaded.signatures["serving_default"]
    feeds = draw(signature.structured_input_signature[1], arrays or {})
    results = signature(**{k: tf.constant(v) for k, v in feeds.items()})
    write_arrays(folder, feeds, {k: v.numpy() for k, v in results.items()})


def main() -> None:
    models = {"keras_transformer": keras_transformer, "keras_cnn": keras_cnn, "keras_recurrent": keras_recurrent, "keras2_model": keras2_model}
    for name in sys.argv[1:] or [*CASES, *models, *FILES]:
        tf.keras.utils.set_random_seed(0)
        if name in FILES:
            shutil.rmtree(FOLDER / name, ignore_errors=True)
            (FOLDER / name).mkdir(parents=True)
            FILES[name](FOLDER / name)
            for extra in ("fingerprint.pb", "assets"):
                path = FOLDER / name / extra
                path.unlink(missing_ok=True) if path.suffix else shutil.rmtree(path, ignore_errors=True)
            continue
        if name in models:
            save(name, models[name]())
            continue
        function, specs, arrays = CASES[name]
        module = Weights()
        sample = [tf.cast(tf.ones([3 if d is None else d for d in s.shape]), s.dtype) for s in specs]
        function(module, *[tf.constant(arrays[s.name], s.dtype) if s.name in arrays else v
                           for s, v in zip(specs, sample)])  # fmt: skip
        bound = tf.function(lambda *a, f=function, m=module: f(m, *a), input_signature=specs)
        if name in FROZEN:
            save_frozen(FOLDER / name, bound, specs, arrays)
        else:
            save(name, module, bound, specs, arrays)


if __name__ == "__main__":
    main()
