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


BOUNDS = "must be from 1 to 1,073,741,824"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("9" * 30, BOUNDS),
        ("9" * 31, "write 1000 or MxNxK, as in 512x1024x768"),
        ("256x", "size '256x': write 1000 or MxNxK, as in 512x1024x768"),
        *((text, "size '': write 1000") for text in ("", "256,", "256,,512")),
        *(
            (text, f"size '{text}': {BOUNDS}")
            for text in ("0", "-5", "4x0x4", "1073741825", "0k", "-1k", "1025M")
        ),
        *(
            (text, f"size '{text}': write 1000")
            for text in ("x256", "256x256", "1x2x3x4", "abc", "1e3", "1.5", "0x10", "nan", "1_000",
                         "²", "١٠٠", "2^٣", "１２", "k", "1kk", "1.5k", "1 k", "2^10k", "1G",
                         "256;512")
        ),
    ],
)  # fmt: skip
def test_what_is_no_size(text: str, told: str) -> None:
    with pytest.raises(UsageError) as refused:
        parse_sizes(text)
    assert told in str(refused.value)


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


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("8192..256", "size '8192..256': a range starts with the smaller number"),
        ("1..", "size '1..': a range has two numbers, as in 256..8192"),
        *((text, f"size '{text}': {BOUNDS}") for text in ("0..8", "-8..8", "1..2^31")),
        *(
            (text, f"size '{text}': a range has two numbers")
            for text in ("..8", "..", "1..2..3", "1...3", "8x8x8..16x16x16", "1..٨")
        ),
    ],
)
def test_what_is_no_range(text: str, told: str) -> None:
    with pytest.raises(UsageError) as refused:
        parse_sizes(text)
    assert told in str(refused.value)


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
