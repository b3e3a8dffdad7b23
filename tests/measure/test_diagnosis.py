"""The reasons given for a wrong C."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.cli import Matbench

VECTOR = """\
// /// matbench
// name = "mine"
// summary = "For a test"
// workload = "WORKLOAD"
// args = [ARGS]
// [launch]
// block = [64]
// grid = ["GRID"]
// ///
extern "C" __global__ void mine(PARAMETERS, int N)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    BODY
}
"""


def vector(folder: Path, body: str, workload: str = "reverse", name: str = "mine") -> Path:
    """A kernel file over N numbers, one thread each; a sum has one block."""
    path = folder / f"{name}.cu"
    dot = workload == "dot"
    text = VECTOR.replace("WORKLOAD", workload).replace("BODY", body)
    text = text.replace("mine", name)
    text = text.replace("ARGS", '"A", "B", "C", "N"' if dot else '"A", "C", "N"')
    text = text.replace("GRID", "1" if dot else "ceil_div(N, 64)")
    parameters = "const float *A, const float *B, float *C" if dot else "const int *A, int *C"
    path.write_text(text.replace("PARAMETERS", parameters), encoding="utf-8")
    return path


def reasons(
    matbench: Matbench, paths: list[Path], sizes: str, inputs: str = "uniform"
) -> list[tuple[str, str]]:
    """Each wrong kernel, and the reason given."""
    files = [word for path in paths for word in ("--kernel", path)]
    result = matbench(
        *("run", *files, "--sizes", sizes, "--inputs", inputs, "--format", "json"), code=1
    )
    outcomes = [row for row in json.loads(result.stdout) if row["type"] == "outcome"]
    assert {outcome["status"] for outcome in outcomes} == {"wrong"}
    return [(outcome["case"]["kernel"], outcome["reason"]) for outcome in outcomes]


MOVED = {
    "later": ("if (i < N) C[i] = i ? A[N - i] : 7;", "shifted by one, towards the end"),
    "sooner": ("if (i < N) C[i] = A[N - 1 - (i + 1) % N];", "shifted by one, towards the start"),
    "turned": ("if (i < N) C[i] = A[i];", "reversed"),
}


@pytest.mark.parametrize("inputs", ["uniform", "ramp"])
def test_a_vector_is_shifted_or_turned_but_never_transposed(
    inputs: str, matbench: Matbench, tmp_path: Path
) -> None:
    paths = [vector(tmp_path, body, name=name) for name, (body, _) in MOVED.items()]
    told = reasons(matbench, paths, "4099,1000003", inputs)
    assert sorted(kernel for kernel, _ in told) == sorted([*MOVED, *MOVED])
    for kernel, reason in told:
        assert MOVED[kernel][1] in reason
        assert "transposed" not in reason


def test_an_element_of_a_vector_has_one_index(matbench: Matbench, tmp_path: Path) -> None:
    body = "if (i < N) C[i] = A[N - 1 - i] + (i == 5 || i == 8);"
    [(_, told)] = reasons(matbench, [vector(tmp_path, body)], "33")
    assert "2 of 33 elements wrong; first C[5]: expected " in told
    assert "within elements 5–8" in told


def test_a_sum_has_no_index(matbench: Matbench, tmp_path: Path) -> None:
    body = "if (i == 0) { C[0] = 1; for (int k = 0; k < N; ++k) C[0] += A[k] * B[k]; }"
    [(_, told)] = reasons(matbench, [vector(tmp_path, body, "dot")], "33", "ramp")
    assert told.startswith("reference: C is wrong: expected 22880, found 22881")
    assert "element" not in told
