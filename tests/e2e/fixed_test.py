"""Small models that were once wrong, refused or fatal, against ONNX Runtime.

Each is ONNX text; a comment in front says what it is about. Inputs are drawn from a
normal distribution, integers from -20 to 20 without 0; outputs must agree.
"""

from __future__ import annotations

import re
import zlib

import harness
import numpy as np
import onnx
import onnxruntime
import pytest
from latency import bench_record

MODELS = {
    # Bounds of one element, where the standard wants scalars.
    "clip_bounds": """float x) => (float y) <float[1] high = {0.25}>
        { y = Clip (x, "", high) }""",
    # The nearest element lies above on axes that shrink, until opset 10.
    "resize_10": """opset 10: float[1,2,8,9] x) => (float[?,?,?,?] y)
        <float[4] s = {1, 1, 1.5, 0.7}> { y = Resize <mode = "nearest"> (x, s) }""",
    # A tie that a rounded scale misses.
    "resize_tie": """float[3,7,7,2] x) => (float[?,?,?,?] y) <int64[4] s = {3, 7, 8, 1}>
        { y = Resize <mode = "nearest", coordinate_transformation_mode = "asymmetric",
          nearest_mode = "round_prefer_ceil"> (x, "", "", s) }""",
    "resize_symmetric": """float[2,5,11,4,13] x) => (float[?,?,?,?,?] y)
        <float[5] s = {1, 1, 3, 1, 1.5}> { y = Resize <mode = "nearest",
          coordinate_transformation_mode = "half_pixel_symmetric",
          nearest_mode = "floor"> (x, "", s) }""",
    # Divisors in lanes beyond the last element are no divisors.
    "div_tail": """int32[5,3] x, int32[5,1] y) => (int32[5,3] z) { z = Div (x, y) }""",
    "mod_tail": """int64[2,3,1] x, int64[1,3,7] y) => (int64[2,3,7] z) { z = Mod (x, y) }""",
    # Nothing to reduce along the last axis, whatever the operator.
    "reduce_nothing": """opset 13: float[3,0] x, int64[2,0] i) => (float[3] a, float[3] b,
        float[3] c, float[3] d, float[3] e, float[3] f, int64[2] g, int64[2] h)
        <int64[1] one = {1}>
        { a = ReduceMax <axes = [1], keepdims = 0> (x)  b = ReduceMin <axes = [1], keepdims = 0> (x)
          c = ReduceSum <keepdims = 0> (x, one)  d = ReduceProd <axes = [1], keepdims = 0> (x)
          e = ReduceL2 <axes = [1], keepdims = 0> (x)
          f = ReduceLogSumExp <axes = [1], keepdims = 0> (x)
          g = ReduceMax <axes = [1], keepdims = 0> (i)
          h = ReduceSum <keepdims = 0> (i, one) }""",
    # Nothing is computed of a tensor without elements; what is reduced from it is, in another kernel.
    "reduce_beside_nothing": """opset 13: float[3,4,6] x) => (float[3,4,0] e, float[3,4] a,
        float[3,4] b, float[3,4] c, float[3,4] d)
        <int64[1] zero = {0}, int64[1] two = {2}>
        { e = Slice (x, zero, zero, two)  a = ReduceMax <axes = [2], keepdims = 0> (e)
          b = ReduceMin <axes = [2], keepdims = 0> (e)
          c = ReduceProd <axes = [2], keepdims = 0> (e)
          d = ReduceLogSumExp <axes = [2], keepdims = 0> (e) }""",
    # One sample: the standard's own function body squeezes that dimension too.
    "affine_grid_of_one": """opset 20: float[1,2,3] t, float[1,3,4] u, float[2,3,5,6] x, float[2,2,3] v)
        => (float[?,?,?,?] a, float[?,?,?,?,?] b, float[?,?,?,?] c)
        <int64[4] s = {1, 3, 5, 7}, int64[5] d = {1, 1, 2, 3, 4}>
        { a = AffineGrid (t, s)  b = AffineGrid <align_corners = 1> (u, d)
          p = Shape (x)  g = AffineGrid <align_corners = 1> (v, p)  c = GridSample (x, g) }""",
    "order_nothing": """float[3,0] x) => (float[3,0] a, int64[3,0] i, float[3,0] c)
        <int64[1] none = {0}, int64 one = {1}>
        { a, i = TopK (x, none)  c = CumSum (x, one) }""",
    # Roots of integers that are whole, and powers above 2^53.
    "integer_power": """int64[200] x, int64[200] y) => (int64[200] z, int64[200] s, int64[200] t)
        <int64 ten = {10}, int64 top = {15}, float half = {0.5}, float third = {0.333333333}>
        { w = Mod (y, top)  z = Pow (ten, w)  q = Mul (x, x)  r = Pow (q, half)
          u = Mul (q, q)  s = Pow (u, half)  v = Sub (r, x)  t = Mod <fmod = 1> (v, ten) }""",
    # One column: stores of single elements.
    "matmul_vector": """float[4,31,2] x, float[2] y) => (float[4,31] z) { z = MatMul (x, y) }""",
    "matmul_column": """float[7,1,7,127] x) => (float[7,1,7] z) <float[127] w>
        { z = MatMul (x, w) }""",
    "softmax_one": """opset 11: float[1] x) => (float[1] y) { y = Softmax <axis = 0> (x) }""",
    # Zeros in front as many as are cut behind.
    "conv_transpose_shift": """float[1,2,4] x, float[2,4,2] v) => (float[1,4,11] y)
        { y = ConvTranspose <strides = [3]> (x, v) }""",
    # One column of values.
    "attention_column": """opset 23: float[1,2,7,13] q, float[1,2,33,13] k, float[1,2,33,1] v,
        float[7,33] m) => (float[1,2,7,1] y) { y = Attention (q, k, v, m) }""",
    # The heads joined, and the residual added to them without a product between.
    "attention_joined_heads": """float[n,4,s,8] q, float[n,s,32] x) => (float[n,s,32] y)
        <int64[3] joined = {0, 0, 32}, float[1] half = {0.5}>
        { k = Transpose <perm = [0, 1, 3, 2]> (q)  l = MatMul (q, k)  m = Mul (l, half)
          p = Softmax <axis = -1> (m)  o = MatMul (p, q)
          t = Transpose <perm = [0, 2, 1, 3]> (o)  j = Reshape (t, joined)
          y = Add (x, j) }""",
    # Rows of queries joined with the batch, or parted, before what is elementwise.
    "attention_rows_joined": """float[b,s,16] x, float[16] c) => (float[?,16] y)
        <int64[2] flat = {-1, 16}>
        { k = Transpose <perm = [0, 2, 1]> (x)  l = MatMul (x, k)  p = Softmax <axis = -1> (l)
          o = MatMul (p, x)  r = Reshape (o, flat)  t = Add (r, c)  y = Relu (t) }""",
    "attention_rows_parted": """float[2,3,24,16] x, float[16] c) => (float[2,3,3,8,16] y)
        <int64[5] parts = {2, 3, 3, 8, 16}>
        { k = Transpose <perm = [0, 1, 3, 2]> (x)  l = MatMul (x, k)  p = Softmax <axis = -1> (l)
          o = MatMul (p, x)  r = Reshape (o, parts)  y = Add (r, c) }""",
    "attention_columns_parted": """float[2,3,24,16] x, float[8] c) => (float[2,3,24,2,8] y)
        <int64[5] parts = {2, 3, 24, 2, 8}>
        { k = Transpose <perm = [0, 1, 3, 2]> (x)  l = MatMul (x, k)  p = Softmax <axis = -1> (l)
          o = MatMul (p, x)  r = Reshape (o, parts)  y = Add (r, c) }""",
    # Shuffled channels for a sum and for a product, which wants them in memory.
    "shuffle_residual": """float[n,8,6,6] x) => (float[n,8,6,6] y, float[n,8,6,6] z)
        <int64[5] apart = {0, 2, 4, 6, 6}, int64[4] back = {0, 8, 6, 6}, 
         int64[4] filter = {8, 8, 1, 1}> <float[64] w>
        { r = Relu (x)  a = Reshape (r, apart)  t = Transpose <perm = [0, 2, 1, 3, 4]> (a)
          s = Reshape (t, back)  y = Add (x, s)  f = Reshape (w, filter)  z = Conv (s, f) }""",
    "shuffle_matmul": """float[b,s,8] x, float[8,8] w) => (float[b,s,8] y, float[b,s,8] z)
        <int64[4] apart = {0, 0, 4, 2}, int64[3] back = {0, 0, 8}>
        { r = Relu (x)  a = Reshape (r, apart)  t = Transpose <perm = [0, 1, 3, 2]> (a)
          c = Reshape (t, back)  y = Sub (x, c)  z = MatMul (c, w) }""",
    # Loops of known length, and a branch that only the data decides.
    "scan": """float[2] s, float[5,2] x) => (float[2] last, float[5,2] all)
        { last, all = Scan <num_scan_inputs = 1, scan_input_directions = [1],
          body = step (float[2] a, float[2] b) => (float[2] c, float[2] d)
          { c = Add (a, b)  d = Mul (c, b) }> (s, x) }""",
    "loop": """float[3] x) => (float[3] last, float[4,3] all)
        <int64 n = {4}, bool yes = {1}> { last, all = Loop <
          body = step (int64 i, bool go, float[3] a) => (bool on, float[3] b, float[3] c)
          { on = Identity (go)  t = Cast <to = 1> (i)  b = Add (a, t)  c = Mul (b, x) }>
          (n, yes, x) }""",
    "if_data": """float[3] x) => (float[3] y) <float zero = {0}>
        { s = ReduceSum <keepdims = 0> (x)  c = Greater (s, zero)
          y = If <then_branch = a () => (float[3] p) { p = Exp (x) },
                  else_branch = b () => (float[3] q) { q = Neg (x) }> (c) }""",
    # Small results keep their digits.
    "softplus_small": """float[40] x) => (float[40] y)
        <float eight = {8}, float big = {30000}>
        { a = Sub (x, eight)  b = Softplus (a)  y = Mul (b, big) }""",
    # A remainder of something negative, known from the size of an input alone.
    "negative_remainder": """float[n,4] x) => (float[n,4] y) <int64[1] m = {32}>
        { s = Shape <end = 1> (x)  g = Neg (s)  r = Mod (g, m)  f = Cast <to = 1> (r)
          y = Add (x, f) }""",
    # A row value and its rows from one kernel; a result that is a permutation.
    "row_result": """float[n,7,33] x) => (float[n,7,1] m, float[n,7,33] y)
        <int64[1] a = {2}> { m = ReduceMax (x, a)  y = Sub (x, m) }""",
    "permuted_result": """float[6,10] x, float[10,6] y) => (float[6,10] a, float[10,6] b)
        { a = Exp (x)  t = Transpose (a)  b = Mul (t, y) }""",
}


def parse(text: str) -> onnx.ModelProto:
    opset = re.match(r"opset (\d+): ", text)
    text = text[opset.end() :] if opset else text
    weights = re.findall(r"<float\[(\d+)\] w>", text)
    text = re.sub(r"<float\[\d+\] w>", "", text)
    version = opset.group(1) if opset else "18"
    model = onnx.parser.parse_model(
        f'<ir_version: 8, opset_import: ["" : {version}]> model ({text}'
    )
    for count in weights:
        array = np.random.default_rng(1).standard_normal(int(count)).astype(np.float32)
        model.graph.initializer.append(onnx.numpy_helper.from_array(array, "w"))
    return model


def feeds(model: onnx.ModelProto, seed: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    values = {}
    for info in model.graph.input:
        tensor = info.type.tensor_type
        dims = [5 if d.dim_param else d.dim_value for d in tensor.shape.dim]
        dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type)
        if dtype.kind == "f":
            value = rng.standard_normal(dims)
        else:
            value = rng.integers(1, 20, dims) * rng.choice([-1, 1], dims)
        values[info.name] = np.asarray(value).astype(dtype)
    return values


@pytest.mark.parametrize("name", MODELS)
def test_model(name, tmp_path):
    model = parse(MODELS[name])
    path = tmp_path / "model.onnx"
    onnx.save(model, path)
    inputs = feeds(model, zlib.crc32(name.encode()))
    expected = onnxruntime.InferenceSession(path).run(None, inputs)
    harness.compile_model(path, tmp_path / "model.engine")
    names = [o.name for o in model.graph.output]
    got = harness.run_engine(tmp_path / "model.engine", inputs, names, tmp_path)
    for want, value in zip(expected, got):
        assert value.shape == want.shape and value.dtype == want.dtype
        np.testing.assert_allclose(value, want, rtol=1e-5, atol=1e-5)


# Shape, axis, inverse, onesided. Of prime and of short lengths, of a length that just one matrix
# would be too large for, along any axis, of any number of rows.
TRANSFORMS = (
    ((1, 512, 1), 1, 0, 0), ((3, 512, 2), 1, 0, 1), ((3, 512, 2), 1, 1, 0), ((400, 5, 1), 0, 0, 1),
    ((2, 3, 243, 2), 2, 1, 0), ((2, 360, 4, 2), 1, 0, 0), ((1024, 2), 0, 1, 0), ((2, 509, 1), 1, 0, 0),
    ((2, 6000, 1), 1, 0, 1), ((4, 64, 1), 1, 0, 0),
)  # fmt: skip


@pytest.mark.parametrize("shape, axis, inverse, onesided", TRANSFORMS)
def test_fourier_transform(shape, axis, inverse, onesided, tmp_path):
    dims = ["n" if d == 0 and axis else size for d, size in enumerate(shape)]
    node = onnx.helper.make_node("DFT", ["x", "", "axis"], ["y"], inverse=inverse, onesided=onesided)
    graph = onnx.helper.make_graph(
        [node], "g", [onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, dims)],
        [onnx.ValueInfoProto(name="y")], [onnx.numpy_helper.from_array(np.array(axis), "axis")],
    )  # fmt: skip
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 20)], ir_version=10)
    onnx.save(onnx.shape_inference.infer_shapes(model), tmp_path / "model.onnx")
    x = np.random.default_rng(3).standard_normal(shape).astype(np.float32)
    harness.compile_model(tmp_path / "model.onnx", tmp_path / "model.engine")
    (got,) = harness.run_engine(tmp_path / "model.engine", {"x": x}, ["y"], tmp_path)
    signal = x[..., 0] + 1j * (x[..., 1].astype(np.float64) if shape[-1] == 2 else 0)
    want = (np.fft.ifft if inverse else np.fft.fft)(signal, axis=axis)
    if onesided:
        want = want.take(range(shape[axis] // 2 + 1), axis)
    assert harness.scaled_error(np.stack([want.real, want.imag], -1), got) < 1e-6


@pytest.mark.parametrize("length", [None, "known", "open"])
@pytest.mark.parametrize("inverse, onesided, parts", [(0, 0, 1), (0, 1, 1), (1, 0, 2), (1, 1, 2)])
def test_fourier_transform_of_an_open_length(inverse, onesided, parts, length, tmp_path):
    """One engine for all lengths: of the signal, given, or that of another tensor."""
    known = 11
    nodes = [onnx.helper.make_node("Shape", ["other"], ["there"])]
    given = {None: "", "known": "eleven", "open": "there"}[length]
    nodes.append(onnx.helper.make_node("DFT", ["x", given, "axis"], ["y"], inverse=inverse, onesided=onesided))
    value = lambda name, dims: onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, dims)
    constants = {"axis": np.array(1), "eleven": np.array([known])}
    graph = onnx.helper.make_graph(
        nodes, "g", [value("x", ["b", "n", 3, parts]), value("other", ["m"])], [onnx.ValueInfoProto(name="y")],
        [onnx.numpy_helper.from_array(v, k) for k, v in constants.items()],
    )  # fmt: skip
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 20)], ir_version=10)
    onnx.save(model, tmp_path / "model.onnx")
    harness.compile_model(tmp_path / "model.onnx", tmp_path / "model.engine")
    draw = np.random.default_rng(4).standard_normal
    for batch, n, m in ((1, 2, 1), (2, 7, 13), (3, 64, 5), (1, 127, 128)):
        x = draw((batch, n, 3, parts)).astype(np.float32)
        signal = x[..., 0] + 1j * (x[..., 1].astype(np.float64) if parts == 2 else 0)
        size = {None: 2 * (n - 1) if inverse and onesided else n, "known": known, "open": m}[length]
        if inverse and onesided:
            want = np.fft.irfft(signal, size, axis=1)[..., None]
        else:
            want = (np.fft.ifft if inverse else np.fft.fft)(signal, size, axis=1)
            want = want[:, : size // 2 + 1] if onesided else want
            want = np.stack([want.real, want.imag], -1)
        inputs = {"x": x, "other": np.zeros(m, np.float32)}
        (got,) = harness.run_engine(tmp_path / "model.engine", inputs, ["y"], tmp_path)
        assert harness.scaled_error(want, got) < 1e-6
        if parts == 1:  # whose spectrum is real at both ends: the phase is 0 or pi, and not -pi
            ends = got[:, [0, size // 2], ..., 1] if size % 2 == 0 else got[:, 0, ..., 1]
            assert not ends.any() and not np.signbit(ends).any()


@pytest.mark.parametrize("inverse, onesided, parts, dtype", [(0, 0, 1, "float32"), (0, 0, 2, "float64"), (1, 1, 2, "float32")])
def test_fourier_transform_of_long_open_lengths(inverse, onesided, parts, dtype, tmp_path):
    """Around whole blocks and at primes; no table of all angles is made: of 1021 it takes 8 MB."""
    node = onnx.helper.make_node("DFT", ["x"], ["y"], axis=1, inverse=inverse, onesided=onesided)
    path = save(tmp_path / "m.onnx", [node], {"x": (dtype, ["b", "n", parts])}, ["y"])
    harness.compile_model(path, tmp_path / "m.engine")
    for n in (2, 31, 32, 33, 62, 63, 64, 65, 509, 512, 1024, 1021):
        x = np.random.default_rng(n).standard_normal((2, n, parts)).astype(dtype)
        signal = x[..., 0] + 1j * (x[..., 1].astype(np.float64) if parts == 2 else 0)
        if onesided:
            want = np.fft.irfft(signal, axis=1)[..., None]
        else:
            want = (np.fft.ifft if inverse else np.fft.fft)(signal, axis=1)
            want = np.stack([want.real, want.imag], -1)
        (got,) = harness.run_engine(tmp_path / "m.engine", {"x": x}, ["y"], tmp_path)
        assert harness.scaled_error(want, got) < (2e-6 if dtype == "float32" else 1e-13)
    assert bench_record(tmp_path / "m.engine", {"x": x}, seconds=0.01)["memory"]["arena_bytes"] < 4e6


def save(path, nodes, inputs, outputs, constants=None):
    value = onnx.helper.make_tensor_value_info
    graph = onnx.helper.make_graph(
        nodes, "g", [value(k, onnx.helper.np_dtype_to_tensor_dtype(np.dtype(t)), d) for k, (t, d) in inputs.items()],
        [onnx.ValueInfoProto(name=o) for o in outputs],
        [onnx.numpy_helper.from_array(v, k) for k, v in (constants or {}).items()],
    )  # fmt: skip
    onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 18)], ir_version=9), path)
    return path


def test_columns_of_no_rows(tmp_path):
    """A column that is not the first of a tensor without rows begins nowhere."""
    node = onnx.helper.make_node
    nodes = [node("Slice", ["x", "two", "three", "one"], ["c"]), node("Relu", ["c"], ["y"])]
    constants = {"one": np.array([1]), "two": np.array([2]), "three": np.array([3])}
    path = save(tmp_path / "m.onnx", nodes, {"x": ("float32", ["n", 4])}, ["y"], constants)
    for rows in (0, 3):
        harness.compile_model(path, tmp_path / "m.engine", shapes={"x": [rows, 4]})
        x = np.random.default_rng(1).standard_normal((rows, 4)).astype(np.float32)
        (got,) = harness.run_engine(tmp_path / "m.engine", {"x": x}, ["y"], tmp_path)
        np.testing.assert_array_equal(got, np.maximum(x[:, 2:3], 0))


def test_dynamic_scale_of_zeros(tmp_path):
    """It is 1, as ONNX Runtime has it, so that what divides by it is a number."""
    node = onnx.helper.make_node("DynamicQuantizeLinear", ["x"], ["y", "scale", "zero"])
    path = save(tmp_path / "m.onnx", [node], {"x": ("float32", ["n"])}, ["y", "scale", "zero"])
    harness.compile_model(path, tmp_path / "m.engine")
    for x in (np.zeros(5, np.float32), np.array([-1.5, 0.25, 4], np.float32), np.array([2, 3], np.float32)):
        got = harness.run_engine(tmp_path / "m.engine", {"x": x}, ["y", "scale", "zero"], tmp_path)
        for mine, peer in zip(got, onnxruntime.InferenceSession(path).run(None, {"x": x}), strict=True):
            np.testing.assert_array_equal(mine, peer)


@pytest.mark.parametrize("images", [1, 3])
def test_regions_of_several_images(images, tmp_path):
    """As many samples as each region is large; no region copies its image."""
    node = onnx.helper.make_node("RoiAlign", ["x", "rois", "batch"], ["y"], output_height=3, output_width=2, sampling_ratio=0, spatial_scale=0.5)
    inputs = {"x": ("float32", ["b" if images > 1 else 1, 5, "h", 23]), "rois": ("float32", ["r", 4]), "batch": ("int64", ["r"])}
    path = save(tmp_path / "m.onnx", [node], inputs, ["y"])
    harness.compile_model(path, tmp_path / "m.engine")
    draw = np.random.default_rng(5)
    for height, regions in ((17, 7), (8, 1), (31, 40)):
        corners = draw.uniform(-4, 50, (regions, 4))
        rois = np.concatenate([np.minimum(corners[:, :2], corners[:, 2:]), np.maximum(corners[:, :2], corners[:, 2:])], 1)
        feeds = {
            "x": draw.standard_normal((images, 5, height, 23)).astype(np.float32), "rois": rois.astype(np.float32),
            "batch": draw.integers(0, images, regions),
        }  # fmt: skip
        (got,) = harness.run_engine(tmp_path / "m.engine", feeds, ["y"], tmp_path)
        want = onnxruntime.InferenceSession(path).run(None, feeds)[0]
        assert got.shape == want.shape == (regions, 5, 3, 2)
        np.testing.assert_allclose(got, want, atol=2e-5)


def test_places_of_a_maximum_that_is_too_large(tmp_path):
    node = onnx.helper.make_node("MaxPool", ["x"], ["y", "places"], kernel_shape=[2, 2])
    path = save(tmp_path / "m.onnx", [node], {"x": ("float32", [1, 1, 2**31, 2**31])}, ["y", "places"])
    result = harness.invoke("compile", path, "-o", tmp_path / "m.engine")
    assert result.code == 1 and "a tensor is too large" in result.stderr


@pytest.mark.parametrize("images", [1, 2])
def test_regions_of_images_that_do_not_exist(tmp_path, images):
    """What such an index names reads 0 (docs/importing.md), also where there is just one image."""
    node = onnx.helper.make_node("RoiAlign", ["x", "rois", "batch"], ["y"], output_height=2, output_width=2, sampling_ratio=2)
    inputs = {"x": ("float32", [images, 3, 9, 9]), "rois": ("float32", [3, 4]), "batch": ("int64", [3])}
    path = save(tmp_path / "m.onnx", [node], inputs, ["y"])
    harness.compile_model(path, tmp_path / "m.engine")
    feeds = {
        "x": np.ones((images, 3, 9, 9), np.float32), "batch": np.array([0, 3, images - 1]),
        "rois": np.tile(np.array([1, 1, 6, 6], np.float32), (3, 1)),
    }  # fmt: skip
    (y,) = harness.run_engine(tmp_path / "m.engine", feeds, ["y"], tmp_path)
    np.testing.assert_allclose(y[[0, 2]], 1, 1e-6)
    np.testing.assert_array_equal(y[1], 0)
