"""`matbench grade`: profiles, the table, records, exit codes and refusals."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.cli import Matbench
from support.kernels import KernelWriter
from support.paths import KERNELS

from matbench.features.grade.record import Grade
from matbench.records import reading

GRADED = KERNELS / "graded"
TF32, STRASSEN = GRADED / "graded-tf32.cu", GRADED / "graded-strassen.cu"
CHUNKS = GRADED / "graded-chunks-8.cu"


def test_one_kernel_has_a_profile_and_a_tree(matbench: Matbench) -> None:
    text = matbench("grade", CHUNKS, "--tree").stdout
    lines = [" ".join(line.split()) for line in text.splitlines()]
    assert lines[0].startswith("graded-chunks-8: grade A, ")
    assert any(
        line.startswith(
            "order of sums 32 chunks of 8 terms, each in order; then in order (K = 256)"
        )
        for line in lines
    )
    assert text.rstrip().endswith(
        "graded-chunks-8: order of addition\n"
        "sum of, in order\n"
        "  0 + 1 + … + 7\n"
        "  8 + 9 + … + 15\n"
        "  16 + 17 + … + 23\n"
        "  24 + 25 + … + 31"
    )
    assert "Kernels compared" not in text
    assert "evidence from the probes counted here, not proof" in text


@pytest.fixture(scope="module")
def recorded(matbench: Matbench, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """The text of two grades, and their file."""
    path = tmp_path_factory.mktemp("grades") / "grades.jsonl"
    arguments = ("grade", "tiled", TF32, "--set", "TILE=16", "--output", path)
    return matbench(*arguments, "--format", "plain").stdout, path


def test_records_are_read_back(matbench: Matbench, recorded: tuple[str, Path]) -> None:
    text, path = recorded
    assert matbench("report", path, "--format", "plain").stdout == text
    assert text.startswith("tiled TILE=16: grade A")
    contents = reading.Contents(path)
    tiled, tf32 = (finding for finding, _ in contents.findings)
    assert isinstance(tiled, Grade)
    assert isinstance(tf32, Grade)
    assert (tiled.letter, tiled.case.params, tiled.seed) == ("A", {"TILE": 16}, 0)
    assert tf32.letter == "D"
    assert tf32.bounds is not None
    assert tf32.bounds.bits == 11
    assert tiled.order is not None
    assert tiled.order.steps[:2] == ((0, 1), (32, 2))
    assert contents.environments[0].settings == {"seed": 0}


def test_page_of_grades(matbench: Matbench, recorded: tuple[str, Path], tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    matbench("report", recorded[1], "--page", page)
    text = page.read_text()
    assert '<a href="#arithmetic">Arithmetic</a>' in text
    section = text.partition('<section id="arithmetic"')[2].partition("</section>")[0]
    for said in ("tiled TILE=16: grade A", "graded-tf32: grade D", "Kernels compared", "in order"):
        assert said in section


@pytest.mark.parametrize(("least", "code"), [("A", 1), ("C", 0)])
def test_a_grade_too_low_sets_the_exit_code(matbench: Matbench, least: str, code: int) -> None:
    matbench("grade", STRASSEN, "--at-least", least, "--format", "csv", code=code)


def test_what_cannot_run_here_has_no_grade(matbench: Matbench, write_kernel: KernelWriter) -> None:
    path = write_kernel("elsewhere", front='requires = ["sm_123"]')
    arguments = ("grade", path, CHUNKS, "--format", "csv")
    rows = matbench(*arguments).stdout.splitlines()
    assert "needs sm_123" in rows[1]
    assert ",A," in rows[2]
    matbench(*arguments, "--at-least", "C", code=1)
    alone = matbench("grade", path, code=1).stdout
    assert alone.startswith("not graded: elsewhere: needs sm_123")


def test_a_failed_build_has_its_message(matbench: Matbench, write_kernel: KernelWriter) -> None:
    body = 'extern "C" __global__ void ENTRY(float *A, float *B, float *C, int M, int N, int K)\n'
    path = write_kernel("typo", body=body + "{\n    C[0] = missing;\n}\n")
    text = matbench("grade", path, "--format", "csv", code=1).stdout
    assert "missing" in text


def test_numpy_is_graded_on_the_host(matbench: Matbench) -> None:
    assert matbench("grade", "numpy").output.startswith("numpy: grade A")  # without warnings
