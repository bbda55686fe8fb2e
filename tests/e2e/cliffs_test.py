"""Graphs whose kernels once did their work many times over: values, against float64.

What the compiler makes of them in every layout, and its own count of their work.
"""

from __future__ import annotations

import json
from pathlib import Path

import harness
import numpy as np
import onnx
import pytest
from latency import bench_record
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from onnx_graph import Model


def in_float64(proto, feeds):
    """The model's value with all floats as float64."""
    wide = onnx.ModelProto()
    wide.CopyFrom(proto)
    for weight in wide.graph.initializer:
        if weight.data_type == TensorProto.FLOAT:
            array = numpy_helper.to_array(weight).astype(np.float64)
            weight.CopyFrom(numpy_helper.from_array(array, weight.name))
    for value in wide.graph.input:
        value.type.tensor_type.elem_type = TensorProto.DOUBLE
    for value in wide.graph.output:
        value.type.tensor_type.elem_type = TensorProto.DOUBLE
    feeds = {k: v.astype(np.float64) for k, v in feeds.items()}
    return ReferenceEvaluator(wide).run(None, feeds)[0]


def check(tmp_path, model, output, tolerance=2e-6, precision=None, shapes=None, same=None):
    """Compares with float64, relative to the largest value. `same`: a model whose values these are to be."""
    proto = model.proto(output)
    path = tmp_path / "model.onnx"
    onnx.save(proto, path)
    expected = in_float64(same or proto, model.feeds)
    results = []
    for target in harness.cpu_targets():
        engine = tmp_path / f"{target}.engine"
        harness.compile_model(path, engine, target=target, precision=precision, shapes=shapes)
        value = harness.run_engine(engine, model.feeds, [output], tmp_path / "run")[0]
        assert value.shape == expected.shape
        error = np.abs(value - expected).max() / np.abs(expected).max()
        assert error <= tolerance, f"{target}: off by {error:.2e} of the largest value"
        results.append(error)
    return max(results)


@pytest.mark.parametrize("channels, groups, size", [(96, 8, 16), (64, 32, 14), (48, 1, 32), (80, 80, 9)])
def test_group_norm_between_convolutions(tmp_path, channels, groups, size):
    m = Model()
    y = m.conv(m.input("x", 1, channels, size, size), channels, channels)
    y = m.silu(m.group_norm(y, channels, groups))
    check(tmp_path, m, m.conv(y, 32, channels), 3e-6)


def test_group_norm_of_a_concatenation(tmp_path):
    m = Model()
    y = m.node("Concat", m.input("x", 1, 64, 32, 32), m.input("u", 1, 32, 32, 32), axis=1)
    check(tmp_path, m, m.conv(m.silu(m.group_norm(y, 96, 8)), 32, 96), 3e-6)


def test_group_norm_before_a_transpose(tmp_path):
    m = Model()
    y = m.group_norm(m.conv(m.input("x", 2, 32, 16, 16), 64, 32, 1), 64, 8)
    y = m.node("Reshape", y, m.constant([2, 64, 256], np.int64))
    y = m.node("Transpose", y, perm=[0, 2, 1])
    check(tmp_path, m, m.node("MatMul", y, m.weight(64, 64)), 3e-6)


@pytest.mark.parametrize("groups", [1, 4, 24])
def test_group_norm_alone(tmp_path, groups):
    m = Model()
    check(tmp_path, m, m.group_norm(m.input("x", 2, 24, 40, 40), 24, groups))


def overhanging(name):
    """Normalizations whose rows no tile divides, with work behind them in other rows."""
    m = Model()
    if name == "heads":
        x = m.input("x", 4, 10, 2352)
        y = m.node("LayerNormalization", x, m.weight(2352), m.weight(2352), axis=-1)
        y = m.node("Reshape", y, m.constant([320, 294], np.int64))
        return m, m.node("Relu", m.node("Mul", y, m.weight(294)))
    if name == "softmax":
        y = m.node("Softmax", m.input("x", 8, 50, 1001), axis=-1)
        y = m.node("Reshape", y, m.constant([400, 7, 143], np.int64))
        return m, m.node("Mul", y, m.weight(143))
    channels, groups, size, *is_open = name.split("-")
    channels, groups, size = int(channels), int(groups), int(size)
    x = m.input("x", 2, channels, size, size, dynamic=(0, 2, 3) if is_open else ())
    return m, m.silu(m.group_norm(x, channels, groups))


OVERHANGING = ["96-8-14", "64-32-7", "30-10-13", "64-4-40", "60-6-15-open", "heads", "softmax"]


@pytest.mark.parametrize("name", OVERHANGING)
def test_rows_that_tiles_overhang(tmp_path, name):
    check(tmp_path, *overhanging(name))


@pytest.mark.parametrize("target", ["x86-64-v3", "x86-64-v4", "sm_80", "sm_90a"])
@pytest.mark.parametrize("name", OVERHANGING)
def test_work_is_done_once(tmp_path, name, target):
    """By the compiler's count: the statistics of a row, and all else, not again and again."""
    m, output = overhanging(name)
    path, engine = tmp_path / "model.onnx", tmp_path / "model.engine"
    onnx.save(m.proto(output), path)
    said = harness.compile_model(path, engine, target=target).stderr
    assert "times the work" not in said
    report = json.loads(harness.invoke("inspect", engine, "--json").stdout)
    kernels = report["programs"][0]["variants"][0]["kernels"]
    for kernel in kernels:
        done, needed = kernel["operations"], kernel["needed_operations"]
        # Of small kernels, what overhangs their only tiles is much of all.
        assert done <= (3 if done >= 1 << 18 else 12) * needed, kernel["entry"]


def heads(name):
    """A product for each head, whose heads become one dimension with its rows or columns."""
    m, width = Model(), 40
    y = m.node("MatMul", m.input("x", 12, 100, 256), m.input("w", 12, 256, width))
    if name == "columns":
        y = m.node("Transpose", y, perm=[1, 0, 2])
    shape = [100, 12 * width] if name == "columns" else [1200, width]
    y = m.node("Reshape", y, m.constant(shape, np.int64))
    return m, m.node("Relu", m.node("Add", y, m.weight(shape[1])))


@pytest.mark.parametrize("name", ["rows", "columns"])
def test_heads_that_are_merged(tmp_path, name):
    """Tiles of the merged dimension would be of several products, which nothing multiplies as tiles."""
    m, output = heads(name)
    check(tmp_path, m, output)
    for target in ("x86-64-v4", "sm_80", "sm_90a"):
        tiles = harness.invoke(
            "compile", tmp_path / "model.onnx", "--stop-after", "tiles", "--target", target
        ).stdout
        assert tiles.count("= tile.dot ") == 1, tiles


def test_cut_by_the_count(tmp_path):
    """A plan as form-kernels no longer makes it, cut in two by the compiler's count."""
    plan = Path(__file__).parents[1] / "tools" / "Inputs" / "repeats.mlir"
    rng = np.random.default_rng(2)
    x, scale = rng.standard_normal((1, 8, 12, 32, 32)), rng.standard_normal(96)
    norm = (x - x.mean((2, 3, 4), keepdims=True)) / np.sqrt(x.var((2, 3, 4), keepdims=True) + 1e-5)
    expected = norm.reshape(1, 96, 32, 32).transpose(0, 2, 3, 1) * scale
    feeds = {"x": x.astype(np.float32), "s": scale.astype(np.float32)}
    for target in harness.cpu_targets():
        engine = tmp_path / f"{target}.engine"
        said = harness.compile_model(plan, engine, target=target).stderr
        assert "times the work" not in said
        value = harness.run_engine(engine, feeds, ["y"], tmp_path / "run")[0]
        assert np.abs(value - expected).max() <= 1e-5 * np.abs(expected).max()


def test_group_norm_of_any_size(tmp_path):
    m = Model()
    x = m.input("x", 1, 32, 24, 20, dynamic=(0, 2, 3))
    y = m.conv(m.silu(m.group_norm(m.conv(x, 48, 32), 48, 6)), 16, 48)
    ranges = {"x": ((1, 1, 4), 32, (8, 32, 64), (8, 32, 64))}
    check(tmp_path, m, y, 3e-6, shapes=ranges)


def test_group_norm_far_from_zero(tmp_path):
    """The mean is a thousand times the deviation: squares of what is centered."""
    m = Model()
    y = m.node("Transpose", m.input("x", 1, 32, 32, 64, low=999, high=1001), perm=[0, 3, 1, 2])
    y = m.node("Transpose", m.group_norm(y, 64, 8), perm=[0, 2, 3, 1])
    check(tmp_path, m, y, 2e-4)


def test_group_norm_in_half_precision(tmp_path):
    """The sums of a group are far beyond what fp16 holds."""
    m = Model()
    y = m.conv(m.input("x", 1, 64, 32, 32, low=0, high=40), 64, 64)
    check(tmp_path, m, m.conv(m.group_norm(y, 64, 8), 16, 64), 2e-2, precision="fp16")


@pytest.mark.parametrize("axes", [(0, 2), (0, 2, 3), (1, 3), (0, 1, 2, 3), (0, 1, 2)])
@pytest.mark.parametrize("op", ["ReduceSum", "ReduceMax", "ReduceMean"])
def test_reductions_of_scattered_axes(tmp_path, op, axes):
    m = Model()
    x = m.input("x", 12, 20, 36, 10)
    check(tmp_path, m, m.node(op, x, m.constant(axes, np.int64), keepdims=0), 1e-6 if op != "ReduceSum" else 4e-6)


@pytest.mark.parametrize("shape, perm", [
    ((1, 96, 33, 17), (0, 2, 3, 1)), ((7, 5, 96), (2, 1, 0)), ((3, 4, 5, 6, 7), (0, 3, 4, 1, 2)), ((100, 3), (1, 0)),
    ((3, 1001), (1, 0)), ((1001, 3), (1, 0)), ((2, 3, 333, 2), (0, 2, 1, 3)), ((5, 777), (1, 0)), ((2, 70, 3), (0, 2, 1)),
])  # fmt: skip
def test_transposes(tmp_path, shape, perm):
    m = Model()
    y = m.node("Transpose", m.input("x", *shape), perm=perm)
    check(tmp_path, m, m.node("Abs", y), 0)


def test_concatenation_read_in_other_rows(tmp_path):
    """Which operand an element is from changes inside of tiles and between them."""
    m = Model()
    y = m.node("Concat", m.input("x", 3, 16, 16), m.input("y", 5, 16, 16), m.input("z", 1, 16, 16), axis=0)
    y = m.node("Reshape", y, m.constant([2, 1152], np.int64))
    check(tmp_path, m, m.node("Add", y, m.weight(1152)), 1e-6)


def assign(m, x, axis, indices, updates, **attributes):
    """x with slices along an axis replaced, as PyTorch's dynamo exporter writes it."""
    rank = len(m.shapes[x])
    order = [axis] + [d for d in range(rank) if d != axis]
    back = list(np.argsort(order))
    places = m.constant(np.asarray(indices)[:, None], np.int64)
    moved = [m.node("Transpose", v, perm=order) for v in (x, updates)]
    y = m.node("ScatterND", moved[0], places, moved[1], **attributes)
    y = m.node("Transpose", y, perm=back)
    m.shapes[y] = m.shapes[x]
    return y


def slice_of(m, x, axis, start, stop):
    bounds = [m.constant([v], np.int64) for v in (start, stop, axis)]
    y = m.node("Slice", x, *bounds)
    m.shapes[y] = list(m.shapes[x])
    m.shapes[y][axis] = stop - start
    return y


def with_shapes(**inputs):
    m = Model()
    m.shapes = {m.input(k, *v): list(v) for k, v in inputs.items()}
    return m


def test_adding_to_a_corner(tmp_path):
    """x[:, :, 1:, 1:] += r, then a softmax."""
    m = with_shapes(x=(1, 2, 65, 65), r=(1, 2, 64, 64))
    rows = slice_of(m, "x", 2, 1, 65)
    corner = slice_of(m, rows, 3, 1, 65)
    added = m.node("Add", corner, "r")
    m.shapes[added] = m.shapes[corner]
    for _ in range(2):  # the exporter writes it twice
        rows = assign(m, rows, 3, range(1, 65), added)
        whole = assign(m, "x", 2, range(1, 65), rows)
        rows = slice_of(m, whole, 2, 1, 65)
        added = slice_of(m, rows, 3, 1, 65)
    check(tmp_path, m, m.node("Softmax", whole, axis=-1))


@pytest.mark.parametrize("indices", [range(0, 32, 2), range(5, -1, -1), [3, -1, 7], [2, 2, 9], [31]])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_assignments(tmp_path, axis, indices):
    shape = [8, 12, 10]
    shape[axis] = 32
    update = list(shape)
    update[axis] = len(list(indices))
    m = with_shapes(x=shape, u=update)
    check(tmp_path, m, assign(m, "x", axis, indices, "u"), 0)


@pytest.mark.parametrize("reduction", ["add", "mul", "max", "min"])
@pytest.mark.parametrize("indices", [range(3, 9), [1, 6, 4], [2, 2, 9]])
def test_assignments_that_combine(tmp_path, indices, reduction):
    m = with_shapes(x=(16, 24), u=(len(list(indices)), 24))
    check(tmp_path, m, assign(m, "x", 0, indices, "u", reduction=reduction), 1e-6)


def test_assignments_of_elements(tmp_path):
    m = with_shapes(x=(6, 8, 10), u=(6, 3, 10))
    places = np.broadcast_to(np.array([4, 1, 7])[None, :, None], (6, 3, 10))
    y = m.node("ScatterElements", "x", m.constant(places, np.int64), "u", axis=1)
    check(tmp_path, m, y, 0)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_assignments_of_elements_that_differ(tmp_path, axis):
    """Each row along the axis has places of its own."""
    shape, update = (40, 12, 10), [40, 12, 10]
    update[axis] = 3
    m = with_shapes(x=shape, u=update)
    rows = np.moveaxis(np.broadcast_to(np.arange(shape[axis]), [n for d, n in enumerate(shape) if d != axis] + [shape[axis]]), -1, axis)
    places = np.take(m.rng.permuted(rows, axis=axis), range(3), axis)
    check(tmp_path, m, m.node("ScatterElements", "x", m.constant(places, np.int64), "u", axis=axis), 0)


def test_assignments_at_points(tmp_path):
    m = with_shapes(x=(7, 9, 4), u=(5, 4))
    places = m.constant([[0, 0], [6, 8], [3, -1], [-2, 2], [3, 4]], np.int64)
    check(tmp_path, m, m.node("ScatterND", "x", places, "u"), 0)


def error_of(value, exact):
    return np.abs(value.astype(np.float64) - exact).max() / np.abs(exact).max()


@pytest.mark.parametrize("terms", [20000, 8191, 3136])
@pytest.mark.parametrize("rows", [1, 24])
def test_long_products(tmp_path, rows, terms):
    """Sums of many terms are as exact as ONNX Runtime's, but for a factor of two."""
    import onnxruntime

    m = Model()
    x = m.input("x", rows, terms, low=0, high=1)
    output = m.node("MatMul", x, m.input("w", terms, 48, low=0, high=1))
    proto = m.proto(output)
    exact = m.feeds["x"].astype(np.float64) @ m.feeds["w"].astype(np.float64)
    session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    theirs = error_of(session.run(None, m.feeds)[0], exact)
    assert check(tmp_path, m, output, 1e-5) <= 2 * max(theirs, 2e-7)


@pytest.mark.parametrize("rows", [1, 2, 9])
@pytest.mark.parametrize("dynamic", [(0,), (0, 1)])
@pytest.mark.parametrize("columns", [(1,), ()])
def test_open_rows_by_a_vector(tmp_path, rows, dynamic, columns):
    """Tuned for one row, which is no vector for that."""
    m = Model()
    x = m.input("x", rows, 67, dynamic=dynamic)
    check(tmp_path, m, m.node("MatMul", x, m.weight(67, *columns)))


@pytest.mark.parametrize("columns", [1, 2, 9])
def test_a_vector_by_open_columns(tmp_path, columns):
    m = Model()
    w = m.input("w", columns, 67, dynamic=(0,))
    check(tmp_path, m, m.node("Gemm", m.weight(1, 67), w, transB=1))


@pytest.mark.parametrize("groups, channels, outputs", [(4, 32, 32), (8, 64, 128), (2, 48, 48), (3, 12, 24), (16, 64, 64)])
def test_grouped_convolutions(tmp_path, groups, channels, outputs):
    m = Model()
    weight = m.weight(outputs, channels // groups, 3, 3)
    y = m.node("Conv", m.input("x", 1, channels, 13, 17), weight, m.weight(outputs), pads=[1] * 4, group=groups)
    check(tmp_path, m, m.node("Relu", y), 2e-6)


@pytest.mark.parametrize("width", [9, 24, 29, 40, 53])
@pytest.mark.parametrize("form", ["fixed", "open", "joined"])
def test_groups_of_any_width(tmp_path, width, form):
    """Columns of a group that no tile divides: tiles begin anew with each group, whose filters lie in panels of its own."""
    m, groups = Model(), 3
    dynamic = (0, 2, 3) if form == "open" else ()
    x = m.input("x", 2, groups * width, 9, 11, dynamic=dynamic)
    y = m.node("Conv", x, m.weight(groups * width, width, 3, 3), m.weight(groups * width), pads=[1] * 4, group=groups)
    if form == "joined":
        y = m.conv(m.node("Relu", m.node("Add", y, x)), 20, groups * width, 1)
    check(tmp_path, m, m.node("Relu", y), 2e-6)
    for target in harness.cpu_targets():
        said = harness.invoke("inspect", tmp_path / f"{target}.engine", "--json").stdout
        kernels = json.loads(said)["programs"][0]["variants"][0]["kernels"]
        assert all(k["operations"] <= 2 * k["needed_operations"] for k in kernels), kernels


@pytest.mark.parametrize("window, strides, dilations", [(31, 1, 1), (7, 2, 1), (5, 1, 3), (9, 3, 1)])
def test_large_depthwise_windows(tmp_path, window, strides, dilations):
    m = Model()
    y = m.node(
        "Conv", m.input("x", 1, 40, 33, 29), m.weight(40, 1, window, window), group=40,
        pads=[window // 2 * dilations] * 4, strides=[strides] * 2, dilations=[dilations] * 2,
    )  # fmt: skip
    check(tmp_path, m, y, 2e-6)


@pytest.mark.parametrize("dynamic", [(), (0, 2, 3)])
@pytest.mark.parametrize("window, pads, size", [((13, 13), [6] * 4, (7, 5)), ((9, 5), [8, 0, 3, 4], (1, 1)), ((6, 7), [2, 3, 0, 5], (11, 23))])
def test_depthwise_windows_that_leave_the_image(tmp_path, window, pads, size, dynamic):
    """Rows outside are left out, be it all that some tile has."""
    m = Model()
    x = m.input("x", 1, 40, *size, dynamic=dynamic)
    y = m.node("Conv", x, m.weight(40, 1, *window), group=40, pads=pads)
    check(tmp_path, m, y, 2e-6)


@pytest.mark.parametrize("open_sizes", [False, True])
@pytest.mark.parametrize("filters, width, stride, length", [(512, 3, 1, 480), (30, 5, 1, 101), (5, 10, 5, 1000)])
def test_one_channel(tmp_path, filters, width, stride, length, open_sizes):
    """Few terms a result, and positions that are neighbours in operand and result."""
    m = Model()
    x = m.input("x", 2, 1, length, dynamic=(0, 2) if open_sizes else ())
    y = m.node("Conv", x, m.weight(filters, 1, width), pads=[1, 1], strides=[stride])
    check(tmp_path, m, m.node("Relu", y))


@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize(
    "kernel, stride, pads, size, dynamic",
    [
        ([7, 7], [7, 7], [0, 0, 0, 0], [30, 37], ()),
        ([5, 6], [5, 7], [2, 1, 3, 4], [23, 41], (0, 3)),
        ([4], [4], [1, 2], [67], ()),
        ([3, 3, 3], [2, 2, 2], [1] * 6, [9, 11, 13], ()),
        ([3, 3, 3], [2, 1, 2], [1, 0, 1, 1, 0, 1], [6, 9, 17], (2, 3, 4)),
        ([9, 5], [1, 2], [8, 4, 8, 4], [2, 3], ()),
    ],
)
def test_large_pools(tmp_path, kernel, stride, pads, size, dynamic, average):
    """Rows of windows side by side, and windows that look at what lies outside once a row."""
    m = Model(opset=22)
    x = m.input("x", 2, 5, *size, dynamic=dynamic)
    y = m.node("AveragePool" if average else "MaxPool", x, kernel_shape=kernel, strides=stride, pads=pads)
    check(tmp_path, m, y)


@pytest.mark.parametrize("mode", ["linear", "cubic"])
@pytest.mark.parametrize("size, result", [((97, 260), (24, 111)), ((7, 300), (5, 11)), ((1000, 1), (65, 1))])
def test_antialiased_resizing(tmp_path, mode, size, result):
    """Sums of as many elements as have a weight, not of all along an axis; few are a matrix."""
    m = Model(opset=19)
    sizes = m.constant(result, np.int64)
    y = m.node("Resize", m.input("x", 2, 3, *size), "", "", sizes, mode=mode, antialias=1, axes=[2, 3])
    check(tmp_path, m, y, 1e-5)
    kernels = harness.invoke("inspect", tmp_path / f"{harness.cpu_targets()[0]}.engine", "--kernels").stdout
    assert ("matmul" in kernels) == (size == (7, 300)) and ("gather" in kernels) == (size != (7, 300)), kernels


TRANSPOSED = [
    (18, 1, (21, 37), {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 0, 0, 0]}, (2, 3)),
    (18, 1, (9, 16), {"kernel_shape": [3, 3], "strides": [2, 2], "output_padding": [1, 1]}, ()),
    (16, 3, (16, 16), {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}, (0, 2, 3)),
    (64, 1, (8, 40), {"kernel_shape": [4, 4], "strides": [2, 2], "pads": [1, 1, 1, 1]}, (3,)),
    (64, 2, (9, 40), {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}, (3,)),
    (64, 9, (5, 11), {"kernel_shape": [3, 3], "pads": [0, 1, 2, 1]}, ()),
    (24, 2, (70,), {"kernel_shape": [9]}, (2,)),
    (256, 9, (5, 6), {"kernel_shape": [4, 4], "strides": [2, 2], "pads": [1, 1, 1, 1]}, ()),
    (9, 1, (6, 20), {"kernel_shape": [5, 3], "strides": [4, 2], "dilations": [2, 2]}, (2, 3)),
    (40, 2, (4, 3, 9), {"kernel_shape": [3, 2, 3], "strides": [2, 2, 2]}, (4,)),
    (12, 2, (50,), {"kernel_shape": [3], "strides": [2], "dilations": [3], "pads": [2, 1]}, (2,)),
    (64, 8, (1, 7), {"kernel_shape": [5, 1], "dilations": [3, 1], "pads": [0, 0, 4, 0]}, ()),
    # Groups, and crops beyond the first and the last window.
    (36, 2, (7, 9), {"kernel_shape": [3, 3], "strides": [2, 2], "group": 2}, (2,)),
    (48, 2, (30,), {"kernel_shape": [5], "group": 3, "pads": [2, 4]}, ()),
    (20, 1, (9, 12), {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [4, 5, 5, 4]}, (3,)),
]


def kernels_of(engine):
    return harness.invoke("inspect", engine, "--kernels").stdout.split("in the code")[1].split("built by")[0]


def one_by_one(channels, outputs, size, attributes):
    """The groups by themselves: the reference splits filters at the wrong places."""
    m, parts, groups = Model(), [], attributes["group"]
    x = m.input("x", 2, channels, *size)
    weight = m.weight(channels, outputs, *attributes["kernel_shape"])
    apart = {k: v for k, v in attributes.items() if k != "group"}
    for g in range(groups):
        bounds = [m.constant([channels * i // groups], np.int64) for i in (g, g + 1)]
        part = m.node("Slice", x, *bounds, m.constant([1], np.int64))
        own = m.node("Slice", weight, *bounds, m.constant([0], np.int64))
        parts.append(m.node("ConvTranspose", part, own, **apart))
    return m.proto(m.node("Sigmoid", m.node("Concat", *parts, axis=1)))


@pytest.mark.parametrize("channels, outputs, size, attributes, dynamic", TRANSPOSED)
def test_transposed_to_few_channels(tmp_path, channels, outputs, size, attributes, dynamic):
    """One product with all taps, whose rows are added up, where lanes would be output channels."""
    m = Model()
    x = m.input("x", 2, channels, *size, dynamic=dynamic)
    weight = m.weight(channels, outputs, *attributes["kernel_shape"])
    y = m.node("Sigmoid", m.node("ConvTranspose", x, weight, **attributes))
    same = one_by_one(channels, outputs, size, attributes) if "group" in attributes else None
    check(tmp_path, m, y, same=same)
    kernels = kernels_of(tmp_path / f"{harness.cpu_targets()[0]}.engine")
    assert "matmul" in kernels and "conv" not in kernels, kernels


@pytest.mark.parametrize("precision, tolerance", [("fp16", 2e-3), ("bf16", 2e-2)])
@pytest.mark.parametrize("case", [2, 5, 14])
def test_transposed_in_16_bits(tmp_path, case, precision, tolerance):
    """Sums of taps are rounded once."""
    channels, outputs, size, attributes, dynamic = TRANSPOSED[case]
    m = Model()
    x = m.input("x", 2, channels, *size, dynamic=dynamic)
    y = m.node("ConvTranspose", x, m.weight(channels, outputs, *attributes["kernel_shape"]), **attributes)
    check(tmp_path, m, y, tolerance, precision)


@pytest.mark.parametrize("channels, outputs, kernel, stride", [(16, 4, 4, 2), (24, 4, 2, 4), (16, 16, 3, 1)])
def test_transposed_with_full_lanes(tmp_path, channels, outputs, kernel, stride):
    """Convolutions, where filters fill the lanes and the product would be written and read for nothing."""
    m = Model()
    x = m.input("x", 2, channels, 9, 13, dynamic=(2,))
    weight = m.weight(channels, outputs, kernel, kernel)
    check(tmp_path, m, m.node("ConvTranspose", x, weight, strides=[stride] * 2))
    kernels = kernels_of(tmp_path / f"{harness.cpu_targets()[0]}.engine")
    assert "conv" in kernels or kernel < stride, kernels


@pytest.mark.parametrize(
    "channels, outputs, size, attributes, dynamic",
    [
        (16, 1, (6, 2, 9), {"kernel_shape": [3, 3, 3], "strides": [2, 4, 3]}, (3, 4)),
        (5, 1, (4, 6, 7), {"kernel_shape": [4, 4, 4], "strides": [2, 2, 2], "pads": [1, 1, 1, 1, 1, 1]}, (2, 3, 4)),
        (12, 1, (9, 13), {"kernel_shape": [6, 6], "strides": [2, 2], "pads": [2, 2, 2, 2]}, ()),
        (3, 1, (9, 13), {"kernel_shape": [3, 4], "strides": [2, 3]}, (0,)),
        (7, 1, (20,), {"kernel_shape": [2], "strides": [5], "output_padding": [4]}, (2,)),
    ],
)
def test_transposed_of_single_channels(tmp_path, channels, outputs, size, attributes, dynamic):
    """Sums of products in the order of the input: channels a row apart are not laid side by side."""
    m = Model()
    x = m.input("x", 2, channels, *size, dynamic=dynamic)
    weight = m.weight(channels, outputs, *attributes["kernel_shape"])
    check(tmp_path, m, m.node("ConvTranspose", x, weight, group=channels, **attributes))
    kernels = harness.invoke("inspect", tmp_path / f"{harness.cpu_targets()[0]}.engine", "--kernels").stdout
    assert "conv" not in kernels.split("in the code")[1].split("built by")[0], kernels


@pytest.mark.parametrize(
    "channels, outputs, size, groups, attributes, dynamic",
    [
        (18, 1, (21, 37), 1, {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}, (2, 3)),
        (40, 2, (19, 16), 1, {"kernel_shape": [3, 5], "pads": [0, 1, 2, 3], "dilations": [2, 1]}, ()),
        (64, 3, (16, 7), 1, {"kernel_shape": [3, 3]}, (0, 2, 3)),
        (64, 6, (30,), 2, {"kernel_shape": [4], "pads": [1, 2]}, (2,)),
        (16, 1, (4, 5, 6), 1, {"kernel_shape": [2, 2, 3]}, (2, 3, 4)),
    ],
)
def test_to_few_channels(tmp_path, channels, outputs, size, groups, attributes, dynamic):
    """The same of convolutions without steps."""
    m = Model()
    x = m.input("x", 2, channels, *size, dynamic=dynamic)
    weight = m.weight(outputs, channels // groups, *attributes["kernel_shape"])
    y = m.node("Conv", x, weight, group=groups, **attributes)
    check(tmp_path, m, m.node("Sigmoid", y))
    kernels = harness.invoke("inspect", tmp_path / f"{harness.cpu_targets()[0]}.engine", "--kernels").stdout
    assert "matmul" in kernels and "conv" not in kernels.split("in the code")[1].split("built by")[0], kernels


@pytest.mark.parametrize("precision", ["fp16", "bf16"])
def test_transposed_taps_that_cancel(tmp_path, precision):
    """Taps whose products are out of a half's range, and add up to little."""
    m = Model()
    weight = np.abs(m.rng.standard_normal((64, 8, 3, 3))) * 0.5
    weight[:, :, 2] = -weight[:, :, 0]
    x = m.input("x", 1, 64, 1, 24, low=3e3, high=3e4)
    m.feeds["x"] = np.round(m.feeds["x"] / 256) * 256  # exact in both types
    rows = m.node("Expand", x, m.constant([1, 64, 9, 24], np.int64))
    y = m.node("ConvTranspose", rows, m.constant(weight), strides=[2, 1], pads=[2, 1, 2, 1])
    y = m.node("Slice", y, *(m.constant(v, np.int64) for v in ([0], [100], [2], [2])))
    path, engine = tmp_path / "model.onnx", tmp_path / "y.engine"
    onnx.save(m.proto(y), path)
    for target in harness.cpu_targets():
        harness.compile_model(path, engine, target=target, precision=precision)
        value = harness.run_engine(engine, m.feeds, [y], tmp_path / "run")[0]
        # Of products of 1e6 that cancel.
        assert np.abs(value).max() < 8, f"{target}: {np.abs(value).max()}"


@pytest.mark.parametrize("outputs", [1, 8, 24])
def test_strides_longer_than_the_image(tmp_path, outputs):
    """Of one element or window any stride gives the same, and no memory for its zeros."""
    m = Model()
    x = m.input("x", 1, 32, 1, 1)
    attributes = {"strides": [2000, 3000], "dilations": [1, 2], "pads": [0, 1, 1, 0]}
    check(tmp_path, m, m.node("ConvTranspose", x, m.weight(32, outputs, 3, 4), **attributes))
    engine = tmp_path / f"{harness.cpu_targets()[0]}.engine"
    assert bench_record(engine, m.feeds, seconds=0.01)["memory"]["arena_bytes"] < 1e5


@pytest.mark.parametrize("pads, windows", [([0, 0, 0, 0], 1), ([3, 1, 2, 1], 1), ([2003, 0, 2000, 0], 3)])
def test_windows_beyond_the_image(tmp_path, pads, windows):
    m = Model()
    x = m.input("x", 1, 2 * 6, windows)
    image, block = m.constant([7, 9], np.int64), m.constant([2, 3], np.int64)
    attributes = {"strides": [2000, 3000], "dilations": [3, 2], "pads": pads}
    check(tmp_path, m, m.node("Col2Im", x, image, block, **attributes))
    engine = tmp_path / f"{harness.cpu_targets()[0]}.engine"
    assert bench_record(engine, m.feeds, seconds=0.01)["memory"]["arena_bytes"] < 1e5


@pytest.mark.parametrize("kernel, stride, dilation, pad", [(4, 2, 1, 1), (7, 3, 1, 0), (3, 8, 1, 0), (16, 16, 1, 3), (3, 4, 2, 2)])
def test_windows_added_up(tmp_path, kernel, stride, dilation, pad):
    """Sums of the windows that reach an element, and of no zeros between them."""
    m, count = Model(), 12
    size = (count - 1) * stride + (kernel - 1) * dilation + 1 - 2 * pad
    x = m.input("x", 2, 3 * kernel * kernel, count * count, dynamic=(0,))
    image, block = m.constant([size] * 2, np.int64), m.constant([kernel] * 2, np.int64)
    attributes = {"strides": [stride] * 2, "dilations": [dilation] * 2, "pads": [pad] * 4}
    check(tmp_path, m, m.node("Col2Im", x, image, block, **attributes))
