"""Windows over images, and images of other sizes."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from .common import F32, I32, I64, case, raw, spec


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
        "same": upward(solid, m(3, 2, 5, 6), 2, "SAME", 10, 8), "odd": upward(m(3, 3, 4, 6), 2, "SAME", 9, 7),
        "valid": upward(m(2, 4, 5, 6), (3, 2), "VALID", 14, 10), "apart": upward(m(1, 2, 4, 6), 3, "SAME", 15, 12),
        "more": upward(m(2, 2, 3, 6), 3, "VALID", 15, 12),
        "heads": tf.einsum("bhwc,cde->bhwde", x, m(6, 2, 3)), "sum": tf.einsum("...c,...c->...", x, x),
        "scores": tf.einsum("aecd,abcd->acbe", x, x), "top": tf.math.top_k(x, 2)[0], "which": tf.math.top_k(x, 3)[1],
    }  # fmt: skip


@case(spec("x", None, None, 3), spec("y", None, None, None, 2), spec("z", None, 6, 7, 2),
      x=np.random.RandomState(1).uniform(-1, 1, (3, 11, 3)),
      y=np.random.RandomState(2).uniform(-1, 1, (3, 10, 7, 2)), frozen=True)  # fmt: skip
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
    upward = lambda solid, f, s, pad, *size: tf.nn.conv3d_transpose(  # noqa: E731
        solid, f, [tf.shape(x)[0], *size, f.shape[3]], s, pad)
    return {
        "cubic": tf.image.resize(x, [9, 7], "bicubic"), "fewer": tf.image.resize(x, [3, 3], "bicubic"),
        "legacy": v1.resize_bicubic(x, [9, 7]), "corners": v1.resize_bicubic(x, [9, 7], align_corners=True),
        "area": tf.image.resize(x, [3, 3], "area"), "larger": tf.image.resize(x, [8, 6], "area"),
        "even": tf.image.resize(x, [5, 2], "area"),
        "same": upward(solid, m(2, 3, 2, 2, 1), (1, 2, 1, 1, 1), "SAME", 10, 4, 6),
        "valid": upward(solid[:, 1:4, :3, :3], m(2, 3, 3, 2, 1), 2, "VALID", 6, 7, 7),
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


@case(spec("x", None, 3, 4, 3), spec("h", 2, 3, dtype=tf.float16), frozen=True,
      x=np.random.RandomState(8).uniform(0, 1, (3, 3, 4, 3)).round(1))
def colors(m, x, h):
    v = tf.image
    return {
        "hsv": v.rgb_to_hsv(x), "rgb": v.hsv_to_rgb(x), "hue": v.adjust_hue(x, 0.4), "back": v.adjust_hue(x, -0.7), "contrast": v.adjust_contrast(x, 1.7),
        "pale": v.adjust_saturation(x, 0.3), "rich": v.adjust_saturation(x, 3.0), "half": raw.RGBToHSV(images=tf.abs(h)),
    }  # fmt: skip


@case(spec("x", None, 5, 6, 4), spec("boxes", None, 4), spec("which", None, dtype=I32), frozen=True, which=[2, 0, 2],
      boxes=[[0, 0, 1, 1], [0.8, 0.1, 0.2, 1.3], [-0.3, 0.25, 0.6, 0.5]])  # fmt: skip
def crops(m, x, boxes, which):
    crop = tf.image.crop_and_resize
    return {
        "linear": crop(x, boxes, which, [3, 4], extrapolation_value=-2.5), "nearest": crop(x, boxes, which, [4, 8], "nearest"),
        "one": crop(tf.cast(x * 9, I32), boxes, which, [1, 2]),
        "channels": raw.MaxPool(input=x, ksize=[1, 1, 1, 2], strides=[1, 1, 1, 2], padding="VALID"),
    }  # fmt: skip


@case(spec("x", None, 13, 4, 1), spec("boxes", None, 4), frozen=True, x=np.arange(52).reshape(1, 13, 4, 1),
      boxes=np.concatenate([np.random.RandomState(0).rand(4, 4).round(1), np.random.RandomState(1).randint(0, 13, (6, 4)) / 12, [[0, 0, 1, 1]]]))  # fmt: skip
def crops_at_ties(m, x, boxes):
    """Places that a unit in the last place puts nearest to another pixel, or outside of the image."""
    which = tf.zeros_like(boxes[:, 0], I32)
    crop = lambda size, how: tf.image.crop_and_resize(x, boxes, which, size, how, -1.0)  # noqa: E731
    return {"nearest": crop([7, 14], "nearest"), "linear": crop([11, 14], "bilinear"), "one": crop([1, 5], "nearest")}


@case(spec("x", None, 5, 9, 2), spec("y", None, None, None, 2), spec("i", 2, 5, 6, 1, dtype=I32), frozen=True,
      x=np.random.RandomState(2).randint(-2, 2, (3, 5, 9, 2)), y=np.where(np.random.RandomState(3).rand(2, 7, 8, 2) < 0.5, -np.inf, 1))  # fmt: skip
def places_in_windows(m, x, y, i):
    """The first of equals, in an image or in all, also where all of a window is least."""
    least = tf.cast(i * 0 - 2**31, I32)
    pools = {
        "same": (x, (4, 3), (2, 2), "SAME", I64, False), "valid": (x, (2, 4), (1, 3), "VALID", I32, True), "open": (y, (3, 2), (2, 2), "SAME", I64, True),
        "least": (least, (3, 3), (2, 2), "SAME", I64, False), "one": (x, (1, 1), (2, 3), "SAME", I32, False),
    }  # fmt: skip
    results = {"second": raw.MaxPoolV2(input=x, ksize=[1, 3, 2, 1], strides=[1, 2, 2, 1], padding="SAME"),
               "integers": raw.MaxPool(input=-i - 5, ksize=[1, 3, 3, 1], strides=[1, 2, 2, 1], padding="SAME")}  # fmt: skip
    for name, (image, size, steps, padding, index, batch) in pools.items():
        largest, places = raw.MaxPoolWithArgmax(input=image, ksize=[1, *size, 1], strides=[1, *steps, 1], padding=padding, Targmax=index, include_batch_in_index=batch)
        results |= {f"{name}_places": places} | ({} if name == "open" else {name: largest})
    return results


@case(spec("x", None, None, 2, 1), spec("one", 1, 1, 3, 1), spec("boxes", None, 4), frozen=True, boxes=[[0, 0, 1, 1], [0.8, 0.1, 0.2, 0.5]], x=np.arange(12).reshape(2, 3, 2, 1))  # fmt: skip
def single_rows(m, x, one, boxes):
    """Results of one row, known as the model runs alone, and images of one; centers that lie on an edge."""
    rows = tf.shape(x)[1] - 2
    which, tiny = tf.zeros_like(boxes[:, 0], I32), tf.ones([1, 2, 2, 1]) * tf.range(2.0)[:, None, None]
    return {
        "crop": tf.image.crop_and_resize(x, boxes, which, tf.stack([rows, 2])), "area": raw.ResizeArea(images=one, size=[3, 2], align_corners=True),
        "open": raw.ResizeArea(images=x[:, :1], size=tf.stack([rows + 3, rows]), align_corners=True),
        "nearest": tf.image.resize(tiny + one[0, 0, 0, 0] * 0, [47, 48], "nearest"),
    }  # fmt: skip


@case(spec("x", None, None, 7, 3), spec("y", 2, 9, 6, 2), frozen=True)
def dilations(m, x, y):
    """The largest sum of a window and a filter; the last has windows that lie outside."""
    k = tf.constant(np.random.RandomState(2).uniform(-1, 1, (3, 2, 3)).astype(np.float32))
    f = tf.constant(np.random.RandomState(4).uniform(-1, 1, (2, 2, 2)).astype(np.float32))
    return {
        "same": tf.nn.dilation2d(x, k, [1, 2, 1, 1], "SAME", "NHWC", [1, 1, 2, 1]), "valid": tf.nn.dilation2d(y, f, [1, 1, 2, 1], "VALID", "NHWC", [1, 3, 1, 1]),
        "eroded": tf.nn.erosion2d(y, f, [1, 1, 1, 1], "SAME", "NHWC", [1, 1, 1, 1]), "outside": tf.nn.dilation2d(y[:, :4], f, [1, 1, 1, 1], "SAME", "NHWC", [1, 6, 1, 1]),
    }  # fmt: skip
