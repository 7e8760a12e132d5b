"""What Keras makes of models with many layers of one class, in any arrangement: the order and the groups of their
weights.

Writes structure.json, a list of
  config   what Keras loads (its own `to_json`; of the models whose name ends in "_shuffled" with the layers in
           another order, which Keras sorts anew)
  weights  model.weights of the loaded model, in order: shape, trainable, and the dataset in its weights file
  groups   every group `vars` of that file with its attribute `name`
  inputs, outputs   names of the inputs and shapes of the outputs, in Keras's order

The models built_*.json are what Rankine's ModelBuilder writes (test_build.cpp compares): Keras loads them too.

Run: KERAS_BACKEND=jax python make_structure.py       (Keras 3.15.1, JAX 0.10.2)
"""

import json
import os
import random
import sys
import tempfile

import h5py
import keras
import numpy as np
from keras import layers


def dense(units, **kwargs):
    return layers.Dense(units, use_bias=kwargs.pop("use_bias", False), **kwargs)


def order_of_add(swapped):
    """keras.md I.22: branches of three layers and of one, into an Add."""
    x = keras.Input((3,), name="x")
    created_first = dense(3, name="created_first")(x)
    deep = dense(3, name="deep1")(x)
    deep = dense(3, name="deep2")(deep)
    deep = dense(3, name="deep3")(deep)
    pair = [deep, created_first] if swapped else [created_first, deep]
    return keras.Model(x, layers.Add()(pair), name="order")


def listing_3():
    a = keras.Input((4,), name="a")
    b = keras.Input((4,), name="b")
    shared = dense(4, use_bias=True, name="shared")
    inner_in = keras.Input((4,), name="inner_in")
    inner_seq = keras.Sequential([keras.Input((5,)), dense(3, use_bias=True, name="in_d")], name="inner_seq")
    inner = keras.Model(inner_in, inner_seq(dense(5, name="fd")(inner_in)), name="inner_fn")
    joined = layers.Concatenate()([inner(shared(a)), inner(shared(b))])
    return keras.Model([a, b], dense(2, name="o")(joined), name="outer")


def endpoints_as_dicts():
    zebra = keras.Input((4,), name="zebra")
    ape = keras.Input((6,), name="ape")
    unused = keras.Input((2,), name="unused")
    left = dense(3, name="left")(zebra)
    right = dense(3, name="right")(ape)
    outputs = {"sum": layers.Add(name="add")([left, right]), "other": dense(2, name="out")(right)}
    return keras.Model({"zebra": zebra, "ape": ape, "unused": unused}, outputs, name="dicts")


def nested_with_several_ends():
    p = keras.Input((4,), name="p")
    q = keras.Input((4,), name="q")
    pair = keras.Model({"p": p, "q": q}, [dense(3, name="dp")(p), dense(5, name="dq")(q)], name="pair")
    x = keras.Input((4,), name="x")
    y = keras.Input((4,), name="y")
    first = pair({"p": x, "q": y})
    second = pair({"q": dense(4, name="before")(first[0]), "p": y})
    # Outputs of a nested Functional are counted from call 1 here.
    return keras.Model([x, y], [second[1], first[0], dense(2, name="after")(second[0])], name="ends")


def sequentials():
    inner = keras.Sequential([dense(3, name="i1"), layers.Activation("relu"), dense(4, name="i2")], name="inner")
    deepest = keras.Sequential([keras.Input((4,)), dense(4, name="d1")], name="deepest")
    return keras.Sequential([keras.Input((5,), name="x"), dense(6, name="s1"), inner, deepest, dense(2, name="s2")],
                            name="outer")


def attention():
    x = keras.Input((6, 8), name="x")
    q, k, v = (dense(8, name=name)(x) for name in ("for_query", "for_key", "for_value"))
    by_name = layers.MultiHeadAttention(2, 4, name="by_name")(query=q, value=v, key=k, use_causal_mask=True)
    by_place = layers.MultiHeadAttention(2, 3, use_bias=False, name="by_place")(by_name, v, k)
    grouped = layers.GroupQueryAttention(4, 4, 2, name="grouped")(by_place, by_place)
    frozen = layers.LayerNormalization(name="frozen")
    frozen.trainable = False
    return keras.Model(x, layers.Dropout(0.0)(frozen(grouped)), name="attention")


def random_model(seed, depth=0):
    """A random graph of layers on vectors of 4, with shared layers and nested models."""
    draw = random.Random(seed)
    inputs = [keras.Input((4,), name=f"in{depth}_{i}") for i in range(draw.randint(1, 3))]
    values = list(inputs)
    called = []
    for i in range(draw.randint(4, 12)):
        name = f"l{depth}_{i}"
        kind = draw.choice(["dense", "dense", "dense", "add", "concatenate", "again", "activation", "nested"])
        if kind == "dense" or (kind == "nested" and depth == 2) or (kind == "again" and not called):
            called.append(dense(4, name=name))
            values.append(called[-1](draw.choice(values)))
        elif kind == "again":
            values.append(draw.choice(called)(draw.choice(values)))
        elif kind == "activation":
            values.append(layers.Activation("tanh", name=name)(draw.choice(values)))
        elif kind == "nested":
            nested = random_model(seed * 31 + i, depth + 1)
            arguments = [draw.choice(values) for _ in nested.inputs]
            made = nested(arguments if len(arguments) > 1 else arguments[0])
            values.extend(made if isinstance(made, list) else [made])
        else:
            chosen = [draw.choice(values) for _ in range(draw.randint(2, 3))]
            if kind == "add":
                values.append(layers.Add(name=name)(chosen))
            else:
                values.append(dense(4, name=name + "d")(layers.Concatenate(name=name)(chosen)))
    outputs = draw.sample(values[len(inputs):], min(draw.randint(1, 3), len(values) - len(inputs)))
    return keras.Model(inputs, outputs if len(outputs) > 1 else outputs[0], name=f"random{depth}_{seed}")


def describe(config, name):
    keras.backend.clear_session()
    model = keras.models.model_from_json(json.dumps(config))
    for i, weight in enumerate(model.weights):
        weight.assign(np.full(weight.shape, i))
    place, groups = {}, {}
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "m.weights.h5")
        model.save_weights(path)
        with h5py.File(path) as file:

            def visit(key, item):
                if isinstance(item, h5py.Dataset):
                    place[int(np.ravel(item[()])[0])] = key
                elif key.split("/")[-1] == "vars":
                    groups[key] = item.attrs["name"]

            file.visititems(visit)
    weights = [
        {"shape": list(w.shape), "trainable": bool(w.trainable), "path": place[i]}
        for i, w in enumerate(model.weights)
    ]
    return {"name": name, "config": config, "weights": weights, "groups": groups,
            "inputs": [t.name for t in model.inputs], "outputs": [list(t.shape[1:]) for t in model.outputs]}


def without_details(value):
    """Leaves out what Keras doesn't need to load a config, to keep the file small."""
    if isinstance(value, list):
        return [without_details(v) for v in value]
    if isinstance(value, dict):
        dropped = ("build_config", "compile_config", "kernel_initializer", "bias_initializer", "shared_object_id")
        return {
            k: without_details(v)
            for k, v in value.items()
            if k not in dropped
            and not k.endswith(("regularizer", "constraint", "quantization_config"))
            and not (k == "dtype" and isinstance(v, dict))
        }
    return value


def shuffled(config, seed):
    def visit(model):
        own = model["config"]["layers"]
        if model["class_name"] != "Sequential":
            random.Random(seed).shuffle(own)
        for layer in own:
            if "layers" in layer["config"]:
                visit(layer)

    config = json.loads(json.dumps(config))
    visit(config)
    return config


def main():
    models = {
        "order_created_first": order_of_add(False), "order_deep_first": order_of_add(True), "listing_3": listing_3(),
        "endpoints_as_dicts": endpoints_as_dicts(), "nested_with_several_ends": nested_with_several_ends(),
        "sequentials": sequentials(), "attention": attention(),
    }
    for seed in range(12):
        models[f"random_{seed}"] = random_model(seed)
    result = []
    for i, (name, model) in enumerate(models.items()):
        config = without_details(json.loads(model.to_json()))
        result.append(describe(config, name))
        if i % 2 == 0:
            result.append(describe(shuffled(config, i), name + "_shuffled"))
    here = os.path.dirname(os.path.abspath(__file__))
    for name in ("built_everything", "built_tiny_gpt"):
        with open(os.path.join(here, name + ".json")) as file:
            result.append(describe(json.load(file), name))
    out = os.path.join(here, "structure.json")
    with open(out, "w") as file:
        file.write("[\n" + ",\n".join(json.dumps(m, separators=(",", ":")) for m in result) + "\n]\n")
    print(len(result), "models;", os.path.getsize(out), "bytes; Keras", keras.__version__, file=sys.stderr)


if __name__ == "__main__":
    main()
