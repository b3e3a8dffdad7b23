"""What is known about a kernel's arithmetic: one `Grade` for each kernel, made of statements.

A statement rests on `probes`: elements of C that were computed from chosen inputs. It is evidence,
not proof. These records hold no prose: `features.grade.view` puts them into words.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from matbench.model import Count
from matbench.records.outcome import Amount, CaseRecord, Factor

#: The tightest bound that holds: by element, by row and column, by matrix, or none.
Letter = Literal["A", "B", "C", "D", "unclear"]
Rounding = Literal["nearest", "truncated", "unclear"]
Products = Literal["unrounded", "rounded", "unclear"]
Subnormals = Literal["kept", "flushed", "partly"]


class Level(msgspec.Struct, frozen=True):
    """One level of a regular sum: how its `terms` are added, the same in every group.

    `at_a_time`: how many one step adds to the running sum. A group takes `block` adjacent terms in
    turn with the others; None at the outermost level, which is one group.
    """

    how: Literal["in order", "in reverse", "pairwise", "pairwise apart", "at once"]
    terms: Count
    at_a_time: Count = 1
    block: Count | None = None


class Statement(msgspec.Struct, frozen=True, kw_only=True):
    """`reason` says why it is unclear, or could not be made."""

    probes: Count = 0
    reason: str | None = None


class Growth(Statement, frozen=True, kw_only=True):
    """How the largest error E(K) grows: the slope of log E over log K, with its 95% interval.

    `errors` are the largest at each of `sizes`, relative to u·(|A|·|B|).
    """

    verdict: Literal["at most linear", "faster", "unclear"] = "unclear"
    slope: float | None = None
    interval: tuple[float, float] | None = None
    sizes: tuple[Count, ...] = ()
    errors: tuple[Amount, ...] = ()

    def __post_init__(self) -> None:
        if len(self.sizes) != len(self.errors):
            raise ValueError(f"{len(self.errors)} errors for {len(self.sizes)} sizes")
        if self.slope is not None and not self.sizes:
            raise ValueError("a slope without sizes")


class Bounds(Statement, frozen=True, kw_only=True):
    """The largest errors over K·u times three sizes, among uniform, graded and scaled inputs.

    `by_element`: |A|·|B|. `by_row`: the largest of the row times the largest of the column, times
    K. `by_matrix`: the same for whole matrices. `bits`: for how many significant bits grade A would
    hold.
    """

    verdict: Letter = "unclear"
    by_element: Amount | None = None
    by_row: Amount | None = None
    by_matrix: Amount | None = None
    bits: Count | None = None


class Algorithm(Statement, frozen=True, kw_only=True):
    """Whether elements that are sums of zeros are zero; a Strassen-like product leaves errors."""

    verdict: Literal["classical", "Strassen-like", "unclear"] = "unclear"
    nonzeros: Count = 0


class Range(Statement, frozen=True, kw_only=True):
    """The widest spread of exponents at which errors by element do not grow, in binades, and the
    widest tried."""

    verdict: Literal["whole", "limited", "unclear"] = "unclear"
    binades: Count = 0
    tried: Count = 0


class Specials(Statement, frozen=True, kw_only=True):
    """NaN, infinities and overflow: the classes of inputs for which C has another class than IEEE
    arithmetic gives, each with what came instead. Subnormals are reported, not judged."""

    verdict: Literal["as IEEE", "differ", "unclear"] = "unclear"
    differ: dict[str, str] = {}
    subnormal_inputs: Subnormals | None = None
    subnormal_results: Subnormals | None = None


class Runs(Statement, frozen=True, kw_only=True):
    """Whether runs on the same inputs give the same bits."""

    verdict: Literal["same bits", "differ", "unclear"] = "unclear"
    runs: Count = 0
    differ: Count = 0


class Batches(Statement, frozen=True, kw_only=True):
    """Whether a row's bits depend on how many rows there are, where it is, or what the others hold.

    `rows`: the numbers of rows tried. `differ_at`: those at which its bits are not those of one row
    alone.
    """

    verdict: Literal["invariant", "varies", "unclear"] = "unclear"
    rows: tuple[Count, ...] = ()
    differ_at: tuple[Count, ...] = ()


class Constants(Statement, frozen=True, kw_only=True):
    """Which of the kernel's swept constants change the bits of C."""

    verdict: Literal["same bits", "differ", "unclear"] = "unclear"
    tried: tuple[str, ...] = ()
    differ: tuple[str, ...] = ()


class Order(Statement, frozen=True, kw_only=True):
    """The order of addition for `terms` terms: regular `levels` from the terms outwards, and the
    additions of `steps_terms` terms, operands first; numbers from there on are earlier additions.

    `varies`: runs on the same inputs differ. `exact`: sums lose nothing, so that their order cannot
    be seen.
    """

    verdict: Literal["regular", "irregular", "one step", "exact", "varies", "unclear"] = "unclear"
    terms: Count = 0
    levels: tuple[Level, ...] = ()
    steps_terms: Count = 0
    steps: tuple[tuple[Count, ...], ...] = ()


class Sums(Statement, frozen=True, kw_only=True):
    """How sums are computed: the accumulator's significant bits, whether it rounds or truncates,
    whether products enter it without rounding, and with how many bits inputs are read."""

    accumulator_bits: Count | None = None
    rounding: Rounding = "unclear"
    products: Products = "unclear"
    input_bits: Count | None = None


class Ulps(Statement, frozen=True, kw_only=True):
    """Errors on one kind of inputs, in units in the last place of the exact result."""

    inputs: str
    largest: Amount | None = None
    mean: Amount | None = None
    correctly_rounded: Amount | None = None


class Statements(msgspec.Struct, frozen=True, kw_only=True):
    """What is stated about a kernel; a step states one or two of these."""

    growth: Growth | None = None
    bounds: Bounds | None = None
    algorithm: Algorithm | None = None
    range: Range | None = None
    specials: Specials | None = None
    runs: Runs | None = None
    batches: Batches | None = None
    constants: Constants | None = None
    order: Order | None = None
    sums: Sums | None = None
    ulps: tuple[Ulps, ...] = ()


class Grade(Statements, frozen=True, kw_only=True, tag="grade", tag_field="type"):
    """The numerical profile of one kernel with one set of parameters.

    `u` is the unit roundoff that errors are relative to, that of C's type. `reason` says why it
    could not be graded; then there are no statements.
    """

    case: CaseRecord
    letter: Letter
    u: Factor
    seed: int
    duration_s: Amount
    reason: str | None = None
