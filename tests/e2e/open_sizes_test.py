"""Operators of open sizes on CPUs: at one, below, at and behind whole tiles, and at large sizes, of one engine each.

Values against ONNX Runtime. Products are in open_rows_test.py.
"""

from __future__ import annotations

import harness
import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

SHORT = [(n, s) for n in (1, 7) for s in (1, 2, 5, 8, 9, 16, 17, 32, 33, 64, 65)]
LENGTHS = [1, 2, 15, 16, 17, 61, 64, 65, 128, 257]
IMAGES = [(1, 1, 1), (1, 7, 7), (2, 13, 13), (3, 5, 31), (1, 64, 64), (2, 33, 130)]
PAIRS = [(1, 1), (1, 130), (3, 17), (61, 16), (64, 1), (130, 65)]


def save(path, nodes, shapes, constants, opset):
    infos = [helper.make_tensor_value_info(f"x{i}", TensorProto.FLOAT, s) for i, s in enumerate(shapes)]
    outputs = [onnx.ValueInfoProto(name=name) for name in nodes[-1].output]
    weights = [numpy_helper.from_array(np.asarray(v), k) for k, v in constants.items()]
    graph = helper.make_graph(nodes, "open", infos, outputs, weights)
    model = helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", opset)])
    onnx.save(onnx.shape_inference.infer_shapes(model), path)


def check(folder, nodes, shapes, sizes, constants=None, opset=21, tolerance=2e-6, optimum=None):
    """`shapes` name the open sizes; `sizes` are their values, in the order of their names' first use."""
    path = folder / "m.onnx"
    save(path, nodes, shapes, constants or {}, opset)
    peer = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    names = list(dict.fromkeys(d for shape in shapes for d in shape if isinstance(d, str)))
    outputs = [o.name for o in peer.get_outputs()]
    rng = np.random.default_rng(7)
    for target in harness.cpu_targets():
        engine = folder / f"{target}.engine"
        harness.compile_model(path, engine, target=target, shapes=optimum)
        for values in sizes:
            bound = dict(zip(names, values if isinstance(values, tuple) else (values,), strict=True))
            feeds = {
                f"x{i}": rng.uniform(-2, 2, [bound.get(d, d) for d in shape]).astype(np.float32)
                for i, shape in enumerate(shapes)
            }
            got = harness.run_engine(engine, feeds, outputs, folder / "run")
            for a, b in zip(got, peer.run(None, feeds), strict=True):
                assert a.shape == b.shape
                limit = tolerance * max(np.abs(b).max(initial=0).astype(float), 1)
                np.testing.assert_allclose(a, b, 0, limit, err_msg=f"{target}, {bound}")


def node(op, *inputs, outputs=("y",), **attributes):
    return helper.make_node(op, inputs, outputs, **attributes)


def weights(*shape):
    scale = 1 / np.sqrt(np.prod(shape[1:]))
    return (np.random.default_rng(1).standard_normal(shape) * scale).astype(np.float32)


@pytest.mark.parametrize("op", ["ReduceSum", "ReduceMax", "ReduceMean", "ReduceLogSumExp", "ReduceL2"])
def test_reductions_along_rows(tmp_path, op):
    check(tmp_path, [node(op, "x0", "a", keepdims=0)], [("n", "s")], PAIRS, {"a": np.array([1])})


@pytest.mark.parametrize("op", ["ArgMax", "ArgMin"])
def test_places_along_rows(tmp_path, op):
    check(tmp_path, [node(op, "x0", axis=1)], [("n", "s")], PAIRS)


@pytest.mark.parametrize("op", ["Softmax", "LogSoftmax", "LpNormalization"])
def test_rows(tmp_path, op):
    check(tmp_path, [node(op, "x0", axis=1)], [("n", "s")], PAIRS)


@pytest.mark.parametrize("op", ["ReduceMax", "ReduceMean", "ReduceLogSumExp", "Softmax", "LogSoftmax"])
def test_short_rows(tmp_path, op):
    axes = {"axis": -1} if op.endswith("oftmax") else {}
    inputs = ["x0"] if axes else ["x0", "axes"]
    check(tmp_path, [node(op, *inputs, **axes)], [["n", "s"]], SHORT, {} if axes else {"axes": [-1]})


@pytest.mark.parametrize("reverse", [0, 1])
def test_running_sums_of_short_rows(tmp_path, reverse):
    check(tmp_path, [node("CumSum", "x0", "axis", reverse=reverse)], [["n", "s"]], SHORT, {"axis": 1}, tolerance=1e-5)


def test_short_rows_of_what_is_computed(tmp_path):
    """Of one row, whose values need nothing of the grid, and of rows that are written beside their sums."""
    nodes = [
        node("Exp", "x0", outputs=("e",)),
        node("ReduceSum", "e", "axes", outputs=("s",), keepdims=1),
        node("Div", "e", "s", outputs=("q",)),
        node("Add", "q", "x0"),
    ]
    for shape, sizes in (([["n", "s"]], SHORT), ([[1, "s"]], [s for n, s in SHORT if n == 1])):
        check(tmp_path, nodes, shape, sizes, {"axes": [-1]})


def test_space_to_depth_of_declared_sizes(tmp_path):
    """That blocks divide the sizes is known where their range is declared, too."""
    path, engine = tmp_path / "m.onnx", tmp_path / "m.engine"
    save(path, [node("SpaceToDepth", "x0", blocksize=2)], [["n", 4, "h", "w"]], {}, 21)
    shapes = {"x0": [(1, 16, 64), 4, (1, 128, 512), (1, 128, 512)]}
    target, ranges = harness.cpu_targets()[-1], harness.shape_text(shapes["x0"])
    tiles = harness.invoke("compile", path, "--shape", f"x0={ranges}", "--target", target, "--stop-after", "tiles")
    assert "tile.divisor = 2" in tiles.stdout
    harness.compile_model(path, engine, target=target, shapes=shapes)
    peer = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    for shape in [(1, 4, 2, 2), (3, 4, 14, 14), (2, 4, 6, 130)]:
        x = np.random.default_rng(3).uniform(-1, 1, shape).astype(np.float32)
        (got,) = harness.run_engine(engine, {"x0": x}, ["y"], tmp_path / "run")
        np.testing.assert_array_equal(got, peer.run(None, {"x0": x})[0])
    with pytest.raises(harness.CharoniaError, match="multiple of 2"):
        harness.run_engine(engine, {"x0": np.zeros((1, 4, 3, 2), np.float32)}, ["y"], tmp_path / "run")


def test_softmax_between(tmp_path):
    """What is computed in front and behind is part of the walks along a row."""
    nodes = [node("Sin", "x0", outputs=["a"]), node("Softmax", "a", axis=1, outputs=["b"]), node("Mul", "b", "x0")]
    check(tmp_path, nodes, [("n", "s")], PAIRS)


@pytest.mark.parametrize("op", ["Softmax", "LogSoftmax"])
def test_rows_that_are_kept_where_they_fit(tmp_path, op):
    """One walk keeps what the next would compute again, of rows of up to 65599 elements."""
    rows = [(3, 65), (2, 1000), (1, 65599), (1, 65600), (2, 70001)]
    check(tmp_path, [node(op, "x0", axis=1)], [("n", "s")], rows, tolerance=1e-5)


@pytest.mark.parametrize("op", ["ReduceMax", "ReduceMin"])
def test_extremes_of_all(tmp_path, op):
    """Whole parts of 1024 elements and what is left, either of which may be nothing."""
    sizes = [(1, 1), (3, 61), (1, 1023), (2, 1024), (5, 205), (384, 1000)]
    check(tmp_path, [node(op, "x0", keepdims=0)], [("n", "s")], sizes, tolerance=0)


def test_scales_of_all(tmp_path):
    outputs = ["y", "scale", "zero"]
    nodes = [node("DynamicQuantizeLinear", "x0", outputs=outputs)]
    check(tmp_path, nodes, [("n", "s")], [(1, 1), (3, 61), (1, 1024), (5, 205), (384, 1000)], tolerance=0)


@pytest.mark.parametrize("optimum", [None, (16, 128)])
@pytest.mark.parametrize("groups", [1, 4, 24])
def test_normalizations_of_groups(tmp_path, groups, optimum):
    """What differs from channel to channel is the same along an image, however many are optimized for."""
    constants = {"a": weights(24), "b": weights(24)}
    images = [*IMAGES, (3, 1, 8), (1, 9, 57)]
    nodes = [node("GroupNormalization", "x0", "a", "b", num_groups=groups, outputs=["z"]), node("Relu", "z")]
    shapes = {"x0": [(1, optimum[0], 1000), 24, *[(1, optimum[1], 1000)] * 2]} if optimum else None
    check(tmp_path, nodes, [("n", 24, "h", "w")], images, constants, tolerance=1e-5, optimum=shapes)


def test_results_that_no_cache_holds(tmp_path):
    """One engine writes them past the caches, and small ones not."""
    check(tmp_path, [node("Add", "x0", "x1")], [("n", "s"), ("s",)], [(1, 1), (17, 61), (1537, 2050), (3100, 1031)])


@pytest.mark.parametrize("axes", [[0, 2, 3], [2, 3], [0, 3]])
def test_means_of_images(tmp_path, axes):
    check(tmp_path, [node("ReduceMean", "x0", "a")], [("n", 5, "h", "w")], IMAGES, {"a": np.array(axes)})


def test_mean_of_a_large_batch(tmp_path):
    nodes = [node("ReduceMean", "x0", "a")]
    check(tmp_path, nodes, [("n", 3, 96, 128)], [1, 2, 9], {"a": np.array([0, 2, 3])})


@pytest.mark.parametrize("perm", [[1, 0, 2], [2, 1, 0], [0, 2, 1]])
@pytest.mark.parametrize("shape", [("n", 5, "s"), ("n", "s", 40)])
def test_transposes(tmp_path, shape, perm):
    check(tmp_path, [node("Transpose", "x0", perm=perm)], [shape], PAIRS)


def test_transpose_of_open_rows(tmp_path):
    check(tmp_path, [node("Transpose", "x0", perm=[1, 0])], [("n", 48)], LENGTHS)


@pytest.mark.parametrize("op", ["MaxPool", "AveragePool", "LpPool"])
@pytest.mark.parametrize("strides", [1, 2])
def test_pools(tmp_path, op, strides):
    nodes = [node(op, "x0", kernel_shape=[3, 3], strides=[strides] * 2, pads=[1] * 4)]
    check(tmp_path, nodes, [("n", 5, "h", "w")], IMAGES)


@pytest.mark.parametrize(
    "op, attributes",
    [
        ("MaxPool", dict(kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)),
        ("MaxPool", dict(kernel_shape=[2, 3], strides=[1, 3], pads=[1, 2, 0, 1], dilations=[1, 2])),
        ("MaxPool", dict(kernel_shape=[3, 2], strides=[2, 2], pads=[1, 0, 1, 1], ceil_mode=1)),
        ("MaxPool", dict(kernel_shape=[5, 5], pads=[2] * 4)),
        ("AveragePool", dict(kernel_shape=[3, 3], strides=[2, 1], pads=[1] * 4)),
        ("AveragePool", dict(kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4, count_include_pad=1)),
        ("AveragePool", dict(kernel_shape=[2, 4], strides=[2, 4], pads=[0, 1, 1, 2])),
    ],
)
def test_pools_of_many_planes(tmp_path, op, attributes):
    """Rows of a plane are walked inside of a program instance."""
    images = [(1, 5, 5), (2, 7, 13), (3, 13, 31), (1, 33, 34), (1, 8, 66), (2, 6, 130)]
    check(tmp_path, [node(op, "x0", **attributes)], [("n", 24, "h", "w")], images)


def test_pools_of_volumes_and_lines(tmp_path):
    volume = dict(kernel_shape=[3, 3, 3], strides=[2, 2, 2], pads=[1] * 6)
    sizes = [(1, 1, 1, 1), (2, 4, 5, 33), (1, 3, 7, 70)]
    check(tmp_path, [node("MaxPool", "x0", **volume)], [("n", 16, "d", "h", "w")], sizes)
    line = dict(kernel_shape=[3], strides=[2], pads=[1, 1])
    check(tmp_path, [node("AveragePool", "x0", **line)], [("n", 20, "w")], [(1, 1), (3, 31), (1, 130)])


@pytest.mark.parametrize("kernel, stride, group", [(1, 1, 1), (1, 2, 1), (3, 1, 1), (7, 2, 1), (3, 1, 24), (3, 2, 3)])
def test_convolutions(tmp_path, kernel, stride, group):
    attributes = dict(pads=[kernel // 2] * 4, strides=[stride] * 2, group=group)
    constants = {"w": weights(48, 24 // group, kernel, kernel), "v": weights(40, 48, 1, 1)}
    nodes = [node("Conv", "x0", "w", **attributes, outputs=["a"]), node("Relu", "a", outputs=["b"]), node("Conv", "b", "v")]
    check(tmp_path, nodes[:1], [("n", 24, "h", "w")], IMAGES, constants, tolerance=1e-5)
    check(tmp_path, nodes, [("n", 24, "h", "w")], IMAGES, constants, tolerance=1e-5)


def test_few_channels_by_few(tmp_path):
    """Rows are the lanes."""
    check(tmp_path, [node("Conv", "x0", "w")], [("n", 3, "h", "w")], IMAGES, {"w": weights(16, 3, 1, 1)})


@pytest.mark.parametrize("mode", ["constant", "reflect", "edge", "wrap"])
@pytest.mark.parametrize("pads", [[0, 0, 1, 1, 0, 0, 1, 1], [0, 0, 0, 3, 0, 0, 2, 0], [0, 0, 2, 0, 0, 0, 0, 2]])
def test_padding_of_long_rows(tmp_path, mode, pads):
    """Rows are walked inside of an instance; tiles between their ends are copied."""
    sizes = [(1, 4, 4), (2, 5, 30), (1, 7, 61), (1, 4, 64), (1, 3, 130)]
    check(tmp_path, [node("Pad", "x0", "p", mode=mode)], [("n", 20, "h", "w")], sizes, {"p": np.array(pads)})
    check(tmp_path, [node("Pad", "x0", "p", mode=mode)], [(1, 20, 5, 131)], [()], {"p": np.array(pads)})


NARROW = [(1, 9, 1), (3, 40, 2), (2, 7, 3), (2, 300, 4), (1, 5, 8), (1, 4, 9), (1, 3, 40)]


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_resize_of_narrow_rows(tmp_path, mode):
    """Short rows that are walked inside of an instance are a tile of their own length."""
    resize = node("Resize", "x0", "", "s", mode=mode, coordinate_transformation_mode="pytorch_half_pixel")
    for scale in (0.5, 2):
        sizes = [(n, 2 * h, 2 * w) for n, h, w in NARROW]
        check(tmp_path, [resize], [("n", 20, "h", "w")], sizes, {"s": np.array([1, 1, scale, scale], np.float32)}, tolerance=1e-5)


def test_padding_and_pools_of_narrow_rows(tmp_path):
    pads = {"p": np.array([0, 0, 1, 1, 0, 0, 0, 2])}
    check(tmp_path, [node("Pad", "x0", "p")], [("n", 20, "h", "w")], NARROW, pads)
    check(tmp_path, [node("MaxPool", "x0", kernel_shape=[3, 3], pads=[1] * 4)], [("n", 20, "h", "w")], NARROW)
    check(tmp_path, [node("AveragePool", "x0", kernel_shape=[3, 2], pads=[1, 0, 1, 1])], [("n", 20, "h", "w")], NARROW)


def test_volumes_of_narrow_rows(tmp_path):
    """Sums over all of a volume are of parts of one run, however short its rows are."""
    sizes = [(1, 1, 1, 1), (2, 2048, 1, 1), (1, 40, 33, 65), (30, 1000, 2, 1), (3, 5, 1, 409), (1, 2, 3, 2049)]
    volume = [("n", 2, "d", "h", "w")]
    constants = {"s": weights(2), "b": weights(2), "a": np.array([1, 2, 3, 4])}
    check(tmp_path, [node("InstanceNormalization", "x0", "s", "b")], volume, sizes[1:], constants, tolerance=1e-4)
    check(tmp_path, [node("ReduceMean", "x0", "a")], volume, sizes, constants)
    check(tmp_path, [node("ReduceL2", "x0", "a", keepdims=0)], volume, sizes, constants, tolerance=2e-5)


@pytest.mark.parametrize("low, high", [(0, 1), (3, 0), (2, 5)])
def test_padding_that_comes_around(tmp_path, low, high):
    """Of a row that is shorter than its padding several times; others are copied."""
    path, engine = tmp_path / "m.onnx", tmp_path / "m.engine"
    save(path, [node("Pad", "x0", "p", mode="wrap")], [("n", "s")], {"p": np.array([2, low, 0, high])}, 21)
    for target in harness.cpu_targets():
        harness.compile_model(path, engine, target=target)
        for size in [(2, 1), (1, 2), (1, 4), (5, 5), (3, 33), (2, 300)]:
            x = np.random.default_rng(5).standard_normal(size).astype(np.float32)
            (got,) = harness.run_engine(engine, {"x0": x}, ["y"], tmp_path / "run")
            np.testing.assert_array_equal(got, np.pad(x, ((2, 0), (low, high)), "wrap"), err_msg=f"{target}, {size}")


@pytest.mark.parametrize("reduction", ["none", "add"])
def test_rows_that_are_put(tmp_path, reduction):
    """Rows at places that are known come in tiles of many registers, and shorter ones."""
    places = {"i": np.array([[3], [0], [-2]])}
    sizes = [(9, 1), (4, 17), (5, 130), (7, 511), (4, 513), (5, 1000), (4, 1300), (4, 2047), (4, 2048), (5, 3109)]
    check(tmp_path, [node("ScatterND", "x0", "i", "x1", reduction=reduction)], [("n", "s"), (3, "s")], sizes, places)


def test_split_and_join(tmp_path):
    check(tmp_path, [node("Split", "x0", axis=1, num_outputs=2, outputs=["y", "z"])], [("n", "s")], [(1, 2), (3, 34), (65, 130)])
    check(tmp_path, [node("Concat", "x0", "x1", "x2", axis=1)], [("n", "s"), ("n", "t"), ("n", "s")], [(*p, 3) for p in PAIRS])
    check(tmp_path, [node("Concat", "x0", "x1", axis=1)], [("n", "s"), ("n", 1)], PAIRS)


def test_space_to_depth(tmp_path):
    sizes = [(1, 2, 2), (2, 14, 26), (1, 64, 130)]
    check(tmp_path, [node("SpaceToDepth", "x0", blocksize=2)], [("n", 3, "h", "w")], sizes)
    check(tmp_path, [node("DepthToSpace", "x0", blocksize=2)], [("n", 8, "h", "w")], IMAGES)


def test_space_to_depth_of_odd_sizes_is_refused(tmp_path):
    path, engine = tmp_path / "m.onnx", tmp_path / "m.engine"
    save(path, [node("SpaceToDepth", "x0", blocksize=2)], [("n", 3, "h", "w")], {}, 21)
    harness.compile_model(path, engine, target=harness.cpu_targets()[-1])
    with pytest.raises(harness.CharoniaError, match="must be a multiple of 2"):
        harness.run_engine(engine, {"x0": np.zeros((1, 3, 4, 3), np.float32)}, ["y"], tmp_path / "run")


@pytest.mark.parametrize("keys", [1, 16, 61, 200])
def test_attention(tmp_path, keys):
    """A single row, as in decoding, and many of one engine."""
    shapes = [("n", 3, "s", 24), ("n", 3, "t", 24), ("n", 3, "t", 24)]
    sizes = [(1, 1, keys), (2, 1, keys), (1, 7, keys), (2, 16, keys), (1, 33, keys)]
    check(tmp_path, [node("Attention", "x0", "x1", "x2")], shapes, sizes, opset=23, tolerance=1e-5)


@pytest.mark.parametrize("causal", [0, 1])
def test_attention_of_few_queries(tmp_path, causal):
    """Few rows are taken one by one, also those behind whole tiles."""
    shapes = [("n", 4, "s", 24), ("n", 2, "t", 24), ("n", 2, "t", 40)]
    sizes = [(1 + s % 2, s, t) for s in (1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 17, 19, 22, 35) for t in (1, 17, 70)]
    check(tmp_path, [node("Attention", "x0", "x1", "x2", is_causal=causal)], shapes, sizes, opset=23, tolerance=1e-5)
    masked = [*shapes, ("s", "t")]
    check(tmp_path, [node("Attention", "x0", "x1", "x2", "x3")], masked, sizes[::3], opset=23, tolerance=1e-5)


def test_concats_of_concats(tmp_path):
    """A chain, whose parts are told apart by branches near its end and by places further in."""
    nodes, last = [], "x0"
    for i in range(7):
        nodes.append(node("Tanh", last, outputs=(f"t{i}",)))
        last = "y" if i == 6 else f"c{i}"
        nodes.append(node("Concat", f"t{i}", "x0", outputs=(last,), axis=1))
    check(tmp_path, nodes, [["n", "s"]], PAIRS)


@pytest.mark.parametrize("blocks, mode", [(2, "DCR"), (3, "CRD"), (4, "CRD"), (5, "DCR")])
def test_pixels_side_by_side(tmp_path, blocks, mode):
    """Lanes in planes whose distance is open; what is joined of them, and windows over them."""
    place = [node("DepthToSpace", "x0", outputs=("d",), blocksize=blocks, mode=mode)]
    shapes = [("n", blocks * blocks * 2, "h", "w")]
    check(tmp_path, [*place, node("Neg", "d")], shapes, IMAGES)
    check(tmp_path, [*place, node("Concat", "d", "d", "d", "d", axis=3)], shapes, IMAGES)
    conv = node("Conv", "d", "k", dilations=[2, 1], pads=[4, 2, 4, 2])
    check(tmp_path, [*place, conv], shapes, IMAGES, {"k": weights(5, 2, 5, 5)}, tolerance=1e-5)


@pytest.mark.parametrize("width", ["1..1..512", "1..8..512", "1..20..512", "2..4..7"])
def test_rows_shorter_where_optimized_for(tmp_path, width):
    """Long rows of an engine that is optimized for short ones."""
    high = int(width.split("..")[-1])
    sizes = [(1 + w % 2, 5, w) for w in (1, 2, 4, 7, 15, 16, 17, 128, 257) if int(width[0]) <= w <= high]
    optimum = {"x0": ["1..1..4", 3, "1..5..64", width]}
    shapes = [("n", 3, "h", "w")]
    tile = [node("Tile", "x0", "r", outputs=("t",)), node("Neg", "t", outputs=("m",)), node("Concat", "m", "t", axis=3)]
    check(tmp_path, tile, shapes, sizes, {"r": np.array([1, 1, 3, 1])}, optimum=optimum)
    pads = np.array([0, 0, 1, 1, 0, 0, 4, 4])
    check(tmp_path, [node("Pad", "x0", "p")], shapes, sizes, {"p": pads}, optimum=optimum)
    check(tmp_path, [node("Transpose", "x0", perm=[0, 2, 1, 3])], shapes, sizes, optimum=optimum)


@pytest.mark.parametrize("repeats", [(1, 3, 1), (2, 1, 3), (1, 1, 5), (3, 2, 1)])
def test_what_is_repeated_along_open_sizes(tmp_path, repeats):
    """Rows of the operand within a dimension of the result, at lengths around whole tiles."""
    tile = [node("Tile", "x0", "r", outputs=("t",))]
    sizes = [(n, w) for n in (1, 3) for w in (1, 2, 7, 16, 17, 64, 131)]
    check(tmp_path, [*tile, node("Relu", "t")], [("n", 4, "w")], sizes, {"r": np.array(repeats)})
    turned = node("Transpose", "t", perm=[0, 2, 1])
    optimum = {"x0": ["1..1..64", 4, "1..64..200"]}
    check(tmp_path, [*tile, turned], [("n", 4, "w")], sizes, {"r": np.array(repeats)}, optimum=optimum)
    # Twice, and beside what is read as it lies.
    again = [
        node("Tile", "t", "r", outputs=("u",)),
        node("Concat", "u", "u", outputs=("c",), axis=2),
        node("Tile", "u", "two", outputs=("d",)),
        node("Add", "c", "d"),
    ]
    check(tmp_path, [*tile, *again], [("n", 4, "w")], sizes, {"r": np.array(repeats), "two": np.array([1, 1, 2])})


@pytest.mark.parametrize("perm", [[3, 2, 1, 0], [2, 3, 0, 1], [0, 3, 1, 2]])
def test_what_is_joined_of_itself_and_turned(tmp_path, perm):
    """Copies of one value side by side, and others computed of it, with few and many rows innermost."""
    sizes = [(1, 1), (1, 17), (2, 5), (3, 23), (5, 2), (16, 3), (37, 4)]
    place = [
        node("Unsqueeze", "x0", "axis", outputs=("u",)),
        node("Neg", "u", outputs=("v",)),
        node("Reshape", "c", "r", outputs=("j",)),
        node("Transpose", "j", perm=perm),
    ]
    constants = {"axis": np.array([2]), "r": np.array([0, 16, -1, 20])}
    for parts in (["u", "u", "u", "u"], ["u", "v", "u", "v"]):
        nodes = [*place[:2], node("Concat", *parts, outputs=("c",), axis=2), *place[2:]]
        check(tmp_path, nodes, [("n", 4, "h", 20)], sizes, constants)


@pytest.mark.parametrize("perm", [[3, 2, 1, 0], [2, 3, 1, 0], [0, 1, 3, 2], [3, 0, 1, 2]])
def test_few_rows_innermost(tmp_path, perm):
    """Rows of one, a few and many elements, each with a body of the same kernel."""
    sizes = [(n, h) for n in (1, 2, 3, 4, 7, 16, 17, 33) for h in (1, 2, 5)]
    turn = node("Transpose", "d", perm=perm)
    check(tmp_path, [node("DepthToSpace", "x0", outputs=("d",), blocksize=2), turn], [("n", 12, "h", 5)], sizes)
    check(tmp_path, [node("DepthToSpace", "x0", outputs=("d",), blocksize=2), turn], [("n", 12, 5, "h")], sizes)
    ranges = {"x0": ["2..2..64", 12, "1..1..8", 5]}
    sizes = [(n, h) for n in (2, 3, 4, 17, 64) for h in (1, 2, 8)]
    check(tmp_path, [node("Relu", "x0", outputs=("d",)), turn], [("n", 12, "h", 5)], sizes, optimum=ranges)


@pytest.mark.parametrize("least", [1, 2, 3])
def test_few_elements_of_each_row(tmp_path, least):
    """What cuts, pads, joins and picks of rows of one, a few and many elements."""
    sizes = [(n, w) for n in (1, 6, 33) for w in (1, 2, 3, 4, 5, 8, 16, 17, 40) if w >= least]
    optimum = {"x0": ["1..6..64", 3, f"{least}..{least}..64"]}
    constants = {"i": np.array([2, 0, 1, 1, -1]), "a": np.array([1]), "z": np.array([3]), "d": np.array([1])}
    pads = {"p": np.array([0, 1, 0, 0, 0, 0])}
    shapes = [("n", 3, "w")]
    check(tmp_path, [node("Gather", "x0", "i", axis=1)], shapes, sizes, {"i": constants["i"]}, optimum=optimum)
    cut = {k: constants[k] for k in "azd"}
    check(tmp_path, [node("Slice", "x0", "a", "z", "d")], shapes, sizes, cut, optimum=optimum)
    check(tmp_path, [node("Pad", "x0", "p")], shapes, sizes, pads, optimum=optimum)
    check(tmp_path, [node("Pad", "x0", "p", mode="edge")], shapes, sizes, pads, optimum=optimum)
    nodes = [node("Neg", "x0", outputs=("m",)), node("Concat", "x0", "m", "x0", axis=2)]
    check(tmp_path, nodes, shapes, sizes, optimum=optimum)
    if least == 2:
        half = {"a": np.array([0]), "z": np.array([-1]), "d": np.array([2])}
        check(tmp_path, [node("Slice", "x0", "a", "z", "d")], shapes, sizes, half, optimum=optimum)
