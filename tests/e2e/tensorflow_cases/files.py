"""The forms of files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import tensorflow as tf

from .common import F32, Weights, freeze, frozen_name, raw, spec, write_arrays
from .control import branches


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


def tf1_parts(folder: Path) -> None:
    """A variable in parts, and one that two nodes hold under one name."""
    v1 = tf.compat.v1
    v1.enable_resource_variables()
    rng = np.random.RandomState(6)
    feed = rng.standard_normal((3, 7)).astype(np.float32)
    with tf.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(F32, [None, 7], "x")
        draw = v1.random_uniform_initializer(seed=3)
        rows = v1.get_variable("rows", (7, 6), initializer=draw, partitioner=v1.fixed_size_partitioner(3))
        columns = v1.get_variable("columns", (6, 5), initializer=draw, partitioner=v1.fixed_size_partitioner(2, axis=1))
        v1.get_variable("b", initializer=rng.uniform(0.5, 1, 5).astype(np.float32))
        other = raw.VarHandleOp(dtype=F32, shape=[5], shared_name="b", name="other")
        y = {"y": x @ rows @ columns + raw.ReadVariableOp(resource=other, dtype=F32)}
        session.run(v1.global_variables_initializer())
        v1.saved_model.simple_save(session, str(folder), {"x": x}, y)
        write_arrays(folder, {"x": feed}, session.run(y, {x: feed}))


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


def tf1_open_loops(folder: Path) -> None:
    """TensorArrays of as many elements as an open size says: set all at once, by steps, and taken all at once or some."""
    v1 = tf.compat.v1
    v1.disable_control_flow_v2()
    rng = np.random.RandomState(9)
    w = rng.uniform(-0.5, 0.5, (4, 4)).astype(np.float32)
    with tf.Graph().as_default() as graph, v1.Session() as session:
        x = v1.placeholder(F32, [None, 4], "x")
        n = tf.shape(x)[0]
        # Places that are computed in another way.
        rows = v1.TensorArray(F32, n, clear_after_read=False).scatter(tf.cast(tf.range(2, tf.cast(n, tf.int64) + 2) - 2, tf.int32), x)

        def step(i, h, states):
            h = tf.tanh(rows.read(i) + tf.matmul(h[None], w)[0])
            return i + 1, h, states.write(n - 1 - i, h)

        _, h, states = v1.while_loop(lambda i, h, states: i < n, step, [0, tf.zeros([4]), v1.TensorArray(F32, n, clear_after_read=False)])
        named = {
            "mapped": tf.map_fn(lambda r: tf.tanh(r) * tf.reduce_sum(r), x),
            "pairs": tf.map_fn(lambda r: r[0] - tf.cast(r[1], F32), (x, tf.range(n)), dtype=F32),
            "scanned": tf.scan(lambda a, r: tf.tanh(a + r), x, initializer=tf.zeros([4])),
            "back": tf.scan(lambda a, r: tf.tanh(tf.matmul(a[None], w)[0] + r), x, initializer=tf.ones([4]), reverse=True),
            "folded": tf.foldl(lambda a, r: tf.tanh(a + r), x, initializer=tf.zeros([4])),
            "folded_back": tf.foldr(lambda a, r: tf.tanh(a - r), x),
            "last": h, "states": states.stack(), "turned": states.gather(tf.range(n - 1, -1, -1)), "first": states.gather([0, 0]),
            "size": states.size(),
        }  # fmt: skip
        named = {key: tf.identity(value, key) for key, value in named.items()}
        for suffix, length in ("", 3), ("_1", 1), ("_17", 17):
            feed = rng.standard_normal((length, 4)).astype(np.float32)
            write_arrays(folder, {"x": feed}, session.run(named, {x: feed}), suffix)
        (folder / "graph.pb").write_bytes(graph.as_graph_def().SerializeToString())
    v1.enable_control_flow_v2()
    (folder / "options.txt").write_text(f"--inputs x --outputs {','.join(named)}")


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


def lowered_steps(folder: Path) -> None:
    """Loops as Switch and Merge whose number of steps is known, and which are written
    out: they carry nothing, or set a list's elements from its last one on."""
    steps = 70
    w = Weights()(4, 4)

    def listed():
        return tf.TensorArray(F32, steps, element_shape=[None, 4])

    @tf.function(input_signature=[spec("x", None, 3, 4)])
    def function(x):
        rows = tf.while_loop(lambda i, rows: i < steps, lambda i, rows: (i + 1, rows.write(i, x[:, i % 3] * tf.cast(i, F32))), (0, listed()))[1]
        back = tf.while_loop(
            lambda i, h, back: i < steps, lambda i, h, back: (i + 1, tf.tanh(h @ w), back.write(steps - 1 - i, h)), (0, x[:, 0], listed())
        )
        return rows.stack(), back[1], back[2].stack()

    (folder / "graph.pb").write_bytes(freeze(function, True))
    feed = np.random.RandomState(8).standard_normal((2, 3, 4)).astype(np.float32)
    write_arrays(folder, {"x": feed}, {frozen_name(i): v.numpy() for i, v in enumerate(function(feed))})


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
    """As many steps as an open size says."""

    @tf.function(input_signature=[spec("x", None, None, 3)])
    def function(x):
        return tf.while_loop(
            lambda i, s: i < tf.shape(x)[1], lambda i, s: (i + 1, s + x[:, i]), [0, tf.zeros([tf.shape(x)[0], 3])]
        )[1]

    (folder / "graph.pb").write_bytes(freeze(function, False))


def partitions(folder: Path) -> None:
    """Tables in parts, rows of which are looked up part by part and joined again; and rows at constant places."""
    v1 = tf.compat.v1
    rng = np.random.RandomState(3)
    with tf.Graph().as_default() as graph, v1.Session() as session:
        ids = v1.placeholder(tf.int64, [None, 4], "ids")
        rows = [tf.constant(rng.standard_normal((k, 3)).astype(np.float32)) for k in (4, 4, 3)]
        first, places = tf.cast(ids[0, 0], F32), [tf.constant([[4, 0], [2, 1]]), tf.constant(3)]
        named = {
            "mod": v1.nn.embedding_lookup(rows, ids, "mod"), "div": v1.nn.embedding_lookup(rows, ids, "div"),
            "stitched": tf.dynamic_stitch(places, [tf.reshape(rows[0], [2, 2, 3]) + first, rows[1][0]]),
        }  # fmt: skip
        named = {key: tf.identity(value, key) for key, value in named.items()}
        for suffix, feed in ("", [[0, 10, 4, 7], [8, 8, 1, 3], [9, 2, 6, 5]]), ("_2", [[2, 3, 9, 10]]):
            write_arrays(folder, {"ids": np.array(feed)}, session.run(named, {ids: feed}), suffix)
        (folder / "graph.pb").write_bytes(graph.as_graph_def().SerializeToString())
    (folder / "options.txt").write_text(f"--inputs ids --outputs {','.join(named)}")


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
    module = tf.Module()
    module.narrow = tf.Variable(np.random.RandomState(7).uniform(-1, 1, (5, 3)).astype(np.float32))
    forward = tf.function(lambda a: {"scores": a @ module.narrow}, input_signature=[spec("a", None, 5)])
    tf.saved_model.save(module, str(folder), signatures={"only": forward})
    from tensorflow.core.protobuf import saved_model_pb2

    saved = saved_model_pb2.SavedModel.FromString((folder / "saved_model.pb").read_bytes())
    (folder / "saved_model.pbtxt").write_text(str(saved))
    (folder / "saved_model.pb").unlink()
    a = np.random.RandomState(9).standard_normal((3, 5)).astype(np.float32)
    write_arrays(folder, {"a": a}, {"scores": forward(a)["scores"].numpy()})


FILES = {f.__name__: f for f in (tf1_reference, tf1_resource, tf1_parts, tf1_loop, tf1_open_loops, lowered, lowered_steps, open_steps, channels_first, nans, partitions, signatures, saved_text)}
