"""Slices, views, and what is chosen or put by number."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from .common import F32, I32, I64, case, raw, spec


BEHIND = np.random.RandomState(3).randint(0, 4, (3, 2, 5))


@case(spec("x", 3, 2, 6, 4), spec("i", None, 2, 5, dtype=I32), frozen=True, i=BEHIND)
def gather_behind_a_batch(m, x, i):
    return {
        "last": tf.gather(x, i, axis=-1, batch_dims=1),
        "last_of_two": tf.gather(x, i, axis=3, batch_dims=2),
        "all": tf.gather(x, i[..., 0], axis=-1, batch_dims=-1),
        "next": tf.gather(x, i, axis=2, batch_dims=-1),
    }


@case(spec("x", None, None, None, 2), frozen=True)
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
            tf.argmax(f, 1), tf.argmin(f, 1), tf.raw_ops.ResizeNearestNeighbor(images=x[None, :1, :, None], size=[1, 1]),
            tf.gather_nd(m(5, 3), [[4, 0], [2, 1]]))  # fmt: skip


@case(spec("x", None, 4, 6), spec("i", None, dtype=I32), i=[2, 0, 3])
def scatters(m, x, i):
    return {
        "zeros": tf.scatter_nd(tf.stack([i, i], 1), x[0, :3], [4, 4, 6]),
        "sub": tf.tensor_scatter_nd_sub(x, [[0], [0]], x[1:]),
        "onehot": tf.one_hot(tf.stack([i - 2, i], 1), 4, axis=1, on_value=3, off_value=-3),
    }  # fmt: skip


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


@case(spec("x", None, 4), spec("i", None, 6, dtype=I32), spec("w", None, None), frozen=True,
      i=[[0, 3, 3, 1, 9, 0], [2, 2, 2, 2, 2, 2], [5, 4, 3, 2, 1, 0]], w=np.linspace(0, 4, 18).reshape(3, 6))  # fmt: skip
def counted(m, x, i, w):
    """Segments that are known, and numbers by how often they occur."""
    rows, ids = tf.ensure_shape(x, [3, 4]), tf.constant([0, 0, 3])
    nothing = tf.constant([], F32)
    count = lambda size, by=nothing, **how: raw.DenseBincount(input=i, size=size, weights=by, **how)  # noqa: E731
    return {
        "sum": tf.math.segment_sum(rows, ids), "mean": tf.math.segment_mean(rows, ids), "prod": tf.math.segment_prod(rows, ids),
        "max": tf.math.segment_max(rows, ids), "min": tf.math.segment_min(tf.cast(rows * 9, I32), ids), "bins": count(6),
        "infinite": tf.math.segment_max(rows - np.inf, ids), "one": count(10, binary_output=True), "open": count(5, w), "weights": count(4, tf.cast(i, F32) * 0.5),
        "line": raw.DenseBincount(input=i[1], size=3, weights=tf.constant([], I32)),
    }  # fmt: skip


@case(spec("x", None, 6, 4), spec("i", dtype=I32), spec("part", None, 2, 4), frozen=True, i=-5)
def places_of_data(m, x, i, part):
    """Slices and updates that start where data says, and places that are searched."""
    from tensorflow.compiler.tf2xla.python.xla import dynamic_update_slice as put

    rows = tf.sort(x[:, :, 0])
    values = tf.stack([rows[:, 2], rows[:, 0] - 1, rows[:, 5] + 1, x[:, 0, 1]], 1)
    return {
        "element": x[:, i], "single": x[0, i, i + 2], "slice": tf.slice(x, [0, i + 6, 1], [-1, 2, 3]), "whole": tf.slice(x, [0, i + 6, 0], [-1, 5, 4]),
        "update": put(x, part, tf.stack([0, i + 8, 0])), "end": put(x, part, tf.stack([3, i * -9, 0])), "start": put(x, part[:, :, :3], tf.stack([0, i, i * -1])),
        "listed": tf.TensorArray(F32, 4, clear_after_read=False).unstack(tf.transpose(x[0])).read(i + 8), "lower": raw.LowerBound(sorted_inputs=rows, values=values), "upper": raw.UpperBound(sorted_inputs=rows, values=values, out_type=I64),
    }  # fmt: skip
