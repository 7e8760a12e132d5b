#!/usr/bin/env python3
"""Golden fixtures that make_fixtures.py lacks, in the same folder format: dropout with Rankine's own masks,
several inputs and outputs, a text, losses from probabilities and from logits.

  KERAS_BACKEND=jax python make_more_fixtures.py                # all, into this folder
  python make_more_fixtures.py --only dropout                   # one

The stages (make, check, f64), the arrays and the derivation of tolerances are those of make_fixtures.py, which this
imports. README.md describes what is added.
"""

import argparse
import functools
import json
import os
import subprocess
import sys

import make_fixtures as base

STEPS = base.STEPS
HERE = os.path.dirname(os.path.abspath(__file__))

# ---------------------------------------------------------------------------
# Rankine's dropout masks (runtime/arithmetic/random.hpp), for numpy and for jax.numpy.
# ---------------------------------------------------------------------------

DROPOUT_SEED = 20240607  # the run's seed (--seed)
USE_DROPOUT = 2


def multiply_high(xp, a, b):
    """Upper 32 bits of a * b, for uint32 arrays without a 64-bit type."""
    low, high = a & 0xFFFF, a >> 16
    b_low, b_high = b & 0xFFFF, b >> 16
    middle = high * b_low + ((low * b_low) >> 16)
    other = low * b_high + (middle & 0xFFFF)
    return high * b_high + (middle >> 16) + (other >> 16)


def philox(xp, key, counter):
    """Philox4x32-10: `counter` is a list of four uint32 arrays, `key` an integer below 2**64."""
    u32 = lambda v: xp.asarray(v, dtype="uint32")
    m0, m1 = u32(0xD2511F53), u32(0xCD9E8D57)
    k0, k1 = key & 0xFFFFFFFF, key >> 32
    c0, c1, c2, c3 = counter
    for _ in range(10):
        c0, c1, c2, c3 = (
            multiply_high(xp, m1, c2) ^ c1 ^ u32(k0),
            m1 * c2,
            multiply_high(xp, m0, c0) ^ c3 ^ u32(k1),
            m0 * c0,
        )
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return [c0, c1, c2, c3]


def keep_mask(xp, seed, shape, step, call, rate):
    """True where an element stays. shape = (batch, ...); step from 1; element e of a sample is word e % 4 of block
    e // 4. An element is dropped when its uniform number (upper 24 bits / 2**24) is below the rate."""
    elements = 1
    for size in shape[1:]:
        elements *= size
    blocks = (elements + 3) // 4
    sample, block = xp.meshgrid(
        xp.arange(shape[0], dtype="uint32"), xp.arange(blocks, dtype="uint32"), indexing="ij"
    )
    words = philox(xp, seed, [
        block,
        sample,
        xp.broadcast_to(xp.asarray(step, dtype="uint32"), block.shape),
        xp.full(block.shape, USE_DROPOUT << 24 | call, dtype="uint32"),
    ])
    words = xp.stack(words, axis=-1).reshape(shape[0], blocks * 4)[:, :elements]
    uniform = (words >> 8).astype("float32") * xp.asarray(2.0 ** -24, dtype="float32")
    return (uniform >= xp.asarray(rate, dtype="float32")).reshape(shape)


def check_philox(np):
    """Known answers of the authors of Philox (Random123, kat_vectors)."""
    for counter, key, want in [
        ([0] * 4, 0, [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]),
        ([0xFFFFFFFF] * 4, 2**64 - 1, [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]),
        ([0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344], 0x299F31D0A4093822,
         [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1]),
    ]:
        with np.errstate(over="ignore"):
            got = philox(np, key, [np.asarray(c, "uint32") for c in counter])
        assert [int(v) for v in got] == want, [hex(int(v)) for v in got]


def use_our_masks(jax, keras, np, builder):
    """Real Dropout layers, and those inside attention, drop what Rankine drops: a layer's seed generator counts its
    training calls, so its state is the step; the call's number is the layer's place in the config's layers, InputLayers
    not counted."""
    check_philox(np)
    jnp = jax.numpy
    model, _ = builder(keras)
    layers = [layer for layer in model.operations if not isinstance(layer, keras.layers.InputLayer)]
    numbers = {layer.name: i for i, layer in enumerate(layers)}

    def call(self, inputs, training=False):
        if not training or self.rate == 0:
            return inputs
        done = self.seed_generator.next()[1]
        owner = getattr(self, "attention_name", None)
        shape = tuple(inputs.shape)
        if owner:  # rows of weights begin at whole blocks of four numbers
            shape = shape[:-1] + ((shape[-1] + 3) // 4 * 4,)
        keep = keep_mask(jnp, DROPOUT_SEED, shape, done + 1, numbers[owner or self.name], self.rate)
        return inputs * keep[..., : inputs.shape[-1]].astype(inputs.dtype) / (1.0 - self.rate)

    def name_dropout(attention):
        build = attention.build

        @functools.wraps(build)
        def named_build(self, *args, **kwargs):
            build(self, *args, **kwargs)
            self._dropout_layer.attention_name = self.name

        attention.build = named_build

    keras.layers.Dropout.call = call
    name_dropout(keras.layers.MultiHeadAttention)
    name_dropout(keras.layers.GroupQueryAttention)
    load = keras.models.load_model

    def load_model(path):
        """A resumed run goes on with the masks of the steps after those done."""
        model = load(path)
        for layer in model._flatten_layers(include_self=False, recursive=True):
            if isinstance(layer, keras.layers.Dropout) and layer.rate > 0:
                state = np.asarray(layer.seed_generator.state)
                layer.seed_generator.state.assign([state[0], int(model.optimizer.iterations)])
        return model

    keras.models.load_model = load_model
    return numbers


# ---------------------------------------------------------------------------
# Models and data
# ---------------------------------------------------------------------------


def build_dropout(keras):
    L = keras.layers
    vocab, seq, d = 41, 7, 20
    tokens = L.Input((seq,), dtype="int32", name="tokens")
    x = L.Embedding(vocab, d, name="embedding")(tokens)
    x = L.Dropout(0.1, name="embedding_dropout")(x)
    h = L.LayerNormalization(epsilon=1e-5, name="norm")(x)
    h = L.MultiHeadAttention(4, 5, name="attention")(h, h)
    h = L.Dropout(0.1, name="attention_dropout")(h)
    x = L.Add(name="residual")([x, h])
    x = L.GlobalAveragePooling1D(name="pool")(x)
    x = L.Dense(33, activation="relu", name="hidden_1")(x)
    x = L.Dropout(0.3, name="dropout_1")(x)
    x = L.Dense(18, activation="gelu", name="hidden_2")(x)
    x = L.Dropout(0.3, name="dropout_2")(x)
    out = L.Dense(5, name="logits")(x)
    return keras.Model(tokens, out, name="dropout"), dict(
        optimizer=keras.optimizers.Adam(4e-3), loss=base.sparse_ce(keras)
    )


def dropout_data(np, rng):
    x = rng.integers(0, 41, size=(STEPS, 12, 7))
    return {"tokens": x.astype("int32")}, {"y": (x.sum(-1) % 5).astype("int32")}


def build_two_outputs(keras):
    L = keras.layers
    left, right = L.Input((14,), name="left"), L.Input((3, 5), name="right")
    trunk = L.Dense(24, activation="tanh", name="trunk")
    a = trunk(L.Dense(10, activation="relu", name="from_left")(left))
    b = trunk(L.Dense(10, activation="relu", name="from_right")(L.Flatten(name="flat")(right)))
    x = L.Concatenate(name="both")([a, b])
    label = L.Dense(6, name="label_logits")(x)
    value = L.Dense(3, name="value_head")(x)
    model = keras.Model({"left": left, "right": right}, {"label": label, "value": value}, name="two_outputs")
    return model, dict(
        optimizer=keras.optimizers.SGD(0.05, momentum=0.9),
        loss={"label": base.sparse_ce(keras), "value": keras.losses.MeanSquaredError()},
        loss_weights={"label": 1.0, "value": 0.3},
        metrics={"label": ["accuracy"]},
    )


def two_outputs_data(np, rng):
    left = rng.normal(size=(STEPS, 11, 14)).astype("float32")
    right = rng.normal(size=(STEPS, 11, 3, 5)).astype("float32")
    label = (left[..., :6] + right[:, :, 0, :1]).argmax(-1).astype("int32")
    value = np.tanh(right.sum(-1)) + 0.1 * left[..., :3]
    return {"left": left, "right": right}, {"label": label, "value": value.astype("float32")}


TEXT_LENGTH, TEXT_BATCH = 20, 6


def text_of_fixture():
    """The first characters of the licence's body: as many as the windows need, one more for the last target."""
    with open(os.path.join(HERE, "..", "..", "LICENSE"), "rb") as f:
        text = b" ".join(f.read().split())
    return text[1000:1000 + STEPS * TEXT_BATCH * TEXT_LENGTH + 1]


def text_vocabulary():
    return sorted(set(text_of_fixture()))


def build_text(keras):
    L = keras.layers
    d, heads, vocab = 24, 3, len(text_vocabulary())
    tokens = L.Input((TEXT_LENGTH,), dtype="int32", name="tokens")
    positions = L.Input((TEXT_LENGTH,), dtype="int32", name="positions")
    x = L.Add(name="embed_sum")([
        L.Embedding(vocab, d, name="token_embedding")(tokens),
        L.Embedding(TEXT_LENGTH, d, name="position_embedding")(positions),
    ])
    x = base.decoder_block(keras, x, 0, d, heads)
    x = L.LayerNormalization(epsilon=1e-5, name="final_norm")(x)
    logits = L.Dense(vocab, name="logits")(x)
    model = keras.Model({"tokens": tokens, "positions": positions}, logits, name="text_gpt")
    rate = keras.optimizers.schedules.CosineDecay(6e-3, decay_steps=8, alpha=0.05)
    return model, dict(
        optimizer=keras.optimizers.Adam(rate, beta_2=0.99, global_clipnorm=0.7), loss=base.sparse_ce(keras)
    )


def text_data(np, rng):
    place = {c: i for i, c in enumerate(text_vocabulary())}
    ids = np.array([place[c] for c in text_of_fixture()], dtype="int32")
    shape = (STEPS, TEXT_BATCH, TEXT_LENGTH)
    positions = np.broadcast_to(np.arange(TEXT_LENGTH, dtype="int32"), shape).copy()
    return {"tokens": ids[:-1].reshape(shape), "positions": positions}, {"y": ids[1:].reshape(shape)}


def build_probabilities(keras):
    """A list of outputs, so that they go by their layers' names."""
    L = keras.layers
    x = inp = L.Input((19,), name="x")
    x = L.Dense(30, activation="selu", name="hidden")(x)
    kind = L.Dense(7, activation="softmax", name="kind")(x)
    flags = L.Dense(4, name="flags")(x)
    rate = keras.optimizers.schedules.InverseTimeDecay(8e-3, decay_steps=4, decay_rate=0.5)
    return keras.Model(inp, [kind, flags], name="probabilities"), dict(
        optimizer=keras.optimizers.AdamW(rate, weight_decay=0.02, clipnorm=0.4),
        loss=[
            keras.losses.CategoricalCrossentropy(),
            keras.losses.BinaryCrossentropy(from_logits=True, label_smoothing=0.1),
        ],
        loss_weights=[0.8, 1.5],
    )


def probabilities_data(np, rng):
    x = rng.normal(size=(STEPS, 10, 19)).astype("float32")
    kind = np.eye(7, dtype="float32")[x[..., :7].argmax(-1)]
    flags = (x[..., 7:11] > 0.2).astype("float32")
    return {"x": x}, {"kind": kind, "flags": flags}


def build_everyday(keras):
    """Merges, what Keras writes for operators and keras.ops, frozen layers and GroupNormalization."""
    L, ops = keras.layers, keras.ops
    x = L.Input((5, 9), name="x")
    a = L.Dense(12, activation="tanh", name="left")(x)
    b = L.Dense(12, activation="gelu", trainable=False, name="right")(x)
    high, low = L.Maximum(name="high")([a, b]), L.Minimum(name="low")([a, b])
    h = L.Average(name="middle")([L.Subtract(name="range")([high, low]), a, b])
    h = 0.5 * h + low / 3 - a
    h = L.GroupNormalization(3, name="group_norm")(h)
    weights = ops.softmax(ops.matmul(h, L.Permute((2, 1), name="columns")(h)) / 2.0)
    h = ops.reshape(ops.matmul(weights, h), (-1, 5, 3, 4))
    h = ops.reshape(ops.transpose(h, (0, 2, 1, 3)), (-1, 3, 20))
    h = L.LayerNormalization(trainable=False, name="frozen_norm")(h)
    h = L.Concatenate(name="ends")([h[:, 0], h[:, -1]])
    return keras.Model(x, L.Dense(4, name="logits")(h), name="everyday"), dict(
        optimizer=keras.optimizers.AdamW(5e-3, weight_decay=0.02, global_clipnorm=0.5), loss=base.sparse_ce(keras)
    )


def everyday_data(np, rng):
    x = rng.normal(size=(STEPS, 10, 5, 9)).astype("float32")
    return {"x": x}, {"y": x[:, :, 0, :4].argmax(-1).astype("int32")}


def build_reversible(keras):
    """Embeddings that also make the logits, tied and untied, and attention with all its options."""
    L = keras.layers
    vocab, d = 17, 10
    tokens = L.Input((6,), dtype="int32", name="tokens")
    tied = L.ReversibleEmbedding(vocab, d, logit_soft_cap=3.0, name="tied")
    untied = L.ReversibleEmbedding(vocab, d, tie_weights=False, name="untied")
    x = L.Add(name="embed_sum")([tied(tokens), untied(tokens)])
    h = L.RMSNormalization(name="norm_1")(x)
    h = L.MultiHeadAttention(3, 4, value_dim=5, dropout=0.2, use_gate=True, sliding_window=4, name="attention")(
        h, h, use_causal_mask=True)
    x = L.Add(name="residual_1")([x, h])
    h = L.LayerNormalization(name="norm_2")(x)
    h = L.GroupQueryAttention(3, 4, 2, dropout=0.1, use_gate=True, sliding_window=2, name="grouped_attention")(h, h)
    x = L.Add(name="residual_2")([x, h])
    logits = L.Average(name="logits")([tied(x, reverse=True), untied(x, reverse=True)])
    return keras.Model(tokens, logits, name="reversible"), dict(
        optimizer=keras.optimizers.Adam(4e-3), loss=base.sparse_ce(keras)
    )


def reversible_data(np, rng):
    x = rng.integers(0, 17, size=(STEPS, 9, 6))
    return {"tokens": x.astype("int32")}, {"y": ((x + np.roll(x, 1, -1)) % 17).astype("int32")}


def build_masked(keras):
    """A mask from mask_zero through all that uses it: attention, pooling, two losses and a metric."""
    L = keras.layers
    tokens = L.Input((7,), dtype="int32", name="tokens")
    x = L.Embedding(23, 12, mask_zero=True, name="embedding")(tokens)
    x = L.Dropout(0.1, name="embedding_dropout")(x)
    h = L.GroupQueryAttention(6, 2, 1, dropout=0.1, name="causal_attention")(x, x, use_causal_mask=True)
    x = L.Add(name="residual_1")([x, h])
    h = L.LayerNormalization(name="norm")(x)  # MultiHeadAttention takes away its inputs' masks
    h = L.MultiHeadAttention(2, 6, name="attention")(h, h)
    x = L.Add(name="residual_2")([x, L.Dense(12, activation="gelu", name="dense")(h)])
    tag = L.Dense(5, name="tag_logits")(x)
    label = L.Dense(3, name="label_logits")(L.GlobalAveragePooling1D(name="pool")(x))
    return keras.Model(tokens, {"label": label, "tag": tag}, name="masked"), dict(
        optimizer=keras.optimizers.Adam(4e-3),
        loss={"label": base.sparse_ce(keras), "tag": base.sparse_ce(keras)},
        loss_weights={"label": 1.0, "tag": 0.7},
        metrics={"tag": ["accuracy"]},
    )


def masked_data(np, rng):
    """Padded behind, with some holes; no sample is empty."""
    x = rng.integers(1, 23, size=(STEPS, 11, 7))
    lengths = rng.integers(1, 8, size=(STEPS, 11, 1))
    x = np.where((np.arange(7) < lengths) & (rng.uniform(size=x.shape) < 0.85), x, 0)
    x[..., 0] = np.maximum(x[..., 0], 1)
    targets = {"label": (x.sum(-1) % 3).astype("int32"), "tag": (x % 5).astype("int32")}
    return {"tokens": x.astype("int32")}, targets


def build_regularized(keras):
    """Every regularizer and constraint; those of a frozen layer, which Keras doesn't use; a table that the loss doesn't
    depend on."""
    L, R, C = keras.layers, keras.regularizers, keras.constraints
    tokens = L.Input((6,), dtype="int32", name="tokens")
    table = L.ReversibleEmbedding(19, 12, tie_weights=False, embeddings_regularizer=R.L2(0.02),
                                  embeddings_constraint=C.MaxNorm(0.12, axis=1), name="embedding")
    h = L.LayerNormalization(gamma_regularizer=R.L1(2.0**-7), beta_constraint=C.NonNeg(), name="norm")(table(tokens))
    h = L.MultiHeadAttention(2, 6, kernel_regularizer=R.L2(0.01), bias_regularizer=R.L1L2(0.002, 0.1),
                             kernel_constraint=C.MaxNorm(1.1, axis=[0, 1]), name="attention")(h, h)
    h = L.EinsumDense("abc,cd->abd", (6, 14), bias_axes="d", kernel_constraint=C.UnitNorm(), name="unit")(h)
    h = L.Dense(14, activation="tanh", trainable=False, kernel_regularizer=R.L2(3.0), kernel_constraint=C.NonNeg(),
                name="frozen")(h)
    h = L.GroupNormalization(2, gamma_constraint=C.MinMaxNorm(0.9, 1.0, rate=0.5), beta_regularizer=R.L2(0.3),
                             name="group_norm")(h)
    h = L.Dense(12, activation="gelu", kernel_regularizer=R.L1L2(0.001, 0.02), bias_regularizer=R.L1(2.0**-6),
                kernel_constraint=C.MinMaxNorm(0.8, 1.2, rate=0.7), name="bounded")(h)
    logits = L.Dense(19, kernel_constraint=C.MaxNorm(1.0), name="logits")(h)
    return keras.Model(tokens, logits, name="regularized"), dict(
        optimizer=keras.optimizers.AdamW(5e-3, weight_decay=0.02, global_clipnorm=0.5), loss=base.sparse_ce(keras),
        metrics=["accuracy"],
    )


def regularized_data(np, rng):
    x = rng.integers(0, 19, size=(STEPS, 10, 6))
    return {"tokens": x.astype("int32")}, {"y": ((x * 3 + np.roll(x, 1, -1)) % 19).astype("int32")}


def build_weighted(keras):
    """Regression and classes with sample weights: a divisor that is the weights' sum, weighted metrics and others."""
    L, K, M = keras.layers, keras.losses, keras.metrics
    x = L.Input((13,), name="x")
    h = L.Dense(26, activation="tanh", name="hidden")(x)
    value = L.Dense(3, name="value")(h)
    level = L.Reshape((4, 2), name="level")(L.Dense(8, name="level_dense")(h))
    flags = L.Dense(5, activation="sigmoid", name="flags")(h)
    kind = L.Dense(6, activation="softmax", name="kind")(h)
    outputs = {"flags": flags, "kind": kind, "level": level, "value": value}
    return keras.Model(x, outputs, name="weighted"), dict(
        optimizer=keras.optimizers.SGD(0.05, momentum=0.9),
        loss={"flags": K.BinaryCrossentropy(), "kind": K.CategoricalCrossentropy(reduction="sum"),
              "level": K.MeanAbsoluteError(reduction="mean_with_sample_weight"), "value": K.Huber()},
        loss_weights={"flags": 1.0, "kind": 0.05, "level": 0.5, "value": 2.0},
        metrics={"flags": [M.Precision(name="precision"), M.Recall(thresholds=0.4, name="recall")],
                 "kind": [M.TopKCategoricalAccuracy(k=2), "accuracy"], "level": ["mae"], "value": ["mse"]},
        weighted_metrics={"flags": [M.Precision(name="precision"), "binary_accuracy"], "kind": ["accuracy"],
                          "level": ["mae", "mse"], "value": [M.MeanSquaredError()]},
    )


def weighted_data(np, rng):
    x = rng.normal(size=(STEPS, 10, 13)).astype("float32")
    value = 2.5 * np.tanh(x[..., :3]) + 0.3 * rng.normal(size=(STEPS, 10, 3))
    level = (x[..., 3:11].reshape(STEPS, 10, 4, 2) * 0.7).astype("float32")
    flags = (x[..., :5] + 0.3 * x[..., 5:10] > 0.2).astype("float32")
    kind = np.eye(6, dtype="float32")[x[..., :6].argmax(-1)]
    return {"x": x}, {"flags": flags, "kind": kind, "level": level, "value": value.astype("float32")}


def weighted_weights(np, rng):
    """One a sample in two shapes, and one an entry; some are 0 and some below."""
    w = lambda *shape: np.round(rng.normal(1.0, 0.6, size=(STEPS, 10, *shape)), 2).astype("float32")
    return {"flags": w(), "kind": w(1), "level": w(4), "value": np.where(w() < 0.4, 0, w()).astype("float32")}


def build_ignored(keras):
    """Labels that don't count, with and without masks and weights."""
    L, K, M = keras.layers, keras.losses, keras.metrics
    tokens = L.Input((6,), dtype="int32", name="tokens")
    masked = L.Embedding(19, 10, mask_zero=True, name="masked_embedding")(tokens)
    plain = L.Embedding(19, 8, name="plain_embedding")(tokens)
    sparse = lambda **kw: base.sparse_ce(keras, ignore_class=-1, **kw)
    outputs = {"by_weight": L.Dense(5, name="by_weight_logits")(masked), "each": L.Dense(7, name="each_logits")(plain),
               "one": L.Dense(5, name="one_logits")(masked)}
    return keras.Model(tokens, outputs, name="ignored"), dict(
        optimizer=keras.optimizers.Adam(8e-3),
        loss={"by_weight": sparse(reduction="mean_with_sample_weight"), "each": sparse(), "one": sparse()},
        metrics={"by_weight": ["accuracy"], "each": [M.SparseTopKCategoricalAccuracy(k=3)], "one": ["accuracy"]},
        weighted_metrics={"by_weight": ["accuracy"], "each": ["accuracy"], "one": ["accuracy"]},
    )


def ignored_data(np, rng):
    x = rng.integers(0, 19, size=(STEPS, 9, 6))
    x[..., 0] = np.maximum(x[..., 0], 1)
    some = lambda y: np.where(rng.uniform(size=y.shape) < 0.3, -1, y).astype("int32")
    return {"tokens": x.astype("int32")}, {"by_weight": some(x % 5), "each": some((x + 1) % 7), "one": some(x % 5)}


def ignored_weights(np, rng):
    w = lambda *shape: np.round(rng.uniform(0.1, 2.0, size=(STEPS, 9, *shape)), 2).astype("float32")
    return {"by_weight": w(6), "each": w(6), "one": w(1)}


def build_batch_norm(keras):
    """BatchNormalization: with a mask, of another axis, without gamma or beta, frozen, and one called twice."""
    L = keras.layers
    tokens, numbers = L.Input((7,), dtype="int32", name="tokens"), L.Input((5, 9), name="numbers")
    h = L.Embedding(23, 10, mask_zero=True, embeddings_initializer="normal", name="embedding")(tokens)
    h = L.BatchNormalization(momentum=0.8, gamma_regularizer=keras.regularizers.L2(0.05), name="masked_norm")(h)
    h = L.Dense(12, activation="gelu", name="tokens_dense")(h)
    a = L.GlobalAveragePooling1D(name="pool")(L.BatchNormalization(scale=False, epsilon=0.01, name="unscaled_norm")(h))
    a = L.Dense(12, activation="tanh", name="pooled_dense")(a)
    x = L.Dense(8, activation="tanh", name="numbers_dense")(numbers)
    x = L.BatchNormalization(axis=1, momentum=0.9, name="axis_norm")(x)
    x = L.Dense(8, activation="gelu", name="between")(x)
    x = L.BatchNormalization(trainable=False, name="frozen_norm")(x)
    b = L.Dense(12, activation="tanh", name="flat_dense")(L.Flatten(name="flat")(x))
    shared = L.BatchNormalization(center=False, momentum=0.7, name="shared_norm")
    h = L.Concatenate(name="both")([shared(a), shared(b)])
    return keras.Model({"tokens": tokens, "numbers": numbers}, L.Dense(4, name="logits")(h), name="batch_norm"), dict(
        optimizer=keras.optimizers.AdamW(5e-3, weight_decay=0.02), loss=base.sparse_ce(keras), metrics=["accuracy"]
    )


def batch_norm_data(np, rng):
    x = rng.integers(1, 23, size=(STEPS, 13, 7))
    x = np.where(np.arange(7) < rng.integers(1, 8, size=(STEPS, 13, 1)), x, 0)
    numbers = (rng.normal(size=(STEPS, 13, 5, 9)) + 0.5).astype("float32")
    label = (x.sum(-1) + (numbers[..., 0, 0] > 0.5)) % 4
    return {"tokens": x.astype("int32"), "numbers": numbers}, {"y": label.astype("int32")}


FIXTURES = {
    "dropout": (build_dropout, dropout_data, 201, {"dropout": True}),
    "two_outputs": (build_two_outputs, two_outputs_data, 202, {}),
    "text": (build_text, text_data, 203, {}),
    "probabilities": (build_probabilities, probabilities_data, 204, {"outputs": ["kind", "flags"]}),
    "everyday": (build_everyday, everyday_data, 205, {}),
    "reversible": (build_reversible, reversible_data, 206, {"dropout": True}),
    "masked": (build_masked, masked_data, 207, {"dropout": True}),
    "batch_norm": (build_batch_norm, batch_norm_data, 209, {}),
    "regularized": (build_regularized, regularized_data, 208, {}),
    "weighted": (build_weighted, weighted_data, 208, {"weights": weighted_weights}),
    "ignored": (build_ignored, ignored_data, 209, {"weights": ignored_weights}),
}

# ---------------------------------------------------------------------------
# Stages: those of make_fixtures, with what they lack
# ---------------------------------------------------------------------------


def weights_of(make, np, keras):
    """The same numbers in float32 and float64, one array an output: [STEPS, batch, ...]."""
    return {k: v.astype(keras.config.floatx()) for k, v in make(np, np.random.default_rng(19)).items()}


def use_weights(make):
    """Lets make_fixtures train with sample weights."""
    import keras
    import numpy as np

    def train(np, model, xs, ys, steps):
        losses, rates, ws = [], [], weights_of(make, np, keras)
        for i in steps:
            rates.append(float(np.asarray(model.optimizer.learning_rate)))
            logs = model.train_on_batch(base.batch_of(xs, i), base.batch_of(ys, i),
                                        sample_weight=base.batch_of(ws, i), return_dict=True)
            losses.append(float(logs["loss"]))
            model.reset_metrics()
        return losses, rates

    plain = keras.Model.compute_loss_and_updates

    def with_weights(self, tv, ntv, mv, x, y, sample_weight, *rest, **kw):
        if sample_weight is None:
            sample_weight = base.batch_of(weights_of(make, np, keras), 0)
        return plain(self, tv, ntv, mv, x, y, sample_weight, *rest, **kw)

    base.train, keras.Model.compute_loss_and_updates = train, with_weights


def adapt(name, opts):
    """Lets make_fixtures handle lists of outputs, several losses and Rankine's masks."""
    outputs = opts.get("outputs")
    batch_of, forward, gradients, setup = base.batch_of, base.forward, base.first_gradients, base.setup

    def our_batch_of(data, i):
        if outputs and set(data) == set(outputs):
            return [data[k][i] for k in outputs]
        return batch_of(data, i)

    def our_forward(jax, np, model, x):
        if not outputs:
            return forward(jax, np, model, x)
        return {k: np.asarray(v) for k, v in zip(outputs, model(x, training=False))}

    def our_gradients(jax, np, model, x, y):
        model._symbolic_build(data_batch=(x, y, None))  # makes the trackers of the outputs' losses
        return gradients(jax, np, model, x, y)

    def our_setup(*args, **kw):
        done = setup(*args, **kw)
        h5py, jax, keras, np, builder = done[:5]
        if opts.get("dropout"):
            use_our_masks(jax, keras, np, builder)
            keras.backend.clear_session()
            keras.utils.set_random_seed(done[6])
        return done

    if opts.get("weights"):
        use_weights(opts["weights"])
    base.batch_of, base.forward, base.first_gradients, base.setup = our_batch_of, our_forward, our_gradients, our_setup


def add_facts(name, opts, folder):
    """What the trained model scores over all samples, and where the masks come from."""
    h5py, jax, keras, np, builder = base.setup(name, FIXTURES[name])[:5]
    model = keras.models.load_model(os.path.join(folder, "final.keras"))
    path = os.path.join(folder, "expected.json")
    with open(path) as f:
        meta = json.load(f)
    with h5py.File(os.path.join(folder, "data.h5"), "r") as f:
        x, y = ({k: v[()] for k, v in f[g].items()} for g in ("inputs", "targets"))
    if opts.get("outputs"):
        y = [y[k] for k in opts["outputs"]]
    elif len(y) == 1:
        y = next(iter(y.values()))
    x = x if len(x) > 1 else next(iter(x.values()))
    weights = None
    if opts.get("weights"):
        weights = {k: base.flat(v) for k, v in weights_of(opts["weights"], np, keras).items()}
    scores = model.evaluate(x, y, sample_weight=weights, batch_size=meta["batch"], verbose=0, return_dict=True)
    meta["evaluate_final"] = {k: float(v) for k, v in scores.items()}
    if opts.get("dropout"):
        numbers = use_our_masks(jax, keras, np, builder)
        meta["dropout"] = {
            "seed": DROPOUT_SEED, "first_step": 1,
            "rule": "dropped when (word >> 8) / 2**24 < rate; word = philox(seed, {block, sample, step, 2 << 24 | call})",
            "calls": {layer.name: numbers[layer.name] for layer in model.layers
                      if isinstance(layer, keras.layers.Dropout) or getattr(layer, "_dropout_layer", None)},
            "kept_step_1": {
                layer.name: int(keep_mask(np, DROPOUT_SEED, (meta["batch"],) + tuple(layer.output.shape[1:]), 1,
                                          numbers[layer.name], layer.rate).sum())
                for layer in model.layers if isinstance(layer, keras.layers.Dropout)
            },
        }
    with open(path, "w") as f:
        json.dump(meta, f, indent=1)


def run_stage(stage, name, folder):
    opts = FIXTURES[name][3]
    adapt(name, opts)
    if stage == "facts":
        return add_facts(name, opts, folder)
    base.STAGES[stage](name, FIXTURES[name], folder)
    if stage == "make" and opts.get("weights"):
        h5py, _, keras, np = base.modules()
        with h5py.File(os.path.join(folder, "data.h5"), "a") as f:
            for k, v in weights_of(opts["weights"], np, keras).items():
                f["sample_weights/" + k] = base.flat(v)
    if stage == "make" and name == "text":
        with open(os.path.join(folder, "text.txt"), "wb") as f:
            f.write(text_of_fixture())


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--out", default=HERE, help="folder to make them in")
    ap.add_argument("--only", default="", help="comma-separated names")
    ap.add_argument("--stage", help=argparse.SUPPRESS)
    a = ap.parse_args()
    names = a.only.split(",") if a.only else list(FIXTURES)
    if a.stage:
        run_stage(a.stage, names[0], os.path.join(a.out, names[0]))
        return 0
    for name in names:
        for stage in ["make", "check", "f64", "facts"]:
            env = dict(os.environ, JAX_ENABLE_X64="1" if stage == "f64" else "0")
            cmd = [sys.executable, os.path.abspath(__file__), "--stage", stage, "--only", name, "--out", a.out]
            if subprocess.run(cmd, env=env).returncode:
                print(f"FAILED: {name} at stage {stage}", flush=True)
                return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
