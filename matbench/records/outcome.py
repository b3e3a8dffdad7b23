"""The outcome of one case: the record that every command makes, and all its parts.

Names end in units: `_ns` nanoseconds, `_s` seconds, `_bytes` bytes. Shares and ratios are plain
numbers (0.01 is 1%). None: not known.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from matbench.errors import readable
from matbench.model import (
    Accumulator,
    Arithmetic,
    Case,
    Conditions,
    Count,
    DeviceInfo,
    Group,
    Kernel,
    Launch,
    Placing,
    Precision,
    Problem,
    Resources,
    Scales,
    Skip,
    Storage,
    settings_of,
)

Status = Literal["measured", "wrong", "skipped", "failed"]
TimingMode = Literal["cold", "hot", "hot graph", "rotating"]
#: Numbers with a lower limit, like `model.Count`.
Amount = Annotated[float, msgspec.Meta(ge=0)]
Positive = Annotated[int, msgspec.Meta(ge=1, le=2**63 - 1)]
#: Of times, from a picosecond to 30 years.
Nanoseconds = Annotated[float, msgspec.Meta(ge=1e-3, le=1e18)]
#: Of rates and ratios: products and quotients of a few are finite and not 0.
Factor = Annotated[float, msgspec.Meta(ge=1e-60, le=1e60)]
Share = Annotated[float, msgspec.Meta(ge=0, le=1)]
#: A ratio minus 1, which rounding may make slightly negative.
Excess = Annotated[float, msgspec.Meta(ge=-1e-9)]


class Claims(msgspec.Struct, frozen=True):
    """What a kernel file declares that changes how its results are checked; see `model.Kernel`.

    `result` is the type of C. `scales` change what is computed, not how it is checked.
    """

    precision: Precision = "float32"
    error_constant: Amount = 0.0
    exponents: tuple[int, int] | None = None
    deterministic: bool = True
    where: tuple[str, ...] = ()
    accumulator: Accumulator | None = None
    result: Storage = "float32"
    scales: Scales | None = None
    promotes: Annotated[int, msgspec.Meta(ge=1, le=2**20)] | None = None

    @classmethod
    def from_kernel(cls, kernel: Kernel) -> Claims:
        where, result = kernel.launch.where, kernel.contract.result
        own = set(cls.__struct_fields__) - {"where", "result"}
        return cls(where=where, result=result, **{name: getattr(kernel, name) for name in own})


class CaseRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Which kernel ran on which problem with which parameters, and where.

    `device_id` tells devices of the same name apart: a UUID, or `opencl:0` if there is none.
    `arithmetic` is the declared arithmetic of its products, None if not declared. `placing` is the
    layout of its matrices in memory, `storage` the type of its inputs there.
    """

    kernel: str
    sha256: str
    group: Group
    summary: str = ""
    claims: Claims = Claims()
    arithmetic: Arithmetic | None = None
    placing: Placing = Placing()
    storage: Storage
    params: dict[str, int]
    problem: Problem
    backend: str
    device: str
    device_kind: Literal["gpu", "cpu"]
    device_id: str
    launch: Launch | None = None

    @classmethod
    def from_case(cls, case: Case, device: DeviceInfo | None) -> CaseRecord:
        """The record of a case; without a device, the device's fields are empty."""
        kernel = case.kernel
        return cls(
            kernel=kernel.name,
            sha256=kernel.sha256,
            group=kernel.group,
            summary=kernel.summary,
            claims=Claims.from_kernel(kernel),
            arithmetic=Arithmetic.parse(kernel.arithmetic) if kernel.arithmetic else None,
            placing=kernel.placing,
            storage=kernel.contract.storage,
            params=case.params,
            problem=case.problem,
            backend=device.backend if device is not None else "",
            device=device.name if device is not None else "",
            device_kind=device.kind if device is not None else "gpu",
            device_id=device.identity if device is not None else "",
            launch=case.launch if kernel.kind.is_launched else None,
        )

    @property
    def contest(self) -> tuple[str, str, Problem]:
        """Its device and problem: only cases with the same are ranked together."""
        return self.backend, self.device, self.problem

    @property
    def label(self) -> str:
        """`tiled TILE=16 at 1000`."""
        return f"{self.kernel} {settings_of(self.params)}".strip() + f" at {self.problem.size}"


class Build(msgspec.Struct, frozen=True, kw_only=True):
    """A built kernel: its resources, and how many of its blocks fit on a multiprocessor.

    `duration_s` is the time to build it, or to load it from the cache. `resident_blocks` is the
    driver's count of blocks on one multiprocessor, `occupancy` their share of its warps.
    """

    duration_s: Amount | None = None
    resources: Resources | None = None
    resident_blocks: Count | None = None
    occupancy: Amount | None = None


class Accuracy(msgspec.Struct, frozen=True):
    """How far C is from the float64 reference R, over all elements.

    `max_rel_err` and `avg_rel_err` are |C − R| / |R| over the elements with R ≠ 0;
    `bound_ratio` is the largest |C − R| as a share of its rounding-error bound (> 1 is wrong).
    """

    max_rel_err: Amount | None
    avg_rel_err: Amount | None
    bound_ratio: Amount | None


class Timing(msgspec.Struct, frozen=True, kw_only=True):
    """The samples of one kind of launch, cold or hot, in the order they were taken.

    `interval_ns` is the 95% interval of the median. `settled` says whether the median reached the
    requested uncertainty, `stopped` why sampling ended; both are None if none was requested.
    `attempts` counts how often sampling was restarted because clocks were unstable, `conditions`
    are those before and during it, and `notes` give reasons to doubt the samples. `graph`: hot
    launches as one CUDA graph; `rotating`: a sample is a block of sustained launches. `seed`, in
    hexadecimal, is that of the inputs of the last round's launches: each launch had its own inputs,
    and each result was verified. `rounds` has the number of samples of each round; without them,
    all samples were taken in one.
    """

    samples_ns: tuple[Nanoseconds, ...] = ()
    rounds: tuple[Positive, ...] = ()
    median_ns: Nanoseconds | None
    interval_ns: tuple[Nanoseconds, Nanoseconds] | None = None
    graph: bool = False
    rotating: bool = False
    warmups: Count | None = None
    settled: bool | None = None
    stopped: str | None = None
    attempts: Count | None = None
    conditions: tuple[Conditions, ...] = ()
    seed: str
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.rounds and sum(self.rounds) != len(self.samples_ns):
            raise ValueError(f"rounds of {sum(self.rounds)} samples, but {len(self.samples_ns)}")

    @property
    def mode(self) -> TimingMode:
        """That of samples that are not cold."""
        return "rotating" if self.rotating else "hot graph" if self.graph else "hot"


#: Launches that were slowed by more than this share, by reading the clock, are marked.
PERTURBATION_LIMIT = 0.05


class BlockTimes(msgspec.Struct, frozen=True, kw_only=True):
    """A summary of the stamps of one instrumented launch; `matbench blocks` has all of it.

    `imbalance` is the busiest multiprocessor's time over the mean of all, minus 1; `perturbation`
    is the share by which reading the clock slowed that launch; `sm_mhz` is its SM clock.
    """

    median_ns: Nanoseconds | None
    imbalance: Excess | None = None
    perturbation: float | None = None
    sm_mhz: Amount | None = None

    @property
    def is_perturbed(self) -> bool:
        is_known = self.median_ns is not None
        return is_known and not (self.perturbation or 0.0) <= PERTURBATION_LIMIT


class Sustained(msgspec.Struct, frozen=True, kw_only=True):
    """Launches back to back for seconds, once the device was steady, and the energy they took.

    `blocks_ns` has the mean time of a launch in each block of launches back to back, `mean_ns` that
    of all `launches`, and `duration_s` is the sum of their times. `warm_up_s` is the time of
    the launches before; `steady` says whether time, clock, power and temperature had stopped
    changing by then. `sm_mhz` is the mean SM clock, `temperature_c` the last temperature, `power_w`
    the mean power by the device's energy counter, and `idle_w` that of the idle device, which is
    not subtracted. `throttled` names what limited the clocks.
    """

    blocks_ns: tuple[Nanoseconds, ...]
    mean_ns: Nanoseconds
    launches: Positive
    duration_s: Amount
    warm_up_s: Amount
    steady: bool
    sm_mhz: Amount | None = None
    temperature_c: int | None = None
    power_w: Amount | None = None
    idle_w: Amount | None = None
    throttled: tuple[str, ...] = ()

    @property
    def energy_j(self) -> float | None:
        """Of one launch."""
        return None if self.power_w is None else self.power_w * self.mean_ns / 1e9


#: The most rows and columns of a record's error map.
MOST_CELLS = 100
#: What a cell of it can hold besides `.` and `!`.
DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


class ErrorCells(msgspec.Struct, frozen=True, kw_only=True):
    """Where C is wrong: a character for each cell of `step` × `step` elements, a string per row.

    `.`: no element is wrong; `!`: an error is not finite. Otherwise a digit in base 36: the largest
    error of a wrong element is from 10^(`least_power` + digit) up to ten times that; 0 includes all
    below. Errors are shares of the error bound, or absolute if C must be `exact`. `shape` is C's.
    """

    shape: tuple[Positive, Positive]
    step: Positive
    wrong_elements: Count
    exact: bool
    least_power: Annotated[int, msgspec.Meta(ge=-1000, le=1000)]
    rows: Annotated[
        tuple[Annotated[str, msgspec.Meta(pattern=f"^[0-9a-z.!]{{1,{MOST_CELLS}}}\\Z")], ...],
        msgspec.Meta(min_length=1, max_length=MOST_CELLS),
    ]

    def __post_init__(self) -> None:
        rows, columns = (-(-side // self.step) for side in self.shape)
        if len(self.rows) != rows or {len(row) for row in self.rows} != {columns}:
            raise ValueError(f"not {rows} rows of {columns} cells")


class Outcome(msgspec.Struct, frozen=True, tag="outcome", tag_field="type", kw_only=True):
    """The outcome of one case: measured, or wrong or failed with a `reason`, or skipped.

    Only a measured case has times. With both kinds of samples, cases are ranked by the cold ones.
    `host_ns` is the time until a function on the host returns.
    `sustained` is its speed over seconds, which does not affect its rank.
    `copy_bytes_per_s` is the device's bandwidth: bytes read and written by the fastest copy.
    Only a wrong case has an `error_map`, if all of C was compared.
    `check` names the check that a wrong case failed.
    `repetition` counts the processes that measured the case, one after the other, from 1.
    If it was `interrupted`, some of its rounds are missing, and a resumed run measures it again.
    """

    case: CaseRecord
    status: Status
    reason: str | None = None
    skip: Skip | None = None
    check: str | None = None
    build: Build | None = None
    accuracy: Accuracy | None = None
    cold: Timing | None = None
    hot: Timing | None = None
    blocks: BlockTimes | None = None
    host_ns: Nanoseconds | None = None
    sustained: Sustained | None = None
    copy_bytes_per_s: Amount | None = None
    repetition: Annotated[int, msgspec.Meta(ge=1)] = 1
    interrupted: bool = False
    notes: tuple[str, ...] = ()
    error_map: ErrorCells | msgspec.UnsetType = msgspec.UNSET

    def __post_init__(self) -> None:
        if self.reason is not None:
            msgspec.structs.force_setattr(self, "reason", readable(self.reason))
        msgspec.structs.force_setattr(self, "notes", tuple(map(readable, self.notes)))

    @property
    def is_broken(self) -> bool:
        return self.status in ("wrong", "failed")

    @property
    def timing(self) -> Timing | None:
        """The samples that the case is ranked by."""
        return self.cold or self.hot

    @property
    def mode(self) -> TimingMode | None:
        if self.cold is not None:
            return "cold"
        return self.hot.mode if self.hot is not None else None

    @property
    def median_ns(self) -> float | None:
        return self.timing.median_ns if self.timing is not None else None

    @property
    def samples_ns(self) -> tuple[float, ...]:
        return self.timing.samples_ns if self.timing is not None else ()

    @property
    def max_rel_err(self) -> float | None:
        return self.accuracy.max_rel_err if self.accuracy is not None else None
