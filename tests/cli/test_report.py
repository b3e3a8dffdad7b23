"""`matbench report`: a sweep of good and bad kernels, in every format and read back."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path
from typing import NamedTuple

import pytest
from support.cli import Matbench, records_in
from support.kernels import SLOW_BODY, kernel_text

from matbench.model import DeviceInfo
from matbench.records import provenance, reading

#: A kernel with another signature, that of BLAS.
SGEMM = """
extern "C" __global__ void sgemm(int m, int n, int k, float alpha, const float *A, const float *B,
                                 float beta, float *C)
{
    const int row = blockIdx.y * blockDim.y + threadIdx.y;
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < m && column < n) {
        float sum = 0.0f;
        for (int i = 0; i < k; ++i)
            sum += A[(size_t)row * k + i] * B[(size_t)i * n + column];
        const size_t at = (size_t)row * n + column;
        C[at] = beta == 0.0f ? alpha * sum : alpha * sum + beta * C[at];
    }
}
"""
FOREIGN = """entry = "sgemm"
args = ["M", "N", "K", "1.0", "A", "B", "0.0", "C"]"""

SIZES = ("20", "33x20x40")
KERNELS = ("good", "once", "foreign", "slow", "liar", "typo", "cuda-only")
COUNTS = "10 measured, 2 wrong, 2 failed, 12 skipped"


class Sweep(NamedTuple):
    """The JSON output of a run, and its record file."""

    printed: str
    output: Path


@pytest.fixture(scope="module")
def sweep(
    tmp_path_factory: pytest.TempPathFactory, matbench: Matbench, device: DeviceInfo
) -> Sweep:
    """Good and bad kernels side by side."""
    folder = tmp_path_factory.mktemp("sweep")
    (folder / "kernels").mkdir()
    grid = """block = [8, 8]
grid = ["ceil_div(N, 8)", "ceil_div(M, 8)"]"""
    once = kernel_text("once").replace("TILE = [8]\n// ", "").replace("// [sweep]\n", "")
    files = {
        "good": kernel_text("good"),
        "once": once.replace("TILE", "8").replace('"8"', "8"),
        "foreign": kernel_text("foreign", front=FOREIGN, launch=grid, body=SGEMM),
        "slow": kernel_text("slow", body=SLOW_BODY),
        "liar": kernel_text("liar").replace("k < K", "k < K - 1"),
        "typo": kernel_text("typo").replace("sum +=", "summ +="),
        "cuda-only": kernel_text("cuda-only", front='requires = ["sm_999"]'),
    }
    for name, text in files.items():
        (folder / "kernels" / f"{name}.cu").write_text(text, encoding="utf-8")
    output = folder / "sweep.jsonl"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MATBENCH_STATE_DIR", str(folder / "state"))
        result = matbench(
            "run", "--kernels-dir", folder / "kernels", "--sizes", ",".join(SIZES),
            "--set", "TILE=8,128", "--output", output, "--format", "json", "--seed", "5",
            "--max-time", "0.02", code=1,
        )  # fmt: skip
        assert reading.read(provenance.last_run_path()) == reading.read(output)
    return Sweep(result.stdout, output)


def test_each_kernel_met_its_fate(sweep: Sweep) -> None:
    outcomes = records_in(sweep.output)
    found = {(o.case.kernel, o.case.params.get("TILE"), o.case.problem.size): o for o in outcomes}
    assert len(found) == len(outcomes)
    assert found.keys() == {
        *((kernel, tile, size) for tile in (8, 128) for size in SIZES
          for kernel in ("good", "slow", "liar", "typo", "cuda-only", "foreign")),
        *(("once", None, size) for size in SIZES),
    }  # fmt: skip
    for (kernel, tile, _), outcome in found.items():
        if kernel == "cuda-only":
            assert outcome.status == "skipped"
            assert outcome.skip is not None
            assert (outcome.skip.kind, outcome.skip.needs) == ("requirement", "sm_999")
        elif tile == 128 and kernel != "foreign":
            assert outcome.status == "skipped"
            assert outcome.skip is not None
            assert (outcome.skip.kind, outcome.skip.given["asked"]) == ("limit", 16_384)
        elif kernel == "liar":
            assert outcome.status == "wrong"
            assert outcome.median_ns is None
        elif kernel == "typo":
            assert outcome.status == "failed"
            assert outcome.reason is not None
            assert re.search(r"typo\.cu[:(]20\b.*summ", outcome.reason)
        else:
            assert outcome.status == "measured", outcome.reason
            assert outcome.reason is None
            assert outcome.median_ns is not None
            assert outcome.accuracy is not None
            assert outcome.accuracy.bound_ratio is not None
            assert outcome.accuracy.bound_ratio <= 1


def test_a_record_has_the_fields_that_programs_rely_on(sweep: Sweep) -> None:
    lines = [json.loads(line) for line in sweep.output.read_text(encoding="utf-8").splitlines()]
    environment, *outcomes = lines
    assert environment["type"] == "environment"
    assert environment["schema"] == 2
    assert environment.keys() >= {
        "argv", "time", "host", "os", "python", "packages", "devices", "project_revision",
    }  # fmt: skip
    assert environment["devices"][0].keys() >= {"name", "driver", "toolkit"}
    for record in outcomes:
        assert record["type"] == "outcome"
        assert record.keys() >= {
            "case", "status", "reason", "skip", "build", "accuracy", "cold", "hot",
            "blocks", "notes",
        }  # fmt: skip
        case = record["case"]
        assert case.keys() >= {
            "kernel", "sha256", "claims", "params", "problem", "backend", "device", "launch",
        }  # fmt: skip
        assert case["problem"].keys() >= {"M", "N", "K"}
        assert case["problem"]["seed"] == 5
        if record["status"] == "measured":
            timing = record["cold"] or record["hot"]
            assert case["launch"].keys() == {"grid", "block", "shared_bytes", "workspace_bytes"}
            assert len(timing["samples_ns"]) >= 3
            assert timing["median_ns"] > 0
            assert record["blocks"]["median_ns"] > 0
            assert record["accuracy"].keys() == {"max_rel_err", "avg_rel_err", "bound_ratio"}
        else:
            skip = record["skip"] or {"kind": "", "needs": "", "given": {}}
            assert skip.keys() == {"kind", "needs", "given"}
            assert bool(skip["kind"]) == (record["status"] == "skipped") != bool(record["reason"])
            assert record["cold"] is record["hot"] is record["blocks"] is None
    assert "NaN" not in sweep.output.read_text(encoding="utf-8")


def test_json_prints_the_same_objects_as_one_array(sweep: Sweep) -> None:
    lines = [json.loads(line) for line in sweep.output.read_text(encoding="utf-8").splitlines()]
    assert json.loads(sweep.printed) == lines


def csv_of(matbench: Matbench, *arguments: str | Path) -> list[dict[str, str]]:
    text = matbench("report", *arguments, "--format", "csv").stdout
    return list(csv.DictReader(io.StringIO(text)))


def test_the_fastest_of_each_kernel_and_what_none_was_right_of(
    sweep: Sweep, matbench: Matbench
) -> None:
    shown = csv_of(matbench, sweep.output, "--fastest")
    cases = sorted((row["size"], row["kernel"]) for row in shown)
    assert cases == sorted((size, kernel) for size in SIZES for kernel in KERNELS)
    text = matbench("report", sweep.output, "--fastest").stdout.rstrip()
    assert text.endswith(f"{COUNTS}; 14 shown: each kernel at its fastest parameters")
