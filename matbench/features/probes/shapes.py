"""The shapes at which mistakes show: awkward ones, and large ones."""

from __future__ import annotations

from collections.abc import Mapping

from matbench.model import Problem
from matbench.workloads import Size, Workload

#: M, N, K and the number of products.
Large = tuple[int, int, int, int]


def awkward(workload: Workload, params: Mapping[str, int]) -> dict[Size, str]:
    """Shapes that find mistakes hidden by square multiples of the tile, with their purpose."""
    if len(workload.dimensions) == 1:
        t = max(params.get("THREADS", 256), 2)
        sizes = {
            1: "a single element",
            2: "two elements",
            31: "less than a warp",
            t - 1: "one less than a block",
            t: "exactly a block",
            t + 1: "one more than a block",
            4 * t + 3: "several blocks and a partial one",
            1009: "a prime",
            65537: "many blocks",
            1_000_003: "more than one pass of any grid",
        }
        return {(1, size, 1): purpose for size, purpose in sizes.items()}
    t = max(params.get("TILE", 16), 2)
    return {
        (1, 1, 1): "a single element",
        (t - 1, t - 1, t - 1): "one less than a tile",
        (t, t, t): "exactly a tile",
        (t + 1, t + 1, t + 1): "one more than a tile",
        (2 * t + 1, 3 * t - 1, t): "partial tiles in M and N",
        (2 * t, t, 2 * t + 1): "partial tile in K",
        (31, 37, 41): "primes",
        (127, 61, 89): "larger primes",
        (5 * t + 3, 2, 7): "tall",
        (2, 5 * t + 3, 7): "wide",
        (t + 1, t + 2, 1): "K = 1",
        (3, 2, 40 * t + 1): "large K",
        (1, 1, 1000): "a dot product",
        (257, 1, 33): "a single column",
        (1, 257, 33): "a single row",
    }


def large(workload: Workload) -> list[dict[Large, str]]:
    """For C, A and B, and for batches of each, shapes at which 32-bit indices overflow, the largest
    first. All other sides are short, so that a product is soon done."""
    if workload.where:  # a sum of so many would not fit its type
        return []
    if len(workload.dimensions) == 1:
        return [{(1, 2**30, 1, 1): "2³² bytes", (1, 2**29 + 1, 1, 1): "more than 2³¹ bytes"}]
    amounts = "more than 2³¹ elements", "more than 2³² bytes", "more than 2³¹ bytes"
    shapes: dict[str, list[Large]] = {
        "C": [(46342, 46341, 1, 1), (32769, 32769, 1, 1), (23171, 23171, 1, 1)],
        "A": [(rows, 4, 8200, 1) for rows in (262148, 131076, 65540)],
        "B": [(4, columns, 8200, 1) for columns in (262148, 131076, 65540)],
        "C of a batch": [(4096, 4096, 1, batch) for batch in (129, 65, 33)],
        "A of a batch": [(4096, 4, 4096, batch) for batch in (129, 65, 33)],
        "B of a batch": [(4, 4096, 4096, batch) for batch in (129, 65, 33)],
    }
    return [
        {shape: f"{what} in {where}" for shape, what in zip(sizes, amounts, strict=True)}
        for where, sizes in shapes.items()
    ]


def device_bytes(workload: Workload, problem: Problem) -> int:
    """Device memory that trials need, at most: three sets of inputs, and five results, of which two
    are in float64."""
    inputs = sum(workload.words(name, problem) for name in workload.reads)
    return (12 * inputs + 28 * workload.words("C", problem)) * problem.batch
