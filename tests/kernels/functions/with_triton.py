"""A product in Triton, whose block is swept; `tl.dot` rounds to TF32 unless told otherwise."""

import triton
import triton.language as tl


@triton.jit
def product(A, B, C, M, N, K, BLOCK: tl.constexpr, STEP: tl.constexpr, PRECISION: tl.constexpr):
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    sums = tl.zeros((BLOCK, BLOCK), tl.float32)
    for start in range(0, K, STEP):
        terms = start + tl.arange(0, STEP)
        a = tl.load(
            A + rows[:, None] * K + terms[None, :],
            mask=(rows[:, None] < M) & (terms[None, :] < K),
            other=0.0,
        )
        b = tl.load(
            B + terms[:, None] * N + columns[None, :],
            mask=(terms[:, None] < K) & (columns[None, :] < N),
            other=0.0,
        )
        sums += tl.dot(a, b, input_precision=PRECISION)
    inside = (rows[:, None] < M) & (columns[None, :] < N)
    tl.store(C + rows[:, None] * N + columns[None, :], sums, mask=inside)


def launched(A, B, C, block, precision):
    (M, K), N = A.shape, B.shape[1]
    grid = triton.cdiv(M, block), triton.cdiv(N, block)
    product[grid](A, B, C, M, N, K, BLOCK=block, STEP=32, PRECISION=precision)


# /// matbench
# [sweep]
# BLOCK = [32, 64]
# ///
def exact(A, B, C, BLOCK):
    launched(A, B, C, BLOCK, "ieee")


def default(A, B, C):
    launched(A, B, C, 64, "tf32")


# /// matbench
# precision = "tf32"
# ///
def declared(A, B, C):
    launched(A, B, C, 64, "tf32")


@triton.autotune([triton.Config({"BLOCK": 32}), triton.Config({"BLOCK": 64})], key=["M", "N", "K"])
@triton.jit
def tuned_product(
    A, B, C, M, N, K, STEP: tl.constexpr, PRECISION: tl.constexpr, BLOCK: tl.constexpr
):
    product(A, B, C, M, N, K, BLOCK, STEP, PRECISION)


def tuned(A, B, C):
    (M, K), N = A.shape, B.shape[1]

    def grid(chosen):
        return triton.cdiv(M, chosen["BLOCK"]), triton.cdiv(N, chosen["BLOCK"])

    tuned_product[grid](A, B, C, M, N, K, STEP=32, PRECISION="ieee")
