"""`matbench compare`: two kernels in turns, and the verdict on the second."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from support.cli import Matbench
from support.kernels import GOOD_BODY, KernelWriter, kernel_text, text_of

from matbench.model import DeviceInfo
from matbench.worker import comparing

pytestmark = pytest.mark.usefixtures("own_state")


#: For tests that ignore the verdict.
BRIEFLY = ("--max-time", "0.05")


def compare(matbench: Matbench, *arguments: str | Path, code: int | None = 0) -> dict[str, Any]:
    """The one comparison that is printed."""
    result = matbench("compare", *arguments, "--sizes", "64", "--format", "json", code=code)
    [environment, record] = json.loads(result.stdout)
    assert environment["type"] == "environment"
    assert isinstance(record, dict)
    assert record["type"] == "comparison"
    return record


@pytest.mark.usefixtures("scripted_device")
def test_a_kernel_is_never_slower_than_itself(matbench: Matbench) -> None:
    with mock.patch.object(comparing, "compare", wraps=comparing.compare) as taken:
        record = compare(matbench, "tiled", "tiled", "--set", "TILE=16", "--threshold", "50%",
                         "--fail-if-slower", "50%", "--allow-skips", "--seed", "5")  # fmt: skip
    assert taken.call_args.args[-1] == 5, "the order of turns"
    assert record["comparison"]["verdict"] == "SAME"


def test_two_languages_are_told(
    matbench: Matbench, device: DeviceInfo, write_kernel: KernelWriter
) -> None:
    if device.backend != "opencl":
        pytest.skip("CUDA C++ is one language")
    body = GOOD_BODY.replace("||", "or")
    assert body != GOOD_BODY
    other, good = write_kernel("other", body=body), write_kernel("good")
    told = "baseline built as OpenCL C, candidate as C++ for OpenCL, which may be the difference"
    assert told in compare(matbench, good, other, *BRIEFLY)["notes"]
    assert not compare(matbench, good, good, *BRIEFLY)["notes"]


#: Replaces a factor, and reads only the upper 8 bits of its significand.
_ROUNDED = text_of("as-bf16.cu")


#: The same, but large numbers are lost, and small ones lose bits.
_NARROW = text_of("narrow.cu")


def _reading(function: str) -> str:
    """GOOD_BODY with a function of each factor."""
    return re.sub(r"([AB]\[[^]]*\])", rf"{function}(\1)", GOOD_BODY)


#: Kernels that are right on inputs, or on a C, made for them: their front matter and body.
_PARTICULAR = {
    "coarse": ('precision = "bfloat16"', _ROUNDED + _reading("as_bf16")),
    "narrow": ("exponents = [-12, 15]", _NARROW + _reading("limited")),
    "inexact": ("error_constant = 16", GOOD_BODY.replace("sum += ", "sum += 1.00000036f * ")),
    "rough": (
        'accumulator = "bfloat16"',
        _ROUNDED + re.sub(r"sum \+= (.*);", r"sum = as_bf16(sum + \1);", GOOD_BODY),
    ),
    "reads": ("", re.sub(r"(C\[[^]]*\]) = sum", r"\1 = sum + 0.0f * \1", GOOD_BODY)),
}


@pytest.mark.parametrize(
    ("name", "first"), [(name, index % 2 == 0) for index, name in enumerate(_PARTICULAR)]
)
def test_the_inputs_of_a_pair_suit_both(
    name: str, first: bool, matbench: Matbench, write_kernel: KernelWriter
) -> None:
    front, body = _PARTICULAR[name]
    one, fine = write_kernel(name, front=front, body=body), write_kernel("fine")
    order = (one, fine) if first else (fine, one)
    record = compare(matbench, *order, *BRIEFLY)
    sides = [record[side] for side in ("baseline", "candidate")]
    assert [side["status"] for side in sides] == ["measured"] * 2
    assert record["comparison"] is not None
    if name == "coarse":  # the bound is for rounded inputs, the shown error for those as given
        accuracy = sides[not first]["accuracy"]
        assert accuracy["bound_ratio"] <= 1
        assert accuracy["max_rel_err"] > 1e-4


@pytest.mark.usefixtures("scripted_device")
def test_each_shared_value_that_is_named_is_compared(matbench: Matbench) -> None:
    result = matbench("compare", "tiled", "naive-2d", "--sizes", "16", "--set", "TILE=4,8",
                      *BRIEFLY, "--format", "json")  # fmt: skip
    _, *records = json.loads(result.stdout)
    sides = [[record[side]["case"]["params"] for side in ("baseline", "candidate")]
             for record in records]  # fmt: skip
    assert sides == [[{"TILE": 4}] * 2, [{"TILE": 8}] * 2]


@pytest.mark.usefixtures("scripted_device")
def test_a_file_against_itself_and_a_built_in_kernel_of_that_name(matbench: Matbench) -> None:
    Path("tiled.cu").write_text(kernel_text("tiled"))
    same = compare(matbench, "tiled.cu", "tiled.cu", *BRIEFLY)
    assert same["comparison"]["verdict"] == "SAME"
    record = compare(matbench, "tiled", "tiled.cu", *BRIEFLY, "--set", "TILE=8")
    assert (record["baseline_name"], record["candidate_name"]) == ("tiled", "tiled.cu")
    assert record["baseline"]["case"]["sha256"] != record["candidate"]["case"]["sha256"]
