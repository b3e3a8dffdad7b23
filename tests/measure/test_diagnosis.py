"""What a wrong C is said to be, in the words that a user reads."""

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


def vector(path: Path, body: str, workload: str = "reverse") -> Path:
    """A kernel file over N numbers, one thread each; a sum has one block."""
    dot = workload == "dot"
    text = VECTOR.replace("WORKLOAD", workload).replace("BODY", body)
    text = text.replace("ARGS", '"A", "B", "C", "N"' if dot else '"A", "C", "N"')
    text = text.replace("GRID", "1" if dot else "ceil_div(N, 64)")
    parameters = "const float *A, const float *B, float *C" if dot else "const int *A, int *C"
    path.write_text(text.replace("PARAMETERS", parameters), encoding="utf-8")
    return path


def reason(matbench: Matbench, path: Path, size: str, inputs: str = "uniform") -> str:
    result = matbench(
        *("run", "--kernel", path, "--sizes", size, "--inputs", inputs, "--format", "json"), code=1
    )
    [outcome] = [row for row in json.loads(result.stdout) if row["type"] == "outcome"]
    assert outcome["status"] == "wrong"
    return str(outcome["reason"])


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("if (i < N) C[i] = i ? A[N - i] : 7;", "shifted by one, towards the end"),
        ("if (i < N) C[i] = A[N - 1 - (i + 1) % N];", "shifted by one, towards the start"),
        ("if (i < N) C[i] = A[i];", "back to front"),
    ],
)
@pytest.mark.parametrize("inputs", ["uniform", "ramp"])
@pytest.mark.parametrize("size", ["4099", "1000003"])
def test_a_vector_is_shifted_or_turned_but_never_transposed(
    body: str, said: str, inputs: str, size: str, matbench: Matbench, tmp_path: Path
) -> None:
    told = reason(matbench, vector(tmp_path / "mine.cu", body), size, inputs)
    assert said in told
    assert "transposed" not in told


def test_an_element_of_a_vector_has_one_index(matbench: Matbench, tmp_path: Path) -> None:
    body = "if (i < N) C[i] = A[N - 1 - i] + (i == 5 || i == 8);"
    told = reason(matbench, vector(tmp_path / "mine.cu", body), "33")
    assert "2 of 33 elements wrong; first C[5]: expected " in told
    assert "within elements 5–8" in told


def test_a_sum_has_no_index(matbench: Matbench, tmp_path: Path) -> None:
    body = "if (i == 0) { C[0] = 1; for (int k = 0; k < N; ++k) C[0] += A[k] * B[k]; }"
    told = reason(matbench, vector(tmp_path / "mine.cu", body, "dot"), "33", "ramp")
    assert told.startswith("reference: C is wrong: expected 22880, found 22881")
    assert "element" not in told
