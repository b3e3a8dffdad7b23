"""Kernels of BLAS's matrix products for any layout, type and batch, also with mistakes."""

from __future__ import annotations

from typing import NamedTuple

from support.paths import KERNELS

_SOURCE = (KERNELS / "gemm" / "template.cu").read_text(encoding="utf-8")
#: How a BLAS kernel uses alpha and beta.
STORE = "*c = beta == 0 ? alpha * sum : alpha * sum + beta * ({sum})*c;"


class Gemm(NamedTuple):
    """A kernel and its table; `mistakes` replace parts of its source."""

    layout: str = "row-major"
    transpose: str = "NN"
    padding: int = 0
    alpha: float = 1.0
    beta: float = 0.0
    batch: int = 1
    operand: str = "float"
    result: str = "float"
    sum: str = "float"
    store: str = STORE
    more: str = ""  # keys of the table
    mistakes: tuple[tuple[str, str], ...] = ()

    def source(self, name: str = "gemm") -> str:
        by_rows = self.layout == "row-major"

        def at(row: str, column: str, pitch: str, *, transposed: bool) -> str:
            line, place = (row, column) if by_rows != transposed else (column, row)
            return f"(size_t){line} * {pitch} + {place}"

        keys = "".join(
            f"// {line}\n"
            for line in (
                f'layout = "{self.layout}"',
                f'transpose = "{self.transpose}"',
                f"padding = {self.padding}",
                f"alpha = {self.alpha}",
                f"beta = {self.beta}",
                f"batch = {self.batch}",
                *self.more.splitlines(),
            )
        )
        kinds = self.operand + self.result
        headers = [("__half", "cuda_fp16.h"), ("bfloat16", "cuda_bf16.h")]
        text = _SOURCE.format(
            name=name, keys=keys,
            include="".join(f"#include <{header}>\n" for kind, header in headers if kind in kinds),
            operand=self.operand, result=self.result, sum=self.sum,
            scalar="double" if self.sum == "double" else "float",
            A=at("i", "k", "lda", transposed=self.transpose[0] == "T"),
            B=at("k", "j", "ldb", transposed=self.transpose[1] == "T"),
            C=at("i", "j", "ldc", transposed=False), store=self.store.format(sum=self.sum),
        )  # fmt: skip
        for right, wrong in self.mistakes:
            assert right in text, right
            text = text.replace(right, wrong)
        return text
