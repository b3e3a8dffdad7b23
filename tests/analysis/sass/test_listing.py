"""Reading nvdisasm's listing: operands, encodings, parameters, and text that is none."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support.machine_code import listed, needs_nvdisasm

from matbench.analysis.sass import listing
from matbench.analysis.sass.listing import ListingError, operand

COPY = (
    'extern "C" __global__ void k(float *p, int n, double x)\n{\n    p[threadIdx.x] = n * x;\n}\n'
)


@pytest.mark.parametrize(
    ("text", "kind", "name", "number"),
    [
        ("R12", "register", "R12", 0),
        ("R12.reuse", "register", "R12", 0),
        ("-R3", "register", "R3", 0),
        ("|R4|", "register", "R4", 0),
        ("UR4", "register", "UR4", 0),
        ("!P2", "predicate", "P2", 0),
        ("UPT", "predicate", "UPT", 0),
        ("-0x1", "number", "", -1),
        ("c[0x0][0x210]", "constant", "", 0x210),
        ("c[0x0][RZ]", "constant", "", 0),
        ("c[0x3][0x8]", "other", "", 0),
        ("SR_TID.X", "special", "SR_TID.X", 0),
    ],
)
def test_operands(text: str, kind: str, name: str, number: int) -> None:
    found = operand(text)
    assert (found.kind, found.name, found.number) == (kind, name, number)


def test_marks_of_operands() -> None:
    assert operand("-R3").negated
    assert operand("!P2").inverted
    assert operand("~R5").inverted
    assert operand("|R4|").absolute
    assert operand("R22.64").is_wide
    assert operand("R22.reuse").reuses


def test_addresses() -> None:
    found = operand("desc[UR8][R22.64+0x20]")
    assert (found.kind, found.number, found.parts) == ("address", 0x20, (("R22", 1, True),))
    found = operand("[R2.X4+UR5+-0x10]")
    assert (found.number, found.parts) == (-0x10, (("R2", 4, False), ("UR5", 1, False)))
    assert operand("[0x20]").parts == ()


@example("1E100")
@given(st.text(max_size=30))
def test_any_text_is_an_operand_of_some_kind(text: str) -> None:
    assert operand(text).text == text


@needs_nvdisasm
def test_parameters_and_encodings() -> None:
    found = listing.function(listed(COPY), "k")
    assert found.parameters == {0: (0x210, 8), 1: (0x218, 4), 2: (0x220, 8)}
    assert all(0 <= each.control.stall <= 15 for each in found.instructions)
    assert any(each.control.write_barrier is not None for each in found.instructions)
    addresses = [each.address for each in found.instructions]
    assert addresses == list(range(0, 16 * len(addresses), 16))


@needs_nvdisasm
@pytest.mark.parametrize(
    "damage",
    [
        lambda text: "",
        lambda text: text.replace(".text.k ", ".text.other "),
        lambda text: text[: text.index("/*0000*/")],
        lambda text: text.replace("*/\n", "\n"),
        lambda text: re.sub(r"^\s+/\* 0x[0-9a-f]{16} \*/\n", "", text, flags=re.MULTILINE),
    ],
)
def test_other_text_is_refused_in_one_line(damage: object) -> None:
    assert callable(damage)
    with pytest.raises(ListingError) as refused:
        listing.function(damage(listed(COPY)), "k")
    assert "\n" not in str(refused.value)
