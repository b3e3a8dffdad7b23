"""`matbench run --replay`: repeating a wrong sample."""

from __future__ import annotations

import json
import re

import pytest
from support.cli import QUICK, Matbench
from support.kernels import GOOD_BODY, KernelWriter

#: Wrong for negative sums that are not integers, which only samples have.
OFF_IN_SAMPLES = GOOD_BODY.replace("= sum;", "= sum < 0.0f && sum != rint(sum) ? 0.0f : sum;")


def reason(output: str) -> str:
    [found] = [each for each in json.loads(output) if each["type"] == "outcome"]
    assert found["status"] == "wrong"
    return str(found["reason"])


def test_a_wrong_sample_can_be_launched_again(
    matbench: Matbench, write_kernel: KernelWriter
) -> None:
    path = write_kernel(body=OFF_IN_SAMPLES)
    case = ("run", path, "--sizes", "33", "--set", "TILE=8", *QUICK, "--format", "json")
    first = reason(matbench(*case, code=1).stdout)
    said = re.match(r"samples: with the inputs of --replay ([0-9a-f]+): (.*)", first)
    assert said is not None, first
    again = reason(matbench(*case, "--replay", said[1], code=1).stdout)
    assert again == first
    other = reason(matbench(*case, "--replay", "1", code=1).stdout)
    assert other != first
    assert "--replay 1:" in other


def test_a_right_kernel_is_right_on_any_inputs_and_nothing_is_timed(
    matbench: Matbench, write_kernel: KernelWriter
) -> None:
    path = write_kernel()
    said = matbench("run", path, "--sizes", "33", "--replay", "9f3C2b", "--format", "json").stdout
    outcomes = [each for each in json.loads(said) if each["type"] == "outcome"]
    assert outcomes
    for outcome in outcomes:
        assert outcome["status"] == "measured"
        assert outcome["cold"] is outcome["hot"] is None


def test_numpy_is_not_timed_either(matbench: Matbench) -> None:
    said = matbench("run", "numpy", "--sizes", "5", "--replay", "12", "--format", "json").stdout
    [outcome] = [each for each in json.loads(said) if each["type"] == "outcome"]
    assert outcome["status"] == "measured"
    assert outcome["cold"] is outcome["hot"] is None


@pytest.mark.parametrize("key", ["", "xyz", "-1", "0x12", "12345678901234567", "١"])
def test_a_key_is_up_to_16_hexadecimal_digits(matbench: Matbench, key: str) -> None:
    result = matbench("run", "tiled", "--replay", key, code=2)
    assert "not a key; copy the one in the reason" in result.output
