"""`matbench.verify`: honest and dishonest products, in arrays of any library."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from support import toml
from support.cli import ran
from support.golden import TableRegression
from support.paths import ROOT

import matbench
from matbench.bench import diagnosis
from matbench.features.verify import verification as module
from matbench.workloads.matmul import trials as matmul

M, N, K = 70, 90, 129
RANDOM = np.random.default_rng(5)
A, B = (RANDOM.random(shape, dtype=np.float32) for shape in ((M, K), (K, N)))
SIGNED_A, SIGNED_B = 2 * A - 1, 2 * B - 1
OLD = RANDOM.standard_normal((M, N), dtype=np.float32)
WIDE_A, WIDE_B = A.astype(np.float64), B.astype(np.float64)


def in_bits(values: Any, bits: int) -> Any:
    """Numbers with so many bits of the significand."""
    fraction, exponent = np.frexp(values.astype(np.float64))
    return np.ldexp(np.rint(np.ldexp(fraction, bits)), exponent - bits)


def in_order(A: Any, B: Any, begun: Any) -> Any:
    """Sums in float32 that begin with C before, one term after the other."""
    C = begun.copy()
    for k in range(K):
        C += np.outer(A[:, k], B[k])
    return C


def changed(row: int | slice, column: int | slice, value: float) -> Any:
    C = A @ B
    C[row, column] = value
    return C


def of_kind(kind: Any) -> tuple[Any, Any, Any]:
    """A, B and the product in this type."""
    a, b = A.astype(kind), B.astype(kind)
    return a, b, (a.astype(np.float64) @ b.astype(np.float64)).astype(kind)


def whole(kind: Any, least: int = -100, most: int = 100) -> tuple[Any, Any, Any]:
    a, b = (RANDOM.integers(least, most + 1, shape).astype(kind) for shape in ((M, K), (K, N)))
    return a, b, a.astype(np.int32) @ b.astype(np.int32)


def eight_bits(kind: Any) -> tuple[Any, Any, Any]:
    a, b = A.astype(kind), B.astype(kind)
    return a, b, a.astype(np.float32) @ b.astype(np.float32)


def scaled(scales: Any, of_A: tuple[int, ...], of_B: tuple[int, ...]) -> Any:
    a, b, _ = eight_bits(ml_dtypes.float8_e4m3fn)
    factors = [RANDOM.random(shape, dtype=np.float32) + 0.5 for shape in (of_A, of_B)]
    each = [
        np.kron(factor, np.ones(block))[: len(X), : X.shape[1]]
        for X, factor, block in zip((a, b), factors, scales[1:], strict=True)
    ]
    C = (a.astype(np.float64) * each[0]) @ (b.astype(np.float64) * each[1])
    given = {"scales": scales[0], "scale_a": factors[0], "scale_b": factors[1]}
    return (a, b, C.astype(np.float32)), given


BLOCKS, BLOCKS_GIVEN = scaled(("blocks", (1, 128), (128, 128)), (M, 2), (2, 1))
ROWS, ROWS_GIVEN = scaled(("rows", (1, K), (K, 1)), (M, 1), (1, N))
STACK = np.stack([A, SIGNED_A, 3 * A])


def given(*arrays: Any, **more: Any) -> tuple[Any, dict[str, Any]]:
    return arrays, more


#: Arguments for products that are right.
RIGHT = {
    name: eval(f"given({arguments})")
    for name, arguments in toml.table(Path(__file__).with_name("right.toml")).items()
}


@pytest.mark.parametrize("name", RIGHT)
@pytest.mark.parametrize("most", [module._MOST, 2**16], ids=["whole", "sampled"])
def test_an_honest_product_is_right(name: str, most: int, monkeypatch: Any) -> None:
    monkeypatch.setattr(module, "_MOST", most)
    arrays, more = RIGHT[name]
    found = matbench.verify(*arrays, **more)
    assert found, str(found)
    assert found.ok
    assert found.is_sampled == (most < 2**20) == ("by C·x = A·(B·x)" in str(found))
    if found.is_sampled:  # one row of each product, and none that seemed to be wrong
        assert found.compared == found.elements // M
    assert found.multiple <= 1
    assert found.reason == ""
    assert str(found).startswith("right: largest error ")


@pytest.mark.parametrize("name", RIGHT)
@pytest.mark.parametrize("most", [module._MOST, 2**16], ids=["whole", "sampled"])
def test_one_wrong_element_anywhere_is_found(name: str, most: int, monkeypatch: Any) -> None:
    """In sampled products, most rows are compared by C·x = A·(B·x) alone."""
    monkeypatch.setattr(module, "_MOST", most)
    (a, b, C), more = RIGHT[name]
    for _ in range(5):
        at = tuple(int(RANDOM.integers(side)) for side in C.shape)
        wrong = C.copy()
        wrong[at] = -0.5 * float(C[at]) - 100
        found = matbench.verify(a, b, wrong, **more)
        assert not found
        assert found.at == at
        assert found.found == pytest.approx(float(wrong[at]))
        assert found.expected == pytest.approx(float(C[at]), rel=0.01)
        assert found.wrong == 1


def in_float32(a: Any, b: Any, C: Any, **given: Any) -> Any:
    return matbench.verify(a, b, C.astype(np.float32), **given)


LOST = np.delete(A, slice(16, 32), 1) @ np.delete(B, slice(16, 32), 0)
SQUARE = A[:, :M]


def test_a_wrong_product_is_described(table_regression: TableRegression) -> None:
    def reason(given: str) -> str:
        found = eval(f"in_float32({given})", globals())
        assert not found
        assert found.multiple > 1
        assert found.reason in str(found)
        return str(found.reason)

    table_regression("wrong.txt", reason)


@pytest.mark.parametrize("part", [2**21, 2**12])
def test_a_mistake_in_a_large_product_is_described_by_a_part_of_it(
    part: int, monkeypatch: Any
) -> None:
    monkeypatch.setattr(module, "_MOST", 2**16)
    monkeypatch.setattr(matmul, "PART", part)
    monkeypatch.setattr(diagnosis, "MOST_OPERATIONS", 2**17)
    found = matbench.verify(A, B, A[:, :-1] @ B[:-1])
    assert found.reason == "it leaves out the last term of K"
    edge = matbench.verify(A, B, changed(slice(68, 70), slice(None), 0))
    assert edge.reason == "all rows from 68 on"


def test_float64_products_are_sampled_earlier(monkeypatch: Any) -> None:
    monkeypatch.setattr(module, "_MOST", 2 * M * N * K)
    assert not matbench.verify(A, B, A @ B).is_sampled
    assert matbench.verify(WIDE_A, WIDE_B, WIDE_A @ WIDE_B).is_sampled


def test_what_is_found_has_the_counts_of_a_whole_batch() -> None:
    C = STACK @ B
    C[1, 2, 3] += 50
    C[2, 4, 5] += 1
    found = matbench.verify(STACK, B, C)
    assert (found.at, found.wrong, found.elements) == ((1, 2, 3), 2, C.size)
    assert found.reason == "within row 2, column 3"


class OfGpu:
    """An array that reaches the host by one method alone, as others' arrays on a GPU do."""

    def __init__(self, array: Any, how: str) -> None:
        self.dtype = array.dtype
        setattr(self, how, lambda: array)


@pytest.mark.parametrize("how", ["cpu", "get", "copy_to_host"])
def test_arrays_of_gpus_are_copied_to_the_host(how: str) -> None:
    given = [OfGpu(X, how) for X in (A, B, changed(1, 2, 0))]
    assert matbench.verify(*given).at == (1, 2)


def test_arrays_with_a_cuda_interface_alone_are_read_by_cupy(monkeypatch: Any) -> None:
    as_cupy = lambda one: SimpleNamespace(get=lambda: one.__cuda_array_interface__)  # noqa: E731
    monkeypatch.setitem(sys.modules, "cupy", SimpleNamespace(asarray=as_cupy))
    given = [SimpleNamespace(__cuda_array_interface__=X) for X in (A, B, changed(1, 2, 0))]
    assert matbench.verify(*given).at == (1, 2)


def test_arrays_with_dlpack_alone_are_read() -> None:
    given = [
        SimpleNamespace(__dlpack__=X.__dlpack__, __dlpack_device__=X.__dlpack_device__)
        for X in (A, B, changed(1, 2, 0))
    ]
    assert matbench.verify(*given).at == (1, 2)


KINDS = ("float32", "bfloat16", "float8_e4m3fn")
ON_GPU = [("torch", kind, "cuda") for kind in KINDS] + [("cupy", "float32", "cuda")]
ON_GPU += [("jax", kind, "cuda") for kind in KINDS]


@pytest.mark.parametrize(
    ("library", "kind", "place"),
    [
        *((library, kind, "cpu") for library in ("torch", "jax") for kind in KINDS),
        *(pytest.param(*of, marks=pytest.mark.gpu) for of in ON_GPU),
    ],
)
def test_arrays_of_other_libraries(library: str, kind: str, place: str) -> None:
    imported = pytest.importorskip(library)
    if library == "torch":
        a, b = (imported.from_numpy(X).to(place, getattr(imported, kind)) for X in (A, B))
        C = (a.double() @ b.double()).float().requires_grad_()
    elif library == "cupy":
        a, b = imported.asarray(A), imported.asarray(B)
        C = (a.astype("float64") @ b.astype("float64")).astype("float32")
    else:
        device = imported.devices(place)[0]
        a, b = (imported.device_put(imported.numpy.asarray(X, kind), device) for X in (A, B))
        C = np.asarray(a, np.float64) @ np.asarray(b, np.float64)
        C = imported.device_put(imported.numpy.asarray(C, "float32"), device)
    assert matbench.verify(a, b, C)
    assert not matbench.verify(a, b, C + 1)


def test_bad_input_is_one_clear_line(table_regression: TableRegression) -> None:
    def refused(given: str) -> str:
        with pytest.raises(matbench.UsageError) as raised:
            eval(f"matbench.verify({given})", globals())
        return re.sub("ValueError: .*", "ValueError: …", str(raised.value))  # NumPy's words

    table_regression("refused.txt", refused)


def test_importing_matbench_loads_neither_numpy_nor_anything_slow() -> None:
    program = "import sys, matbench; print({*sys.modules} & {'numpy', 'msgspec', 'click'})"
    assert ran(sys.executable, "-c", program, cwd=ROOT).strip() == "set()"


def page() -> list[tuple[str, str]]:
    """The examples of the page, with what they print."""
    text = (ROOT / "docs" / "verify.md").read_text(encoding="utf-8")
    return re.findall(
        r"^```python\n(.*?)^```\n\n((?:    [^\n]*\n)+)", text, re.DOTALL | re.MULTILINE
    )


@pytest.mark.parametrize("example", page(), ids=lambda example: example[1].split()[0])
def test_the_examples_of_the_page_print_what_it_says(
    example: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    source, printed = example
    exec(compile(source, "docs/verify.md", "exec"), {})
    assert capsys.readouterr().out.split() == printed.split()
