"""Small models of Keras."""

from __future__ import annotations


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


def keras_lengths():
    """Recurrent layers over a length that is open."""
    import keras

    layers = keras.layers
    x = keras.Input((None, 6), name="x")
    y = layers.LSTM(5, return_sequences=True)(layers.Masking()(x))
    z = layers.Bidirectional(layers.GRU(4, return_sequences=True))(layers.Conv1D(6, 3, padding="same")(x))
    return keras.Model(x, [layers.SimpleRNN(3, go_backwards=True)(y), z])


def keras2_model():
    import tf_keras

    layers = tf_keras.layers
    x = tf_keras.Input((12, 10, 3), name="image")
    y = layers.CenterCrop(9, 7)(layers.Resizing(11, 9, crop_to_aspect_ratio=False)(x))
    y = layers.BatchNormalization()(layers.Conv2D(6, 3, padding="same", activation="swish")(y))
    y = layers.LayerNormalization()(layers.Reshape((9, 42))(y))
    y = layers.Bidirectional(layers.LSTM(3, return_sequences=True))(y)
    return tf_keras.Model(x, layers.GRU(4, name="state")(y))


MODELS = {f.__name__: f for f in (keras_transformer, keras_cnn, keras_recurrent, keras_lengths, keras2_model)}
