#!/usr/bin/env python3
"""Real Keras loads what Rankine wrote: keras_opens_ours.py WRITER

WRITER (write-keras-files) loads trained fixtures and writes them as .keras and .weights.h5. Keras must load both
without a warning, with every weight and optimizer variable equal bit for bit and the predictions of the fixture, and
train on as from its own file.
"""

import os
import subprocess
import sys
import tempfile
import warnings

os.environ["KERAS_BACKEND"] = "jax"
os.environ.setdefault("JAX_PLATFORMS", "cpu")

import h5py  # noqa: E402
import jax  # noqa: E402
import keras  # noqa: E402
import numpy as np  # noqa: E402

GOLDEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "golden")
FIXTURES = ["mlp_sgd", "mlp_adam_cosine", "nested", "gqa", "tiny_gpt", "two_outputs"]


def golden(fixture, name):
    return os.path.join(GOLDEN, fixture, name)


def first_batch(fixture):
    """Inputs and targets of step 0: bare arrays where there is one, else dicts by name."""
    with h5py.File(golden(fixture, "data.h5"), "r") as f:
        groups = [{k: v[: v.shape[0] // 8] for k, v in f[g].items()} for g in ("inputs", "targets")]
    return [next(iter(g.values())) if len(g) == 1 else g for g in groups]


def same_state(ours, theirs, what):
    for part in ["model", "optimizer"]:
        mine, wanted = [m.weights if part == "model" else m.optimizer.variables for m in (ours, theirs)]
        assert len(mine) == len(wanted), (what, part, len(mine), len(wanted))
        for a, b in zip(mine, wanted):
            assert a.path == b.path and a.dtype == b.dtype, (what, a.path, b.path)
            assert np.asarray(a).tobytes() == np.asarray(b).tobytes(), (what, a.path)


def predicts_as_expected(model, fixture, x):
    outputs = model(x, training=False)
    outputs = outputs if isinstance(outputs, dict) else {"y": outputs}
    with h5py.File(golden(fixture, "expected.h5"), "r") as f:
        for name, value in outputs.items():
            difference = np.max(np.abs(np.asarray(value) - f["forward_after/" + name][()]))
            assert difference <= 1e-5, (fixture, name, difference)


def check(fixture, folder):
    x, y = first_batch(fixture)
    theirs = keras.models.load_model(golden(fixture, "final.keras"))
    ours = keras.models.load_model(os.path.join(folder, fixture + ".keras"))
    same_state(ours, theirs, fixture + ".keras")
    predicts_as_expected(ours, fixture, x)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the untrained file has no slots, as Keras says
        filled = keras.models.load_model(golden(fixture, "model.keras"))
    filled.load_weights(os.path.join(folder, fixture + ".weights.h5"))
    same_state(filled, theirs, fixture + ".weights.h5")

    losses = [float(m.train_on_batch(x, y, return_dict=True)["loss"]) for m in (ours, theirs)]
    assert losses[0] == losses[1], (fixture, losses)
    same_state(ours, theirs, fixture + " after another step")
    print(f"{fixture}: {len(ours.weights)} weights, {len(ours.optimizer.variables)} optimizer variables, "
          f"next loss {losses[0]:.6f}", flush=True)


def main():
    jax.config.update("jax_default_matmul_precision", "highest")
    warnings.simplefilter("error", UserWarning)
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.argv[1], folder, *FIXTURES], check=True)
        for fixture in FIXTURES:
            check(fixture, folder)


if __name__ == "__main__":
    main()
