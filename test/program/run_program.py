#!/usr/bin/env python3
"""Starts the rankine program on a number of ranks with good and bad input, and checks exit code, messages and time.

  run_program.py --program RANKINE --make-inputs TOOL --golden FOLDER --ranks N [NAME ...]
"""
import argparse
import glob
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import zipfile

TIMEOUT = 60  # seconds for one start; a hang is a failure
USAGE, REFUSED, CHECKPOINT, RANK_FAILED = 2, 3, 4, 70


class Failed(Exception):
    pass


def check(condition, text):
    if not condition:
        raise Failed(text)


class Result:
    def __init__(self, code, out, err, seconds):
        self.code, self.out, self.err, self.seconds = code, out, err, seconds

    def __str__(self):
        return f"exit code {self.code} after {self.seconds:.1f} s\n--- stdout\n{self.out}\n--- stderr\n{self.err}"

    def messages(self):
        return re.findall(r"^(?:rankine: |\[rank )", self.err, re.MULTILINE)

    def refuses(self, code, *texts):
        """The exit code, and one message that has all the texts, once, whatever the number of ranks."""
        check(self.code == code, f"wanted exit code {code}\n{self}")
        # mpirun's own lines have numbers of jobs and processes in them.
        lines = [line for line in self.err.splitlines() if not re.match(r"  Process name:|\[\S+:\d+\]", line)]
        for text in texts:
            check(sum(text in line for line in lines) == 1, f"wanted '{text}' in one line of stderr\n{self}")
        check(len(self.messages()) == 1, f"wanted one message\n{self}")

    def succeeds(self):
        check(self.code == 0, f"wanted exit code 0\n{self}")
        check(not self.messages(), f"wanted no message\n{self}")


class Bench:
    """A folder with models and data, and ways to start the program in it."""

    def __init__(self, options, folder):
        self.program, self.ranks, self.folder = os.path.abspath(options.program), options.ranks, pathlib.Path(folder)
        self.golden = pathlib.Path(options.golden).absolute()
        subprocess.run([options.make_inputs, folder], check=True)
        self.model = self.copy("mlp_sgd/model.keras", "model.keras")

    def copy(self, golden, name):
        shutil.copy(self.golden / golden, self.folder / name)
        return name

    def write(self, name, content):
        mode = "wb" if isinstance(content, bytes) else "w"
        with open(self.folder / name, mode) as file:
            file.write(content)
        return name

    def edit_config(self, name, edit):
        """A copy of the model whose config was changed."""
        with zipfile.ZipFile(self.folder / self.model) as old, zipfile.ZipFile(self.folder / name, "w") as new:
            for member in old.namelist():
                content = old.read(member)
                if member == "config.json":
                    config = json.loads(content)
                    edit(config)
                    content = json.dumps(config).encode()
                new.writestr(member, content)
        return name

    def environment(self, more=None):
        environment = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
        environment.update(more or {})
        return environment

    def mpirun(self):
        return ["mpirun", "--oversubscribe", "--bind-to", "none", "-n", str(self.ranks)]

    def start(self, command, environment=None):
        return subprocess.Popen(command, cwd=self.folder, env=self.environment(environment), text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)

    def finish(self, process, begun):
        try:
            out, err = process.communicate(timeout=TIMEOUT)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            out, err = process.communicate()
            raise Failed(f"hangs\n{Result('none', out, err, time.time() - begun)}")
        return Result(process.returncode, out, err, time.time() - begun)

    def alone(self, *arguments, environment=None):
        begun = time.time()
        return self.finish(self.start([self.program, *arguments], environment), begun)

    def run(self, *arguments):
        begun = time.time()
        return self.finish(self.start([*self.mpirun(), self.program, *arguments]), begun)

    def run_shell(self, script, *arguments):
        """Each rank runs `script`, with $RANK, and the program with its arguments as "$@"."""
        begun = time.time()
        shell = ["sh", "-c", "RANK=$OMPI_COMM_WORLD_RANK\n" + script, "rank", self.program, *arguments]
        return self.finish(self.start([*self.mpirun(), *shell]), begun)

    def train(self, *arguments, model=None, data="good.h5"):
        return self.run("train", "--model", model or self.model, "--data", data, *arguments)

    def log(self, name):
        with open(self.folder / name) as file:
            return [json.loads(line) for line in file]


CASES = {}


def case(function):
    CASES[function.__name__] = function
    return function


# ---- what works

@case
def trains_and_writes(bench):
    expected = json.load(open(bench.golden / "mlp_sgd" / "expected.json"))
    data = bench.copy("mlp_sgd/data.h5", "golden.h5")
    bench.train("--no-shuffle", "--batch", str(expected["batch"]), "--log", "run.jsonl", "--output", "trained.keras",
                "--validation-data", "validation.h5", data=data).succeeds()
    lines = bench.log("run.jsonl")
    check(lines[0]["event"] == "start" and lines[0]["ranks"] == bench.ranks, f"first line: {lines[0]}")
    check(lines[-1]["event"] == "end", f"last line: {lines[-1]}")
    losses = [line["loss"] for line in lines if "step" in line and "event" not in line]
    check(len(losses) == expected["steps"], f"losses: {losses}")
    for got, want in zip(losses, expected["loss"]):
        check(abs(got - want) < 1e-5 * max(1, abs(want)), f"losses {losses}, Keras has {expected['loss']}")
    check(any("val_loss" in str(line) for line in lines), "no validation in the log")
    config = json.loads(zipfile.ZipFile(bench.folder / "trained.keras").read("config.json"))
    check(config["compile_config"]["optimizer"]["class_name"] == "SGD", "the output isn't compiled")
    inspected = bench.alone("inspect", "trained.keras")
    inspected.succeeds()
    check("hidden_1" in inspected.out, str(inspected))


@case
def goes_on_from_what_it_wrote(bench):
    bench.train("--steps", "2", "--output", "half.keras", "--quiet").succeeds()
    again = bench.train("--steps", "1", "--log", "again.jsonl", model="half.keras")
    again.succeeds()
    check("goes on from the state" in again.out, str(again))
    check(bench.log("again.jsonl")[1]["update"] == 3, f"log: {bench.log('again.jsonl')}")


@case
def quiet_prints_nothing(bench):
    result = bench.train("--steps", "2", "--quiet")
    result.succeeds()
    check(result.out == "" and result.err == "", str(result))


@case
def job_file_gives_what_flags_give(bench):
    bench.write("job.toml", 'model = "model.keras"\ndata = "good.h5"\nsteps = 3\nlog = "job.jsonl"\nbatch = 16\n'
                            '[compile]\noptimizer = "adam"\nlearning_rate = 0.25\n')
    bench.run("train", "--config", "job.toml", "--steps", "2").succeeds()
    steps = [line for line in bench.log("job.jsonl") if "event" not in line]
    check(len(steps) == 2 and all(step["learning_rate"] == 0.25 for step in steps), f"steps: {steps}")


@case
def weights_come_from_another_file(bench):
    config = bench.copy("mlp_sgd/model.json", "model.json")
    weights = bench.copy("mlp_sgd/final.weights.h5", "final.weights.h5")
    bench.write("job.toml", '[compile]\noptimizer = "sgd"\n'
                            "loss = '{\"class_name\": \"SparseCategoricalCrossentropy\", \"config\": {\"from_logits\": true}}'\n")
    fresh = bench.train("--steps", "1", "--config", "job.toml", "--log", "fresh.jsonl", model=config)
    fresh.succeeds()
    bench.train("--steps", "1", "--config", "job.toml", "--log", "given.jsonl", "--weights", weights,
                model=config).succeeds()
    check(bench.log("fresh.jsonl")[1]["loss"] != bench.log("given.jsonl")[1]["loss"], "the weights weren't read")


@case
def text_feeds_a_language_model(bench):
    model = bench.copy("text/model.keras", "gpt.keras")
    text = bench.copy("text/text.txt", "text.txt")
    bench.write("job.toml", '[inputs]\npositions = "arange"\n')
    result = bench.run("train", "--model", model, "--text", text, "--validation-data", text, "--config", "job.toml",
                       "--batch", "6", "--steps", "3")
    result.succeeds()
    check("windows of 20 characters" in result.out, str(result))
    bench.run("train", "--model", model, "--text", text).refuses(REFUSED, '"arange"')


@case
def tokens_feed_a_language_model(bench):
    model = bench.copy("text/model.keras", "gpt.keras")
    tokens = bench.write("tokens.bin", bytes(b for i in range(200) for b in (i * 5 % 37, 0)))
    bench.write("job.toml", '[inputs]\npositions = "arange"\n')
    bench.run("train", "--model", model, "--tokens", tokens, "--config", "job.toml", "--steps", "2").succeeds()
    bad = bench.write("bad.bin", bytes([99, 0] * 200))
    bench.run("train", "--model", model, "--tokens", bad, "--config", "job.toml").refuses(REFUSED, "99")


@case
def weights_alone_begin_with_a_new_optimizer(bench):
    bench.train("--steps", "2", "--output", "half.weights.h5", "--quiet").succeeds()
    result = bench.train("--steps", "1", "--init-from", "half.weights.h5", "--log", "init.jsonl")
    result.succeeds()
    check("sgd, new" in result.out.lower(), str(result))
    check(bench.log("init.jsonl")[1]["update"] == 1, f"log: {bench.log('init.jsonl')}")
    bench.train("--init-from", "half.weights.h5", "--weights", "half.weights.h5").refuses(USAGE, "exclude each other")


@case
def a_dry_run_changes_nothing(bench):
    bench.write("kept.keras", "what was there")
    before = sorted(os.listdir(bench.folder))
    result = bench.train("--epochs", "50", "--batch", "4", "--dry-run", "--output", "kept.keras", "--log", "dry.jsonl")
    result.succeeds()
    check("all 600 steps would take about" in result.out and "removed them again" in result.out, str(result))
    check(sorted(os.listdir(bench.folder)) == before, "a dry run left files")
    check((bench.folder / "kept.keras").read_text() == "what was there", "a dry run replaced the output")
    (bench.folder / "kept.keras").unlink()
    check("nothing was saved" in bench.train("--dry-run").out, "no word that nothing was saved")


@case
def evaluates(bench):
    bench.write("metrics.toml", '[compile]\nmetrics = ["accuracy"]\n')
    arguments = ("evaluate", "--model", bench.model, "--data", "validation.h5", "--batch", "3", "--quiet", "--config",
                 "metrics.toml")
    result = bench.run(*arguments, "--log", "evaluate.jsonl")
    result.succeeds()
    check(result.out == bench.alone(*arguments).out, f"another number of ranks gives something else\n{result}")
    values = dict(line.split() for line in result.out.splitlines())
    logged = bench.log("evaluate.jsonl")[-1]
    check(logged["event"] == "evaluate" and abs(logged["loss"] - float(values["loss"])) < 1e-8, str(logged))
    # Training reports the same at the end of an epoch; its weights are those before the next step.
    bench.train("--steps", "3", "--batch", "48", "--epochs", "3", "--output", "out.keras").refuses(USAGE, "exclude")
    bench.train("--epochs", "1", "--validation-data", "validation.h5", "--log", "t.jsonl", "--output", "t.keras",
                "--batch", "48").succeeds()
    after = bench.run("evaluate", "--model", "t.keras", "--data", "validation.h5", "--batch", "48", "--quiet")
    reported = [line for line in bench.log("t.jsonl") if "val_loss" in line][0]["val_loss"]
    check(abs(float(after.out.split()[1]) - reported) <= 1e-8 * abs(reported), f"{reported}\n{after}")


@case
def predicts(bench):
    arguments = ("predict", "--model", bench.model, "--data", "good.h5", "--batch", "7")
    result = bench.run(*arguments, "--output", "many.h5")
    result.succeeds()
    check("wrote 'many.h5'" in result.out, str(result))
    bench.alone(*arguments, "--output", "one.h5").succeeds()
    check((bench.folder / "many.h5").read_bytes() == (bench.folder / "one.h5").read_bytes(),
          "another number of ranks writes something else")
    listed = os.listdir(bench.folder)
    check(not [name for name in listed if "tmp" in name or "partial" in name], f"left behind: {listed}")


@case
def outputs_never_replace_inputs(bench):
    data = bench.write("precious.h5", (bench.folder / "good.h5").read_bytes())
    kept = (bench.folder / data).read_bytes()
    bench.run("predict", "--model", bench.model, "--data", data, "--output", "./precious.h5").refuses(
        USAGE, "--output and --data are the same file")
    bench.train("--log", data, data=data).refuses(USAGE, "--log and --data are the same file")
    bench.train("--log", "a.keras", "--output", "a.keras").refuses(USAGE, "the same file")
    check((bench.folder / data).read_bytes() == kept, "the data was changed")
    os.mkfifo(bench.folder / "fifo.keras")
    bench.train("--output", "fifo.keras").refuses(REFUSED, "it isn't a regular file")
    bench.train(model="/dev/null").refuses(CHECKPOINT, "neither a regular file nor a folder")
    # A link stays a link, and what it leads to is replaced.
    bench.write("target.keras", "old")
    os.symlink("target.keras", bench.folder / "link.keras")
    bench.train("--steps", "1", "--output", "link.keras", "--quiet").succeeds()
    check((bench.folder / "link.keras").is_symlink(), "the link was replaced")
    check(zipfile.is_zipfile(bench.folder / "target.keras"), "the link's target wasn't written")


@case
def ranks_must_see_the_same_files(bench):
    if bench.ranks == 1:
        return
    other = bench.folder / "other"
    other.mkdir()
    shutil.copy(bench.folder / "good.h5", other / "good.h5")
    bench.train("--steps", "1", "--quiet", "--output", "moved.keras").succeeds()
    shutil.copy(bench.folder / "moved.keras", other / "model.keras")
    elsewhere = '[ "$RANK" = 1 ] && cd other; exec "$@"'
    arguments = ("train", "--model", bench.model, "--data", "good.h5")
    bench.run_shell(elsewhere, *arguments).refuses(REFUSED, "the weights of rank 1")
    shutil.copy(bench.folder / bench.model, other / "model.keras")
    shutil.copy(bench.folder / "validation.h5", other / "good.h5")
    bench.run_shell(elsewhere, *arguments).refuses(REFUSED, "the data of rank 1")


@case
def texts_keep_their_vocabulary(bench):
    model = bench.copy("text/model.keras", "gpt.keras")
    text = bench.copy("text/text.txt", "text.txt")
    bench.write("job.toml", '[inputs]\npositions = "arange"\n')
    part = bench.write("part.txt", (bench.folder / text).read_text()[:200])
    arguments = ("evaluate", "--model", model, "--config", "job.toml", "--quiet", "--text", part)
    bench.run(*arguments).refuses(USAGE, "--vocabulary is missing")
    bench.run(*arguments, "--vocabulary", text).succeeds()
    bench.train("--vocabulary", text).refuses(USAGE, "goes with --text only")


@case
def evaluate_and_predict_refuse_what_train_refuses(bench):
    config = bench.copy("mlp_sgd/model.json", "model.json")
    bench.run("predict", "--model", config, "--data", "good.h5", "--output", "p.h5").refuses(
        REFUSED, "has no weights to predict with: give them with --weights")
    bench.run("predict", "--model", bench.model, "--data", "good.h5").refuses(USAGE, "--output is missing")
    bench.run("predict", "--model", bench.model, "--data", "shape.h5", "--output", "p.h5").refuses(REFUSED, "shape.h5")
    bench.run("predict", "--model", bench.model, "--data", "good.h5", "--output", "no/p.h5").refuses(REFUSED, "no folder")
    bench.run("predict", "--model", bench.model, "--data", "good.h5", "--epochs", "3", "--output", "p.h5").refuses(
        USAGE, "predict doesn't take the flag --epochs")
    bench.run("evaluate", "--model", bench.model, "--data", "label.h5").refuses(REFUSED, "10")
    bench.run("evaluate", "--model", bench.model, "--data", "missing.h5").refuses(REFUSED, "missing.h5")
    bench.run("evaluate", "--model", bench.model, "--data", "nan.h5").refuses(REFUSED, "not a finite number")
    bench.train("--validation-data", "nan.h5", "--steps", "1").refuses(REFUSED, "loss over the validation data")


@case
def help_and_version_need_no_ranks(bench):
    help_text = bench.alone("train", "--help")
    help_text.succeeds()
    check("--validation-data" in help_text.out and "Examples" in help_text.out, str(help_text))
    check("train" in bench.alone("--help").out, "no commands in --help")
    check("inspect PATH" in bench.alone("inspect", "--help").out, "no help of inspect")
    version = bench.alone("--version")
    version.succeeds()
    check(all(word in version.out for word in ("rankine ", "MPI ", "HDF5 ")), str(version))
    check(bench.alone().code == USAGE, "no command is a usage error")


@case
def doctor_looks_at_the_ranks(bench):
    result = bench.run("doctor")
    result.succeeds()
    check(all(word in result.out for word in ("MPI_THREAD_MULTIPLE", "HDF5", "instructions")), str(result))
    rows = [line for line in result.out.splitlines() if re.match(r" +\d+  ", line)]
    check(len(rows) == bench.ranks, f"one row a rank\n{result}")
    bench.run("doctor", "--all").refuses(USAGE, "doctor takes no arguments")


# ---- the command line

@case
def usage_is_refused(bench):
    bench.train("--batch", "0").refuses(USAGE, "--batch must be a whole number of at least 1, not '0'")
    bench.train("--batch", "-8").refuses(USAGE, "--batch", "'-8'")
    bench.train("--batchs", "8").refuses(USAGE, "did you mean --batch?")
    bench.train("--steps", "1", "--epochs", "1").refuses(USAGE, "exclude each other")
    bench.run("trian").refuses(USAGE, "no command 'trian'")
    bench.run("train", "--data", "good.h5").refuses(USAGE, "--model is missing")
    bench.write("typo.toml", "steps = 3\n[compile]\noptimiser = 'adam'\n")
    bench.train("--config", "typo.toml").refuses(USAGE, "did you mean optimizer?")
    bench.train("--config", "none.toml").refuses(USAGE, "none.toml")
    bench.train("--isa", "sse").refuses(USAGE, "'sse'")


@case
def meshes_that_do_not_fit_are_refused(bench):
    bench.train("--mesh", "data=17").refuses(REFUSED, "needs 17 ranks")
    bench.train("--mesh", "data=1,tensor=2").refuses(REFUSED, "tensor")
    bench.train("--mesh", "rows=2").refuses(USAGE, "rows")


@case
def ranks_must_have_the_same_settings(bench):
    if bench.ranks == 1:
        return
    bench.run_shell('if [ "$RANK" = 1 ]; then set -- "$@" --batch 5; fi; exec "$@"', "train", "--model", bench.model,
                    "--data", "good.h5").refuses(USAGE, "rank 1 has batch = 5, but rank 0 has batch = 32")


# ---- models

@case
def damaged_models_are_refused(bench):
    bench.train(model="none.keras").refuses(CHECKPOINT, "none.keras")
    whole = (bench.folder / bench.model).read_bytes()
    bench.write("truncated.keras", whole[:len(whole) // 2])
    bench.train(model="truncated.keras").refuses(CHECKPOINT, "truncated.keras")
    bench.write("text.keras", "not a zip")
    bench.train(model="text.keras").refuses(CHECKPOINT, "text.keras")


@case
def unknown_layers_are_refused(bench):
    def rename(config):
        for layer in config["config"]["layers"][1:3]:
            layer["class_name"] = "Frobnicate"
    model = bench.edit_config("unknown.keras", rename)
    bench.train(model=model).refuses(REFUSED, "hidden_1 (Frobnicate)", "hidden_2 (Frobnicate)")


@case
def models_must_be_compiled(bench):
    model = bench.edit_config("uncompiled.keras", lambda config: config.pop("compile_config"))
    bench.train(model=model).refuses(REFUSED, "isn't compiled")
    bench.write("job.toml", '[compile]\noptimizer = "adma"\nloss = "mse"\n')
    bench.train("--config", "job.toml", model=model).refuses(REFUSED, "adma")


@case
def weights_of_another_model_are_refused(bench):
    weights = bench.copy("odd/initial.weights.h5", "other.weights.h5")
    bench.train("--weights", weights).refuses(CHECKPOINT, "other.weights.h5")


# ---- data

@case
def data_that_does_not_suit_is_refused(bench):
    bench.train(data="shape.h5").refuses(REFUSED, "/inputs/x is (48, 16) float32")
    bench.train(data="dtype.h5").refuses(REFUSED, "/targets/y is (48,) float32")
    bench.train(data="missing.h5").refuses(REFUSED, "lacks /inputs/x")
    bench.train(data="empty.h5").refuses(REFUSED, "no samples")
    bench.train(data="none.h5").refuses(REFUSED, "none.h5")
    whole = (bench.folder / "good.h5").read_bytes()
    bench.write("truncated.h5", whole[:len(whole) // 2])
    bench.train(data="truncated.h5").refuses(REFUSED, "truncated.h5")


@case
def bad_values_are_found(bench):
    bench.train("--no-shuffle", data="label.h5").refuses(REFUSED, "label 10")
    bench.train("--no-shuffle", "--batch", "16", data="nan.h5").refuses(REFUSED, "step 2")


# ---- places

@case
def unreadable_and_unwritable_paths_are_refused(bench):
    unreadable = bench.copy("mlp_sgd/data.h5", "locked.h5")
    os.chmod(bench.folder / unreadable, 0)
    if os.geteuid() == 0:  # root reads all there is, but not through a loop
        os.unlink(bench.folder / unreadable)
        os.symlink(unreadable, bench.folder / unreadable)
    bench.train(data=unreadable).refuses(REFUSED, "locked.h5")
    bench.train("--output", "/proc/model.keras").refuses(REFUSED, "--output can't be written")
    bench.train("--log", "none/run.jsonl").refuses(REFUSED, "--log can't be written")
    bench.train("--output", "model.h5").refuses(USAGE, "model.h5")


@case
def one_rank_that_cannot_read_stops_all(bench):
    if bench.ranks == 1:
        return
    (bench.folder / "elsewhere").mkdir()
    shutil.copy(bench.folder / bench.model, bench.folder / "elsewhere")
    result = bench.run_shell('if [ "$RANK" = 2 ]; then cd elsewhere; fi; exec "$@"', "train", "--model", bench.model,
                             "--data", "good.h5")
    result.refuses(REFUSED, "good.h5")
    check("[rank 2 @ " in result.err, str(result))


# ---- ranks

def rank_processes(bench):
    return [int(open(path).read()) for path in sorted(glob.glob(str(bench.folder / "rank.*")))]


def is_running(process):
    try:
        state = open(f"/proc/{process}/stat").read().rsplit(")", 1)[1].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


@case
def a_killed_rank_ends_the_job(bench):
    begun = time.time()
    script = 'echo $$ > rank.$OMPI_COMM_WORLD_RANK; exec "$@"'
    process = bench.start([*bench.mpirun(), "sh", "-c", script, "rank", bench.program, "train", "--model", bench.model,
                           "--data", "good.h5", "--epochs", "10000000", "--log", "endless.jsonl"])
    while time.time() - begun < TIMEOUT and not (bench.folder / "endless.jsonl").exists():
        time.sleep(0.1)
    ranks = rank_processes(bench)
    check(len(ranks) == bench.ranks, f"started: {ranks}")
    killed = time.time()
    os.kill(ranks[-1], signal.SIGKILL)
    result = bench.finish(process, begun)
    check(result.code != 0, f"a killed rank gives success\n{result}")
    check(time.time() - killed < 15, f"took {time.time() - killed:.1f} s")
    # mpirun may end a moment before the last rank does.
    while time.time() - killed < 15 and any(is_running(rank) for rank in ranks):
        time.sleep(0.1)
    check(not any(is_running(rank) for rank in ranks), "ranks are left running")


@case
def launchers_that_mpi_cannot_join_are_refused(bench):
    step = {"SLURM_JOB_ID": "1", "SLURM_STEP_ID": "0", "SLURM_NTASKS": "4", "SLURM_PROCID": "0"}
    arguments = ["train", "--model", bench.model, "--data", "good.h5", "--steps", "1"]
    refused = bench.alone(*arguments, environment=step)
    check(refused.code != 0 and "mpi" in refused.err, str(refused))
    bench.alone("--version", environment=step).succeeds()
    shell = {"SLURM_JOB_ID": "1", "SLURM_NTASKS": "4"}  # inside salloc: no step, so one rank is what was meant
    bench.alone(*arguments, environment=shell).succeeds()


def main():
    parser = argparse.ArgumentParser()
    for flag in ("--program", "--make-inputs", "--golden"):
        parser.add_argument(flag, required=True)
    parser.add_argument("--ranks", type=int, required=True)
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    failed = 0
    for name, function in CASES.items():
        if options.names and name not in options.names:
            continue
        begun = time.time()
        with tempfile.TemporaryDirectory(prefix="rankine-") as folder:
            try:
                function(Bench(options, folder))
                print(f"passed  {name} ({time.time() - begun:.1f} s)", flush=True)
            except Failed as failure:
                failed += 1
                print(f"FAILED  {name}: {failure}", flush=True)
    print(f"{failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
