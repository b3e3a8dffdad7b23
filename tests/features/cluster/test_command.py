"""Sweeps over a Dask cluster of two CPU workers: loss, interruption, refusals, and what listens."""

from __future__ import annotations

import os
import re
import socket
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support import record_files
from support.cli import QUICK, Refusal, outside, records_in
from support.dask_cluster import DaskCluster, dask_cluster, wait_for
from support.kernels import SPIN_BODY, KernelWriter
from support.optional import present
from support.records import outcome
from support.terminal import on_terminal, started

from matbench.analysis import gathering
from matbench.cli.run import Sweep
from matbench.cli.selection import SelectionOptions
from matbench.features.cluster import cluster as joining
from matbench.features.cluster.remote_pool import JoinedCluster
from matbench.kernelfile import catalogue
from matbench.model import Problem, Skip
from matbench.records.outcome import Outcome

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")

#: Six cases of two sizes.
SIZES = ("--sizes", "16,17", *QUICK)
RUN = ("run", "naive-2d", *SIZES)
#: The same, but each lasts a while, or all would soon be done.
LONG = (*RUN, "--max-time", "0.5", "--uncertainty", "1e-9")


@pytest.fixture(scope="module")
def dask(own_folders: None) -> Iterator[DaskCluster]:
    with dask_cluster(2) as found:
        yield found


@pytest.fixture(autouse=True)
def own_last_run(own_state: None) -> None:
    """A separate last run for each test."""


def keys(outcomes: list[Outcome]) -> list[gathering.CaseKey]:
    """What each measured, wherever that was."""
    return [gathering.outcome_key(each)._replace(device_id="") for each in outcomes]


# -- a sweep -------------------------------------------------------------------------------------


@pytest.mark.long
def test_a_sweep_loses_a_worker_and_nothing_else(dask: DaskCluster, tmp_path: Path) -> None:
    output = tmp_path / "out.jsonl"
    command = (*LONG, "--cluster", dask.address, "--output", output)
    before = {worker.pid for worker in dask.workers()}
    process = started(*command)
    dask.lose_a_worker()
    stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 0, [each.reason for each in records_in(output)]
    host = os.uname().nodename
    assert re.fullmatch(
        rf"lost the worker on opencl:0 on {host} \(tcp://127\.0\.0\.1:\d+\); "
        r"naive-2d TILE=8 at 1[67] is tried again\n",
        stderr,
    )
    assert "6 measured, 0 wrong, 0 failed, 0 skipped" in stdout
    [environment], outcomes = record_files.read(output)
    assert Counter(o.status for o in outcomes) == {"measured": 6}
    assert len(set(keys(outcomes))) == 6
    assert {o.case.device_id for o in outcomes} == {f"opencl:0 on {host}"}
    assert [info.properties["host"] for info in environment.devices] == [host]
    # Dask started another worker, which a later sweep uses; nothing is left running.
    assert len(wait_for(lambda: dask.workers() if len(dask.workers()) == 2 else [])) == 2
    assert {worker.pid for worker in dask.workers()} != before
    assert dask.measuring() == {}


@pytest.mark.long
def test_kill_9_of_the_command_costs_what_was_running(dask: DaskCluster, tmp_path: Path) -> None:
    output = tmp_path / "out.jsonl"
    command = (*RUN, "--cluster", dask.address)
    process = started(*LONG, *command[len(RUN) :], "--output", output)
    wait_for(lambda: output.exists() and output.read_bytes().count(b"\n") > 2)
    process.kill()
    process.communicate()
    before = records_in(output)
    assert 2 <= len(before) < 6
    done = outside(*command, "--resume", output)
    assert done.returncode == 0, done.stderr
    after = records_in(output)
    assert after[: len(before)] == before
    assert len(after) == len(set(keys(after))) == 6
    # What the killed command left behind has ended with the sweep after it.
    assert dask.measuring() == {}


def test_ctrl_c_stops(dask: DaskCluster, write_kernel: KernelWriter, tmp_path: Path) -> None:
    write_kernel("a-good")
    write_kernel("b-spins", body=SPIN_BODY)
    output = tmp_path / "out.jsonl"
    session = on_terminal(
        "run", tmp_path, *SIZES, "--cluster", dask.address, "--output", output,
        interrupt_when=lambda text: "b-spins TILE=8 at" in text,
    )  # fmt: skip
    assert session.code == 130
    [kept] = records_in(output)
    assert kept.case.kernel == "a-good"
    assert len(present(kept.hot).rounds) == 1
    text = "\n".join(session.lines)
    assert "interrupted: 1 of 4 cases are done" in text
    assert f"--resume {output}" in text.replace("\n", "")
    assert "Traceback" not in text
    assert "distributed" not in text
    wait_for(lambda: dask.measuring() == {}, 30)


@pytest.mark.parametrize("joined", [True, False])
def test_a_sweep_is_resumed_on_other_hosts_of_the_same_model(joined: bool) -> None:
    found = outcome(device_id="GPU-elsewhere")
    cluster: Any = object() if joined else None
    writer: Any = SimpleNamespace(outcomes=[found])
    sweep: Any = SimpleNamespace(cluster=cluster, writers=[writer])
    known = Sweep._known(sweep)
    key = gathering.outcome_key(found)
    assert list(known) == [key._replace(device_id="") if joined else key]


def test_a_sweep_may_use_every_device_of_a_cluster() -> None:
    cluster: Any = SimpleNamespace(devices=["one", "another"])
    assert JoinedCluster(cluster).choose_all() == cluster.devices


def test_what_runs_on_the_host_is_skipped() -> None:
    numpy = next(kernel for kernel in catalogue.builtin() if kernel.name == "numpy")
    cluster: Any = SimpleNamespace()
    options = SelectionOptions(None, None, ())
    [(_, case)] = options.cases([numpy], [Problem(8, 8, 8)], {}, cluster)
    assert case.skip == Skip(
        "unavailable", "runs on the CPU of one host: measure it without --cluster"
    )


# -- refusals ------------------------------------------------------------------------------------


def test_without_dask_the_extra_is_named(refusal: Refusal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    assert refusal("run", "tiled", "--cluster", "tcp://node1:80") == (
        "--cluster needs Dask: pip install 'matbench-cuda[cluster]', here and on every host"
    )


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(joining, "_CONNECT_S", 1.0)


def test_nothing_answers(refusal: Refusal, impatient: None) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{free.getsockname()[1]}"
    assert address in refusal("run", "tiled", "--cluster", address)


def test_something_else_answers(refusal: Refusal, impatient: None) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"tcp://127.0.0.1:{silent.getsockname()[1]}"
        assert refusal("run", "tiled", "--cluster", address) == (
            f"--cluster {address}: no answer; is it a Dask scheduler?"
        )
