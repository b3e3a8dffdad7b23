"""Kernels of 8-bit operands: right ones, and each mistake that is made in them.

All are one source, which an OpenCL device can run: operands are decoded in the kernel.
"""

from __future__ import annotations

from typing import NamedTuple

from matbench.model import Inputs

_DECODED = {
    "e4m3": """\
    const int exponent = bits >> 3 & 15, fraction = bits & 7;
    const float size = exponent ? ldexpf(1.0f + fraction / 8.0f, exponent - 7)
                                : ldexpf(fraction / 8.0f, -6);
    return bits & 128 ? -size : size;""",
    "e5m2": """\
    const int exponent = bits >> 2 & 31, fraction = bits & 3;
    const float size = exponent ? ldexpf(1.0f + fraction / 4.0f, exponent - 15)
                                : ldexpf(fraction / 4.0f, -14);
    return bits & 128 ? -size : size;""",
    "int8": "    return (signed char)bits;",
}
_SCALED = {
    None: ("1.0f", "1.0f"),
    "matrix": ("scale_a[0]", "scale_b[0]"),
    "rows": ("scale_a[i]", "scale_b[j]"),
    "blocks": ("scale_a[i * steps + k / 128]", "scale_b[j / 128 * steps + k / 128]"),
}
_TEMPLATE = """\
// /// matbench
// name = "eight-bits"
// storage = "STORAGE"
// transpose = "NT"
KEYS// args = ["A", "B", "C", ARGUMENTS"M", "N", "K", "alpha"]
// [launch]
// block = [16, 16]
// grid = ["ceil_div(N, 16)", "ceil_div(M, 16)"]
// ///

static __device__ NUMBER number(unsigned char bits)
{
DECODED
}

extern "C" __global__ void eight_bits(const unsigned char *A, const unsigned char *B, RESULT *C,
                                      PARAMETERSint M, int N, int K, NUMBER alpha)
{
    const int j = blockIdx.x * blockDim.x + threadIdx.x;
    const int i = blockIdx.y * blockDim.y + threadIdx.y;
    const int steps = (K + 127) / 128, strips = (N + 127) / 128;
    (void)steps, (void)strips;
    if (i >= M || j >= N) return;
    NUMBER sum = 0;
    for (int k = 0; k < K; ++k) {
        const NUMBER a = number(A[(size_t)i * K + k]), b = number(B[(size_t)j * K + k]);
        sum += TERM;
    }
    C[(size_t)i * N + j] = (RESULT)(alpha * sum);
}
"""


class Variant(NamedTuple):
    """A right kernel. `result` is the C type of C, `keys` are more lines of front matter."""

    storage: str = "e4m3"
    scales: str | None = None
    result: str = "float"
    keys: str = ""

    @property
    def source(self) -> str:
        whole = self.result == "int"
        of_a, of_b = _SCALED[self.scales]
        scaled = self.scales is not None
        text = _TEMPLATE.replace("STORAGE", self.storage)
        text = text.replace("DECODED", _DECODED[self.storage]).replace("RESULT", self.result)
        text = text.replace("NUMBER", "int" if whole else "float")
        text = text.replace("TERM", f"{of_a} * a * ({of_b} * b)" if scaled else "a * b")
        arguments = '"scale_a", "scale_b", ' if scaled else ""
        parameters = "const float *scale_a, const float *scale_b, " if scaled else ""
        text = text.replace("ARGUMENTS", arguments).replace("PARAMETERS", parameters)
        keys = f'scales = "{self.scales}"\n' if scaled else ""
        keys = "".join(f"// {line}\n" for line in (keys + self.keys).splitlines())
        return text.replace("KEYS", keys)


class Mistake(NamedTuple):
    """What is wrong in a variant: `old` is replaced by `new`. `size` shows it."""

    variant: Variant
    old: str
    new: str
    size: str = "40x300x400"
    inputs: Inputs = "signed"

    @property
    def source(self) -> str:
        source = self.variant.source
        assert source.count(self.old) == 1, self.old
        return source.replace(self.old, self.new)


E4M3, E5M2 = Variant(), Variant("e5m2")
MATRIX, ROWS, BLOCKS = (Variant(scales=scales) for scales in ("matrix", "rows", "blocks"))
INT8, SCALED_INT8 = Variant("int8", result="int"), Variant("int8", "rows")
FLOAT22 = Variant(keys='accumulator = "float22"')
PROMOTED = Variant(scales="blocks", keys='accumulator = "float22"\npromotes = 128')
VARIANTS = {
    "e4m3": E4M3,
    "e5m2": E5M2,
    "a scale for each matrix": MATRIX,
    "scales of rows": ROWS,
    "scales of blocks": BLOCKS,
    "e5m2 with scales of blocks": Variant("e5m2", "blocks"),
    "int8": INT8,
    "int8 with scales": SCALED_INT8,
    "sums in float22": FLOAT22,
    "promoted sums": PROMOTED,
}
MISTAKES = {
    "a bias of 8": Mistake(E4M3, "exponent - 7", "exponent - 8"),
    "subnormals are 0": Mistake(E4M3, "ldexpf(fraction / 8.0f, -6)", "0.0f"),
    "subnormals half as large": Mistake(E4M3, "8.0f, -6)", "8.0f, -7)"),
    "no sign": Mistake(E4M3, "bits & 128 ? -size : size", "size"),
    "two bits of fraction": Mistake(E4M3, "bits & 7;", "bits & 6;"),
    "three bits of exponent": Mistake(E4M3, "bits >> 3 & 15", "bits >> 3 & 7"),
    "the largest exponent is infinite": Mistake(
        E4M3, "exponent - 7)", "exponent == 15 ? 200 : exponent - 7)"
    ),
    "448 is no number": Mistake(
        E4M3, "return bits & 128",
        "if ((bits & 127) == 126) return 0.0f;\n    return bits & 128",
    ),
    "448 is 416 in B": Mistake(
        E4M3, "b = number(B[(size_t)j * K + k])", "b = fminf(number(B[(size_t)j * K + k]), 416.0f)",
    ),
    "e5m2 read as e4m3": Mistake(E5M2, _DECODED["e5m2"], _DECODED["e4m3"]),
    "e4m3 read as e5m2": Mistake(E4M3, _DECODED["e4m3"], _DECODED["e5m2"]),
    "one bit of fraction": Mistake(E5M2, "bits & 3;", "bits & 2;"),
    "without the last term": Mistake(E4M3, "k < K; ++k", "k < K - 1; ++k"),
    "without the first term": Mistake(E4M3, "int k = 0;", "int k = 1;"),
    "sums of 13 bits that declare float32": Mistake(
        E4M3, "        sum += a * b;",
        "        sum = __uint_as_float(__float_as_uint(sum + a * b) & 0xFFFFFC00u);",
    ),
    "sums of 8 bits that declare float22": Mistake(
        FLOAT22, "        sum += a * b;",
        "        sum = __uint_as_float(__float_as_uint(sum + a * b) & 0xFFFF0000u);",
    ),
    "no scale of A": Mistake(MATRIX, "scale_a[0] * a", "a"),
    "no scale of B": Mistake(ROWS, "scale_b[j] * b", "b"),
    "a scale 1% too large": Mistake(BLOCKS, "scale_a[i * steps", "1.01f * scale_a[i * steps"),
    "a scale 1% too large, of promoted sums": Mistake(
        PROMOTED, "scale_a[i * steps", "1.01f * scale_a[i * steps"
    ),
    "scales of A by columns": Mistake(ROWS, "scale_a[i]", "scale_a[j % M]"),
    "scales of the row above": Mistake(ROWS, "scale_a[i]", "scale_a[i ? i - 1 : 0]"),
    "all scales squared": Mistake(MATRIX, "scale_a[0] * a", "scale_a[0] * scale_a[0] * a"),
    "the scale of the term before": Mistake(
        BLOCKS, "scale_b[j / 128 * steps + k / 128]",
        "scale_b[j / 128 * steps + (k ? k - 1 : 0) / 128]",
    ),
    "scales of B transposed": Mistake(
        BLOCKS, "scale_b[j / 128 * steps + k / 128]",
        "scale_b[k / 128 * strips + j / 128]",
    ),
    "blocks of 129 terms": Mistake(
        BLOCKS, "scale_a[i * steps + k / 128]",
        "scale_a[i * steps + k / 129]",
    ),
    "the first block's scale for all": Mistake(
        BLOCKS, "scale_a[i * steps + k / 128]",
        "scale_a[i * steps]",
    ),
    "no scale for a part of a block": Mistake(
        BLOCKS, "scale_a[i * steps + k / 128] * a",
        "(k / 128 == K / 128 ? 1.0f : scale_a[i * steps + k / 128]) * a"
    ),
    "bytes without a sign": Mistake(INT8, "(signed char)bits", "bits"),
    "sums of 16 bits": Mistake(
        INT8, "        sum += a * b;",
        "        sum = (short)(sum + a * b);",
    ),
    "sums limited to 16 bits": Mistake(
        INT8, "        sum += a * b;",
        "        sum = min(max(sum + a * b, -32768), 32767);",
    ),
    "sums of 24 bits": Mistake(INT8, "int sum = 0", "float sum = 0", "33x17x9000", "uniform"),
    "whole numbers limited to 120": Mistake(
        INT8, "(signed char)bits",
        "(signed char)bits > 120 ? 120 : (signed char)bits",
    ),
    "one row too many": Mistake(INT8, "if (i >= M ||", "if (i > M ||", "33x40x50"),
    "no scales of whole numbers": Mistake(SCALED_INT8, "scale_a[i] * a", "a"),
    "no alpha": Mistake(E4M3, "alpha * sum", "sum"),
}  # fmt: skip
