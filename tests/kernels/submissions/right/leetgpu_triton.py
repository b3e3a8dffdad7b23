import torch
import triton
import triton.language as tl


@triton.jit
def kernel(a, b, c, M, N, K, s: tl.constexpr):
    rows = tl.program_id(0) * s + tl.arange(0, s)
    columns = tl.program_id(1) * s + tl.arange(0, s)
    total = tl.zeros((s, s), tl.float32)
    for start in range(0, N, s):
        terms = start + tl.arange(0, s)
        x = tl.load(
            a + rows[:, None] * N + terms[None, :],
            mask=(rows[:, None] < M) & (terms[None, :] < N),
            other=0.0,
        )
        y = tl.load(
            b + terms[:, None] * K + columns[None, :],
            mask=(terms[:, None] < N) & (columns[None, :] < K),
            other=0.0,
        )
        total += tl.dot(x, y, input_precision="ieee")
    tl.store(
        c + rows[:, None] * K + columns[None, :],
        total,
        mask=(rows[:, None] < M) & (columns[None, :] < K),
    )


def solve(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor, M: int, N: int, K: int):
    kernel[(triton.cdiv(M, 32), triton.cdiv(K, 32))](a, b, c, M, N, K, 32)
