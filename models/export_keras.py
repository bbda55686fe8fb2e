#!/usr/bin/env python3
"""Exports models of Keras as TensorFlow's files.

    export_keras.py --output-dir DIR [--form FORM] [--size HxW] [NAME]...
    export_keras.py --list

A FORM is `keras3` (model.export, the default), `keras2` (tf_keras), `saved`
(tf.saved_model.save of a Keras 3 model), or `frozen` and `lowered` (a frozen graph,
which keeps its loops or has them as Switch and Merge). Names are those of
keras.applications and of the small models below; default: all of the form. Weights are
random but alive: batch norms have the statistics of a pass, and what layers set to zero
or nearly so is drawn anew, else wrong kernels do not show. A model is DIR/FORM/NAME, with
`-HxW` behind the name where a size is given, as far as the architecture lets it be.
scripts/check_tf.py compares engines of them with TensorFlow. Needs tensorflow-cpu, keras
and, for Keras 2, tf_keras.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
import time
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")

import numpy as np
import tensorflow as tf

FORMS = ("keras3", "keras2", "saved", "frozen", "lowered")
SMALL = {}


def small(function):
    SMALL[function.__name__] = function
    return function


def applications(keras) -> list[str]:
    module = keras.applications
    return sorted(n for n in dir(module) if n[0].isupper() and callable(getattr(module, n)))


# Recurrent layers, of a fixed number of steps.


def recurrent(keras, *layers):
    x = y = keras.Input((11, 6), name="sequence")
    for layer in layers:
        y = layer(y)
    return keras.Model(x, keras.layers.Dense(4, name="out")(y))


@small
def lstm(keras):
    return recurrent(keras, keras.layers.LSTM(9, return_sequences=True), keras.layers.LSTM(7))


@small
def gru(keras):
    gru = keras.layers.GRU
    return recurrent(keras, gru(9, return_sequences=True, reset_after=False), gru(7, return_sequences=True),
                     gru(5, recurrent_activation="hard_sigmoid"))  # fmt: skip


@small
def simple_rnn(keras):
    return recurrent(keras, keras.layers.SimpleRNN(9, return_sequences=True, unroll=True),
                     keras.layers.SimpleRNN(7, activation="relu"))  # fmt: skip


@small
def bidirectional(keras):
    both, layers = keras.layers.Bidirectional, keras.layers
    return recurrent(keras, both(layers.LSTM(5, return_sequences=True)),
                     both(layers.GRU(4, return_sequences=True), merge_mode="sum"),
                     layers.TimeDistributed(layers.Dense(6, "tanh")), both(layers.SimpleRNN(3)))  # fmt: skip


@small
def masked_lstm(keras):
    x = keras.Input((9,), dtype="int32", name="tokens")
    y = keras.layers.Embedding(90, 6, mask_zero=True)(x)
    return keras.Model(x, keras.layers.Dense(3)(keras.layers.LSTM(5)(y)))


@small
def conv_lstm(keras):
    x = keras.Input((5, 8, 9, 2), name="frames")
    y = keras.layers.ConvLSTM2D(4, 3, padding="same", return_sequences=True)(x)
    return keras.Model(x, keras.layers.ConvLSTM2D(3, (2, 3), strides=2)(y))


# Transformers.


@small
def encoder(keras):
    layers = keras.layers
    x = keras.Input((None,), dtype="int32", name="tokens")
    y = layers.Embedding(100, 32)(x)
    for _ in range(2):
        y = layers.LayerNormalization(epsilon=1e-6)(y + layers.MultiHeadAttention(4, 8)(y, y))
        hidden = layers.Dense(64, activation="gelu")(y)
        y = layers.LayerNormalization(epsilon=1e-3)(y + layers.Dropout(0.1)(layers.Dense(32)(hidden)))
    return keras.Model(x, layers.Dense(5)(layers.GlobalAveragePooling1D()(y)))


@small
def decoder(keras):
    layers = keras.layers
    x = keras.Input((None,), dtype="int32", name="tokens")
    y = layers.Embedding(100, 32)(x)
    for _ in range(2):
        norm = layers.LayerNormalization()(y)
        y = y + layers.MultiHeadAttention(4, 8)(norm, norm, use_causal_mask=True)
        hidden = layers.Dense(64, activation="swish")(layers.LayerNormalization()(y))
        y = y + layers.Dense(32)(hidden)
    return keras.Model(x, layers.Dense(100)(y))


@small
def translator(keras):
    """An encoder, and a decoder that attends to it, both of open length."""
    layers = keras.layers
    source = keras.Input((None,), dtype="int32", name="source")
    target = keras.Input((None,), dtype="int32", name="target")
    memory = layers.Embedding(80, 24, mask_zero=True)(source)
    memory = layers.LayerNormalization()(memory + layers.MultiHeadAttention(3, 8)(memory, memory))
    y = layers.Embedding(80, 24)(target)
    y = layers.LayerNormalization()(y + layers.MultiHeadAttention(3, 8)(y, y, use_causal_mask=True))
    y = layers.LayerNormalization()(y + layers.MultiHeadAttention(3, 8)(y, memory))
    return keras.Model([source, target], layers.Dense(80, activation="softmax")(y))


@small
def patches(keras):
    """A vision transformer."""
    layers = keras.layers
    x = keras.Input((48, 32, 3), name="image")
    y = layers.Reshape((-1, 24))(layers.Conv2D(24, 8, 8)(x))
    for _ in range(2):
        norm = layers.LayerNormalization(epsilon=1e-6)(y)
        y = y + layers.MultiHeadAttention(3, 8)(norm, norm)
        y = y + layers.Dense(24)(layers.Dense(48, activation="gelu")(layers.LayerNormalization()(y)))
    return keras.Model(x, layers.Dense(7)(layers.Flatten()(y)))


# Segmentation.


def block(layers, y, filters, **how):
    y = layers.Conv2D(filters, 3, padding="same", use_bias=False, **how)(y)
    return layers.Activation("relu")(layers.BatchNormalization()(y))


@small
def unet(keras):
    layers = keras.layers
    x = keras.Input((64, 48, 3), name="image")
    skips, y = [], x
    for filters in (8, 12, 16):
        y = block(layers, block(layers, y, filters), filters)
        skips.append(y)
        y = layers.MaxPooling2D(2)(y)
    y = block(layers, y, 24)
    for filters, skip in zip((16, 12, 8), reversed(skips)):
        y = layers.Conv2DTranspose(filters, 3, strides=2, padding="same")(y)
        y = block(layers, layers.Concatenate()([y, skip]), filters)
    return keras.Model(x, layers.Conv2D(4, 1, activation="softmax")(y))


@small
def deeplab(keras):
    layers = keras.layers
    x = keras.Input((65, 49, 3), name="image")
    low = block(layers, x, 8, strides=2)
    y = block(layers, block(layers, low, 16, strides=2), 24, strides=2)
    branches = [block(layers, y, 12, dilation_rate=rate) for rate in (1, 2, 4)]
    pooled = layers.GlobalAveragePooling2D(keepdims=True)(y)
    pooled = layers.Conv2D(12, 1, activation="relu")(pooled)
    branches.append(layers.UpSampling2D((y.shape[1], y.shape[2]), interpolation="bilinear")(pooled))
    y = block(layers, layers.Concatenate()(branches), 16)
    y = layers.Resizing(low.shape[1], low.shape[2])(y)
    y = block(layers, layers.Concatenate()([y, low]), 12)
    y = layers.UpSampling2D(2, interpolation="bilinear")(layers.Conv2D(5, 1)(y))
    return keras.Model(x, layers.Cropping2D(((0, 1), (1, 0)))(y))


# Sequences, volumes, and what prepares inputs.


@small
def wavenet(keras):
    layers = keras.layers
    x = keras.Input((None, 3), name="signal")
    y = layers.Conv1D(8, 3, padding="causal")(x)
    for rate in (1, 2, 4):
        gate = layers.Conv1D(8, 2, padding="causal", dilation_rate=rate, activation="sigmoid")(y)
        y = y + layers.Conv1D(8, 2, padding="causal", dilation_rate=rate, activation="tanh")(y) * gate
    y = layers.SeparableConv1D(12, 5, padding="same", activation="elu")(y)
    y = layers.BatchNormalization()(layers.LeakyReLU()(y))
    return keras.Model(x, layers.Dense(4)(layers.GlobalMaxPooling1D()(y)))


@small
def pooled_signal(keras):
    layers = keras.layers
    x = keras.Input((50, 4), name="signal")
    y = layers.Conv1D(8, 5, strides=2, padding="same", activation="selu")(layers.ZeroPadding1D((1, 2))(x))
    y = layers.AveragePooling1D(3, 2, padding="same")(layers.MaxPooling1D(2)(y))
    y = layers.Conv1DTranspose(6, 4, strides=3, padding="same")(layers.UpSampling1D(2)(y))
    y = layers.PReLU(shared_axes=[1])(layers.Cropping1D(2)(y))
    return keras.Model(x, layers.Dense(5)(layers.Flatten()(y)))


@small
def volumes(keras):
    layers = keras.layers
    x = keras.Input((9, 10, 8, 2), name="volume")
    y = layers.Conv3D(6, 3, strides=(1, 2, 1), padding="same", activation="softplus")(x)
    y = layers.AveragePooling3D(2)(layers.MaxPooling3D(2, 1, padding="same")(y))
    y = layers.Conv3DTranspose(4, 3, strides=2, padding="same")(y)
    return keras.Model(x, layers.Dense(3)(layers.GlobalAveragePooling3D()(y)))


def preprocessed(keras, interpolation):
    layers = keras.layers
    x = keras.Input((40, 56, 3), name="image")
    y = layers.Resizing(33, 27, interpolation=interpolation)(x)
    y = layers.Rescaling(1 / 64, offset=-0.5)(y)
    y = layers.Normalization(mean=[0.1, -0.2, 0.3], variance=[1.5, 0.5, 2.0])(y)
    y = layers.CenterCrop(24, 25)(y)
    return keras.Model(x, layers.Conv2D(4, 3, activation="relu")(y))


@small
def preprocessed_bilinear(keras):
    return preprocessed(keras, "bilinear")


@small
def preprocessed_bicubic(keras):
    return preprocessed(keras, "bicubic")


@small
def preprocessed_nearest(keras):
    return preprocessed(keras, "nearest")


@small
def preprocessed_area(keras):
    """What tf.image makes of bytes before a model sees them."""
    layers = keras.layers
    x = keras.Input((40, 56, 3), dtype="uint8", name="image")
    y = layers.Lambda(lambda t: tf.image.convert_image_dtype(t, tf.float32), output_shape=(40, 56, 3))(x)
    y = layers.Lambda(lambda t: tf.image.resize(t, (20, 28), "area"), output_shape=(20, 28, 3))(y)
    y = layers.Lambda(tf.image.per_image_standardization, output_shape=(20, 28, 3))(y)
    y = layers.Lambda(lambda t: tf.image.central_crop(t, 0.5), output_shape=(10, 14, 3))(y)
    return keras.Model(x, layers.Conv2D(4, 3)(y))


@small
def squeeze_excite(keras):
    layers = keras.layers
    x = keras.Input((32, 32, 3), name="image")
    y = layers.DepthwiseConv2D(3, depth_multiplier=3, padding="same", activation="relu")(x)
    gate = layers.Dense(9, "sigmoid")(layers.Dense(4, "relu")(layers.GlobalAveragePooling2D()(y)))
    y = layers.Multiply()([y, layers.Reshape((1, 1, 9))(gate)])
    y = layers.GroupNormalization(3)(layers.Conv2D(12, 3, groups=3, padding="same")(y))
    y = layers.UnitNormalization()(layers.SpatialDropout2D(0.1)(layers.Activation("mish")(y)))
    return keras.Model(x, layers.Dense(5)(layers.GlobalMaxPooling2D()(y)))


# Weights and files.


def image_size(model, size: tuple[int, int] | None) -> list[int]:
    return [s if s is not None else 96 for s in model.inputs[0].shape[1:]]


def enliven(keras, model) -> None:
    rng = np.random.RandomState(1)
    for weight in model.weights:
        name = (getattr(weight, "path", None) or weight.name).split("/")[-1].split(":")[0]
        shape = weight.shape
        if not np.issubdtype(np.dtype(weight.dtype if isinstance(weight.dtype, str)
                                      else weight.dtype.as_numpy_dtype), np.floating):  # fmt: skip
            continue
        if name in ("gamma", "scale"):
            weight.assign(rng.uniform(0.5, 1.5, shape))
        elif name in ("beta", "bias", "moving_mean"):
            weight.assign(rng.normal(0, 0.1, shape))
        elif name in ("moving_variance", "variance"):
            weight.assign(rng.uniform(0.5, 1.5, shape))
    norms = [l for l in flatten(model) if isinstance(l, keras.layers.BatchNormalization)]
    shape = [s if s is not None else 64 for s in model.inputs[0].shape[1:]]
    if not norms or np.prod(shape[:2]) > 1 << 18:
        return
    for layer in norms:
        layer.momentum = 0.0
    model(rng.normal(0, 1, [4, *shape]).astype(np.float32), training=True)


def flatten(model):
    for layer in model.layers:
        yield layer
        if hasattr(layer, "layers"):
            yield from flatten(layer)


def build(keras, name: str, size: tuple[int, int] | None):
    keras.utils.set_random_seed(0)
    if name in SMALL:
        model = SMALL[name](keras)
    else:
        how = {"input_shape": (*size, 3)} if size else {}
        model = getattr(keras.applications, name)(weights=None, **how)
    enliven(keras, model)
    return model


def freeze(model, lower: bool) -> bytes:
    from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

    specs = [tf.TensorSpec(x.shape, x.dtype, x.name.split(":")[0]) for x in model.inputs]
    function = tf.function(lambda *x: model(list(x) if len(x) > 1 else x[0], training=False))
    frozen = convert_variables_to_constants_v2(
        function.get_concrete_function(*specs), lower_control_flow=lower
    )
    return frozen.graph.as_graph_def().SerializeToString()


def save(model, form: str, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if form == "keras3":
        model.export(path, verbose=False)
    elif form == "keras2":
        model.save(path, save_format="tf", include_optimizer=False)
    elif form == "saved":
        tf.saved_model.save(model, path)
    else:
        path.with_name(path.name + ".pb").write_bytes(freeze(model, form == "lowered"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--form", choices=FORMS, default="keras3")
    parser.add_argument("--size", help="of images, as in 96x128; default: the architecture's own")
    parser.add_argument("--output-dir", type=Path, default=Path("build/keras"))
    parser.add_argument("--list", action="store_true", help="the names that there are")
    options = parser.parse_args()
    keras = importlib.import_module("tf_keras" if options.form == "keras2" else "keras")
    known = [*SMALL, *applications(keras)]
    if options.list:
        print("\n".join(known))
        return
    size = tuple(map(int, options.size.split("x"))) if options.size else None
    for name in options.names or known:
        if name not in known:
            sys.exit(f"no model named {name!r}; --list shows those that there are")
        start = time.time()
        path = options.output_dir / options.form / (name + (f"-{options.size}" if size else ""))
        try:
            save(build(keras, name, size), options.form, path)
            print(f"{name}: {time.time() - start:.0f} s: {path}", flush=True)
        except (ValueError, TypeError, AttributeError) as error:
            print(f"{name}: cannot be made: {str(error)[:200]}", flush=True)
        keras.backend.clear_session()


if __name__ == "__main__":
    main()
