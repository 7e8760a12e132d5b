"""What Keras computes for single layers, losses and metrics: the truth for test/model/test_layers_golden.cpp.

    KERAS_BACKEND=jax python make_layer_cases.py          # all cases
    KERAS_BACKEND=jax python make_layer_cases.py --new    # those that the files lack; the others stay

writes layers.json, losses.json and metrics.json into layers/ beside this script. Needs keras==3.15.1 and jax; the versions
are in the files. Inputs and weights are float32 numbers; expected values are those of a float64 run of the same
layer. A tolerance for float32 is 8 x the largest difference between Keras's own float32 and float64 runs, and at
least 2e-6 of the largest expected value (fixtures' rule: measured rounding, with a floor).
"""

import json
import os
import sys
import zlib
from pathlib import Path

os.environ["KERAS_BACKEND"] = "jax"

import jax

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_default_matmul_precision", "highest")

import keras
import numpy as np
from keras import layers as L
from keras.src import backend

SAMPLES = 4
MERGES = (L.Concatenate, L.Add, L.Multiply, L.Subtract, L.Average, L.Maximum, L.Minimum)


def keep_float64():
    """Keras on JAX says that float64 with float32 makes float32, and JAX's attention takes its softmax in
    float32: the float64 run needs neither. What is float32 stays as it is, but for values of another size than
    the keys, which JAX's attention can't do."""
    from keras.src.backend.common import dtypes

    plain_type, plain_attention = dtypes.result_type, jax.nn.dot_product_attention

    def result_type(*args):
        wide = any("float64" in str(getattr(a, "dtype", a)) for a in args)
        return "float64" if wide else plain_type(*args)

    def attention(q, k, v, bias=None, mask=None, *, scale=None, is_causal=False, **options):
        if q.dtype != np.float64 and v.shape[-1] == q.shape[-1]:
            return plain_attention(q, k, v, bias, mask, scale=scale, is_causal=is_causal, **options)
        assert bias is None and not any(x is not None for x in options.values() if not isinstance(x, str))
        k, v = (jax.numpy.repeat(x, q.shape[2] // k.shape[2], axis=2) for x in (k, v))
        scores = jax.numpy.einsum("btnh,bsnh->bnts", q, k) * (q.shape[-1] ** -0.5 if scale is None else scale)
        if is_causal:
            mask = jax.numpy.tril(jax.numpy.ones(scores.shape[-2:], bool))
        if mask is not None:
            scores = jax.numpy.where(mask, scores, -1e30)
        return jax.numpy.einsum("bnts,bsnh->btnh", jax.nn.softmax(scores, axis=-1), v)

    dtypes.result_type = backend.result_type = result_type
    jax.nn.dot_product_attention = attention


keep_float64()


def known_cases():
    if "--new" not in sys.argv:
        return {}
    path = Path(__file__).parent / "layers" / "layers.json"
    return {case["name"]: case for case in json.loads(path.read_text())["cases"]}


KNOWN = known_cases()


def rng_of(name):
    return np.random.default_rng(zlib.crc32(name.encode()))


def tensor(array):
    array = np.asarray(array)
    if np.issubdtype(array.dtype, np.integer):
        return {"shape": list(array.shape), "dtype": "int32", "data": array.ravel().tolist()}
    digits = 9 if array.dtype == np.float32 else 14
    return {"shape": list(array.shape), "dtype": "float64", "data": [float(f"{v:.{digits}g}") for v in array.ravel()]}


def tolerance(exact, rounded):
    exact = np.asarray(exact, "float64")
    if exact.size == 0:
        return 0.0
    return float(max(2e-6 * np.abs(exact).max(), 8 * np.abs(exact - np.asarray(rounded, "float64")).max(), 1e-30))


def run(make, weights, inputs, cotangent, kwargs, same, dtype, masks):
    keras.config.set_floatx(dtype)  # some functions of Keras compute in it whatever the layer says
    layer = make(dtype)
    cast = [x if x.dtype == np.int32 else x.astype(dtype) for x in inputs]
    merge = isinstance(layer, MERGES)
    layer.build([x.shape for x in cast]) if merge else layer.build(*[x.shape for x in cast])
    layer.set_weights([w.astype(dtype) for w in weights])
    values = [v.value for v in layer.trainable_variables]
    others = [v.value for v in layer.non_trainable_variables]
    floats = [i for i, x in enumerate(cast) if x.dtype != np.int32]

    def call(values, float_inputs):
        full = list(cast)
        for i, x in zip(floats, float_inputs):
            full[i] = x
        if same:
            full = [full[0]] * len(full)
        if masks:  # which stateless_call would overlook
            for x, mask in zip(full, masks):
                if mask is not None:
                    backend.set_keras_mask(x, jax.numpy.asarray(mask, "bool"))
            with keras.StatelessScope(list(zip(layer.trainable_variables, values))):
                return layer(*full, **kwargs)
        out, _ = layer.stateless_call(values, others, *([full] if merge else full), **kwargs)
        return out

    out, pull = jax.vjp(call, values, [cast[i] for i in floats])
    if cotangent is None:
        return layer, out, None, None
    dvalues, dinputs = pull(cotangent.astype(dtype).reshape(out.shape))
    found = dict(zip([v.path for v in layer.trainable_variables], dvalues))
    dvalues = [found.get(v.path, np.zeros(v.shape)) for v in layer.weights]
    gradients = [None] * len(cast)
    for i, g in zip(floats, dinputs):
        gradients[i] = g
    return layer, out, dvalues, gradients


def case(name, make, input_shapes, ids=None, kwargs=None, same=False, scale=1.0, inputs=None, masks=()):
    """`make(dtype)` makes the layer; `same` gives the first input in every place. `masks` go with the inputs, which
    then get them as Keras's layers pass them on."""
    if name in KNOWN:
        return KNOWN[name]
    kwargs = kwargs or {}
    rng = rng_of(name)
    if inputs is None:
        inputs = [(scale * rng.standard_normal((SAMPLES, *s))).astype("float32") for s in input_shapes]
    if ids is not None:
        inputs = [rng.integers(0, ids, (SAMPLES, *s)).astype("int32") for s in input_shapes]
    if same:
        inputs = [inputs[0]] * len(inputs)
    probe = make("float64")
    merge = isinstance(probe, MERGES)
    probe.build([x.shape for x in inputs]) if merge else probe.build(*[x.shape for x in inputs])
    weights = []
    for w in probe.weights:
        fan = max(1, int(np.prod(w.shape[:-1])) if len(w.shape) > 1 else 1)
        value = rng.standard_normal(w.shape) / np.sqrt(fan)
        if "variance" in w.path:
            value = np.abs(value)
        weights.append((value + (1 if "gamma" in w.path or "scale" in w.path else 0)).astype("float32"))
    _, out, _, _ = run(make, weights, inputs, None, kwargs, same, "float64", masks)
    cotangent = rng.standard_normal(out.shape).astype("float32")
    assert out.dtype == np.float64, name
    layer, out, dw, dx = run(make, weights, inputs, cotangent, kwargs, same, "float64", masks)
    _, out32, dw32, dx32 = run(make, weights, inputs, cotangent, kwargs, same, "float32", masks)
    envelope = keras.saving.serialize_keras_object(make("float32"))
    # The true gradient of a key's bias is zero: softmax doesn't see a shift that all keys share.
    noise = [w.path.endswith("key/bias") for w in layer.weights]
    result = {
        "name": name,
        "class_name": envelope["class_name"],
        "config": envelope["config"],
        "use_causal_mask": bool(kwargs.get("use_causal_mask", False)),
        "reverse": bool(kwargs.get("reverse", False)),
        "training": bool(kwargs.get("training", True)),
        "same_input": same,
        "inputs": [tensor(x) for x in inputs],
        "weights": [dict(tensor(w), path=v.path) for w, v in zip(weights, layer.weights)],
        "output": tensor(out),
        "output_tolerance": tolerance(out, out32),
        "output_gradient": tensor(cotangent),
        "input_gradients": [None if g is None else tensor(g) for g in dx],
        "input_gradient_tolerances": [None if g is None else tolerance(g, h) for g, h in zip(dx, dx32)],
        "weight_gradients": [tensor(g) for g in dw],
        "weight_gradient_tolerances": [1e-4 if z else tolerance(g, h) for g, h, z in zip(dw, dw32, noise)],
    }
    if masks or "attention_mask" in kwargs:
        given = list(masks or [None] * len(inputs)) + [kwargs.get("attention_mask")]
        result["masks"] = [None if m is None else tensor(np.asarray(m, "int32")) for m in given]
    if same:  # jax gave the whole gradient to the first one
        result["input_gradients"] = result["input_gradients"][:1]
        result["input_gradient_tolerances"] = result["input_gradient_tolerances"][:1]
    return result


def operation_case(name, function, input_shapes):
    """`function` of tensors is one operation of keras.ops: the case has its envelope, as Keras writes it."""
    if name in KNOWN:
        return KNOWN[name]
    rng = rng_of(name)
    inputs = [rng.standard_normal((SAMPLES, *s)).astype("float32") for s in input_shapes]
    symbols = [keras.Input(s, name=f"x{i}", dtype="float32") for i, s in enumerate(input_shapes)]
    config = json.loads(keras.Model(symbols, function(*symbols)).to_json())["config"]
    envelope = next(layer for layer in config["layers"] if layer["class_name"] != "InputLayer")
    keras.config.set_floatx("float64")
    out, pull = jax.vjp(function, *[jax.numpy.asarray(x, "float64") for x in inputs])
    cotangent = rng.standard_normal(out.shape).astype("float32")
    dx = pull(cotangent.astype("float64"))
    keras.config.set_floatx("float32")
    out32, pull32 = jax.vjp(function, *[jax.numpy.asarray(x) for x in inputs])
    dx32 = pull32(jax.numpy.asarray(cotangent))
    assert out.dtype == np.float64 and out32.dtype == np.float32, name
    return {
        "name": name,
        "module": envelope["module"],
        "class_name": envelope["class_name"],
        "config": envelope["config"],
        "inbound_nodes": envelope["inbound_nodes"],
        "use_causal_mask": False,
        "same_input": False,
        "inputs": [tensor(x) for x in inputs],
        "weights": [],
        "output": tensor(out),
        "output_tolerance": tolerance(out, out32),
        "output_gradient": tensor(cotangent),
        "input_gradients": [tensor(g) for g in dx],
        "input_gradient_tolerances": [tolerance(g, h) for g, h in zip(dx, dx32)],
        "weight_gradients": [],
        "weight_gradient_tolerances": [],
    }


def operation_cases():
    c = []
    x, y = (3, 4), (3, 4)

    def add(name, function, *shapes):
        c.append(operation_case("operation " + name, function, shapes or (x,)))

    add("x + y", lambda a, b: a + b, x, y)
    add("x - y", lambda a, b: a - b, x, y)
    add("x * y repeated", lambda a, b: a * b, x, (1, 4))
    add("maximum", keras.ops.maximum, x, y)
    add("minimum", keras.ops.minimum, x, y)
    add("x + 1.5", lambda a: a + 1.5)
    add("0.5 * x", lambda a: 0.5 * a)
    add("x / 3", lambda a: a / 3)
    add("2 / x", lambda a: 2 / a)
    add("divide(-0.5, x)", lambda a: keras.ops.divide(-0.5, a), (5,))
    add("divide", lambda a: keras.ops.divide(a, 8.0))
    add("1 - x", lambda a: 1 - a)
    add("x - 2", lambda a: a - 2, (5,))
    add("-x", lambda a: -a)
    add("array without dimensions", lambda a: a * np.float32(0.25))
    add("reshape", lambda a: keras.ops.reshape(a, (-1, 2, 6)))
    add("transpose", lambda a: keras.ops.transpose(a, (0, 3, 1, -2)), (2, 3, 4))
    add("matmul", keras.ops.matmul, x, (4, 5))
    add("matmul of heads", lambda a, b: a @ b, (2, 2, 66), (2, 66, 2))
    add("softmax", lambda a: keras.ops.softmax(a))
    add("softmax axis 1", lambda a: keras.ops.softmax(a, axis=1))
    add("x[:, 1]", lambda a: a[:, 1])
    add("x[:, -1]", lambda a: a[:, -1], (5,))
    add("x[:, 1:3]", lambda a: a[:, 1:3])
    add("x[..., 0]", lambda a: a[..., 0])
    add("x[:, :, None]", lambda a: a[:, :, None])
    add("x[:, 0:2, 1, -3:-1]", lambda a: a[:, 0:2, 1, -3:-1], (3, 2, 4))
    add("x[:, 1, ..., 1:]", lambda a: a[:, 1, ..., 1:], (3, 2, 4))
    for key in ("::2", "::-1", "1::2, ::-3", ":, 3:0:-2", "::-1, 1", "2::-2, :, 1:", "-1:-3:-1, ..., ::3", "9:-9:-2"):
        add(f"x[:, {key}]", eval(f"lambda a: a[:, {key}]"), (4, 5, 7))
    return c


def activation_inputs(name):
    rng = rng_of("points " + name)
    points = np.concatenate([rng.standard_normal(11) * 1.5, rng.uniform(-8, 8, 11), [-30.0, 30.0]])
    return [points.reshape(SAMPLES, 6).astype("float32")]


ELEMENTWISE = (
    "linear relu relu6 leaky_relu elu selu celu gelu silu swish softplus softsign tanh sigmoid hard_sigmoid hard_silu "
    "hard_swish hard_tanh mish exponential log_sigmoid squareplus hard_shrink soft_shrink tanh_shrink sparse_plus "
    "sparse_sigmoid softmax log_softmax glu"
).split()


def layer_cases():
    c = []
    for a in ELEMENTWISE:
        c.append(case(f"activation {a}", lambda d, a=a: L.Activation(a, dtype=d), None, inputs=activation_inputs(a)))
    for a in ("gelu", "relu", "leaky_relu", "softmax", "log_softmax", "glu", "silu"):
        c.append(case(f"dense {a}", lambda d, a=a: L.Dense(6, activation=a, dtype=d), [(5,)]))
    c.append(case("dense without bias", lambda d: L.Dense(3, use_bias=False, dtype=d), [(2, 3, 5)]))
    c.append(case("dense wide", lambda d: L.Dense(18, dtype=d), [(33,)]))
    c.append(case("dense layer as activation", lambda d: L.Dense(4, activation=L.ReLU(max_value=0.5, dtype=d), dtype=d),
                  [(3, 5)]))
    for options in ({}, {"max_value": 1.0}, {"negative_slope": 0.25}, {"threshold": 0.5},
                    {"max_value": 2.0, "negative_slope": 0.1, "threshold": 0.3}):
        c.append(case(f"ReLU {options}", lambda d, o=options: L.ReLU(dtype=d, **o), [(6,)], scale=1.5))
    c.append(case("LeakyReLU", lambda d: L.LeakyReLU(dtype=d), [(2, 3)]))
    c.append(case("LeakyReLU 0.1", lambda d: L.LeakyReLU(negative_slope=0.1, dtype=d), [(2, 3)]))
    c.append(case("ELU", lambda d: L.ELU(alpha=1.5, dtype=d), [(2, 3)]))
    for o in ({}, {"axis": 1}, {"axis": -2, "center": False}, {"scale": False, "epsilon": 0.01}):
        c.append(case(f"BatchNormalization {o}", lambda d, o=o: L.BatchNormalization(dtype=d, **o), [(6, 3, 5)],
                      kwargs={"training": True}))
    c.append(case("BatchNormalization masked", lambda d: L.BatchNormalization(dtype=d), [(5, 3)],
                  kwargs={"training": True}, masks=[np.arange(5) < np.array([[1], [5], [2], [4]])]))
    c.append(case("Softmax", lambda d: L.Softmax(dtype=d), [(2, 3)]))
    c.append(case("Softmax axis 1", lambda d: L.Softmax(axis=1, dtype=d), [(4, 3)]))
    c.append(case("Softmax axis -2 of 4", lambda d: L.Softmax(axis=-3, dtype=d), [(4, 3, 2)]))

    # Equations: (equation, output_shape, bias_axes, input shape without the batch)
    equations = [
        ("abc,cd->abd", (3, 4), "d", (3, 5)),
        ("abc,cde->abde", (3, 2, 4), "de", (3, 5)),
        ("abcd,cde->abe", (3, 5), "e", (3, 2, 4)),
        ("ab,bc->ac", 4, None, (5,)),
        ("...d,df->...f", 4, "f", (2, 3, 5)),
        ("...d,df->...f", 4, "f", (5,)),
        ("ab...,bc->ac...", 4, "c", (5, 2, 3)),
        ("abc,dc->abd", (3, 4), "d", (3, 5)),
        ("abc,bcd->abd", (3, 4), "d", (3, 5)),
        ("abc,cbd->abd", (3, 4), "bd", (3, 5)),
        ("abc,bd->adc", (4, 5), "d", (3, 5)),
        ("abc,cd->adb", (4, 3), "b", (3, 5)),
        ("abcd,dce->abe", (3, 5), "e", (3, 2, 4)),
        ("abcd,bde->abce", (3, 2, 5), "be", (3, 2, 4)),
        ("abc,cde->abed", (3, 4, 2), "e", (3, 5)),
        ("abc,cde->adbe", (2, 3, 4), "de", (3, 5)),
        ("abc,cd->ad", (4,), "d", (3, 5)),
        ("abcd,d->abc", (3, 2), "c", (3, 2, 4)),
        ("ab,c->abc", (5, 3), "b", (5,)),
        ("abcd,be->aced", (2, 5, 4), "ce", (3, 2, 4)),
        ("abc,ecd->abde", (2, 4, 3), None, (2, 33)),
    ]
    for equation, shape, bias, x in equations:
        name = f"einsum {equation} {bias} {len(x)}"
        c.append(case(name, lambda d, q=equation, s=shape, b=bias: L.EinsumDense(q, s, bias_axes=b, dtype=d), [x]))
    c.append(case("einsum gelu", lambda d: L.EinsumDense("abc,cd->abd", (None, 4), activation="gelu", bias_axes="d",
                                                         dtype=d), [(3, 5)]))
    c.append(case("einsum permuted silu", lambda d: L.EinsumDense("abc,cd->adb", (4, 3), activation="silu", bias_axes="db",
                                                                  dtype=d), [(3, 5)]))
    c.append(case("einsum softmax", lambda d: L.EinsumDense("abc,cde->abde", (3, 2, 4), activation="softmax", dtype=d),
                  [(3, 5)]))

    c.append(case("Embedding", lambda d: L.Embedding(7, 5, dtype=d), [(6,)], ids=7))
    c.append(case("Embedding of one id", lambda d: L.Embedding(7, 5, dtype=d), [()], ids=7))
    for options in ({}, {"tie_weights": False}, {"logit_soft_cap": 0.5}):
        for reverse in (False, True):
            name = f"ReversibleEmbedding {options} {'back' if reverse else ''}"
            c.append(case(name, lambda d, o=options: L.ReversibleEmbedding(7, 5, dtype=d, **o),
                          [(6, 5) if reverse else (6,)], ids=None if reverse else 7, kwargs={"reverse": reverse}))
    for options in ({"groups": 2}, {"groups": -1, "center": False}, {"groups": 1, "scale": False, "epsilon": 0.1}):
        c.append(case(f"GroupNormalization {options}", lambda d, o=options: L.GroupNormalization(dtype=d, **o),
                      [(3, 2, 6)]))
    c.append(case("GroupNormalization of a row", lambda d: L.GroupNormalization(3, dtype=d), [(6,)]))
    for options in ({}, {"epsilon": 1e-5, "center": False}, {"scale": False}, {"center": False, "scale": False},
                    {"axis": [-2, -1]}, {"axis": [1, 2, 3]}, {"rms_scaling": True}):
        c.append(case(f"LayerNormalization {options}", lambda d, o=options: L.LayerNormalization(dtype=d, **o),
                      [(2, 3, 5)]))
    for options in ({}, {"epsilon": 0.1, "axis": [-2, -1]}):
        c.append(case(f"RMSNormalization {options}", lambda d, o=options: L.RMSNormalization(dtype=d, **o), [(2, 3, 5)]))

    shapes = {"equal": [(2, 3), (2, 3)], "three": [(2, 3), (2, 3), (2, 3)], "last": [(2, 3), (2, 1)],
              "first": [(1, 3), (2, 3)], "both": [(2, 1), (1, 3)], "middle": [(2, 1, 4), (2, 3, 4)],
              "ends": [(1, 3, 1), (2, 3, 4)], "all": [(1, 1), (2, 3)], "three ways": [(2, 1), (1, 3), (2, 3)]}
    for kind in ("Add", "Multiply", "Subtract", "Average", "Maximum", "Minimum"):
        for name, inputs in shapes.items():
            if kind == "Subtract" and len(inputs) != 2 or kind in ("Average", "Minimum") and name not in (
                    "equal", "three ways"):
                continue
            c.append(case(f"{kind} {name}", lambda d, k=kind: getattr(L, k)(dtype=d), inputs))
    for axis, inputs in ((-1, [(2, 3), (2, 1)]), (1, [(2, 3), (1, 3), (4, 3)]), (2, [(2, 3, 2), (2, 1, 2)])):
        c.append(case(f"Concatenate {axis} of {len(inputs)}", lambda d, a=axis: L.Concatenate(axis=a, dtype=d), inputs))
    c.append(case("Reshape", lambda d: L.Reshape((3, -1), dtype=d), [(2, 6)]))
    c.append(case("Flatten", lambda d: L.Flatten(dtype=d), [(2, 3, 2)]))
    c.append(case("Flatten of one number", lambda d: L.Flatten(dtype=d), [()]))
    c.append(case("Identity", lambda d: L.Identity(dtype=d), [(2, 3)]))
    c.append(case("Dropout 0", lambda d: L.Dropout(0.0, dtype=d), [(2, 3)]))
    c.append(case("Permute", lambda d: L.Permute((3, 1, 2), dtype=d), [(2, 3, 4)]))
    c.append(case("RepeatVector", lambda d: L.RepeatVector(3, dtype=d), [(4,)]))
    c.append(case("GlobalAveragePooling1D", lambda d: L.GlobalAveragePooling1D(dtype=d), [(5, 3)]))
    c.append(case("GlobalAveragePooling1D masked", lambda d: L.GlobalAveragePooling1D(dtype=d), [(5, 3)],
                  masks=[np.arange(5) < np.array([[1], [5], [2], [4]])]))
    c.append(case("GlobalAveragePooling1D keepdims", lambda d: L.GlobalAveragePooling1D(keepdims=True, dtype=d), [(5, 3)]))

    def mha(name, shapes, same=False, causal=False, masks=(), pairs=None, **options):
        options = {"num_heads": 2, "key_dim": 3, **options}
        kwargs = {"use_causal_mask": True} if causal else {}
        if pairs is not None:
            kwargs["attention_mask"] = pairs
        if options.get("dropout"):
            kwargs["training"] = False  # what JAX would drop isn't what Rankine drops
        c.append(case("MultiHeadAttention " + name, lambda d: L.MultiHeadAttention(dtype=d, **options), shapes, same=same,
                      kwargs=kwargs, masks=masks))

    def gqa(name, shapes, same=False, causal=False, masks=(), **options):
        options = {"head_dim": 3, "num_query_heads": 4, "num_key_value_heads": 2, **options}
        kwargs = {"use_causal_mask": True} if causal else {}
        if options.get("dropout"):
            kwargs["training"] = False
        c.append(case("GroupQueryAttention " + name, lambda d: L.GroupQueryAttention(dtype=d, **options), shapes, same=same,
                      kwargs=kwargs, masks=masks))

    x = (5, 6)
    mha("self", [x, x], same=True)
    mha("self causal", [x, x], same=True, causal=True)
    mha("self of three", [x, x, x], same=True)
    mha("self value_dim", [x, x], same=True, value_dim=4, output_shape=7)
    mha("self without bias", [x, x], same=True, use_bias=False)
    mha("equal shapes", [x, x])
    mha("cross", [x, (7, 4)])
    mha("cross causal", [x, (7, 4)], causal=True)
    mha("cross causal short", [(7, 6), (3, 4)], causal=True)
    mha("cross with key", [x, (7, 4), (7, 3)], value_dim=5, use_bias=False)
    mha("wide heads", [x, (7, 4)], key_dim=5, value_dim=4, num_heads=3)
    mha("self gate", [x, x], same=True, use_gate=True, value_dim=4)
    mha("cross gate without bias", [x, (7, 4)], use_gate=True, use_bias=False, causal=True)
    mha("self window", [x, x], same=True, sliding_window=2)
    mha("self window causal", [x, x], same=True, sliding_window=2, causal=True)
    mha("cross window beyond the keys", [(7, 6), (3, 4)], sliding_window=2)
    mha("dropout, not training", [x, x], same=True, dropout=0.4)
    gqa("gate window causal", [x, x], same=True, use_gate=True, sliding_window=3, causal=True)
    # The first sample's keys are all masked, so its queries see nothing.
    fives, sevens = (np.arange(n) < np.array([[0], [n - 2], [n], [2]]) for n in (5, 7))
    holes = np.array([[1, 0, 1, 1, 0], [1, 1, 1, 1, 1], [0, 0, 1, 0, 1], [1, 0, 0, 1, 1]], bool)
    mha("self masked", [x, x], same=True, masks=[fives, fives])
    mha("self masked causal", [x, x], same=True, causal=True, masks=[holes, holes], use_gate=True)
    mha("cross masked values", [x, (7, 4)], masks=[None, sevens])
    mha("cross masked queries window", [x, (7, 4)], masks=[holes, None], sliding_window=3)
    mha("cross masked key", [x, (7, 4), (7, 3)], masks=[None, None, sevens])
    mha("self masked dropout, not training", [x, x], same=True, masks=[fives, fives], dropout=0.4)
    mha("cross attention_mask causal", [x, (7, 4)], causal=True, masks=[None, sevens],
        pairs=rng_of("pairs").integers(0, 2, (SAMPLES, 5, 7)).astype("int32"))
    gqa("self masked causal", [x, x], same=True, causal=True, masks=[fives, fives])
    gqa("self masked dropout, not training", [x, x], same=True, masks=[holes, holes], dropout=0.4)
    gqa("self", [x, x], same=True)
    gqa("self causal", [x, x], same=True, causal=True)
    gqa("one group", [x, x], same=True, causal=True, num_key_value_heads=1, use_bias=False)
    gqa("cross", [x, (4, 5)])
    gqa("cross with key", [x, (4, 5), (4, 3)])
    return c


def loss_cases():
    c = []

    def one(name, make, kind, shape, logits=True, **lost):
        """`lost` is what Keras doesn't put into the loss's config."""
        rng = rng_of(name)
        x = 2 * rng.standard_normal((SAMPLES, *shape))
        if not logits:
            x = 1 / (1 + np.exp(-x))
        x = x.astype("float32")
        if kind == "labels":
            y = rng.integers(0, shape[-1], (SAMPLES, *shape[:-1])).astype("int32")
        elif kind == "one_hot":
            y = np.eye(shape[-1], dtype="float32")[rng.integers(0, shape[-1], (SAMPLES, *shape[:-1]))]
        elif kind == "bits":
            y = rng.integers(0, 2, (SAMPLES, *shape)).astype("float32")
        else:
            y = rng.standard_normal((SAMPLES, *shape)).astype("float32")

        def values(dtype):
            keras.config.set_floatx(dtype)
            loss = make(dtype)
            target = y if kind == "labels" else y.astype(dtype)
            elements, pull = jax.vjp(lambda v: loss(target, v), x.astype(dtype))
            return elements, pull(np.ones(elements.shape, dtype))[0]

        exact, rounded = values("float64"), values("float32")
        loss = make("float32")
        envelope = keras.saving.serialize_keras_object(loss)
        envelope["config"].update(reduction="sum_over_batch_size", **lost)
        c.append({"name": name, "loss": envelope, "prediction": tensor(x), "target": tensor(y),
                  "elements": tensor(exact[0]), "elements_tolerance": tolerance(exact[0], rounded[0]),
                  "gradient": tensor(exact[1]), "gradient_tolerance": tolerance(exact[1], rounded[1])})

    K = keras.losses
    one("mse", lambda d: K.MeanSquaredError(reduction=None, dtype=d), "numbers", (5,))
    one("mse deep", lambda d: K.MeanSquaredError(reduction=None, dtype=d), "numbers", (2, 3))
    one("mae", lambda d: K.MeanAbsoluteError(reduction=None, dtype=d), "numbers", (5,))
    one("huber", lambda d: K.Huber(reduction=None, dtype=d), "numbers", (7,))
    one("huber narrow", lambda d: K.Huber(delta=0.3, reduction=None, dtype=d), "numbers", (2, 3), delta=0.3)
    for logits in (True, False):
        o = {"from_logits": logits, "reduction": None}
        n = "logits" if logits else "probabilities"
        one(f"sparse {n}", lambda d: K.SparseCategoricalCrossentropy(dtype=d, **o), "labels", (5,), logits)
        one(f"sparse deep {n}", lambda d: K.SparseCategoricalCrossentropy(dtype=d, **o), "labels", (3, 5), logits)
        for s in (0.0, 0.1):
            one(f"categorical {n} {s}", lambda d: K.CategoricalCrossentropy(dtype=d, label_smoothing=s, **o), "one_hot",
                (5,), logits)
            one(f"binary {n} {s}", lambda d: K.BinaryCrossentropy(dtype=d, label_smoothing=s, **o), "bits", (5,), logits)
        one(f"binary of one {n}", lambda d: K.BinaryCrossentropy(dtype=d, **o), "bits", (1,), logits)
    return c


def metric_cases():
    c = []

    def one(name, make, kind, shape, called=None):
        """`make()` gives a metric, or its name. Keras's own value in float64."""
        rng = rng_of("metric " + name)
        x = 2 * rng.standard_normal((SAMPLES, *shape))
        if kind == "bits":
            x, y = 1 / (1 + np.exp(-x)), rng.integers(0, 2, (SAMPLES, *shape)).astype("float32")
        elif kind == "labels":
            y = rng.integers(0, shape[-1], (SAMPLES, *shape[:-1])).astype("int32")
        elif kind == "one_hot":
            y = np.eye(shape[-1], dtype="float32")[rng.integers(0, shape[-1], (SAMPLES, *shape[:-1]))]
        else:
            y = rng.standard_normal((SAMPLES, *shape)).astype("float32")
        x = x.astype("float32")
        values = []
        for dtype in ("float32", "float64"):
            keras.config.set_floatx(dtype)
            metric = make()
            given = metric if isinstance(metric, str) else keras.saving.serialize_keras_object(metric)
            metric = keras.metrics.get(metric)
            metric.update_state(y if kind == "labels" else y.astype(dtype), x.astype(dtype))
            values.append(float(metric.result()))
        called = given if isinstance(given, str) else metric.name
        c.append({"name": name, "metric": given, "called": called, "prediction": tensor(x), "target": tensor(y),
                  "value": values[1], "tolerance": tolerance(values[1], values[0])})

    M = keras.metrics
    for name in ("mse", "MAE", "mean_squared_error"):
        one(name, lambda: name, "numbers", (5,))
    one("mae deep", lambda: M.MeanAbsoluteError(name="off"), "numbers", (2, 3))
    one("precision", lambda: M.Precision(name="precision"), "bits", (6,))
    one("precision strict", lambda: M.Precision(thresholds=[0.8], name="p"), "bits", (2, 6))
    one("recall", lambda: "Recall", "bits", (6,))
    one("recall loose", lambda: M.Recall(thresholds=0.2, name="r"), "bits", (1,))
    one("top 2", lambda: M.TopKCategoricalAccuracy(k=2), "one_hot", (7,))
    one("top 5", lambda: "top_k_categorical_accuracy", "one_hot", (2, 9))
    one("sparse top 3", lambda: M.SparseTopKCategoricalAccuracy(k=3), "labels", (7,))
    one("sparse top 5", lambda: "SparseTopKCategoricalAccuracy", "labels", (3, 9))
    one("sparse accuracy", lambda: M.SparseCategoricalAccuracy(), "labels", (3, 4))
    one("categorical accuracy", lambda: "categorical_accuracy", "one_hot", (4,))
    one("binary accuracy", lambda: M.BinaryAccuracy(threshold=0.7), "bits", (2, 4))
    return c


def write(name, cases):
    versions = {"keras": keras.__version__, "jax": jax.__version__, "numpy": np.__version__}
    path = Path(__file__).parent / "layers" / name
    lines = ",\n".join(json.dumps(c, separators=(",", ":")) for c in cases)
    path.write_text(f'{{"made_with": {json.dumps(versions)},\n"cases": [\n{lines}\n]}}\n')
    print(path.name, len(cases), "cases", path.stat().st_size, "bytes")


if __name__ == "__main__":
    write("layers.json", layer_cases() + operation_cases())
    write("losses.json", loss_cases())
    write("metrics.json", metric_cases())
