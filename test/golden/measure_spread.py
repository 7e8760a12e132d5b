#!/usr/bin/env python3
"""How far rounding alone scatters what Keras computes in float32: `spread.json`; and the run that rounding disturbs, in
float64: `float64.h5`. For the fixtures whose optimizer is SGD, Adam or AdamW; README.md says what is derived from it.

  KERAS_BACKEND=jax python measure_spread.py                # all, into the fixtures' folders
  python measure_spread.py --only tiny_gpt                  # one

A fixture's training is repeated RUNS times with Keras, each time from initial weights of which every element is moved
by -1, 0 or 1 unit of its last place. That draws all roundings anew and leaves the exact course as it is, but for what
the move itself does, which the same run in float64 from the same weights takes away. Each fixture runs in two
processes: f32, then f64, which compares.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile

import make_fixtures as base
import make_more_fixtures as more

HERE = os.path.dirname(os.path.abspath(__file__))
RUNS = 17  # the first from the fixture's own weights
NAMES = ["mlp_sgd", "mlp_adam_cosine", "einsum", "tiny_gpt", "gqa", "nested", "sharded", "dropout", "two_outputs",
         "text", "probabilities", "everyday", "reversible", "masked", "regularized", "weighted", "ignored",
         "batch_norm"]


def moved(np, weights, seed, run):
    rng = np.random.default_rng([seed, run])
    direction = [rng.integers(-1, 2, size=w.shape) for w in weights]
    if run == 0:
        return weights
    return [np.where(d == 0, w, np.nextafter(w, np.where(d < 0, np.float32(-np.inf), np.float32(np.inf))))
            for w, d in zip(weights, direction)]


def keep_all_float64(keras, base_keep):
    """What make_fixtures.keep_float64 doesn't reach: Keras's operations ask this module, and take tanh, squares and
    means of float64 in float32."""
    from keras.src.backend.common import dtypes

    base_keep(keras)
    plain = dtypes.result_type

    def result_type(*kinds):
        wide = any("float64" in str(getattr(kind, "dtype", kind)) for kind in kinds)
        return "float64" if wide else plain(*kinds)

    dtypes.result_type = result_type


def use_rates(keras, optimizer, rates):
    """The float64 run takes the rates of the float32 run, which are float32 numbers."""

    class Table(keras.optimizers.schedules.LearningRateSchedule):
        def __call__(self, step):
            return keras.ops.take(keras.ops.convert_to_tensor(rates, "float64"), step)

    if isinstance(optimizer._learning_rate, keras.optimizers.schedules.LearningRateSchedule):
        optimizer._learning_rate = Table()
    else:
        optimizer.learning_rate = rates[0]


def prepare(name, f64):
    spec = {**base.FIXTURES, **more.FIXTURES}[name]
    more.adapt(name, spec[3])
    keep = base.keep_float64
    base.keep_float64 = lambda keras: keep_all_float64(keras, keep)
    return base.setup(name, spec, f64=f64)


def assert_all_float64(jax, model, xs, ys):
    """Nothing of the step is computed in float32 on the sly."""
    state = [[v.value for v in vs] for vs in (model.trainable_variables, model.non_trainable_variables,
                                              model.optimizer.variables, model.metrics_variables)]
    model.make_train_function()
    step = jax.make_jaxpr(lambda s, x, y: model.train_step(s, (x, y)))(state, xs, ys)
    lines = [line for line in str(step).splitlines() if "f32[" in line]
    assert not lines, lines[:5]


def do_runs(name, folder, scratch, f64):
    h5py, jax, keras, np, builder, _, seed, opts = prepare(name, f64)
    meta, exp = base.read_expected(h5py, folder)
    xs, ys = base.read_data(h5py, os.path.join(folder, "data.h5"))
    if f64:
        xs, ys = [{k: v.astype("float64") if v.dtype == np.float32 else v for k, v in d.items()} for d in (xs, ys)]
    model, compile_args = builder(keras)
    model.compile(**compile_args)
    model.load_weights(os.path.join(folder, "initial.weights.h5"))
    model.optimizer.build(model.trainable_variables)
    if f64:
        use_rates(keras, model.optimizer, meta["learning_rate"])
    initial = [np.asarray(v).astype("float32") for v in model.weights]
    rest = [(v, np.asarray(v)) for v in model.optimizer.variables + model.non_trainable_variables]
    runs = []
    for run in range(RUNS):
        for v, a in rest:
            v.assign(a)
        for v, a in zip(model.weights, moved(np, initial, seed, run)):
            v.assign(a)
        base.train(np, model, xs, ys, range(base.STEPS))
        runs.append({"final": [np.asarray(v) for v in model.weights],
                     "optimizer": [np.asarray(v) for v in model.optimizer.variables]})
    if f64:
        if not opts.get("dropout"):  # the masks come from float32 numbers
            assert_all_float64(jax, model, base.batch_of(xs, 0), base.batch_of(ys, 0))
        compare(h5py, np, model, meta, runs, scratch, folder)
    else:
        np.savez(scratch, **{f"{g}/{r}/{i}": a for r, run in enumerate(runs) for g in ("final", "optimizer")
                             for i, a in enumerate(run[g])})


def compare(h5py, np, model, meta, runs, scratch, folder):
    single = np.load(scratch)
    spread = {"runs": RUNS, "versions": meta["versions"]}
    for group in ("final", "optimizer"):
        largest, rms = [], []
        for i in range(len(runs[0][group])):
            off = np.stack([single[f"{group}/{r}/{i}"].astype("float64") - runs[r][group][i] for r in range(RUNS)])
            off -= off.mean(axis=0)  # what float32 numbers for the rates of decay and the like do to every run
            largest.append(float(np.max(np.abs(off), initial=0)))
            rms.append(float(max(np.sqrt(np.mean(np.square(o))) if o.size else 0 for o in off)))
        spread[group], spread[group + "_rms"] = largest, rms
    with open(os.path.join(folder, "spread.json"), "w") as f:
        json.dump(spread, f, indent=1)
        f.write("\n")
    paths = {"final": model.weights, "optimizer": model.optimizer.variables}
    with h5py.File(os.path.join(folder, "float64.h5"), "w") as f:
        for group, variables in paths.items():
            base.write_group(f, group, runs[0][group], [v.path for v in variables])
    print(f"{os.path.basename(folder):16s} final {max(spread['final']):.1e}, rms {max(spread['final_rms']):.1e}", flush=True)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--out", default=HERE, help="folder of the fixtures")
    ap.add_argument("--only", default="", help="comma-separated names")
    ap.add_argument("--stage", choices=["f32", "f64"], help=argparse.SUPPRESS)
    ap.add_argument("--scratch", help=argparse.SUPPRESS)
    a = ap.parse_args()
    names = a.only.split(",") if a.only else NAMES
    if a.stage:
        do_runs(names[0], os.path.join(a.out, names[0]), a.scratch, a.stage == "f64")
        return 0
    for name in names:
        with tempfile.TemporaryDirectory() as scratch:
            for stage in ["f32", "f64"]:
                env = dict(os.environ, JAX_ENABLE_X64="1" if stage == "f64" else "0")
                cmd = [sys.executable, os.path.abspath(__file__), "--stage", stage, "--only", name, "--out", a.out]
                if subprocess.run(cmd + ["--scratch", os.path.join(scratch, "runs.npz")], env=env).returncode:
                    print(f"FAILED: {name} at stage {stage}", flush=True)
                    return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
