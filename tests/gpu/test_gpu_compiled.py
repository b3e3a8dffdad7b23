"""One kernel as CUDA C, PTX and a cubin: the same result, and the same mistakes refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from support import compiled as files
from support.cli import QUICK, Matbench, last_run

from matbench import backends
from matbench.records.outcome import Outcome

pytestmark = pytest.mark.gpu

FORMS = ("gemm.cu", "gemm.ptx", "gemm.cubin")


def arch() -> str:
    """The architecture of the GPU at hand."""
    major, minor = backends.choose("cuda", None).compute_capability or (0, 0)
    return f"sm_{major}{minor}"


def run(path: Path, matbench: Matbench, *more: str) -> list[Outcome]:
    matbench("run", path, "--backend", "cuda", "--sizes", "64,67x43x59", *QUICK, *more, code=None)
    return last_run()


@pytest.mark.parametrize("more", [(), ("--alpha", "1.5", "--beta", "0.25")])
def test_all_forms_are_measured(tmp_path: Path, matbench: Matbench, more: tuple[str, ...]) -> None:
    errors = []
    for name in FORMS:
        outcomes = run(files.make(tmp_path / name, arch=arch()), matbench, *more)
        assert [outcome.status for outcome in outcomes] == ["measured", "measured"]
        assert all(o.build and o.build.resources and o.build.resources.registers for o in outcomes)
        errors.append([o.accuracy.max_rel_err for o in outcomes if o.accuracy is not None])
    assert errors[0] == errors[1] == errors[2]


@pytest.mark.parametrize("name", FORMS)
def test_wrong_arithmetic_is_wrong(tmp_path: Path, matbench: Matbench, name: str) -> None:
    source = files.SOURCE.replace("alpha * sum", "alpha * sum * 1.0001f")
    outcomes = run(files.make(tmp_path / name, source, arch()), matbench)
    assert {outcome.status for outcome in outcomes} == {"wrong"}


@pytest.mark.parametrize("name", FORMS)
def test_other_parameters_are_refused(tmp_path: Path, matbench: Matbench, name: str) -> None:
    path = files.make(tmp_path / name, arch=arch())
    table = path.with_suffix(".toml")
    table.write_text(table.read_text().replace('"beta", ', ""))
    refused = matbench("run", path, "--backend", "cuda", code=2).stderr
    assert "args: 7 arguments, but gemm has 8 parameters" in refused


@pytest.mark.parametrize("name", FORMS)
def test_what_is_right_only_once_is_wrong(tmp_path: Path, matbench: Matbench, name: str) -> None:
    outcomes = run(files.make(tmp_path / name, files.COUNTING, arch()), matbench)
    assert {outcome.status for outcome in outcomes} == {"wrong"}


def test_they_are_compared_and_checked(tmp_path: Path, matbench: Matbench) -> None:
    first, second = (files.make(tmp_path / name, arch=arch()) for name in FORMS[1:])
    compared = matbench(
        "compare", first, second, "--backend", "cuda", "--sizes", "256", "--max-time", "1"
    ).stdout
    assert "gemm.cubin" in compared
    assert any(verdict in compared for verdict in ("SAME", "FASTER", "SLOWER", "UNDECIDED"))
    checked = matbench("check", second, "--quick", "--backend", "cuda").stdout
    assert "gemm.cubin" in checked
    graded = matbench("grade", first, "--backend", "cuda").stdout
    assert "gemm.ptx" in graded
