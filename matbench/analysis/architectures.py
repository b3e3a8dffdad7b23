"""What a multiprocessor of each of NVIDIA's architectures runs at once, and computes per clock.

The figures are NVIDIA's own:

- threads, and results per clock: *CUDA C++ Programming Guide*, tables "Technical Specifications per
  Compute Capability" and "Throughput of Native Arithmetic Instructions" (release 13.0 from 7.5 on,
  12.0 for 5.0 to 7.0, 8.0 for 2.x and 3.x, 4.0 for 1.0);
- multiply-adds per clock of a multiprocessor's tensor cores: the whitepapers on V100 (2017),
  Turing (2018), A100 (2020), GA102 (2020), H100 (2022) and Ada (2022), of the last three divided by
  clock and multiprocessors. For other architectures and precisions the rate depends on the product
  or is not published, so none is given.
"""

from __future__ import annotations

import msgspec

from matbench.model import Precision

WARP = 32


class Multiprocessor(msgspec.Struct, frozen=True):
    """That of one compute capability: its `threads`, and multiply-adds per clock.

    `fp32_lanes` and `fp64_lanes` are those of the product with the most (None: not looked up),
    `tensor_fma` those of the tensor cores, by the precision of inputs.
    """

    compute_capability: tuple[int, int]
    threads: int
    fp32_lanes: int
    fp64_lanes: int | None
    tensor_fma: dict[Precision, int] = {}

    @property
    def warps(self) -> int:
        return self.threads // WARP


_A100: dict[Precision, int] = {
    "float16": 1024, "bfloat16": 1024, "tf32": 512, "float64": 64, "int8": 2048
}  # fmt: skip
_H100: dict[Precision, int] = {
    "float16": 2048, "bfloat16": 2048, "tf32": 1024, "float64": 128, "e4m3": 4096, "e5m2": 4096,
    "int8": 4096,
}  # fmt: skip
_ALL = (
    Multiprocessor((1, 0), 768, 8, 0),
    Multiprocessor((2, 0), 1536, 32, 16),
    Multiprocessor((2, 1), 1536, 48, 4),
    Multiprocessor((3, 0), 2048, 192, 8),
    Multiprocessor((3, 5), 2048, 192, 64),
    Multiprocessor((3, 7), 2048, 192, 64),
    Multiprocessor((5, 0), 2048, 128, 4),
    Multiprocessor((5, 2), 2048, 128, 4),
    Multiprocessor((6, 0), 2048, 64, 32),
    Multiprocessor((6, 1), 2048, 128, 4),
    Multiprocessor((7, 0), 2048, 64, 32, {"float16": 512}),
    Multiprocessor((7, 5), 1024, 64, 2, {"float16": 512, "int8": 1024}),
    Multiprocessor((8, 0), 2048, 64, 32, _A100),
    Multiprocessor((8, 6), 1536, 128, 2, {"int8": 1024}),
    Multiprocessor((8, 7), 1536, 128, 2),
    Multiprocessor((8, 9), 1536, 128, 2, {"int8": 1024}),
    Multiprocessor((9, 0), 2048, 128, 64, _H100),
    Multiprocessor((10, 0), 2048, 128, 64),
    Multiprocessor((10, 3), 2048, 128, None),
    Multiprocessor((11, 0), 1536, 128, None),
    Multiprocessor((12, 0), 1536, 128, 2),
    Multiprocessor((12, 1), 1536, 128, None),
)
_BY_CAPABILITY = {one.compute_capability: one for one in _ALL}


def of_capability(capability: tuple[int, int] | None) -> Multiprocessor | None:
    """That of a device; None if it is not in the table."""
    return _BY_CAPABILITY.get(capability or (0, 0))
