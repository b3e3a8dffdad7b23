"""Guessing how to call kernels, from their signature and text alone."""

from __future__ import annotations

import itertools
import json

import pytest
from support.paths import FOREIGN

from matbench.cli import registry
from matbench.errors import UsageError
from matbench.features.adopt import arguments, hints, launches
from matbench.features.adopt.arguments import Args
from matbench.features.adopt.guess import Guess, NotCallableError, takes_one_size
from matbench.kernelfile import front_matter, signature


def guessed(source: str) -> tuple[list[Args], list[Guess]]:
    [function] = signature.functions(source)
    known = hints.find_hints(source, function)
    return arguments.calls(function, known), launches.launches(function, known)


def kernel(parameters: str, body: str = "", *, before: str = "") -> str:
    usual = (
        "int i = blockIdx.y * blockDim.y + threadIdx.y, j = blockIdx.x * blockDim.x + threadIdx.x;"
    )
    return f"{before}\n__global__ void f({parameters}) {{ {body or usual} }}"


@pytest.mark.parametrize(
    ("parameters", "args"),
    [
        ("float *M, float *N, float *P, int Width", "A B C N"),
        ("float *C, float *A, float *B, int wA, int wB", "C A B K N"),
        ("const float *b, const float *a, float *c, int n", "B A C N"),
        ("int M, int N, int K, float alpha, const float *A, const float *B, float beta, float *C",
         "M N K alpha A B beta C"),
        ("float *out, const float *x, const float *w, int rows, int inner, int cols",
         "C A B M K N"),
        ("const float *A, int lda, const float *B, int ldb, float *C, int ldc, int m, int n, int k",
         "A lda B ldb C ldc M N K"),
        ("float *A, float *B, float *C, int numARows, int numAColumns, int numBColumns",
         "A B C M K N"),
        ("const double *first, const double *second, double *third, size_t p, size_t q, size_t r",
         "A B C M N K"),
        ("const float *b, const float *v, const float *c, int n", "A B C N"),
        ("const float *x, const float *a, float *c, int size, int n", "A B C M N"),
        ("int alpha, const float *a, const float *b, float *c, int x, int n",
         "alpha A B C 1 N"),
        ("float f, float g, const float *a, const float *b, float *c, int wA, int m",
         "alpha beta A B C K M"),
        ("const float *a, const float *b, float *c, int p, int q, int r, int s", "A B C M M N K"),
        ("const float *a, const float *b, float *c, int p, int q, int r, int s, int t",
         "A B C N N N N N"),
    ],
)  # fmt: skip
def test_names_tell_what_is_passed(parameters: str, args: str) -> None:
    calls, _ = guessed(kernel(parameters))
    assert calls[0] == tuple(args.split())
    assert "None" not in itertools.chain(*calls)


def test_all_orders_of_sizes_are_tried() -> None:
    calls, _ = guessed(kernel("const float *a, const float *b, float *c, int m, int n, int k"))
    orders = {args[3:] for args in calls}
    assert len(orders) == 6
    assert ("M", "K", "N") in orders


def test_a_kernel_of_one_size_is_one_of_squares_unless_it_takes_leading_dimensions() -> None:
    assert takes_one_size(("A", "B", "C", "N", "2 * N"))
    assert not takes_one_size(("A", "B", "C", "N", "K"))
    assert not takes_one_size(("A", "lda", "B", "C", "N"))


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


@pytest.mark.parametrize(
    "parameters", ["float *x, int n", "float *a, float *b, float *c, float *d"]
)
def test_a_kernel_without_three_pointers_is_none_of_ours(parameters: str) -> None:
    with pytest.raises(NotCallableError, match="not A, B and C"):
        guessed(kernel(parameters))


TILED = "int i = blockIdx.y * {0} + threadIdx.y, j = blockIdx.x * {0} + threadIdx.x;"
ABC = "const float *A, const float *B, float *C, int n"


@pytest.mark.parametrize(
    ("before", "body", "block", "grid"),
    [
        ("", "", (16, 16), ("ceil_div(N, 16)", "ceil_div(M, 16)")),
        ("#define TILE 8", TILED.format("TILE"), (8, 8), ("ceil_div(N, 8)", "ceil_div(M, 8)")),
        ("#define TY threadIdx.y\n#define AT (blockIdx.x * 8 + threadIdx.x)",
         "int i = blockIdx.y * 4 + TY, j = AT;", (8, 4), ("ceil_div(N, 8)", "ceil_div(M, 4)")),
        ("constexpr int T = 4 * 8;", TILED.format("T"), (32, 32),
         ("ceil_div(N, 32)", "ceil_div(M, 32)")),
        ("template <int BS>", TILED.format("BS"), ("BS", "BS"),
         ("ceil_div(N, BS)", "ceil_div(M, BS)")),
        ("", "int bx = blockIdx.x, by = blockIdx.y, tx = threadIdx.x, ty = threadIdx.y;"
         " int i = by * 16 + ty, j = bx * 16 + tx;", (16, 16),
         ("ceil_div(N, 16)", "ceil_div(M, 16)")),
        ("", "int bx = blockIdx.x; bx += 1; int i = blockIdx.y * 16 + threadIdx.y,"
         " j = bx * 8 + threadIdx.x;", (8, 16), ("ceil_div(N, 8)", "ceil_div(M, 16)")),
        ("", "int at = blockIdx.x * blockDim.x + threadIdx.x; int i = at / n, j = at % n;", (256,),
         ("ceil_div(M * N, 256)",)),
        ("#define BM 64\n#define BN 128\n#define TM 4\n#define TN 8",
         "int r = blockIdx.y * BM + threadIdx.y * TM, c = blockIdx.x * BN + threadIdx.x * TN;",
         (16, 16), ("ceil_div(N, 128)", "ceil_div(M, 64)")),
        ("template <int BM, int BN, int BK, int TM, int TN>",
         "A += blockIdx.y * BM * n; B += blockIdx.x * BN; int t = threadIdx.x / (BN / TN), u = TM;",
         ("BM * BN // (TM * TN)",), ("ceil_div(N, BN)", "ceil_div(M, BM)")),
        ("", "int j = blockIdx.x * 16 + threadIdx.x, i = (n - blockIdx.y) * 8 + threadIdx.y;",
         (16, 16), ("ceil_div(N, 16)", "M")),
        ("", "int j = (blockIdx.x * blockDim.x + threadIdx.x) * 4, i = blockIdx.y * blockDim.y"
         " + threadIdx.y;", (16, 16), ("ceil_div(N, 64)", "ceil_div(M, 16)")),
    ],
)  # fmt: skip
def test_the_text_tells_how_it_is_launched(
    before: str, body: str, block: tuple[int | str, ...], grid: tuple[str, ...]
) -> None:
    _, geometries = guessed(kernel(ABC, body, before=before))
    assert geometries[0].block == block
    assert geometries[0].grid == grid


@pytest.mark.parametrize(
    ("extents", "sizes"),
    [
        ({"A": (None, 32), "B": (None, 48), "C": (None, 48)}, (48, 48, 32)),  # C's rows as columns
        ({"B": (32, 48)}, (48, 48, 32)),
        ({"A": (None, 32)}, (32, 32, 32)),
        ({"A": (16, 32)}, (16, 16, 32)),
        ({"C": (16, 48)}, (16, 48, 48)),
        ({"C": (16, 2048)}, (16, 2048, 2048)),  # the largest that is tried
        ({"A": (16, "rest")}, (16, 16, 16)),
    ],
)
def test_sizes_in_the_text_are_those_of_arrays(
    extents: dict[str, tuple[int | str | None, ...]], sizes: tuple[int, int, int]
) -> None:
    [function] = signature.functions(kernel("float *A, float *B, float *C"))
    known = hints.Hints(extents={name: [n for n in two if n] for name, two in extents.items()})
    guess = Guess((), {}, (16, 16), (1, 1), args=("A", "B", "C"))
    assert arguments.fixed_sizes(function, known, guess) == [sizes]


@pytest.mark.parametrize("size", ["", ", int n"])
@pytest.mark.parametrize("names", ["MN", "MK", "NK", "M"])
def test_a_constant_may_be_all_sizes(names: str, size: str) -> None:
    """If it is 16 or more, and at most 2,048; a kernel that takes no size can have no other."""
    [function] = signature.functions(kernel(f"float *A, float *B, float *C{size}"))
    guess = Guess((), {}, (16, 16), (1, 1), args=("A", "B", "C", "N")[: 4 if size else 3])
    constants = {**dict.fromkeys(names, 16), "small": 15}
    known = hints.Hints(constants=constants)
    assert arguments.fixed_sizes(function, known, guess) == [(16, 16, 16)]
    assert arguments.fixed_sizes(function, hints.Hints(), guess) == []
    large = hints.Hints(constants={**constants, names[0]: 2049})
    if size:
        found = arguments.fixed_sizes(function, large, guess)
        assert found == [(16, 16, 16)] * (len(names) - 1)
        return
    with pytest.raises(NotCallableError, match="is for 2,049 alone"):
        arguments.fixed_sizes(function, large, guess)


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


def test_a_thread_may_have_several_elements_of_a_row_a_column_or_both() -> None:
    before = "#define BM 64\n#define BN 128\n#define TM 4"
    body = "int r = blockIdx.y * BM + threadIdx.y * TM, c = blockIdx.x * BN + threadIdx.x;"
    _, geometries = guessed(kernel(ABC, body, before=before))
    blocks = dict.fromkeys(geometry.block for geometry in geometries)
    assert [*blocks][:4] == [(32, 16), (32, 64), (128, 16), (128, 64)]


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


def test_a_launch_in_the_file_is_followed() -> None:
    source = (FOREIGN / "toolkit.cu").read_text(encoding="utf-8")
    _, geometries = guessed(source)
    assert geometries[0].params == {"BLOCK_SIZE": 32}
    assert geometries[0].template == ("BLOCK_SIZE",)
    assert geometries[1].block == ("BLOCK_SIZE", "BLOCK_SIZE")  # as many as in the launch


def test_block_and_shared_memory_are_those_of_a_launch_whose_grid_is_not_known() -> None:
    body = "extern __shared__ float s[]; C[blockIdx.y * 4 + blockIdx.x * 24 + threadIdx.x] = s[0];"
    host = "void go(float *a, int n) { f<<<blocks(n), dim3(24, 4), 776>>>(a, a, a, n); }"
    _, geometries = guessed(kernel(ABC, body) + host)
    first = geometries[0]
    assert (first.block, first.shared_bytes) == ((24, 4), 776)
    assert first.grid == ("ceil_div(N, 24)", "ceil_div(M, 4)")


def test_a_constant_of_host_code_is_not_a_template_parameter_of_its_name() -> None:
    body = "C[(blockIdx.y * BM + threadIdx.y) * n + blockIdx.x * BN + threadIdx.x] = 0;"
    host = "void go(float *a, int n) { const unsigned BM = 32, BN = 32; f<BM, BN><<<n, n>>>(a); }"
    _, geometries = guessed(kernel(ABC, body, before="template <int BM, int BN>") + host)
    assert geometries[0].params == {"BM": 32, "BN": 32}
    assert all(g.grid == ("ceil_div(N, BN)", "ceil_div(M, BM)") for g in geometries)


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


@pytest.mark.parametrize(
    ("workload", "parameters", "args"),
    [
        ("matmul", "float *out, const float *w, const float *x, int rows, int inner",
         ["C", "B", "A", "M", "K"]),
        ("matmul", "const float *A, const float *B, float *C, float beta, int ldb",
         ["A", "B", "C", "0.0", "ldb"]),
        ("matmul", "const float *A, const float *B, float *C, float *workspace, float *D, int k",
         ["A", "B", "C", "workspace", "C", "N"]),
        ("reverse", "float *out, const float *in, int width, int k", ["C", "A", "N", "N"]),
        ("dot", "float *x, float *y, float *z, float f, int n", ["A", "B", "C", "1.0", "N"]),
    ],
)  # fmt: skip
def test_missing_args_follow_from_names(workload: str, parameters: str, args: list[str]) -> None:
    source = f"__global__ void mine({parameters}) {{}}"
    with pytest.raises(UsageError) as refused:
        front_matter.parse(source.encode(), "mine.cu", given={"workload": workload})
    paste = registry.with_lines_to_paste(refused.value).paste
    [line] = [line for line in paste if line.startswith("args = ")]
    assert json.loads(line.removeprefix("args = ")) == args
