"""A kernel to tune: one constant that costs time, and one with right and wrong values."""

from __future__ import annotations

#: The sum is taken TURNS times over. KIND 2 is fast and wrong, for it leaves half of K out; KIND 3
#: is not allowed, KIND 4 does not compile; all this on the scripted device, too.
KERNEL = """// /// matbench
// name = "tunable"
// summary = "For a test"
// [sweep]
// TURNS = [8]
// KIND = [1]
// [tune]
// TURNS = [1, 8, 64]
// KIND = [1, 2, 3, 4]
// [launch]
// where = ["KIND != 3"]
// block = [8, 8]
// grid = ["ceil_div(N, 8)", "ceil_div(M, 8)"]
// ///

#define TAKES 20000 * TURNS
#define WRONG KIND == 2
#if KIND == 4
#error "no such kind"
#endif

extern "C" __global__ void tunable(const float *A, const float *B, float *C, int M, int N, int K)
{
    const int row = blockIdx.y * 8 + threadIdx.y;
    const int column = blockIdx.x * 8 + threadIdx.x;
    if (row >= M || column >= N)
        return;
    volatile float sum = 0.0f;
    for (int turn = 0; turn < TURNS; ++turn) {
        sum = 0.0f;
        for (int k = 0; k < (KIND == 2 ? K / 2 : K); ++k)
            sum = sum + A[(size_t)row * K + k] * B[(size_t)k * N + column];
    }
    C[(size_t)row * N + column] = sum;
}
"""


def huge(table: str) -> str:
    """The kernel with 10^8 combinations of four constants, in `[sweep]` or in `[tune]`."""
    names = ("TURNS", "P", "Q", "R")
    every = ", ".join(map(str, range(1, 101)))
    one = "".join(f"// {name} = [1]\n" for name in names)
    many = "".join(f"// {name} = [{every}]\n" for name in names)
    text = KERNEL
    swept, tuned = (many, "") if table == "sweep" else (one, many)
    for old, new in (
        ("// TURNS = [8]\n", swept),
        ("// TURNS = [1, 8, 64]\n// KIND = [1, 2, 3, 4]\n", tuned or "// KIND = [1]\n"),
        ("sum = 0.0f;\n        for", "sum = 0.0f * (P + Q + R);\n        for"),
    ):
        assert old in text
        text = text.replace(old, new)
    return text
