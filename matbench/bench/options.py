"""Options and deadlines of measuring; imports little, so that commands can import it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec

from matbench.backends.protocol import VARIANTS, Variant

if TYPE_CHECKING:
    from matbench.records.outcome import TimingMode

#: All checks and protections, by name. All are always on; tests turn one off to show its effect.
CHECKS = frozenset(
    {
        "reference", "integers", "selection", "staggered", "reordered", "samples", "repeat",
        "determinism", "transform", "precision", "poison", "shared", "variables", "persisting",
        "malloc", "guards", "decoys", "surprises", "inputs", "mask", "sources", "builds",
        "impossible", "ready", "returned", "replaced", "growth", "repeated",
    }
)  # fmt: skip


class Options(msgspec.Struct, frozen=True):
    """How cases are measured; None: the default for the device.

    A GPU is sampled until its median is known to ±0.5%, for at most 2 s, with a cold cache. A CPU
    is shared with other programs: ±2%, 0.5 s, and a hot cache. `back_to_back`: a hot sample is the
    mean of many launches; on a CPU it is a single launch. `rounds`: how often the kernels of a size
    take their turn; by default 5 times on a GPU, and 7 on a CPU. `replay`: the key of a sample,
    which is launched once, without timing. `sustained_s`: for how long launches are also timed
    without a pause, once the device is steady; None: not at all. `rotating`: they are by these
    alone, as `sustained.blocks_of` has it.
    """

    timed: bool = True
    blocks: bool = True
    cold: bool = True
    hot: bool = False
    graph: bool = False
    rotating: bool = False
    back_to_back: bool = True
    uncertainty: float | None = None
    max_time_s: float | None = None
    minimum_samples: int = 10
    rounds: int | None = 1
    checks: frozenset[str] = CHECKS
    guarded: bool = True
    replay: int | None = None
    sustained_s: float | None = None

    def on(self, kind: Literal["gpu", "cpu"]) -> Options:
        """The options with the defaults for a device of that kind."""
        gpu = kind == "gpu"
        return msgspec.structs.replace(
            self,
            cold=(self.cold or not self.hot) and gpu and not self.rotating,
            hot=(self.hot or not gpu) and not self.rotating,
            graph=self.graph and gpu,
            back_to_back=gpu,
            uncertainty=self.uncertainty or (0.005 if gpu else 0.02),
            max_time_s=self.max_time_s or (2.0 if gpu else 0.5),
            rounds=self.rounds or (5 if gpu else 7),
        )

    @property
    def modes(self) -> set[TimingMode]:
        """The kinds of samples that are taken."""
        hot: TimingMode = "hot graph" if self.graph else "hot"
        taken: dict[TimingMode, bool] = {
            "cold": self.cold, hot: self.hot, "rotating": self.rotating,
        }  # fmt: skip
        return {mode for mode, is_taken in taken.items() if is_taken}

    @property
    def builds(self) -> tuple[Variant, ...]:
        """The builds of a kernel that are needed to measure it."""
        named = {"plain": True, "clocked": self.timed and self.blocks}
        return tuple(variant for variant in VARIANTS if named.get(variant, variant in self.checks))


class Round(msgspec.Struct, frozen=True):
    """A round of a case: its number, from 1, and the samples of those before, in nanoseconds.

    `is_sustained`: it has sustained launches alone.
    """

    number: int = 1
    cold_ns: tuple[float, ...] = ()
    hot_ns: tuple[float, ...] = ()
    is_sustained: bool = False


FIRST = Round()


class Deadlines(msgspec.Struct, frozen=True):
    """How long a worker may take, in seconds, and what the user calls that; whether it gives up
    what has no less work than what was late."""

    build_s: float = 120.0
    run_s: float = 60.0
    option: str = "--timeout"
    gives_up: bool = True
