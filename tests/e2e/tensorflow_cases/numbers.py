"""Elementwise operators, reductions and normalizations."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from .common import BOOL, F32, I32, I64, case, raw, spec


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


@case(spec("x", None, 5), spec("low", 5), spec("high", 5), spec("i", None, 5, dtype=I32), frozen=True,
      x=np.linspace(-8, 8, 15).reshape(3, 5), low=[-1, -0.1, 0, -9, 0], high=[1, 3, 2, -0.5, 0],
      i=[[3, -4, 1, 2, 6], [0, 0, 0, 0, 0], [9, 9, 9, 1, 1]])  # fmt: skip
def quantized(m, x, low, high, i):
    """Steps of quantization, angles, and norms of integers."""
    fake = tf.quantization
    return {
        "args": fake.fake_quant_with_min_max_args(x, -5.3, 2.1), "narrow": fake.fake_quant_with_min_max_args(x, 0.5, 6.5, 4, True),
        "vars": fake.fake_quant_with_min_max_vars(x, low[0], high[1], 6), "none": fake.fake_quant_with_min_max_vars(x, low[2], high[4]),
        "ties": fake.fake_quant_with_min_max_args(tf.constant((np.arange(-40, 40) + 0.5) * 0.01, F32), -1.27, 1.28),
        "channels": fake.fake_quant_with_min_max_vars_per_channel(x, low, high), "angle": tf.atan2(x, tf.reverse(x, [0]) * 0.5),
        "quarters": tf.atan2(tf.constant([0.0, -0.0, 1, -1, 0]), tf.constant([-1.0, -1, 0, 0, 0])),
        "norm": raw.EuclideanNorm(input=i, axis=[1], keep_dims=False), "size": raw.EuclideanNorm(input=i[0], axis=[], keep_dims=True),
    }  # fmt: skip


@case(spec("x", None, 12), spec("y", None, 6, 8), frozen=True)
def spectra(m, x, y):
    """Transforms of real and complex numbers, longer and shorter than what there is."""
    s = tf.signal
    half, z, solid = s.rfft(x), tf.complex(x, x[:, ::-1]), tf.reshape(y, [-1, 3, 2, 8])
    plane, both = s.rfft2d(y, [5, 8]), s.fft(z) * tf.math.conj(z) / (z + tf.cast(x * 0 + 3.0, tf.complex64))
    return {
        "real": tf.math.real(half), "imag": tf.math.imag(half), "size": tf.abs(half - tf.cast(x[:, :7], tf.complex64)), "longer": tf.abs(s.rfft(x, [16])),
        "shorter": tf.abs(s.rfft(x, [7])), "back": s.irfft(half, [12]), "odd": s.irfft(half, [9]), "angle": tf.math.angle(both),
        "inverse": tf.abs(s.ifft(both)), "plane": tf.abs(plane), "image": s.irfft2d(plane, [5, 7]), "square": tf.abs(s.ifft2d(s.fft2d(tf.cast(y, tf.complex64)))),
        "stft": tf.abs(s.stft(x, 6, 3)), "solid": s.irfft3d(s.rfft3d(solid), [3, 2, 8]), "cube": tf.abs(s.ifft3d(s.fft3d(tf.complex(solid, solid * 2)) * tf.complex(solid, 1.0))), "cast": tf.cast(both, F32),
    }  # fmt: skip


@case(spec("x", None, 8), spec("i", None, 1, dtype=I32), frozen=True, i=[[-1], [2], [-9]])
def parts_and_places(m, x, i):
    """Casts and choices of complex numbers, places below 0, and means beyond signed integers."""
    z = tf.signal.rfft(x)
    wide = tf.cast(z, tf.complex128)
    large = tf.bitcast(tf.cast(i, I64) - 5, tf.uint64)
    return {
        "wide": tf.cast(tf.math.imag(wide), F32), "narrow": tf.math.imag(tf.cast(wide * wide, tf.complex64)),
        "chosen": tf.math.imag(tf.cond(x[0, 0] > 9, lambda: z, lambda: z * z)),
        "gather": raw.GatherNd(params=x, indices=i, bad_indices_policy="IGNORE"), "scatter": raw.ScatterNd(indices=i, updates=x, shape=[3, 8], bad_indices_policy="IGNORE"),
        "update": raw.TensorScatterUpdate(tensor=x, indices=i, updates=x * 2, bad_indices_policy="IGNORE"), "mean": tf.reduce_mean(large),
    }  # fmt: skip


@case(spec("x", None, 9), frozen=True, x=np.array([[0.001, 0.1, 0.49, 0.51, 0.9, 0.999, 0.5, 0.25, 1], [1.5, 2, 3.7, 9, 20, 40, 0.3, 1e-3, 80]]))
def statistics(m, x):
    part = tf.minimum(x, 0.9999)
    return {
        "lgamma": tf.math.lgamma(x * 3 - 1.75), "digamma": tf.math.digamma(x * 2 - 1.3), "erfinv": tf.math.erfinv(part * 2 - 1), "ndtri": tf.math.ndtri(part),
        "i0": raw.BesselI0(x=x), "i0e": raw.BesselI0e(x=x - 9), "i1": raw.BesselI1(x=x - 3), "i1e": raw.BesselI1e(x=x * 7),
    }  # fmt: skip


@case(spec("x", None, 12), frozen=True)
def views_of_spectra(m, x):
    """What operators that move or add up make of complex numbers, and functions of them."""
    s, z = tf.signal, tf.signal.rfft(x)
    steps = tf.constant(np.array([1 + 2j, -0.5j, 3, 0.25 - 1j, 2j, 1, -1j], np.complex64))
    moved = tf.concat([z[:, ::2], tf.roll(z, 2, 1), tf.tile(z[:, :1], [1, 2])], 1) * tf.reverse(tf.pad(z, [[0, 0], [1, 5]]), [1])
    parts = tf.stack(tf.unstack(tf.reshape(z[:, :6], [-1, 2, 3]), axis=1), 2)
    functions = tf.exp(z * 0.3) - tf.sqrt(z) + tf.math.log(z) * tf.tanh(z * 0.1) + tf.sin(z * 0.1) * tf.cosh(z * 0.2) / tf.cos(z * 0.1) - tf.sinh(z * 0.1)
    powers = tf.math.reciprocal(z) + tf.square(z) * tf.math.rsqrt(z) - tf.math.sign(z) + tf.pow(z, steps) - tf.negative(z) + tf.add_n([z, steps * z])
    return {
        "dct": s.dct(x), "dct1": s.dct(x, 1), "dct3": s.dct(x, 3, norm="ortho"), "dct4": s.dct(x, 4), "mfcc": s.mfccs_from_log_mel_spectrograms(x)[:, :4],
        "moved": tf.abs(moved), "parts": tf.math.imag(tf.transpose(parts, [2, 0, 1])), "sum": tf.abs(tf.reduce_sum(z, 1)), "mean": tf.math.real(tf.reduce_mean(z, [0], keepdims=True)),
        "functions": tf.math.imag(functions), "powers": tf.math.real(powers), "sizes": tf.shape(z), "places": tf.math.imag(tf.gather(z, [5, 0, 0], axis=1)),
        "spread": tf.abs(tf.where(x[:, :7] > 0, z, tf.fill(tf.shape(z), tf.complex(2.0, -1.0)))), "run": tf.math.imag(tf.cumsum(z, 1)),
    }  # fmt: skip


@case(spec("x", None, 5, 4), spec("low", 5), spec("high", 5), frozen=True, low=[-1, 0, -0.5, -2, -1e-3], high=[1, 2, 3, 0.5, 0.1])
def steps_around_zero(m, x, low, high):
    """Rounded to steps of which 0 is one: by a range, by what there is, and by each index."""
    given = {"range_given": True, "input_min": -1.5, "input_max": 1.0}
    return {
        "given": raw.QuantizeAndDequantizeV4(input=x, **given), "narrow": raw.QuantizeAndDequantizeV4(input=x, narrow_range=True, num_bits=4, round_mode="HALF_UP", **given),
        "unsigned": raw.QuantizeAndDequantizeV2(input=x, signed_input=False, num_bits=5, **given), "own": raw.QuantizeAndDequantizeV2(input=x, input_min=0.0, input_max=0.0),
        "own_unsigned": raw.QuantizeAndDequantizeV2(input=x, input_min=0.0, input_max=0.0, signed_input=False, num_bits=6), "each": raw.QuantizeAndDequantizeV3(input=x, input_min=low, input_max=high, num_bits=8, axis=1),
        "own_each": raw.QuantizeAndDequantizeV2(input=x, input_min=low[:4], input_max=high[:4], axis=2, num_bits=3), "bits": raw.QuantizeAndDequantizeV3(input=x, input_min=-0.5, input_max=2.0, num_bits=6),
        "nothing": raw.QuantizeAndDequantizeV4(input=x * 0.0, input_min=0.0, input_max=0.0),
    }  # fmt: skip


@case(spec("x", None, 9), spec("i", None, 9, dtype=I32), spec("t", None, dtype=I32), frozen=True, t=[3, 8, 9])
def counts(m, x, i, t):
    """How many there are: of parts of a range, of numbers below one that data cannot change, of larger ones."""
    line, number = tf.reshape(i, [-1]), tf.reduce_max(i) + 1
    k = tf.reduce_min(t) - 1
    return {
        "histogram": tf.histogram_fixed_width(x, [-1.0, 0.7], 5), "bins": tf.math.bincount(line, minlength=6, maxlength=6), "weighted": tf.math.bincount(line, tf.reshape(x, [-1]), minlength=4, maxlength=4),
        "rows": tf.math.bincount(i, minlength=7, maxlength=7, axis=-1, binary_output=True), "more": raw.DenseBincount(input=line, size=tf.minimum(8, tf.maximum(number, 8)), weights=tf.constant([], I32), binary_output=False),
        "chosen": tf.boolean_mask(x, [True, False, True, True, False, False, True, False, True], axis=1), "repeated": tf.repeat(x[0], [1, 0, 3, 1, 1, 2, 1, 1, 1]), "places": tf.where(tf.range(5) % 3 == tf.constant([[0], [2]])),
        "first": raw.InTopKV2(predictions=x, targets=t, k=4), "few": raw.InTopKV2(predictions=x / 0.0 * tf.constant([0.0] + [1.0] * 8), targets=t, k=9), "data": raw.InTopKV2(predictions=x, targets=t, k=k),
        "logs": tf.math.cumulative_logsumexp(x * 30, 1), "logs_back": tf.math.cumulative_logsumexp(x, 0, exclusive=True, reverse=True), "half": tf.nn.l2_loss(x),
    }  # fmt: skip


@case(spec("x", None, 2))
def looked_at(m, x):
    """Variables that are neither read nor written."""
    v = m(3, 2)
    return {"shape": raw.VariableShape(input=v.handle, out_type=I64), "there": raw.VarIsInitializedOp(resource=v.handle), "sum": v[:1] + x}
