"""What instructions read and write, as nvdisasm shows them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from pytest_regressions.file_regression import FileRegressionFixture
from support.golden import answered

from matbench.features.explain.sass import effects, listing, pipes


def instruction(text: str) -> listing.Instruction:
    return listing._instruction(0, text, 0, {})


def runs(names: Iterable[str]) -> str:
    """Names, of those that follow each other the first and the last: `R4-7 P0`."""
    found: list[tuple[str, int, int]] = []
    for name in names:
        kind = name.rstrip("0123456789")
        number = int(name.removeprefix(kind))
        if found and (found[-1][0], found[-1][2]) == (kind, number - 1):
            found[-1] = kind, found[-1][1], number
        else:
            found.append((kind, number, number))
    return " ".join(f"{kind}{a}" if a == b else f"{kind}{a}-{b}" for kind, a, b in found)


def told(line: str) -> str:
    """What it writes and reads, the bytes of a lane, and the work of tensor cores."""
    each = instruction(line)
    said = [f"{runs(effects.results(each)[0])} <- {runs(effects.sources(each))}".strip()]
    if (pipes.class_of(each) or "").endswith("memory"):
        said.append(f"{effects.access_bytes(each)} B")
    if pipes.class_of(each) == "tensor":
        adds, precision = pipes.tensor_multiply_adds(each), pipes.tensor_precision(each)
        said.append(f"{adds} multiply-adds of {precision}")
    return "; ".join(said)


def test_what_each_instruction_does(file_regression: FileRegressionFixture) -> None:
    table = Path(__file__).with_name("effects.txt")
    file_regression.check(answered(table, told), fullpath=table, encoding="utf-8")


def test_reads_of_the_even_and_the_odd_bank() -> None:
    """Each register is read once, unless the instruction before kept it in the same place."""
    path = {
        "FFMA R0, R1.reuse, R2, R4": (2, 1),
        "FFMA R0, R1, R2.reuse, R3": (1, 1),
        "FFMA R0, R1, R3, R2": (1, 2),  # R2 was kept elsewhere
        "DFMA R4, R6, R8, R11": (3, 3),
        "LDS.64 R4, [R2+UR6]": (1, 0),
        "HMMA.16816.F32 R4, R8, R12, RZ": (3, 3),
        "IADD3 R4, R0, 0x4, UR5": (1, 0),
    }
    assert list(effects.bank_reads(map(instruction, path))) == list(path.values())
