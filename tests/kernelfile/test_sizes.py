"""Sizes: parsing, and one-line errors."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from matbench import workloads
from matbench.errors import UsageError
from matbench.kernelfile.sizes import MAX_SIZE, parse_problems, parse_sizes
from matbench.model import Problem


def test_sizes() -> None:
    assert parse_sizes("256,1000") == [(256, 256, 256), (1000, 1000, 1000)]
    assert parse_sizes("512x1024x768") == [(512, 1024, 768)]
    assert parse_sizes(" 1 , 2X3x4 ,1") == [(1, 1, 1), (2, 3, 4)]
    assert parse_sizes(str(MAX_SIZE)) == [(MAX_SIZE,) * 3]


def test_suffixes_count_in_1024s() -> None:
    assert parse_sizes("1k,4K") == [(1024,) * 3, (4096,) * 3]
    assert parse_sizes("1M,2m") == [(1024**2,) * 3, (2 * 1024**2,) * 3]
    assert parse_sizes("1kx512x1K") == [(1024, 512, 1024)]
    assert parse_sizes("1024M") == [(MAX_SIZE,) * 3]


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("256..8192", [256, 512, 1024, 2048, 4096, 8192]),
        ("256..8k", [256, 512, 1024, 2048, 4096, 8192]),
        ("100..1000", [100, 200, 400, 800, 1000]),
        ("100..150", [100, 150]),
        ("2^3..2^5, 7", [8, 16, 32, 7]),
        ("5..5", [5]),
        ("8..16,16..32", [8, 16, 32]),
        ("1..1024M", [2**exponent for exponent in range(31)]),
    ],
)
def test_a_range_doubles_and_includes_both_ends(text: str, numbers: list[int]) -> None:
    assert parse_sizes(text) == [(number,) * 3 for number in numbers]
    of_dot = workloads.get("dot")
    assert parse_sizes(text, of_dot) == [(1, number, 1) for number in numbers]


@given(st.tuples(*[st.integers(1, MAX_SIZE)] * 3))
def test_a_size_reads_as_it_is_shown(size: tuple[int, int, int]) -> None:
    m, n, k = size
    assert parse_sizes(Problem(M=m, N=n, K=k).size) == [size]


@given(st.text(max_size=40) | st.text(alphabet="0123456789x,- kM.^", max_size=40))
def test_any_text_is_sizes_or_a_clean_error(text: str) -> None:
    try:
        sizes = parse_sizes(text)
    except UsageError as error:
        assert str(error).isprintable()
    else:
        assert sizes
        assert all(1 <= side <= MAX_SIZE for size in sizes for side in size)


def test_problems_have_the_inputs_of_their_workload() -> None:
    dot = workloads.get("dot")
    assert parse_problems("8", dot) == [Problem(1, 8, 1, inputs="ramp", workload="dot")]
    assert parse_problems("8", dot, "signed", seed=3) == [
        Problem(1, 8, 1, inputs="signed", seed=3, workload="dot")
    ]
    with pytest.raises(UsageError, match="--inputs 'ramp': not for matmul, which takes uniform"):
        parse_problems("8", workloads.MATMUL, "ramp")


def test_the_help_says_what_is_true() -> None:
    assert parse_sizes("4k") == parse_sizes("4096")
    assert parse_sizes("256..1000") == parse_sizes("256,512,1000")
    for workload in workloads.WORKLOADS.values():
        for shown in re.findall(r"as in ([^ ,]+)", workload.size_help):
            assert parse_sizes(shown, workload)
