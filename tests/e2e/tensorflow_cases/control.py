"""Lists, loops and branches."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from .common import F32, I32, I64, case, raw, spec


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


ENDED = np.random.RandomState(9).uniform(-1, 1, (3, 24, 3)) * (np.arange(24)[:, None] < np.array([24, 5, 17])[:, None, None])


@case(spec("x", None, 24, 3), spec("h", None, 4), frozen=True, x=ENDED)
def masked_steps(m, x, h):
    """Steps that keep their state where a sequence has ended."""
    runs, last = tf.reduce_any(tf.not_equal(x, 0), -1), h
    for t in tf.range(24):
        inner = tf.nn.relu(x[:, t] @ m(3, 5) + 0.25) @ m(5, 4)
        h = tf.where(runs[:, t, None], tf.tanh(inner * 0.3 - tf.matmul(h, m(4, 4))), h)
        last = last * 0.5 + x[:, 23 - t] @ m(3, 4)
    return {"h": h, "last": last}


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


@case(spec("x", 2, None, 4), frozen=True)
def broken_off(m, x):
    """Loops over an open length that data may end, by `break` and by `and`."""
    n, s, i, t = tf.shape(x)[1], tf.zeros([2, 4]), tf.constant(0), tf.zeros([2, 4])
    for k in tf.range(n):
        s = s + x[:, k]
        if tf.reduce_max(s) > 0.8:
            break
    while i < n and tf.reduce_sum(t) < 1.5:
        t = t + tf.abs(x[:, i])
        i = i + 1
    half, u = n // 2, tf.zeros([2, 4])
    while half > 0:
        u = tf.tanh(u + x[:, half])
        half = half - 1
    return {"s": s, "t": t, "i": i, "u": u}


@case(spec("x", None, 4), spec("b", None, 4))
def ended_either_way(m, x, b):
    """Conditions as autograph makes them of `and`, `or` and `break`, whichever part comes first."""
    n, o = tf.shape(x)[0], tf.shape(b)[0]
    results, one = {}, x[0] * 0.25
    i, s = tf.constant(0), one
    while i < n:
        s = tf.tanh(s + x[i])
        i = i + 1
        if s[0] > 0.5:
            break
    results["broken"] = s
    i, s = tf.constant(0), one
    while i < n and i < 15:
        s, i = tf.tanh(s + x[i]), i + 1
    results["both"] = s
    i, s = tf.constant(0), one
    while i < n or i < o + 4:
        s, i = tf.tanh(s + x[i % n]), i + 1
    results["either"], results["steps"] = s, i
    i, s, change = tf.constant(0), one, tf.constant(1.0)
    while change > 0.125 and i < 20:
        after = s * 0.5 + x[0]
        s, change, i = after, tf.reduce_max(tf.abs(after - s)), i + 1
    results["settled"], results["settled_in"] = s, i
    i, s, t = tf.constant(0), one, one
    while i < o + 3 and (i < n if tf.reduce_sum(s) > 0.0 else tf.reduce_sum(t) > 0.0):
        s, t, i = s - 0.5, t + 0.5, i + 1
    results["alike"] = t
    i, s, k = tf.constant(0), one, tf.cast(n, tf.uint64)
    while i < o and k - tf.constant(3, tf.uint64) >= tf.constant(0, tf.uint64):
        s, i, k = tf.tanh(s + b[i]), i + 1, k - tf.constant(1, tf.uint64)
    results["unsigned"] = s
    return results


@case(spec("x", None, 4), frozen=True, x=[[0.1 * (3 * i % 7) - 0.05 * j for j in range(4)] for i in range(7)])
def joined_windows(m, x):
    """A list of as many elements as windows of three fit in, whose elements have two rows; rows that go round."""
    n = tf.shape(x)[0]
    rows = tf.TensorArray(F32, size=n - 2, element_shape=[2, 4])
    take = lambda i, rows, s: (i + 1, rows.write(i, tf.stack([x[i], x[i + 2]])), tf.tanh(s + x[2 * i % n]))  # noqa: E731
    _, rows, s = tf.while_loop(lambda i, *_: i < n - 2, take, [0, rows, x[0]])
    return {"rows": rows.concat(), "s": s}


@case(spec("x", 3, 4), frozen=True)
def joined_lists(m, x):
    """Lists of rows put together, scattered, and of nothing."""
    rows = raw.TensorListReserve(element_shape=[-1, 4], num_elements=2, element_dtype=F32)
    for place, part in enumerate((x[:2], x[2:] * 2)):
        rows = raw.TensorListSetItem(input_handle=rows, index=place, item=part)
    whole, lengths = raw.TensorListConcatV2(input_handle=rows, element_shape=[-1, 4], leading_dims=tf.constant([], I64), element_dtype=F32)
    spread = raw.TensorListScatterV2(tensor=x, indices=[4, 0, 2], element_shape=[4], num_elements=-1)
    more = raw.TensorListScatterIntoExistingList(input_handle=spread, tensor=x[:1] + 1, indices=[1])
    stack = lambda handle: raw.TensorListStack(input_handle=handle, element_shape=[4], element_dtype=F32)  # noqa: E731
    older, _ = raw.TensorListConcat(input_handle=rows, element_dtype=F32, element_shape=[None, 4])
    first = raw.TensorListScatter(tensor=x, indices=[1, 0, 2], element_shape=[4])
    nothing = stack(raw.TensorListReserve(element_shape=[4], num_elements=0, element_dtype=F32))
    return {"whole": whole, "lengths": lengths, "spread": stack(spread), "more": stack(more), "older": older, "first": stack(first), "nothing": tf.concat([nothing, x], 0)}


@case(spec("x", 3, 4), frozen=True)
def lists_of_branches(m, x):
    """Each branch sets another element; the other one is zeros."""
    handle = raw.TensorListReserve(element_shape=[4], num_elements=3, element_dtype=F32)
    put = lambda i: raw.TensorListSetItem(input_handle=handle, index=i, item=x[i])  # noqa: E731
    stack = lambda h: raw.TensorListStack(input_handle=h, element_shape=[4], element_dtype=F32)  # noqa: E731
    total = tf.reduce_sum(x)
    parts = raw.TensorListSplit(tensor=x, element_shape=[-1, 4], lengths=tf.constant([1, 0, 2], I64))
    part = lambda i: raw.TensorListGetItem(input_handle=parts, index=i, element_shape=[-1, 4], element_dtype=F32)  # noqa: E731
    return {"first": stack(tf.cond(total > 0, lambda: put(1), lambda: put(2))), "second": stack(tf.cond(total > 0, lambda: put(2), lambda: put(1))),
            "parts": tf.concat([part(2), part(0)], 0), "length": raw.TensorListLength(input_handle=parts)}  # fmt: skip


@case(spec("x", None, 6, 4), spec("n", None, dtype=I32), frozen=True, n=[3, 6, 2])
def loops_that_data_ends(m, x, n):
    """Of a number of steps that is known, data leaves some out."""
    longest = tf.reduce_max(n)
    step = lambda t, h: tf.where((t < n)[:, None], tf.tanh(x[:, t] @ m(4, 4) + h @ m(4, 4) * 0.3), h)  # noqa: E731
    first = longest - 3  # 3 steps
    outputs, h = tf.TensorArray(F32, 6, element_shape=[None, 4]), tf.zeros_like(x[:, 0])
    _, last, outputs = tf.while_loop(lambda t, h, o: t < tf.minimum(6, tf.maximum(1, first)),
                                     lambda t, h, o: (t + 1, step(t, h), o.write(t, h)), (0, h, outputs))  # fmt: skip
    total, count = tf.zeros([]), 0
    for i in tf.range(5):
        if total > 1.0 + tf.cast(first, F32):
            break
        total += tf.cast(i, F32) * 0.75
        count += 2
    never = tf.while_loop(lambda i, y: tf.logical_and(longest > 99, i < 4), lambda i, y: (i + 1, y + 1), (0, x))[1]
    return {"last": last, "outputs": outputs.stack(), "total": total, "count": tf.convert_to_tensor(count), "never": never}


@case(spec("x", None, 4))
def lists_set_at_once(m, x):
    """Lists of as many elements as an open size says, set and taken all at once, or some taken."""
    n = tf.shape(x)[0]
    rows = tf.TensorArray(F32, n, element_shape=[4]).scatter(tf.range(n), tf.tanh(x))
    handle = raw.TensorListScatterV2(tensor=x, indices=tf.range(n), element_shape=[4], num_elements=n)
    taken = raw.TensorListGather(input_handle=handle, indices=[0, 2, 0], element_shape=[4], element_dtype=F32)
    first = {"first": rows.gather([0]), "two": rows.gather([0, 1]), "half": rows.gather(tf.range((n + 1) // 2))}
    return {"all": rows.gather(tf.range(n)), "stacked": rows.stack(), "turned": rows.gather(n - 1 - tf.range(n)), "some": taken, **first}
