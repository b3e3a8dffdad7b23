"""What the text of a kernel shows that may be why it is wrong."""

from __future__ import annotations

import re
import struct
import time
from pathlib import Path

import msgspec
import pytest
from support.cli import Matbench
from support.golden import TableRegression
from support.kernels import GOOD_BODY, kernel_text, refusal
from support.paths import FOREIGN

from matbench.features.adopt import hints
from matbench.kernelfile import catalogue, signature, suspicions
from matbench.model import Kernel, LaunchRules


def said(body: str, told: tuple[str, ...] = ()) -> list[str]:
    source = (
        "#define SYNC() __syncthreads()\n#define BARRIER __syncthreads()\n"
        "__device__ int me() { return threadIdx.x; }\n__device__ void wait() { __syncthreads(); }\n"
        "__global__ void mine(float *A, int N) { const int col = threadIdx.x;\n"
        f"{body}\n}}\n"
    )
    launch = LaunchRules(block=(1,), grid=(1,))
    kernel = Kernel(name="mine", launch=launch, source=source, path="a/mine.cu", entry="mine")
    return list(suspicions.suspicions(kernel, told))


def test_what_is_suspected(table_regression: TableRegression) -> None:
    """In bodies of kernels with helpers, from line 6 on; also of a loop that fills tiles."""

    def told(body: str) -> str:
        kind, _, loop = body.partition("\n")
        if kind == "a loop over tiles":
            body = "__shared__ float s[4][9], two[2][4][9];\nfloat sum = 0;\n"
            body += f"for (int k = 0; k < N; ++k) {{\n{loop}\n}}\nA[0] = sum;"
        found = said(body)
        if unset := re.match(r"`(\w+)` .* never set$", " | ".join(found)):
            assert said(body, (f"mine.cu:7: variable '{unset[1]}' is uninitialized",)) == []
        return " | ".join(found) or "nothing"

    table_regression("suspicions.txt", told)


def test_no_right_kernel_is_suspected() -> None:
    files = [*catalogue.kernels_folder().rglob("*.cu"), *FOREIGN.glob("*.cu")]
    assert len(files) > 60
    launch = LaunchRules(block=(1,), grid=(1,))
    for file in files:
        source = file.read_text()
        for function in signature.functions(source):
            kernel = Kernel(
                name="k", launch=launch, source=source, path=str(file), entry=function.name
            )
            assert list(suspicions.suspicions(kernel)) == []


def test_a_kernel_in_a_header_is_read_there(tmp_path: Path) -> None:
    (tmp_path / "kernel.cuh").write_text(
        "__global__ void mine(float *A, float *B, float *C)\n{\n    if (threadIdx.x < 3)\n"
        "        __syncthreads();\n}\n"
    )
    (tmp_path / "mine.cu").write_text(
        '// /// matbench\n// args = ["A", "B", "C"]\n// [launch]\n// block = [32]\n// grid = [1]\n'
        "// ///\n"
        '#include "kernel.cuh"\n'
    )
    [found] = suspicions.suspicions(catalogue.load(tmp_path / "mine.cu"))
    assert found.startswith("`__syncthreads()` at kernel.cuh:4 is under a condition (line 3)")


# What would take long is refused


FENCE = "# /// matbench\n"
TABLED = f"{FENCE}# [sweep]\n# T = [1]\n# ///\ndef f{{}}(A, B, T): return A @ B\n"
DEFINING = "#define F(a) __global__ void a##f() {}\n"
GROWING = f"#define F(a) __global__ {'a ' * 200}\n" + f"F({'a' * 99})\n" * 300
STRUCTS = "struct S { %s };\n__global__ void f(%s) {}\n"
STRUCTS %= (
    " ".join(f"int {'a' * 60}{i};" for i in range(300)),
    ", ".join(f"S s{i}" for i in range(150)),
)


def nested(begin: str, end: str, times: int = 20_000) -> str:
    return begin * times + end * times


#: Texts after the kernel that change nothing.
TAKEN = "", '\\"' * 100_000, "#define A " + "const " * 40 + "\n" + "A " * 10_000


def test_what_would_take_long(tmp_path: Path, table_regression: TableRegression) -> None:
    """A source before the kernel, a table above it, or a file in Python, as expressions."""

    def told(question: str) -> str:
        kind, _, expression = question.partition(": ")
        text = eval(expression)
        source = {
            "source": lambda: kernel_text("mine", body=f"{text}\n{GOOD_BODY}"),
            "table": lambda: f"// /// matbench\n// {text}\n// ///\n{GOOD_BODY}",
            "python": lambda: f"{text}\ndef g(A, B): pass\n",
        }[kind]()
        name = "mine.py" if kind == "python" else "mine.cu"
        said = refusal(tmp_path / name, source)
        assert len(said) < 1000
        return re.sub(r"not TOML: (?!nested).*", "not TOML: …", said).replace(str(tmp_path), "")

    table_regression("too-much.txt", told)


@pytest.mark.parametrize("text", TAKEN, ids=["", "quotes", "words"])
def test_what_is_read_in_a_moment_is_taken(text: str, tmp_path: Path) -> None:
    """Quotes that begin no string, and 200 KB of flat code."""
    flat = "__device__ float f(float x) {\n" + "  x = x * 2.0f + x;\n" * 10_000 + "  return x;\n}\n"
    chain = f"__device__ float g(float x) {{ return {' + '.join(['x'] * 500)}; }}\n"
    path = tmp_path / "mine.cu"
    path.write_text(kernel_text("mine", body=f"// {text[:9]}\n{flat}{chain}{GOOD_BODY}\n{text}\n"))
    kernel = catalogue.load(path)
    assert kernel.name == "mine"
    assert not [*suspicions.suspicions(kernel)]


@pytest.mark.parametrize("body", [nested("namespace a { ", "}"), f"int a = {'1+' * 5000}1;"])
@pytest.mark.parametrize("words", [("adopt",), ("run", "--adopt", "--sizes", "64")])
def test_adopted(words: tuple[str, ...], body: str, matbench: Matbench, tmp_path: Path) -> None:
    path = tmp_path / "mine.cu"
    source = GOOD_BODY.replace("ENTRY", "mine")
    path.write_text(source.replace("{", "{ " + body, 1) if "int" in body else body + "\n" + source)
    told = matbench(*words, path, code=2).stderr
    assert re.search(rf"{path}:\d: nested more than 1,000 levels deep", told)


def test_barriers_and_macros_without_number(tmp_path: Path) -> None:
    """Each of them was compared with all others, which took minutes."""
    waits = "if (threadIdx.x > K) return; __syncthreads();\n" * 5000
    defined = "".join(f"#define X{number} 1\n" for number in range(8000))
    (path := tmp_path / "mine.cu").write_text(kernel_text("mine", body=GOOD_BODY + defined))
    kernel = catalogue.load(path)
    source = kernel.source.replace("int column", f"{waits}int column")
    started = time.process_time()
    assert len([*suspicions.suspicions(msgspec.structs.replace(kernel, source=source))]) == 1
    [function] = signature.functions(kernel.source)
    assert hints.find_hints(kernel.source, function).body
    assert time.process_time() - started < 10


def test_modules_of_many_parts_are_not_looked_for(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    names = f"import {'a.' * 9000}a\nfrom {'.' * 9000} import a\n"
    path.write_text(f"if 0:\n {names.replace(chr(10), chr(10) + ' ')}\ndef f(A, B): return A @ B\n")
    assert catalogue.load(path).includes == ()


def test_machine_code_that_describes_one_place_again_and_again(tmp_path: Path) -> None:
    names, sections = b"\0", [(0, 64, 0)]
    for number in range(400):
        for name in (f".nv.constant0.f{number}", f".nv.info.f{number}"):
            sections.append((len(names), 64, 500_000 if "info" in name else 0))
            names += name.encode() + b"\0"
    data = names + bytes(500_000)
    head = struct.pack("<5s13xH20xQI8x2H", b"\x7fELF\2", 190, 64 + len(data), 80, len(sections), 0)
    listed = b"".join(struct.pack("<I20x2Q24x", *section) for section in sections)
    (tmp_path / "mine.toml").write_text('name = "mine"\n')
    told = refusal(tmp_path / "mine.cubin", head + data + listed)
    assert "not a cubin: more than 4,000,000 bytes describe its kernels" in told
