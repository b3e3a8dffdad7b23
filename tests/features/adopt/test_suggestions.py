"""Lines to paste where front matter lacks keys."""

from __future__ import annotations

import json

import pytest

from matbench.cli import registry
from matbench.errors import UsageError
from matbench.kernelfile import front_matter


@pytest.mark.parametrize(
    ("workload", "parameters", "args"),
    [
        ("matmul", "float *out, const float *w, const float *x, int rows, int inner",
         ["C", "B", "A", "M", "K"]),
        ("matmul", "const float *A, const float *B, float *C, float beta, int ldb",
         ["A", "B", "C", "0.0", "ldb"]),
        ("matmul", "const float *A, const float *B, float *C, float *workspace, float *D, int k",
         ["A", "B", "C", "workspace", "C", "N"]),
        ("reverse", "float *out, const float *in, int width, int k", ["C", "A", "N", "N"]),
        ("dot", "float *x, float *y, float *z, float f, int n", ["A", "B", "C", "1.0", "N"]),
    ],
)  # fmt: skip
def test_missing_args_are_guessed_from_names(
    workload: str, parameters: str, args: list[str]
) -> None:
    source = f"__global__ void mine({parameters}) {{}}"
    with pytest.raises(UsageError) as refused:
        front_matter.parse(source.encode(), "mine.cu", given={"workload": workload})
    paste = registry.with_lines_to_paste(refused.value).paste
    [line] = [line for line in paste if line.startswith("args = ")]
    assert json.loads(line.removeprefix("args = ")) == args
