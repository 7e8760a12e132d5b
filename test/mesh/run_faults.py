#!/usr/bin/env python3
"""Jobs in which one rank fails must end soon, with an exit code that isn't 0, and name the rank and its host.

Usage: run_faults.py MPIRUN FAULTS_PROGRAM TEST_LAUNCHED
"""
import os
import re
import signal
import socket
import subprocess
import sys
import time

LIMIT = 15  # seconds until the whole job is gone
HOST = re.escape(socket.gethostname())


def named(rank):
    return rf"\[rank {rank} @ {HOST}\] "


class Case:
    def __init__(self, title, command, code, expected, unexpected=(), ranks=4, launcher=(), environment=None):
        self.title, self.command = title, command
        self.codes = code if isinstance(code, tuple) else (code,)
        self.expected, self.unexpected = expected, unexpected
        self.ranks, self.launcher, self.environment = ranks, launcher, environment or {}


def cases(faults, launched):
    hang = r"number \d+ of group 'data' \(ranks 0 1 2 3\) didn't finish within 3.0 s. Missing: rank 2 @ " + HOST
    yield Case("no fault", [faults, "none"], 0, [])
    yield Case("exception", [faults, "exception"], 70, [named(2) + "unexpected error: the third step is cursed"])
    yield Case("configuration on rank 0", [faults, "config"], 3, [named(0) + "the job file names no model"])
    yield Case("out of memory", [faults, "bad_alloc"], 70, [named(3) + "out of memory"])
    # Whoever sees it first, mpirun or the watchdog of another rank, names the rank and ends the job.
    for ranks, killed in ((4, 1), (3, 1), (1, 0)):
        yield Case(f"kill -9 of one of {ranks}", [faults, "kill"], (137, 70),
                   [rf"rank {killed} with PID \d+ on node \S+ exited on signal 9|"
                    rf"rank {killed} @ {HOST} \(process \d+\) died"], ranks=ranks)
    yield Case("exit without a word", [faults, "exit"], (1, 70),
               [r"Process name: \[\[\d+,1\],0\]\s+Exit code:\s+1|rank 0 @ " + HOST + r" \(process \d+\) died"])
    yield Case("hang before a collective", [faults, "late"], 70,
               ["barrier " + hang + r" \(has entered nothing in this group\)"])
    yield Case("hang after starting a collective", [faults, "sleep"], 70,
               ["tree_all_reduce of 20000 bytes " + hang + r" \(entered it, but hasn't attended to it for"])
    yield Case("hang while the others block inside MPI", [faults, "split"], 70,
               ["split " + hang + r" \(has entered nothing in this group\)"])
    yield Case("other collectives on one rank", [faults, "order"], 70,
               [r"number 1 of group 'data' is tree_all_reduce of \d+ bytes on rank \d @ \S+, but "
                r"tree_all_reduce of \d+ bytes on rank \d @ .*same order"])
    yield Case("agreed error", [faults, "agreed"], 4,
               [r"(?m)^rankine: \[rank 1 @ " + HOST + r"\] the file ends too early$"], [r"(?s)too early.*too early"])
    yield Case("error that unwinds the world", [faults, "unwind"], (3, 70), ["nobody catches this inside"])
    step = {"SLURM_JOB_ID": "1", "SLURM_STEP_ID": "0", "SLURM_NTASKS": "4", "SLURM_PROCID": "3"}
    yield Case("srun without PMIx", [faults, "launch"], 2, ["srun started 4 tasks", "srun --mpi=pmix"], ranks=0,
               environment=step)
    del step["SLURM_STEP_ID"]
    yield Case("single run in an allocation", [faults, "launch"], 0, [], ranks=0, environment=step)
    yield Case("a launched test that fails on one rank", [launched, "one rank fails alone"], 1,
               [named(1) + r".*FAILED", "1 failed"])
    yield Case("a launched test that hangs", [launched, "one rank never comes", "--deadline", "3"], 70,
               [r"the test 'one rank never comes' took more than 3 s"])


LAUNCHER_CRASH = "mca_rml_oob.so(orte_rml_oob_send_buffer"


def processes_of(command):
    """Processes that still run this command."""
    wanted = [part.encode() for part in command]
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                arguments = file.read().split(b"\0")
        except OSError:
            continue
        if arguments[:len(wanted)] == wanted:
            found.append(int(pid))
    return found


def check(case, mpirun):
    command = list(case.command)
    if case.ranks:
        command = [mpirun, "--oversubscribe", "--bind-to", "none", "-n", str(case.ranks), *case.launcher, *command]
    start = time.monotonic()
    try:
        done = subprocess.run(command, env={**os.environ, **case.environment}, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=60, check=False)
    except subprocess.TimeoutExpired as error:
        return [f"still runs after {error.timeout} s"], str(error.stdout)
    took = time.monotonic() - start
    wrong = []
    if took > LIMIT:
        wrong.append(f"took {took:.1f} s")
    if done.returncode not in case.codes:
        wrong.append(f"exit code {done.returncode} instead of {case.codes}")
    wrong += [f"doesn't say {text!r}" for text in case.expected if not re.search(text, done.stdout)]
    wrong += [f"says {text!r}" for text in case.unexpected if re.search(text, done.stdout)]
    left = processes_of(case.command)
    if left:
        wrong.append(f"left processes {left}")
    print(f"{'FAILED' if wrong else 'ok':6} {took:5.1f} s  {case.title}", flush=True)
    return wrong, done.stdout


def main():
    mpirun, faults, launched = sys.argv[1:]
    failed = 0
    for case in cases(faults, launched):
        wrong, output = check(case, mpirun)
        if wrong and LAUNCHER_CRASH in output:
            # Open MPI 4.1's mpirun can crash by itself while it takes in the message of an abort.
            print(f"  mpirun itself crashed, not a rank: {case.title} is tried once more", flush=True)
            for process in processes_of(case.command):
                os.kill(process, signal.SIGKILL)
            wrong, output = check(case, mpirun)
        if wrong:
            failed += 1
            print(f"  {case.title}: {'; '.join(wrong)}\n{output}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
