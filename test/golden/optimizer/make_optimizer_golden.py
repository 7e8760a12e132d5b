"""What Keras's optimizers and schedules compute, for test/optimizer: writes optimizers.json and schedules.json.

    KERAS_BACKEND=jax python make_optimizer_golden.py

Made with Keras 3.15.1 on the JAX 0.10.2 CPU backend. Every float is a float32, printed so that it reads back exactly.
"""

import json
import pathlib

import keras
import numpy as np

HERE = pathlib.Path(__file__).parent
STEPS = 6
SHAPES = {"dense/kernel": (3, 4), "dense/bias": (5,), "unused/scale": (2,)}
schedules = keras.optimizers.schedules


def floats(array):
    return [float(x) for x in np.asarray(array, np.float32).ravel()]


def optimizers():
    o = keras.optimizers
    yield "sgd", o.SGD(0.1)
    yield "sgd_momentum", o.SGD(0.1, momentum=0.9)
    yield "sgd_nesterov", o.SGD(0.05, momentum=0.8, nesterov=True)
    yield "sgd_weight_decay", o.SGD(0.1, momentum=0.5, weight_decay=0.1)
    yield "sgd_clipnorm", o.SGD(0.1, clipnorm=1.5)
    yield "sgd_global_clipnorm", o.SGD(0.1, momentum=0.9, global_clipnorm=2.0)
    yield "sgd_clipvalue", o.SGD(0.1, clipvalue=0.5)
    yield "sgd_clip_zero", o.SGD(0.1, clipnorm=0.0)
    yield "sgd_accumulation", o.SGD(0.1, weight_decay=0.1, gradient_accumulation_steps=2)
    yield "sgd_inverse_time", o.SGD(schedules.InverseTimeDecay(0.1, 2, 0.5, staircase=True))
    yield "adam", o.Adam(0.01)
    yield "adam_betas", o.Adam(0.02, beta_1=0.8, beta_2=0.95, epsilon=1e-3)
    yield "adam_amsgrad", o.Adam(0.01, beta_2=0.9, amsgrad=True)
    yield "adam_weight_decay", o.Adam(0.01, weight_decay=0.05, clipvalue=0.7)
    yield "adam_cosine", o.Adam(schedules.CosineDecay(1e-3, 4, alpha=0.1, warmup_target=0.05, warmup_steps=2))
    yield "adam_accumulation", o.Adam(0.01, gradient_accumulation_steps=3, global_clipnorm=1.0)
    yield "adamw", o.AdamW(0.01)
    yield "adamw_amsgrad", o.AdamW(0.01, weight_decay=0.1, beta_2=0.9, amsgrad=True, clipnorm=1.0)
    yield "adamw_accumulation", o.AdamW(
        schedules.PiecewiseConstantDecay([1, 3], [0.1, 0.05, 0.01]), amsgrad=True, gradient_accumulation_steps=2
    )


def run(name, optimizer):
    random = np.random.default_rng(hash_of(name))
    variables = []
    for path, shape in SHAPES.items():
        layer, variable = path.split("/")
        with keras.name_scope(layer):
            variables.append(keras.Variable(random.normal(size=shape).astype(np.float32), name=variable))
    case = {
        "name": name,
        "config": keras.optimizers.serialize(optimizer),
        "paths": [v.path for v in variables],
        "shapes": [list(shape) for shape in SHAPES.values()],
        "initial": [floats(v.numpy()) for v in variables],
        "gradients": [],
        "weights": [],
        "learning_rate": [],
    }
    for _ in range(STEPS):
        gradients = [random.normal(size=v.shape).astype(np.float32) for v in variables]
        gradients[-1][:] = 0  # a variable that the loss doesn't depend on
        case["gradients"].append([floats(g) for g in gradients])
        case["learning_rate"].append(float(np.float32(optimizer.learning_rate)))
        optimizer.apply([keras.ops.convert_to_tensor(g) for g in gradients], variables)
        case["weights"].append([floats(v.numpy()) for v in variables])
    case["state"] = [{"path": v.path, "shape": list(v.shape), "values": floats(v.numpy())} for v in optimizer.variables]
    return case


def hash_of(text):
    """Unlike hash(), the same in every run."""
    return sum((i + 1) * ord(c) for i, c in enumerate(text))


def all_schedules():
    s = schedules
    yield s.ExponentialDecay(0.1, 7, 0.5)
    yield s.ExponentialDecay(0.1, 7, 0.9, staircase=True)
    yield s.PiecewiseConstantDecay([3, 10.7, 12], [1.0, 0.5, 0.1, 0.05])
    yield s.PiecewiseConstantDecay([5], [1e-3, 1e-4])
    yield s.PolynomialDecay(0.1, 10, 0.01, power=2.0)
    yield s.PolynomialDecay(0.003, 9, cycle=True)
    yield s.PolynomialDecay(0.003, 9, 1e-4, power=1.5, cycle=True)
    yield s.InverseTimeDecay(0.1, 3, 0.5)
    yield s.InverseTimeDecay(0.1, 3, 0.5, staircase=True)
    yield s.CosineDecay(0.1, 20)
    yield s.CosineDecay(0.1, 20, alpha=0.1)
    yield s.CosineDecay(0.01, 17, alpha=0.05, warmup_target=0.3, warmup_steps=5)
    yield s.CosineDecay(0.01, 17, warmup_target=0.3)
    yield s.CosineDecayRestarts(0.1, 5)
    yield s.CosineDecayRestarts(0.1, 4, t_mul=1.0, m_mul=0.9, alpha=0.1)
    yield s.CosineDecayRestarts(0.1, 3, t_mul=1.5, m_mul=0.5, alpha=0.1)


def table(schedule):
    steps = [*range(33), 63, 64, 65, 100, 1000]
    return {
        "config": schedules.serialize(schedule),
        "steps": steps,
        "values": floats([schedule(np.int32(step)) for step in steps]),
    }


def write(name, entries):
    lines = ",\n".join(json.dumps(entry) for entry in entries)
    (HERE / name).write_text("[\n" + lines + "\n]\n")


write("optimizers.json", [run(name, optimizer) for name, optimizer in optimizers()])
write("schedules.json", [table(schedule) for schedule in all_schedules()])
