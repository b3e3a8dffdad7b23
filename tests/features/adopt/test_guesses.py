"""Guessing how to call kernels, from their signature and text alone."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support import toml
from support.golden import TableRegression
from support.kernels import text_of

from matbench.cli import registry
from matbench.errors import UsageError
from matbench.features.adopt import arguments, hints, launches
from matbench.features.adopt.arguments import Args
from matbench.features.adopt.arithmetic import Term, combined, term_of
from matbench.features.adopt.guess import Guess, NotCallableError, takes_one_size
from matbench.features.adopt.hints import HostLaunch
from matbench.kernelfile import expressions, front_matter, signature, syntax


def guessed(source: str) -> tuple[list[Args], list[Guess]]:
    [function] = signature.functions(source)
    known = hints.find_hints(source, function)
    return arguments.calls(function, known), launches.launches(function, known)


def kernel(parameters: str, body: str = "", *, before: str = "") -> str:
    usual = (
        "int i = blockIdx.y * blockDim.y + threadIdx.y, j = blockIdx.x * blockDim.x + threadIdx.x;"
    )
    return f"{before}\n__global__ void f({parameters}) {{ {body or usual} }}"


def test_names_tell_what_is_passed(table_regression: TableRegression) -> None:
    table_regression(
        "parameters.txt", lambda parameters: " ".join(guessed(kernel(parameters))[0][0])
    )


def test_all_orders_of_sizes_are_tried() -> None:
    calls, _ = guessed(kernel("const float *a, const float *b, float *c, int m, int n, int k"))
    orders = {args[3:] for args in calls}
    assert len(orders) == 6
    assert ("M", "K", "N") in orders


def test_a_kernel_of_one_size_is_one_of_squares_unless_it_takes_leading_dimensions() -> None:
    assert takes_one_size(("A", "B", "C", "N", "2 * N"))
    assert not takes_one_size(("A", "B", "C", "N", "K"))
    assert not takes_one_size(("A", "lda", "B", "C", "N"))


def test_no_side_of_a_block_depends_on_the_block_itself() -> None:
    row = "int i = blockIdx.y * 64 + threadIdx.y * blockDim.x + threadIdx.x / 16"
    body = f"{row}, j = blockIdx.x * 64 + threadIdx.x;"
    _, ways = guessed(kernel("const float *A, const float *B, float *C, int M, int N, int K", body))
    blocks = {str(way.block) for way in ways}
    assert "(64, 64)" in blocks
    assert not any("blockDim" in block for block in blocks)


def test_any_pointer_but_those_to_constants_may_be_the_result() -> None:
    calls, _ = guessed(kernel("float *first, const float *second, float *third, int n"))
    results = dict.fromkeys(args.index("C") for args in calls)
    assert [*results] == [2, 0]


def test_pitches_may_be_in_bytes_all_or_some_of_them() -> None:
    parameters = "float *A, int lda, float *B, int ldb, half *C, int pitchC, int m, int n, int k"
    source = kernel(parameters, "*(half *)((char *)C + pitchC) = A[lda] * B[ldb];")
    [function] = signature.functions(source)
    known = hints.find_hints(source, function)
    [args, *_] = arguments.calls(function, known)
    pitches = [one[1:6:2] for one in arguments.in_bytes(args, function, known, 4, 2)]
    in_bytes = ("4 * lda", "4 * ldb", "2 * ldc")
    assert pitches[:2] == [("lda", "ldb", "ldc"), in_bytes]
    assert len(pitches) == 8
    assert [*arguments.in_bytes(args, function, hints.Hints(), 4, 2)] == [args]
    assert {*pitches} == {*itertools.product(*zip(pitches[0], in_bytes, strict=True))}


def test_strides_are_between_batches_where_there_are_any() -> None:
    parameters = "const float *A, const float *B, float *C, int strideA, int n"
    assert guessed(kernel(parameters))[0][0][3] == "lda"
    body = "float *c = C + blockIdx.z * n * n; c[blockIdx.x * blockDim.x + threadIdx.x] = 0;"
    calls, geometries = guessed(kernel(parameters, body))
    assert calls[0][3] == "stride_a"
    assert geometries[0].grid[-1] == "batch"


ABC = "const float *A, const float *B, float *C, int n"


def launched(question: str) -> str:
    """The likeliest launch of a kernel whose body is the last line, and the next blocks; lines that
    begin with `void` are host code."""
    *before, body = [line for line in question.splitlines() if not line.startswith("void")]
    host = "\n".join(line for line in question.splitlines() if line.startswith("void"))
    first, *others = guessed(kernel(ABC, body, before="\n".join(before)) + host)[1]
    blocks = [
        block for block in dict.fromkeys(each.block for each in others) if block != first.block
    ]
    params = f"{first.template} {first.params}, " if first.template else ""
    shared = f", {first.shared_bytes} bytes" if first.shared_bytes else ""
    return f"{params}block {first.block}, grid {first.grid}{shared}; then {blocks[:3]}"


def test_the_text_tells_how_it_is_launched(table_regression: TableRegression) -> None:
    table_regression("bodies.txt", launched)


def fixed(question: str) -> str:
    """The sizes of a kernel of `args` whose text tells these extents or constants."""
    known = toml.read(question)
    args, kind = known.pop("args", ["A", "B", "C"]), known.pop("kind", "cpu")
    numbers = "".join(f", int {name.lower()}" for name in args[3:])
    [function] = signature.functions(kernel(f"float *A, float *B, float *C{numbers}"))
    guess = Guess((), {}, (16, 16), (1, 1), args=tuple(args))
    try:
        found = arguments.fixed_sizes(function, hints.Hints(**known), guess, kind)
    except NotCallableError as error:
        return str(error)
    return "; ".join("x".join(map(str, sizes)) for sizes in found) or "any"


def test_sizes_in_the_text_are_those_of_arrays(table_regression: TableRegression) -> None:
    """A constant may be all sizes if it is 16 or more, and at most 2,048, or 4,096 on a GPU; a
    kernel that takes no size has one."""
    table_regression("sizes.txt", fixed)


def test_no_size_is_as_large_as_what_many_blocks_cover_together() -> None:
    far = Guess((), {}, (256,), (16, "ceil_div(M, 64)", "ceil_div(N, 2048)"), given={})
    assert launches.whole(far, hints.Hints(), least=64) == 128
    line = Guess((), {}, (256,), ("ceil_div(M * N, 256)",))
    assert (line.covered, line._replace(given={}).covered) == ([], ["256"])  # the author's is tiles


def test_a_constant_is_fixed_wherever_it_is_used() -> None:
    grid = ("ceil_div(N, T)", "ceil_div(M, 2 * T)")
    swept = Guess(("T",), {"T": 8}, ("T", 4), grid, "4 * T", {"width": "T + 1"})
    fixed = Guess(("8",), {}, (8, 4), ("ceil_div(N, 8)", "ceil_div(M, 2 * 8)"), 32, {"width": 9})
    assert swept.settled() == fixed


def test_the_launch_of_the_author_is_in_terms_of_the_parameters() -> None:
    [function] = signature.functions(kernel("float *a, float *b, float *c, int M, int n, int s"))
    args = ("A", "B", "C", "N", "M", "K")
    launch = (16, "s"), ("ceil_div(n, 16)", "M"), "4 * s", {"s": "2 * M"}
    table = Guess((), {}, *launch, args).table(function)
    assert table["args"] == ["A", "B", "C", "N", "M", "2 * N"]
    assert table["launch"] == {
        "block": [16, "K"], "grid": ["ceil_div(M, 16)", "N"], "shared_bytes": "4 * K"
    }  # fmt: skip
    guess = Guess((), {}, (16, 4), ("ceil_div(N, 16)", "M // 4", "batch"), args=args)
    launched = guess._replace(is_swapped=True).table(function)["launch"]
    assert launched == {"block": [16, 4], "grid": ["ceil_div(M, 16)", "N // 4", "batch"]}


def test_another_template_is_less_likely_than_another_block_or_grid() -> None:
    host = "void go(float *a, int n) { f<8><<<blocks(n), 64>>>(a, a, a, n); }"
    body = "int i = blockIdx.x * blockDim.x + threadIdx.x; C[i / n + i % n] = SIDE;"
    _, geometries = guessed(kernel(ABC, body, before="template <int SIDE>") + host)
    tried = [(g.params["SIDE"], g.block[0], str(g.grid[0]).split(",")[0]) for g in geometries[:6]]
    assert tried == [
        (8, 64, "ceil_div(M * N"), (8, 64, "ceil_div(N"), (8, 64, "ceil_div(M"),
        (8, 256, "ceil_div(M * N"), (8, 256, "ceil_div(N"), (16, 64, "ceil_div(M * N"),
    ]  # fmt: skip


def test_launch_bounds_are_the_block() -> None:
    bounded = f"#define NT 192\n__global__ void __launch_bounds__(NT) f({ABC})"
    assert guessed(f"{bounded} {{ C[threadIdx.x] = 0; }}")[1][0].block == (192,)


def test_a_size_that_sides_of_blocks_are_made_of_is_a_size() -> None:
    host = "void go(float *a, int n) { f<<<1, dim3(n, n)>>>(a, a, a, n); }"
    assert guessed(kernel(ABC) + host)[0][0] == ("A", "B", "C", "N")


def test_types_and_defaults_of_templates_and_shared_memory_that_is_sized_at_launch() -> None:
    body = (
        "extern __shared__ double s[]; s[threadIdx.x] = A[blockIdx.x * blockDim.x + threadIdx.y];"
    )
    template = "template <typename T, int W = 64>"
    _, [first, *_] = guessed(kernel(ABC.replace("float", "T"), body, before=template))
    assert (first.template, first.params) == (("float", "W"), {"W": 64})
    assert first.shared_bytes == 2 * 8 * 256
    assert {one.shared_bytes for one in guessed(kernel(ABC))[1]} == {0}


# Suggestions


def suggested(question: str) -> str:
    """The line to paste for a workload and parameters without `args`."""
    workload, _, parameters = question.partition(": ")
    source = f"__global__ void mine({parameters}) {{}}"
    with pytest.raises(UsageError) as refused:
        front_matter.parse(source.encode(), "mine.cu", given={"workload": workload})
    paste = registry.with_lines_to_paste(refused.value).paste
    return next(line for line in paste if line.startswith("args = "))


def test_missing_args_follow_from_names(table_regression: TableRegression) -> None:
    table_regression("suggestions.txt", suggested)


# Launches in host code


KERNEL = text_of("launched.cu")


def read(host: str, before: str = "") -> HostLaunch:
    """The only launch of the kernel."""
    source = KERNEL.format(host=host, before=before)
    [function] = signature.functions(source)
    [launch] = hints.launches(syntax.expanded(source), function)
    return launch


def test_a_constant_whose_name_is_that_of_no_size_is_a_setting_at_first() -> None:
    host = "tiled<64, 32><<<1, 8>>>(a, c, rows, cols, 7);"
    source = KERNEL.replace("width", "turns").format(before="", host=host)
    [function] = signature.functions(source)
    first, second = hints.launches(source, function)
    assert (first.settings, second.settings) == ({"turns": 7}, {})
    source = source.replace("int turns", "int turns = 3").replace(", 7)", ")")
    [function] = signature.functions(source)
    assert hints.launches(source, function)[0].settings == {"turns": 3}


CALL = "tiled<64, 32><<<grid, block>>>(a, c, rows, cols, 7);"


def told(question: str) -> str:
    """What is read of the launch in host code, whose last line is in the function that launches."""
    *before, host = question.splitlines()
    found = read(host if "<<<" in host else host + CALL, "\n".join(before))
    parts = {
        name: getattr(found, name) for name in ("template", "grid", "block", "shared", "given")
    }
    usual = HostLaunch._field_defaults
    said = {name: part for name, part in parts.items() if part != usual[name]}
    return "; ".join(f"{name} {part}" for name, part in said.items())


def test_launches_are_read(table_regression: TableRegression) -> None:
    table_regression("launches.txt", told)


def test_a_size_that_is_also_a_leading_dimension_is_a_size() -> None:
    source = """__global__ void f(const float *A, int lda, float *C, int N) { C[0] = A[lda]; }
    void run(float *a, float *c, int n) { f<<<n / 8, 8>>>(a, n, c, n); }"""
    [function] = signature.functions(source)
    assert hints.launches(source, function)[0].grid == ("N // 8",)


def test_a_definition_that_depends_on_itself_ends() -> None:
    doubled = "".join(f"int x{n} = x{n + 1} + x{n + 1};" for n in range(23))
    host = f"{doubled} int y = y * y + y * y; dim3 z(z.x); dim3 grid(z.x + y, x0);"
    assert read(host + "int block = 8;" + CALL).grid == (None, None)


@st.composite
def terms(draw: st.DrawFn, depth: int = 3) -> tuple[Term, str]:
    """A term, and the same in Python with C's whole-number division."""
    if depth == 0 or draw(st.booleans()):
        name = draw(st.sampled_from(["M", "N", "K", ""]))
        some = draw(st.integers(1, 40))
        return (term_of(name), name) if name else (term_of(some), str(some))
    (a, left), (b, right) = draw(terms(depth - 1)), draw(terms(depth - 1))
    sign = draw(st.sampled_from(["+", "+", "-", "*", "/", "%", "<", "=="]))
    made = combined(a, sign, b)
    return (made, f"(({left}) {sign.replace('/', '//')} ({right}))") if made else (a, left)


@example((combined(term_of(0), "-", term_of("N // M")), "0 - N // M"), 5, 7, 1)
@given(terms(), st.integers(1, 99), st.integers(1, 99), st.integers(1, 99))
def test_terms_have_values_of_their_parts(pair: tuple[Term, str], M: int, N: int, K: int) -> None:
    term, python = pair
    values = {"M": M, "N": N, "K": K}
    try:
        meant = int(expressions.evaluate(python, values))
    except expressions.ExpressionError:
        return
    assert int(expressions.evaluate(str(term.text), values)) == meant
