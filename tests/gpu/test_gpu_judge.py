"""Verdicts for programs on a GPU."""

from __future__ import annotations

from typing import Any

import pytest
from support.kernels import kernel_text

import matbench

pytestmark = pytest.mark.gpu


def test_kernels_of_all_kinds_have_the_verdicts_that_they_should(benchmarked: Any) -> None:
    given = benchmarked(20)
    with matbench.Judge("256", backend="cuda", timeout=8) as judge:
        verdicts = list(judge.run_all(one.text for one in given))
    told = [
        (one.status, verdict.status, verdict.reason)
        for one, verdict in zip(given, verdicts, strict=True)
    ]
    assert [one for one in told if one[0] != one[1]] == []
    assert all(verdict.median_ns for verdict in verdicts if verdict.status == "measured")


def test_kernels_are_compiled_ahead_and_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    with matbench.Judge("256", backend="cuda") as judge:
        judge.compile_ahead(kernel_text("ahead"))
        [key] = [key for key in judge._pool.builders.futures if key[1][0] == "ahead"]
        assert judge.run(kernel_text("ahead")).status == "measured"
        assert judge._pool.builders.futures[key].done()
        assert judge.compare("naive-2d", "tiled").verdict in ("FASTER", "SLOWER", "SAME")
