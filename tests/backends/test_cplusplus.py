"""C++ kernels through nvcc: the right code is found, in every build."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from support.kernels import saved
from support.nvcc import find_nvcc
from support.paths import KERNELS
from support.toml import table

from matbench.backends.cuda import compilation
from matbench.backends.protocol import Variant
from matbench.errors import BuildError
from matbench.kernelfile import catalogue, sweep
from matbench.model import Resources

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_nvcc() is None, reason="needs nvcc and a host compiler"),
]

VARIANTS: tuple[Variant, ...] = ("plain", "clocked")  # staggered is wrapped like clocked
TEXTS = table(KERNELS / "texts" / "cplusplus.toml")
FILES = TEXTS["kernels"]


def whole(text: str) -> str:
    """The text of a file, with the signature and the body."""
    text = text.replace("ONE_LINE", " ".join(TEXTS["body"].split())).replace("BODY", TEXTS["body"])
    return str(text.replace(" SIGNATURE", TEXTS["signature"]))


def built(folder: Path, source: str, variant: Variant, **given: Any) -> tuple[str, Resources]:
    """The symbol of the entry and what ptxas says of it, for HALF = 4."""
    saved(folder / "mine.cuh", whole(TEXTS["header"]))
    path = saved(folder / "mine.cu", source)
    launch = {"block": [1], "grid": [1]}
    kernel = catalogue.load(path, given={"launch": launch, "sweep": {"HALF": [4]}, **given})
    [params] = sweep.parameter_sets(kernel, {})
    asked = compilation.request(kernel, params, variant, (9, 0))
    report = msgspec.msgpack.decode(compilation._through_nvcc(asked))[0].decode()
    symbol = compilation.lowered(report, asked.entry)
    return symbol, compilation.reported(report, symbol)


@pytest.mark.parametrize(
    ("name", "variant"),
    [
        pytest.param(name, variant, marks=[pytest.mark.long] * ((at + of) % 2))
        for at, name in enumerate(FILES)
        for of, variant in enumerate(VARIANTS)
    ],
)
def test_the_code_that_is_meant_is_found(name: str, variant: Variant, tmp_path: Path) -> None:
    file = FILES[name]
    symbol, resources = built(tmp_path, whole(file["source"]), variant, entry=file["entry"])
    assert resources.registers
    assert resources.static_shared_bytes == 8 * 4
    if variant == "plain":
        [named] = compilation.demangled(symbol)
        assert "mine" in named
        assert "double" not in named
    else:
        assert symbol == "matbench_entry"


def test_two_values_are_two_kernels(tmp_path: Path) -> None:
    """The control: other arguments lead to other code."""
    source = whole(FILES["a template that main instantiates too"]["source"])
    _, resources = built(tmp_path, source, "plain", entry="mine<float, 4 * HALF>")
    assert resources.static_shared_bytes == 16 * 4


def test_the_standard_is_passed_on(tmp_path: Path) -> None:
    source = whole("template <auto SIDE> __global__ void mine SIGNATURE BODY")
    source = source.replace("T ", "float ")
    assert built(tmp_path, source, "plain", entry="mine<8>", std="c++17")[1].registers
    with pytest.raises(BuildError, match="auto"):
        built(tmp_path, source, "plain", entry="mine<8>", std="c++14")


def test_a_specialised_template_is_only_built_as_it_is(tmp_path: Path) -> None:
    """The wrapper around it would be another kernel's code."""
    specialised = whole(TEXTS["specialised"])
    for entry in ("mine<4>", "mine<8>"):
        assert built(tmp_path, specialised, "plain", entry=entry)[1].registers
    for variant in ("clocked", "staggered"):
        with pytest.raises(BuildError, match="mine has template specialisations"):
            built(tmp_path, specialised, variant, entry="mine<8>")
    general = specialised.split("template <>")[0]
    assert built(tmp_path, general, "clocked", entry="mine<8>")[0] == "matbench_entry"


def test_a_template_that_does_not_exist_is_the_compilers_to_refuse(tmp_path: Path) -> None:
    source = whole(FILES["no name of its own"]["source"])
    with pytest.raises(BuildError, match=r"matbench_mark|mine"):
        built(tmp_path, source, "plain", entry="mine<float, NOWHERE>")


def test_what_is_no_symbol_stays_as_it_is() -> None:
    assert compilation.demangled("mine", "_Z4minei") == ["mine", "mine(int)"]
    assert compilation.lowered("", "mine") == "mine"
    with pytest.raises(BuildError, match="no code"):
        compilation.lowered("entry function 'mine'", "matbench_mark")
