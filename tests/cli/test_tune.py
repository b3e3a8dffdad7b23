"""Tuning: what is tried, who wins, what is kept and used, and what an interruption leaves."""

from __future__ import annotations

import csv
import io
import itertools
import json
import math
from pathlib import Path
from typing import Any

import msgspec
import pytest
from conftest import Matbench

from matbench.errors import UsageError
from matbench.kernelfile import catalogue, sweep
from matbench.measure import tune, worker
from matbench.model import DeviceInfo, Kernel, Problem
from matbench.records import results

#: The sum is taken TURNS times over. KIND 2 is fast and wrong, for it leaves half of K out; KIND 3
#: is not allowed, KIND 4 does not compile.
KERNEL = """// /// matbench
// name = "tunable"
// summary = "For a test"
// [sweep]
// TURNS = [8]
// KIND = [1]
// [tune]
// TURNS = [1, 8, 64]
// KIND = [1, 2, 3, 4]
// [launch]
// where = ["KIND != 3"]
// block = [8, 8]
// grid = ["ceil_div(N, 8)", "ceil_div(M, 8)"]
// ///

#if KIND == 4
#error "no such kind"
#endif

extern "C" __global__ void tunable(const float *A, const float *B, float *C, int M, int N, int K)
{
    const int row = blockIdx.y * 8 + threadIdx.y;
    const int column = blockIdx.x * 8 + threadIdx.x;
    if (row >= M || column >= N)
        return;
    volatile float sum = 0.0f;
    for (int turn = 0; turn < TURNS; ++turn) {
        sum = 0.0f;
        for (int k = 0; k < (KIND == 2 ? K / 2 : K); ++k)
            sum = sum + A[(size_t)row * K + k] * B[(size_t)k * N + column];
    }
    C[(size_t)row * N + column] = sum;
}
"""
SIZE = Problem(48, 48, 48)


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A state folder of this test's own."""
    folder = tmp_path / "state"
    monkeypatch.setenv("MATBENCH_STATE_DIR", str(folder))
    return folder


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "tunable.cu"
    path.write_text(KERNEL, encoding="utf-8")
    return path


def last_run() -> list[tuple[dict[str, int], tuple[str, ...]]]:
    _, outcomes = results.read(results.last_run_path())
    return [(o.params, o.notes) for o in outcomes]


# -- what is tried -------------------------------------------------------------------------------


def space(kernel: Kernel, device: DeviceInfo, seed: int = 0, **given: tuple[int, ...]) -> Any:
    return tune.space(kernel, SIZE, device, given, seed)


def test_every_legal_combination_the_default_first(file: Path, device: DeviceInfo) -> None:
    found = space(catalogue.load(file), device)
    assert [case.params for case in found.defaults] == [{"TURNS": 8, "KIND": 1}]
    assert {tuple(case.params.values()) for case in found.others} == {
        (1, 1), (64, 1), (1, 2), (8, 2), (64, 2), (1, 4), (8, 4), (64, 4)
    }  # fmt: skip
    assert all(case.skip is None for case in found.cases)
    [refused] = found.refused.values()
    assert refused == (3, "needs KIND != 3 (KIND = 3)")
    assert (found.combinations, found.drawn) == (12, 12)
    assert found.described() == "9 candidates; 3 of 12 combinations refused"


def test_the_order_is_the_seeds(device: DeviceInfo) -> None:
    [kernel] = [kernel for kernel in catalogue.builtin() if kernel.name == "thread-tile-2d"]
    orders = [[c.params for c in space(kernel, device, seed).others] for seed in (1, 1, 2)]
    assert orders[0] == orders[1] != orders[2]
    assert sorted(map(str, orders[0])) == sorted(map(str, orders[2]))
    every = [params for case in space(kernel, device).cases for params in [case.params]]
    legal = [
        params
        for params in sweep.combinations(kernel.sweep | kernel.tune)
        if sweep.case(kernel, SIZE, params, device).skip is None
    ]
    assert sorted(map(str, every)) == sorted(map(str, legal))


def test_given_values_take_the_place_of_a_constants_own(file: Path, device: DeviceInfo) -> None:
    found = space(catalogue.load(file), device, TURNS=(5, 6), KIND=(1,), OTHER=(1,))
    assert [tuple(case.params.values()) for case in found.defaults] == [(5, 1)]
    assert [tuple(case.params.values()) for case in found.others] == [(6, 1)]


def test_given_tiles_are_all_that_is_tried(matbench: Matbench, state: Path) -> None:
    result = matbench("tune", "tiled", "--tiles", "8", "--sizes", "20", "--format", "csv")
    [row] = csv.DictReader(io.StringIO(result.stdout))
    assert (row["params"], row["place"]) == ("TILE=8", "winner, default")
    assert (row["ratio"], row["median_ratio"]) == ("", "1.0")
    both = matbench("tune", "tiled", "--tiles", "16,4", "--sizes", "20", "--format", "csv")
    places = {row["params"]: row["place"] for row in csv.DictReader(io.StringIO(both.stdout))}
    assert places.keys() == {"TILE=16", "TILE=4"}
    assert "default" in places["TILE=16"] and "default" not in places["TILE=4"]


def test_one_launch_is_one_candidate(device: DeviceInfo, file: Path) -> None:
    kernel = next(kernel for kernel in catalogue.builtin() if kernel.name == "dot-tree")
    few = tune.space(kernel, Problem(1, 1000, 1, workload="dot"), device, {}, 0)
    # At most 32 blocks are of use, so that BLOCKS makes no difference, and it is in no line.
    assert [case.params for case in few.defaults] == [{"THREADS": 256, "BLOCKS": 32}]
    threads = [case.params["THREADS"] for case in few.cases]
    assert len(threads) == len(set(threads))
    assert few.merged == 4 * len(threads)
    assert f"{few.merged} the same launch as another" in few.described()
    many = tune.space(kernel, Problem(1, 10**7, 1, workload="dot"), device, {}, 0)
    assert (len(many.cases), many.merged) == (5 * len(threads), 0)
    named = msgspec.structs.replace(kernel, source=f"{kernel.source}\n// BLOCKS\n")
    assert tune.space(named, few.cases[0].problem, device, {}, 0).merged == few.merged
    used = msgspec.structs.replace(kernel, source=f"{kernel.source}\nconstant int b = BLOCKS;\n")
    assert tune.space(used, few.cases[0].problem, device, {}, 0).merged == 0


def test_a_huge_space_is_drawn_from(file: Path, device: DeviceInfo) -> None:
    kernel = msgspec.structs.replace(
        catalogue.load(file), tune={name: tuple(range(1, 1000)) for name in ("TURNS", "KIND")}
    )
    found = tune.space(kernel, SIZE, device, {}, 3)
    assert (found.combinations, found.drawn) == (999**2, tune.MOST_COMBINATIONS)
    assert len({str(case.params) for case in found.cases}) == len(found.cases) > 19_000
    assert "of 20,000 combinations refused, drawn from 998,001" in found.described()


def test_budgets() -> None:
    assert tune.parse_budget(None) == (None, None)
    assert tune.parse_budget("200") == (200, None)
    assert [tune.parse_budget(text).seconds for text in ("90s", "10m", "1h")] == [90, 600, 3600]
    for text in ("", "0", "0s", "-1", "1d", "1.5m", "many", "9" * 40):
        with pytest.raises(UsageError, match="write 200"):
            tune.parse_budget(text)
    with pytest.raises(UsageError, match="'9999999999999999h': 999,999h at most"):
        tune.parse_budget("9999999999999999h")
    with pytest.raises(UsageError, match="999,999 at most"):
        tune.parse_budget("1000000")


@pytest.mark.parametrize("count", [0, 1, 4, 5, 17, 300, 20_000])
def test_rounds_have_fewer_candidates_and_more_samples(count: int) -> None:
    found = tune.rounds(count)
    assert found[0] == (count, 3)
    assert found[-1][0] <= 4
    for (more, fewer_samples), (fewer, more_samples) in itertools.pairwise(found):
        assert fewer == max(4, math.ceil(more / 4))
        assert more_samples == 3 * fewer_samples


# -- who wins ------------------------------------------------------------------------------------


def test_the_fastest_that_is_right_wins(
    matbench: Matbench, device: DeviceInfo, file: Path, state: Path
) -> None:
    result = matbench("tune", file, "--sizes", "48", "--why", "--format", "json")
    environment, *outcomes = json.loads(result.stdout)
    assert environment["type"] == "environment"
    rows = {tuple(o["params"].values()): o["tuning"] for o in outcomes}
    assert rows.keys() == {(1, 1), (8, 1), (64, 1)}
    assert rows[1, 1]["place"] == "winner"
    assert rows[8, 1]["place"] == "default"
    assert (rows[8, 1]["ratio"], rows[8, 1]["median_ratio"]) == (None, 1)
    assert rows[64, 1]["ratio"] is None and rows[64, 1]["median_ratio"] > 1
    assert rows[1, 1]["median_ratio"] < 1
    low, high = rows[1, 1]["ratio_interval"]
    assert low <= rows[1, 1]["ratio"] <= high < 1
    assert "3 refused: needs KIND != 3 (KIND = 3)" in result.stderr
    wrong = [line for line in result.stderr.splitlines() if "KIND=2 at 48 is wrong: " in line]
    assert len(wrong) + result.stderr.count("KIND=4 at 48 is failed: ") == 5
    assert "and 1 more that were wrong or failed" in result.stderr
    [kept] = tune.Store().winners()
    assert (kept.kernel, kept.params, kept.problem) == ("tunable", {"TURNS": 1, "KIND": 1}, SIZE)
    assert (kept.device, kept.driver) == (device.name, device.driver)
    assert (kept.tried, kept.combinations, kept.complete) == (9, 12, True)
    assert kept.ratio == rows[1, 1]["ratio"]
    assert kept.sha256 == catalogue.load(file).sha256


def test_a_default_that_nothing_beats_stays(
    matbench: Matbench, device: DeviceInfo, file: Path, state: Path
) -> None:
    result = matbench("tune", file, "--sizes", "48", "--set", "TURNS=8,64", "--set", "KIND=1")
    assert "winner, default" in result.stdout
    [kept] = tune.Store().winners()
    assert (kept.params, kept.ratio) == ({"TURNS": 8, "KIND": 1}, None)


def test_what_tuning_prints_can_be_reported(
    matbench: Matbench, device: DeviceInfo, file: Path, state: Path
) -> None:
    arguments = ("tune", file, "--sizes", "20", "--tiles", "8", "--set", "TURNS=1,2,3,4,5,6,7,8")
    result = matbench(*arguments, "--set", "KIND=1", "--format", "json")
    printed = file.with_name("tuning.json")
    printed.write_text(result.stdout, encoding="utf-8")
    table = matbench("report", printed).stdout
    assert "8 measured, 0 wrong" in table
    assert "looked at by tuning with" in table
    refused = matbench(
        "run", "single-block", "--sizes", "8", "--output", printed, "--append", code=2
    )
    assert "a JSON array cannot be added to" in refused.stderr
    assert printed.read_text(encoding="utf-8") == result.stdout


def test_what_no_device_here_can_run_is_skipped_with_the_reason(
    matbench: Matbench, device: DeviceInfo, file: Path, state: Path
) -> None:
    file.write_text(KERNEL.replace("// [sweep]", '// requires = ["sm_999"]\n// [sweep]'))
    result = matbench("tune", file, "--sizes", "9,12")
    assert result.stdout.count("12 refused: needs sm_999; this ") == 1
    assert "no candidate could be measured" in result.stdout
    assert tune.Store().winners() == []


def test_nothing_right_is_no_winner(
    matbench: Matbench, device: DeviceInfo, file: Path, state: Path
) -> None:
    file.write_text(KERNEL.replace("KIND = [1]\n", "KIND = [2]\n"), encoding="utf-8")
    result = matbench("tune", file, "--sizes", "9", "--set", "KIND=2", code=1)
    assert "no candidate could be measured" in result.stdout
    assert tune.Store().winners() == []


def test_losers_are_left_early(
    device: DeviceInfo, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from matbench.measure.bench import Options

    kernel = catalogue.load(file)
    with worker.Crew(Options(blocks=False), Deadlines()) as crew:
        found = crew.worker(device)
        case = sweep.case(kernel, SIZE, {"TURNS": 64, "KIND": 1}, device)
        slow = found.look(case, 50, 1.0, check=True)
        assert (slow.status, len(slow.samples_ns)) == ("measured", 2)
        patient = found.look(case, 5, math.inf, check=False)
        assert (patient.status, len(patient.samples_ns)) == ("measured", 5)
        wrong = sweep.case(kernel, SIZE, {"TURNS": 1, "KIND": 2}, device)
        outcome = found.look(wrong, 5, math.inf, check=True)
        assert (outcome.status, outcome.samples_ns, outcome.median_ns) == ("wrong", (), None)
        broken = sweep.case(kernel, SIZE, {"TURNS": 1, "KIND": 4}, device)
        assert found.look(broken, 5, math.inf, check=True).status == "failed"


def test_a_budget_of_candidates(
    matbench: Matbench, device: DeviceInfo, file: Path, state: Path
) -> None:
    result = matbench("tune", file, "--sizes", "20", "--budget", "2", "--set", "KIND=1")
    assert "2 looked at of 3 candidates" in result.stdout
    [kept] = tune.Store().winners()
    assert kept.tried == 2


def test_a_budget_of_time_takes_the_defaults_at_least(
    device: DeviceInfo, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from matbench.measure.bench import Options

    search = tune.Search(space(catalogue.load(file), device, KIND=(1,)), tune.Budget(None, 1e-9))
    with worker.Crew(Options(blocks=False), Deadlines()) as crew:
        search.run(crew.worker(device), crew.builders, lambda label: None)
    assert [standing.case.params["TURNS"] for standing in search.standings] == [8]
    assert search.winner is not None
    assert search.comparison is None


@pytest.mark.parametrize("arguments", [
    ["numpy"], ["single-block"], ["tiled", "--budget", "soon"], ["tiled", "--set", "TURNS=1"],
])  # fmt: skip
def test_what_is_refused_is_one_line(matbench: Matbench, arguments: list[str]) -> None:
    result = matbench("tune", *arguments, code=2)
    assert result.stderr.startswith("matbench")
    assert result.stderr.count("\n") == 1


def test_an_interruption_keeps_what_is_known(
    matbench: Matbench,
    device: DeviceInfo,
    file: Path,
    state: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    look, seen = worker.Worker.look, []

    def stopped(self: worker.Worker, *arguments: Any, **more: Any) -> Any:
        if len(seen) == 2:
            raise KeyboardInterrupt
        seen.append(arguments)
        return look(self, *arguments, **more)

    monkeypatch.setattr(worker.Worker, "look", stopped)
    given = ("--sizes", "48,20", "--set", "KIND=1")
    result = matbench("tune", file, *given, code=130)
    assert "best so far" in result.stdout
    assert "interrupted: 0 of 2 sizes are done" in result.stderr
    [kept] = tune.Store().winners()
    assert (kept.problem, kept.complete, kept.tried) == (SIZE, False, 2)

    monkeypatch.setattr(worker.Worker, "look", look)
    matbench("tune", file, "--sizes", "48", "--set", "KIND=1")
    [finished] = tune.Store().winners()
    assert finished.complete
    monkeypatch.setattr(worker.Worker, "look", stopped)
    seen.clear()
    matbench("tune", file, *given, code=130)
    assert tune.Store().winners() == [finished]


# -- what is kept and used -----------------------------------------------------------------------


def winner(kernel: Kernel, device: DeviceInfo, size: int, **changes: Any) -> tune.Tuned:
    made = tune.Tuned(
        kernel=kernel.name, sha256=kernel.sha256, backend=device.backend, device=device.name,
        driver="", toolkit="", problem=Problem(size, size, size), params={"TURNS": 1, "KIND": 1},
        median_ns=1.0, ratio=None, tried=1, combinations=1, complete=True, time="",
    )  # fmt: skip
    return msgspec.structs.replace(made, **changes)


def test_a_store_keeps_the_latest_of_each(file: Path, device: DeviceInfo, tmp_path: Path) -> None:
    kernel, store = catalogue.load(file), tune.Store(tmp_path / "new" / "tuned.jsonl")
    assert store.winners() == []
    first, other = winner(kernel, device, 8), winner(kernel, device, 9)
    again = winner(kernel, device, 8, median_ns=2.0)
    assert all(map(store.keep, (first, other, again)))
    assert store.winners() == [other, again]
    assert not store.keep(winner(kernel, device, 8, complete=False))
    assert store.winners() == [other, again]
    assert len(store.path.read_bytes().splitlines()) == 2


def test_what_another_version_wrote_stays(file: Path, device: DeviceInfo, tmp_path: Path) -> None:
    kernel, store = catalogue.load(file), tune.Store(tmp_path / "tuned.jsonl")
    known = json.loads(msgspec.json.encode(winner(kernel, device, 8)))
    bare = {name: known[name] for name in
            ("kernel", "sha256", "backend", "device", "problem", "params")}  # fmt: skip
    strange = [
        json.dumps(known | {"schema": tune.SCHEMA + 1}).encode(),
        json.dumps(known | {"problem": {"M": 0, "N": 8, "K": 8}}).encode(),
        b'{"kernel": 1}', b"\xff{not a line", b"[" * 5000,
    ]  # fmt: skip
    newer = json.dumps(known | {"problem": {"M": 9, "N": 9, "K": 9}, "more": [1, 2]}).encode()
    old = json.dumps(bare).encode()
    store.path.write_bytes(b"\n".join([strange[0], old, *strange[1:], newer]))
    assert [(found.problem.N, found.complete) for found in store.winners()] == [
        (8, True),
        (9, True),
    ]
    added = winner(kernel, device, 8)
    assert store.keep(added)
    assert store.winners()[1] == added
    assert store.path.read_bytes().splitlines() == [*strange, newer, msgspec.json.encode(added)]


def test_an_unwritable_state_folder_is_told_before_anything_is_measured(
    matbench: Matbench, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a-file").write_text("")
    monkeypatch.setenv("MATBENCH_STATE_DIR", str(tmp_path / "a-file" / "state"))
    monkeypatch.setattr(worker.Worker, "look", None)
    done = matbench("tune", file, "--sizes", "16", code=2)
    assert done.stdout == ""
    [line] = done.stderr.splitlines()
    assert "a-file/state/tuned.jsonl: a winner cannot be kept: Not a directory" in line
    assert "Errno" not in line


def test_a_state_folder_that_fails_late_costs_the_winner_alone(
    matbench: Matbench,
    device: DeviceInfo,
    file: Path,
    state: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    look = worker.Worker.look

    def spoilt(self: worker.Worker, *arguments: Any, **more: Any) -> Any:
        (state / "tuned.part").mkdir(exist_ok=True)
        return look(self, *arguments, **more)

    monkeypatch.setattr(worker.Worker, "look", spoilt)
    done = matbench("tune", file, "--sizes", "16", "--set", "KIND=1", code=2)
    assert "3 candidates measured" in done.stdout and "winner" in done.stdout
    assert "a winner cannot be kept: Is a directory" in done.stderr


def test_tuned_takes_the_same_size_or_the_nearest(
    matbench: Matbench, device: DeviceInfo, file: Path, state: Path
) -> None:
    kernel, store = catalogue.load(file), tune.Store()
    for size, turns in ((8, 2), (32, 3), (33, 4)):
        store.keep(winner(kernel, device, size, params={"TURNS": turns, "KIND": 1}))
    # Parameters that are refused by now are passed over.
    store.keep(winner(kernel, device, 36, params={"TURNS": 5, "KIND": 3}))
    result = matbench("run", "--kernel", file, "--tuned", "--sizes", "32,36,4x4x32", "--no-blocks")
    assert result.stderr == ""
    [same, near, small] = last_run()
    assert same[0] == {"TURNS": 3, "KIND": 1}
    assert not [note for note in same[1] if "tuned" in note]
    assert near[0] == {"TURNS": 4, "KIND": 1}
    assert near[1][0] == "parameters tuned at 33"
    assert small[0] == {"TURNS": 2, "KIND": 1}
    assert small[1][0] == "parameters tuned at 8"
    assert "parameters tuned at" in result.stdout


def test_tuned_says_what_to_doubt(
    matbench: Matbench, device: DeviceInfo, file: Path, state: Path
) -> None:
    kernel, store = catalogue.load(file), tune.Store()
    store.keep(winner(kernel, device, 8, complete=False, driver="1.0"))
    store.keep(winner(kernel, device, 9, driver=device.driver))
    matbench("run", "--kernel", file, "--tuned", "--sizes", "8,9", "--no-blocks")
    [doubtful, sure] = [[note for note in notes if "tun" in note] for _, notes in last_run()]
    assert doubtful == [
        "parameters from a tuning that was interrupted",
        f"parameters tuned with driver 1.0, this is {device.driver}",
    ]
    assert sure == []


def test_without_a_winner_the_kernels_own_sweep_runs(
    matbench: Matbench, device: DeviceInfo, file: Path, state: Path
) -> None:
    kernel, store = catalogue.load(file), tune.Store()
    store.keep(winner(kernel, device, 8, sha256="0" * 64))
    store.keep(msgspec.structs.replace(winner(kernel, device, 8), device="another"))
    result = matbench(
        *("run", "single-block", "--kernel", file, "--tuned", "--sizes", "5,8", "--no-blocks")
    )
    assert [params for params, _ in last_run() if params] == [{"TURNS": 8, "KIND": 1}] * 2
    [line] = result.stderr.splitlines()
    assert line.startswith(f"tunable is not tuned on {device.name}; its own sweep runs instead")


def test_tuned_and_given_values_exclude_each_other(matbench: Matbench) -> None:
    for given in (["--tiles", "8"], ["--set", "THREADS=64"]):
        result = matbench("run", "thread-1d", "tiled", "--tuned", *given, code=2)
        assert "--tuned takes parameters as they were kept" in result.stderr
