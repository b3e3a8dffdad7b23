"""The reasons given for a wrong C."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from pytest_regressions.file_regression import FileRegressionFixture
from support.cli import QUICK, Matbench, last_run
from support.golden import told_again
from support.kernels import saved, text_of
from support.optional import present

from matbench.bench import diagnosis

VECTOR = text_of("vector.cu")


def test_what_is_wrong_with_a_vector(
    matbench: Matbench, tmp_path: Path, file_regression: FileRegressionFixture
) -> None:
    """A kernel over N numbers has one thread each; a sum has one block."""

    def said(source: str) -> str:
        (_, workload, sizes, inputs), body = (
            source.split("\n")[0].split(),
            source.partition("\n")[2],
        )
        text = VECTOR.replace("WORKLOAD", workload).replace("BODY", body)
        dot = workload == "dot"
        text = text.replace("ARGS", '"A", "B", "C", "N"' if dot else '"A", "C", "N"')
        text = text.replace("GRID", "1" if dot else "ceil_div(N, 64)")
        parameters = "const float *A, const float *B, float *C" if dot else "const int *A, int *C"
        path = saved(tmp_path / "mine.cu", text.replace("PARAMETERS", parameters))
        matbench("run", path, "--sizes", sizes, "--inputs", inputs, *QUICK, code=1)
        return " | ".join(present(outcome.reason) for outcome in last_run())

    told_again(Path(__file__).with_name("reasons-of-vectors.txt"), said, file_regression)


#: Wrong elements of a C of 9 × 13 as a slice, constants, and the words for them.
REGIONS = {
    "the last row": (np.s_[8:, :], {"TILE": 16}, "only in the last row"),
    "the last column": (np.s_[:, 12:], {"TILE": 16}, "only in the last column"),
    "a row before": (np.s_[7, 1:], {"TILE": 16}, "within rows 7–7, columns 1–12"),
    "beyond tiles": (np.s_[6:, 11:], {"T": 5}, "only at the edge, beyond whole multiples of T = 5"),
    "tiles of 1": (np.s_[7:9, 1:12], {"T": 1}, "within rows 7–8, columns 1–11"),
    "rows": (np.s_[5:, :], {}, "all rows from 5 on"),
    "columns": (np.s_[:, 3:], {}, "all columns from 3 on"),
    "every third row": (np.s_[1::3, :], {}, "every 3rd row from 1 on"),
    "every second column": (np.s_[:, ::2], {}, "every 2nd column from 0 on"),
    "a tile": (np.s_[2:4, 3:5], {}, "within rows 2–3, columns 3–4"),
    "all": (np.s_[:, :], {}, "every element"),
}  # fmt: skip


@pytest.mark.parametrize(("where", "params", "words"), REGIONS.values(), ids=REGIONS)
def test_where_c_is_wrong(where: tuple[slice, slice], params: dict[str, int], words: str) -> None:
    expected = np.arange(1.0, 118.0, dtype=np.float32).reshape(9, 13)
    wrong = np.zeros(expected.shape, bool)
    wrong[where] = True
    C = np.where(wrong, expected**2 + 7, expected).astype(np.float32)
    assert diagnosis.patterns(C, expected, wrong, params) == [words]


@pytest.mark.parametrize("ordinal", ["4th", "11th", "13th", "20th", "22nd", "101st", "110th"])
def test_every_so_manyth_element_is_named(ordinal: str) -> None:
    expected = np.arange(1.0, 501.0, dtype=np.float32).reshape(1, 500)
    wrong = np.zeros(expected.shape, bool)
    wrong[0, 2 :: int(ordinal[:-2])] = True
    C = np.where(wrong, expected**2 + 7, expected).astype(np.float32)
    assert diagnosis.patterns(C, expected, wrong, {}) == [f"every {ordinal} element from 2 on"]


@pytest.mark.parametrize("many", [2, 3])
def test_three_wrong_elements_are_enough_to_tell_what_they_share(many: int) -> None:
    expected = np.arange(1.0, 118.0, dtype=np.float32).reshape(9, 13)
    wrong = np.zeros(expected.shape, bool)
    wrong[[0, 3, 4][:many], [0, 5, 2][:many]] = True
    C = np.where(wrong, 7, expected).astype(np.float32)
    assert ("all are 7" in diagnosis.patterns(C, expected, wrong, {})) == (many == 3)
    vector = expected[:1, :many]
    shifted = diagnosis.patterns(vector - 1, vector, np.ones(vector.shape, bool), {})
    assert ("shifted by one, towards the end" in shifted) == (many == 3)


@pytest.mark.parametrize(("share", "is_told"), [(0.99, True), (1.05, False)])
def test_what_is_done_to_all_may_vary_a_little(share: float, is_told: bool) -> None:
    """A factor by 1e-4 of it, a sum by 1e-5 of the largest number."""
    expected = np.arange(1.0, 118.0).reshape(9, 13)
    varied = share * np.linspace(-0.5, 0.5, expected.size).reshape(expected.shape)
    for C, words in (
        (2 * expected * (1 + 1e-4 * varied), "each multiplied by 2"),
        (expected + 5 + 1e-5 * 117 * varied, "each off by +5"),
    ):
        told = diagnosis.patterns(C, expected, np.ones(C.shape, bool), {})
        assert (words in told) == is_told


def test_no_region_is_named_where_there_is_none() -> None:
    expected = np.arange(1.0, 118.0, dtype=np.float32).reshape(9, 13)
    wrong = np.zeros(expected.shape, bool)
    wrong[[0, 3, 4, 8], [0, 5, 2, 12]] = True
    C = np.where(wrong, expected**2 + 7, expected).astype(np.float32)
    assert diagnosis.patterns(C, expected, wrong, {}) == []
