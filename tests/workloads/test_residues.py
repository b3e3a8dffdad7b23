"""The arithmetic of `double-int8` on a CPU: its constants, residues, and the way back."""

from __future__ import annotations

import ctypes
import math
import random
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.functions import measured
from support.kernels import saved
from support.nvcc import compile_cubin, find_nvcc
from support.optional import half, present, some
from support.paths import KERNELS, ROOT
from support.toml import table

from matbench.backends.cuda import compilation
from matbench.backends.functions import libraries
from matbench.bench.options import CHECKS
from matbench.cache import Cache
from matbench.kernelfile import catalogue

GALLERY = ROOT / "kernels" / "gallery"
HEADER = GALLERY / "residues.cuh"
KERNEL = catalogue.Catalogue(catalogue.builtin()).get("double-int8")
[MODULI] = KERNEL.sweep["MODULI"]


def largest_coprime(count: int) -> list[int]:
    """The largest numbers up to 256 of which no two have a common factor."""
    found: list[int] = []
    for number in range(256, 1, -1):
        if len(found) < count and all(math.gcd(number, other) == 1 for other in found):
            found.append(number)
    return found


class Residues:
    """`residues.cuh`, built for the CPU with a number of moduli."""

    def __init__(self, moduli: int, folder: Path) -> None:
        self.m = largest_coprime(moduli)
        self.P = math.prod(self.m)
        options = [
            "-std=c++17", "-Wall", "-Wextra", "-Werror", "-Wno-unknown-pragmas",
            f"-DMODULI={moduli}",
        ]  # fmt: skip
        file, source = folder / f"residues-{moduli}.so", Path(__file__).with_name("residues.cpp")
        command = ["g++", "-shared", "-fPIC", "-O1", *options, f'-DHEADER="{HEADER}"']
        subprocess.run([*command, str(source), "-o", str(file)], check=True)
        self.library = ctypes.CDLL(str(file))
        self.library.largest.restype = self.library.number_of.restype = ctypes.c_double
        self.library.residues.argtypes = [ctypes.c_int64, ctypes.c_int, ctypes.c_char_p]

    @property
    def longest(self) -> int:
        """The largest norm."""
        return math.isqrt(int(self.library.largest()))

    def of(self, number: int, *, is_A: bool) -> list[int]:
        made = ctypes.create_string_buffer(len(self.m))
        self.library.residues(number, is_A, made)
        return [byte - 256 * (byte > 127) for byte in made.raw]

    def digit(self, total: int, place: int) -> int:
        return int(self.library.digit_of(total, place))

    def number(self, digits: list[int]) -> float:
        return float(self.library.number_of((ctypes.c_uint * len(digits))(*digits)))

    def product(self, a: list[int], b: list[int]) -> float:
        left = [self.of(x, is_A=True) for x in a]
        right = [self.of(x, is_A=False) for x in b]
        sums = [
            sum(x[i] * y[i] for x, y in zip(left, right, strict=True)) for i in range(len(self.m))
        ]
        return self.number([self.digit(total, i) for i, total in enumerate(sums)])


@pytest.mark.long
@pytest.mark.skipif(find_nvcc() is None, reason="needs nvcc")
def test_it_is_built_without_a_warning(tmp_path: Path) -> None:
    target = libraries.Target(*compilation.nvcc(), "90a")
    assert libraries.prepare(KERNEL, {"MODULI": MODULI}, target, Cache(tmp_path)).startswith(
        b"\x7fELF"
    )
    flags = ("-Werror=all-warnings", "-Xcompiler=-Wall,-Wextra,-Werror")
    assert compile_cubin(Path(KERNEL.file), "sm_90a", None, *flags)


@pytest.fixture(scope="module", params=[14, 15, 16])
def residues(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Residues:
    return Residues(request.param, tmp_path_factory.mktemp("residues"))


def numbers(longest: int) -> Iterator[int]:
    """Whole numbers of at most this size: the ends, small ones, and any."""
    drawn = random.Random(1)
    yield from (0, 1, -1, 255, -256, longest, -longest)
    for _ in range(300):
        yield drawn.randint(-longest, longest) >> drawn.choice((0, 0, 7, 40))


def test_the_default_is_what_is_swept() -> None:
    assert f"#define MODULI {MODULI}\n" in KERNEL.source
    assert KERNEL.arithmetic == f"{MODULI} int8"
    assert f"modulo {MODULI} coprime numbers" in KERNEL.summary


def test_a_residue_is_a_byte(residues: Residues) -> None:
    for number in (*numbers(residues.longest), 2**63 - 1, -(2**63)):
        for is_A in (True, False):
            for m, residue in zip(residues.m, residues.of(number, is_A=is_A), strict=True):
                factor = pow(residues.P // m, -1, m) if is_A else 1
                assert -128 <= residue < m - 128
                assert (residue - number * factor) % m == 0


def test_a_digit_is_the_least_residue_of_a_sum(residues: Residues) -> None:
    for place, m in enumerate(residues.m):
        for total in numbers(2**30):
            assert residues.digit(total, place) == total % m


def test_sums_stay_where_digits_are_found() -> None:
    """K products of bytes are at most 2³⁰ for the largest K that the file allows."""
    [most] = [int(text.split()[-1]) for text in KERNEL.launch.where if text.startswith("K <=")]
    assert most * 128 * 128 <= 2**30


def test_numbers_come_back(residues: Residues) -> None:
    """Whole numbers up to P/2 less a margin, rounded once or twice."""
    drawn = random.Random(2)
    most = int(residues.P * (0.5 - 2**-14))
    for _ in range(500):
        number = drawn.randint(-most, most) >> drawn.choice((0, 0, 1, 20, 50))
        digits = [number * pow(residues.P // m, -1, m) % m for m in residues.m]
        error = abs(int(residues.number(digits)) - number)
        assert error <= max(abs(number) * 2**-52, 2**11)


@pytest.mark.parametrize("sign", [1, -1])
def test_the_longest_rows_fit(residues: Residues, sign: int) -> None:
    """The sum is as large as it can be if both have the same direction."""
    longest = residues.longest
    for K in (1, 4, 100):
        number = longest // math.isqrt(K)
        expected = sign * K * number**2
        found = residues.product([number] * K, [sign * number] * K)
        assert abs(found - expected) <= abs(expected) * 2**-52
    assert 2 * longest**2 < residues.P
    assert 2.001 * longest**2 > residues.P


def test_what_needs_no_rounding_is_exact(residues: Residues) -> None:
    drawn = random.Random(3)
    for _ in range(200):
        shift = residues.longest.bit_length() - 16
        a, b = ([drawn.randint(-4096, 4096) << shift for _ in range(7)] for _ in range(2))
        assert residues.product(a, b) == sum(x * y for x, y in zip(a, b, strict=True))


# -- the kernel on a GPU -------------------------------------------------------------------------


MISTAKES = table(KERNELS / "texts" / "residues.toml")


@pytest.mark.gpu
@pytest.mark.parametrize("inputs", some(["uniform", "signed", "normal"], "signed"))
@pytest.mark.parametrize("size", ["1", "3x5x1", "300x300x2", "257x259x129", "130x513x1000"])
def test_it_is_right_at_awkward_shapes(size: str, inputs: str) -> None:
    # Tests that run at the same time may take memory with each call.
    checks = CHECKS - {"growth"}
    outcome = measured(KERNEL, size, backend="cuda", checks=checks, factors={"inputs": inputs})
    assert (outcome.status, outcome.reason) == ("measured", None)


@pytest.mark.parametrize("mistake", MISTAKES)
def test_what_a_mistake_changes_is_in_the_file(mistake: str) -> None:
    """Also where no GPU is: the code may have moved to another file."""
    made = MISTAKES[mistake]
    assert (GALLERY / made["file"]).read_text(encoding="utf-8").count(made["old"]) == 1


@pytest.mark.gpu
@pytest.mark.parametrize("mistake", half(MISTAKES))
def test_a_mistake_is_refused(mistake: str, tmp_path: Path) -> None:
    """In a copy of the kernel file and of its headers, under a name of its own."""
    made = MISTAKES[mistake]
    for path in (*GALLERY.glob("*.cuh"), GALLERY / "double-int8.cu"):
        text = path.read_text(encoding="utf-8").replace('name = "double-int8"', 'name = "mine"')
        saved(tmp_path / path.name, text.replace(made["old"], made["new"]))
    kernel = catalogue.load(tmp_path / "double-int8.cu")
    outcome = measured(kernel, made["size"], backend="cuda", checks=CHECKS - {"growth"})
    assert outcome.status == "wrong", present(outcome.reason)
