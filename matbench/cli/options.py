"""Options shared by several commands. Each group is a frozen dataclass that reads its own values.

An option has the same name and meaning in every command that accepts it.
"""

from __future__ import annotations

import functools
import importlib.util
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar, get_args, get_type_hints

import click
import msgspec
from click.shell_completion import CompletionItem

from matbench import backends
from matbench.bench.options import Deadlines, Options
from matbench.cli import registry
from matbench.cli.console import require_file, say, show_report
from matbench.errors import UsageError, suggestion
from matbench.kernelfile import sizes, sweep
from matbench.model import DeviceInfo, Inputs, Kernel, Problem
from matbench.workloads import MATMUL, WORKLOADS

if TYPE_CHECKING:
    from matbench.records.reading import RecordSet
    from matbench.show.table import Report

F = TypeVar("F", bound=Callable[..., Any])

#: How launches can be timed.
Method = Literal["cold", "hot", "graph", "rotating"]
#: How long any build may take, in seconds.
_BUILD_S = 120.0


def option(*names: str, needs: str = "cli", **attributes: Any) -> Any:
    """A field of a group that is an option of commands, with its click attributes.

    Without the module that it `needs` there is no such option, and its value is None. Its help
    shows the default, unless that is empty.
    """
    attributes["show_default"] = attributes.get("default", "") != ""
    return field(metadata={"option": (names, attributes), "needs": needs})


def grouped(command: F) -> F:
    """Add the options of each parameter whose type is a group; the command receives the group.

    One of type `FeatureOptions` receives the groups that features add to this command.
    """
    types = get_type_hints(command)
    groups: dict[str, Any] = {name: kind for name, kind in types.items() if is_dataclass(kind)}
    takes_more = registry.FeatureOptions in types.values()
    added = registry.options_of(command.__name__) if takes_more else {}

    @functools.wraps(command)
    def called(*args: Any, **values: Any) -> Any:
        def taken(group: Any) -> Any:
            return group(**{own.name: values.pop(own.name, None) for own in fields(group)})

        if takes_more:
            given = {name: taken(group) for name, group in added.items()}
            values["features"] = registry.FeatureOptions(given)
        for parameter, group in groups.items():
            values[parameter] = taken(group)
        return command(*args, **values)

    decorated: Any = called
    for group in reversed([*groups.values(), *added.values()]):
        for own in reversed(fields(group)):
            if not registry.has(own.metadata["needs"]):
                continue
            names, attributes = own.metadata["option"]
            decorated = click.option(*names, own.name, **attributes)(decorated)
            decorated.__click_params__[-1].title = getattr(group, "TITLE", "")
    return decorated  # type: ignore[no-any-return]


#: A seed that NumPy accepts.
SEED = click.IntRange(0, 2**63 - 1)
SEED.name = "integer"


class Seconds(click.FloatRange):
    """More than zero, and at most a day."""

    def __init__(self) -> None:
        super().__init__(0, 86400, min_open=True)

    def convert(self, value: Any, param: Any, ctx: Any) -> float:
        seconds = float(super().convert(value, param, ctx))
        if seconds != seconds:
            self.fail(f"{value!r} is not a number", param, ctx)
        return seconds


class ListOf(click.ParamType[tuple[Any, ...]]):
    """Some of these words, separated by commas; none if the text is empty."""

    name = "list"

    def __init__(self, choices: Iterable[str]) -> None:
        self.choices = tuple(choices)

    def convert(self, value: Any, param: Any, ctx: Any) -> tuple[Any, ...]:
        words = value.split(",") if isinstance(value, str) else value
        words = tuple(dict.fromkeys(word.strip() for word in words if word.strip()))
        for word in words:
            if word not in self.choices:
                known = ", ".join(map(repr, self.choices))
                self.fail(f"{word!r} is not one of {known}", param, ctx)
        return words

    def shell_complete(self, _ctx: Any, _param: Any, incomplete: str) -> list[CompletionItem]:
        before, comma, last = incomplete.rpartition(",")
        return [
            CompletionItem(before + comma + choice)
            for choice in self.choices
            if choice.startswith(last)
        ]


class Share(click.ParamType[float]):
    """A share written as `5%` or `0.05`."""

    name = "share"

    def convert(self, value: Any, param: Any, ctx: Any) -> float:
        text = str(value).strip()
        number = text.removesuffix("%")
        try:
            share = float(number) / (100 if number != text else 1)
        except ValueError:
            share = -1
        if not 0 <= share < 10:
            self.fail(f"{value!r}: write a share such as 5% or 0.05", param, ctx)
        return share


#: How a report is printed; `rich` is for people.
FORMATS = ("rich", "csv", "json", "plain", "github", "pipe", "html", "latex")


@dataclass(frozen=True)
class ReportOptions:
    """How a command shows its report: on the screen, as a picture, as a page.

    `UsageError` if a file that it would write cannot be: before anything is measured.
    """

    TITLE: ClassVar = "Output"

    fmt: str = option("--format", type=click.Choice(FORMATS), default="rich", help="Output format.")
    picture: str | None = option(
        "--picture",
        needs=registry.PICTURE,
        metavar="FILE",
        help="Also draw the report to FILE (.svg or .png).",
    )
    page: str | None = option(
        "--page",
        needs=registry.PAGE,
        metavar="FILE.html",
        help="Also write the report as an interactive page that needs no network.",
    )
    force: bool = option("--force", is_flag=True, help="Replace existing files.")

    def __post_init__(self) -> None:
        kinds = ("--picture", self.picture, (".svg", ".png")), ("--page", self.page, (".html",))
        for name, file, suffixes in kinds:
            if file is not None:
                require_file(name, Path(file), suffixes, force=self.force)
                if importlib.util.find_spec("vl_convert") is None:
                    need = "needs vl_convert; pip install 'matbench-cuda[plots]'"
                    raise UsageError(f"{name} {file}: {need}")

    @property
    def outputs(self) -> dict[str, str | None]:
        """The files to write, by option."""
        return {"--picture": self.picture, "--page": self.page}

    def show(self, report: Report) -> None:
        """Print the report, and draw it."""
        show_report(report, self.fmt)
        self.draw(report)

    def draw(self, report: Report) -> None:
        """Write the picture and the page, if any; say so if that cannot be.

        The figures are printed then, and the command goes on.
        """
        if self.picture is None and self.page is None:
            return
        from matbench.records.reading import RecordSet

        try:
            self.write(RecordSet(report.records()))
        except UsageError as error:
            say(str(error), err=True)

    def write(self, found: RecordSet) -> None:
        """Write the page and the picture of some records; `UsageError` if that cannot be."""
        for module, file in ((registry.PAGE, self.page), (registry.PICTURE, self.picture)):
            if file is not None:
                registry.load(module).write(Path(file), found)
                say(f"wrote {file} ({Path(file).stat().st_size / 1e6:.1f} MB)", err=True)


@dataclass(frozen=True)
class CaseReportOptions(ReportOptions):
    """For commands whose rows are cases."""

    fmt: str = option(
        "--format",
        type=click.Choice([*FORMATS, "junit"]),
        default="rich",
        help="Output format; junit is for CI systems.",
    )


fastest_option = click.option(
    "--fastest", is_flag=True, help="Show one row per kernel and size, with the fastest parameters."
)
allow_skips_option = click.option(
    "--allow-skips", is_flag=True, help="Exit 0 even if every case was skipped."
)


@dataclass(frozen=True)
class VerdictOptions:
    """What counts as the same."""

    TITLE: ClassVar = "Verdict"

    threshold: float = option(
        "--threshold", type=Share(), default="1%", help="Largest difference that counts as SAME."
    )


@dataclass(frozen=True)
class SizeOptions:
    """Sizes, inputs and scaling."""

    TITLE: ClassVar = "Problem"

    sizes: str | None = option(
        "--sizes",
        metavar="LIST",
        help="Sizes: 1000 (square), MxNxK (A is M×K, B is K×N), 2^20 (an array), 4k (4096), "
        f"256..1000 (256, 512, 1000). Default for matmul: {MATMUL.default_sizes}; other "
        "workloads have their own.",
    )
    inputs: tuple[Inputs, ...] = option(
        "--inputs",
        type=ListOf(dict.fromkeys(i for w in WORKLOADS.values() for i in w.inputs)),
        default="",
        help="Distributions of the inputs: uniform in [0, 1), signed in [-1, 1), normal, ramp "
        "(0, 1, 2, …) or digits (0 to 9). Default for matmul: uniform.",
    )
    seed: int = option("--seed", type=SEED, default=0, help="Seed of the inputs.")
    alpha: str | None = option(
        "--alpha",
        metavar="LIST",
        help="Values of alpha in C := alpha·A·B + beta·C. Default: those in front matter, or 1.",
    )
    beta: str | None = option(
        "--beta", metavar="LIST", help="Values of beta. Default: those in front matter, or 0."
    )
    batch: str | None = option(
        "--batch",
        metavar="LIST",
        help="Numbers of products per launch, each on its own matrices. Default: those in "
        "front matter, or 1.",
    )

    def problems(self, kernels: list[Kernel], *, smoke: bool = False) -> list[Problem]:
        """The problems of each workload among the kernels, by default at the workload's sizes, with
        every alpha, beta and batch that is given, or that the kernels declare."""
        asked = {
            name: sizes.parse_scaling(name, text)
            for name in sweep.SCALINGS
            if (text := getattr(self, name)) is not None
        }
        found = []
        for name in dict.fromkeys(kernel.workload for kernel in kernels):
            workload = WORKLOADS[name]
            own = [kernel for kernel in kernels if kernel.workload == name]
            declared = ",".join(dict.fromkeys(kernel.sizes for kernel in own if kernel.sizes))
            usual = workload.smoke_sizes if smoke else declared or workload.default_sizes
            wanted = usual if smoke or self.sizes is None else self.sizes
            listed = [scaling for kernel in own for scaling in sweep.scalings(kernel, asked)]
            found += [
                msgspec.structs.replace(problem, **scaling)
                for problem in sizes.parse_problems(wanted, workload, self.inputs, self.seed)
                for scaling in listed
            ]
        return [*dict.fromkeys(found)]

    def one_problem(self, kernel: Kernel) -> Problem:
        """For a command that takes one problem: the one given, or the largest default size."""
        problems = self.problems([kernel])
        if len(self.inputs) > 1:
            raise UsageError(f"--inputs {','.join(self.inputs)}: this command takes one kind")
        if self.sizes is not None and len({problem.size for problem in problems}) > 1:
            raise UsageError(f"--sizes {self.sizes!r}: this command takes one size")
        for name in sweep.SCALINGS:
            text = getattr(self, name)
            if len({getattr(problem, name) for problem in problems}) == 1:
                continue
            if text is not None:
                raise UsageError(f"--{name} {text!r}: this command takes one {name}")
            if self.sizes is not None:
                raise UsageError(f"{kernel.name} lists several values of {name}; add --{name}")
        return problems[-1]

    @property
    def recorded(self) -> dict[str, str | int | float | bool | None]:
        """The settings as the environment of a record file stores them."""
        asked = {name: getattr(self, name) for name in sweep.SCALINGS}
        given = {name: text for name, text in asked.items() if text is not None}
        inputs = ",".join(self.inputs) or "default"
        return {"seed": self.seed, "inputs": inputs, **given}


@dataclass(frozen=True)
class ConstantOptions:
    """Values of swept constants."""

    TITLE: ClassVar = "Constants"

    settings: tuple[str, ...] = option(
        "--set",
        multiple=True,
        metavar="NAME=LIST",
        help="Values of a swept constant, in place of the kernel's own: TILE=8,16,32. Repeatable.",
    )

    def values(self, kernels: list[Kernel]) -> dict[str, tuple[int, ...]]:
        """The values by name; a name that no kernel sweeps is refused."""
        overrides: dict[str, tuple[int, ...]] = {}
        known = {name for kernel in kernels for name in (*kernel.sweep, *kernel.tune)}
        for setting in self.settings:
            name, separator, values = setting.partition("=")
            name = name.strip()
            if not separator:
                raise UsageError(f"--set {setting!r}: expected NAME=LIST, such as THREADS=128,256")
            if name not in known:
                there = f"known: {', '.join(sorted(known))}" if known else "they have no constants"
                hint = suggestion(name.upper(), known, there)
                raise UsageError(f"--set {name!r}: no selected kernel sweeps it; {hint}")
            if name in overrides:
                raise UsageError(f"--set {setting!r}: {name} is given twice; list its values once")
            for piece in map(str.strip, values.split(",")):
                if not re.fullmatch("[0-9]{1,9}", piece) or int(piece) < 1:
                    what = "must be a whole number above 0, as in 8,16,32"
                    raise UsageError(f"--set {name} {piece!r}: {what}")
            overrides[name] = tuple(dict.fromkeys(map(int, values.split(","))))
        return overrides


@dataclass(frozen=True)
class DeviceOptions:
    """The device to use."""

    TITLE: ClassVar = "Device"

    backend: str = option(
        "--backend",
        type=click.Choice(["auto", "cuda", "opencl"]),
        default="auto",
        help="Backend. auto: CUDA if available, else an OpenCL GPU, else the CPU through OpenCL.",
    )
    device: str | None = option(
        "--device",
        metavar="N|NAME",
        help="Device number or name, as in `matbench doctor`. `run`, `tune` and `check` also "
        "take several (0,1) or all GPUs (all), which then work at the same time.",
    )

    def choose(self, kernel: Kernel | None = None) -> DeviceInfo:
        """The selected device; the CPU for a kernel that runs only on the host."""
        found = self.choose_all(kernel)
        if len(found) > 1:
            raise UsageError(f"--device {self.device!r}: this command takes one device")
        return found[0]

    def choose_all(self, kernel: Kernel | None = None) -> list[DeviceInfo]:
        """All selected devices, like `choose`."""
        if kernel is not None and kernel.on_host:
            return [backends.host_device(kernel.kind.backend)]
        return backends.choose_all(self.backend, self.device)

    def choose_alike(self, kernel: Kernel) -> tuple[DeviceInfo, ...]:
        """All selected devices, for commands that make one result on devices of one model."""
        found = tuple(self.choose_all(kernel))
        models = dict.fromkeys(f"{info.backend} {info.name}" for info in found)
        if len(models) > 1:
            raise UsageError(
                f"--device {self.device!r}: this command takes devices of one model, not "
                + " and ".join(models)
            )
        return found


def require_device(kernel: Kernel, instead: str = "use `matbench run`") -> None:
    """`UsageError` for a kernel that always runs on the CPU: what to do `instead`."""
    if kernel.on_host:
        raise UsageError(f"{kernel.name} runs only on the host; {instead}")


def require_turns(kernel: Kernel, device: DeviceInfo) -> None:
    """`UsageError` for a kernel that cannot take turns with others on this device."""
    if kernel.kind.has_copies:
        require_device(kernel)
    if device.kind == "gpu":
        require_device(kernel, "compare it with `--backend opencl`")


@dataclass(frozen=True)
class LaunchOptions:
    """Which kind of launch is timed, and for how long."""

    TITLE: ClassVar = "Timing"

    method: tuple[Method, ...] = option(
        "--method",
        type=ListOf(get_args(Method)),
        default="",
        help="How launches are timed. cold: one at a time, each after the L2 cache was overwritten "
        "(default on a GPU). hot: back to back (default on a CPU). graph: the same, as a CUDA "
        "graph. rotating, in `run` alone: back to back on buffers that fill the L2 cache twice, "
        "once the clock has settled, as NVIDIA's guidelines for matrix products ask.",
    )
    max_time: float | None = option(
        "--max-time",
        type=Seconds(),
        metavar="SECONDS",
        help="Longest sampling time per table row. Default: 2 (GPU) or 0.5 (CPU) for a case, "
        "10 for a pair in `compare` and `history`, 3 in `watch`. Verification may take as long "
        "again. It does not bound rotating launches.",
    )

    def __post_init__(self) -> None:
        if {"hot", "graph"} <= {*self.method}:
            raise UsageError("--method takes hot or graph, not both")
        if "rotating" in self.method and len(self.method) > 1:
            raise UsageError("--method rotating goes with no other: run it by itself")

    @property
    def hot(self) -> bool:
        return bool({"hot", "graph"} & {*self.method})

    def require_one_kind(self, device: DeviceInfo) -> None:
        """For commands that time one kind of launch."""
        if len(self.method) > 1 or "rotating" in self.method:
            raise UsageError(
                f"--method {','.join(self.method)} is for `matbench run`; here: cold, hot or graph"
            )
        self.require_able(device)

    def require_able(self, *devices: DeviceInfo) -> None:
        """graph needs CUDA on at least one device, and cold a GPU."""
        if "graph" in self.method and not any(device.backend == "cuda" for device in devices):
            raise UsageError(f"--method graph needs CUDA; this is {devices[0].label}")
        if "cold" in self.method and not any(device.kind == "gpu" for device in devices):
            raise UsageError(f"--method cold needs a GPU; this is {devices[0].label}")

    def quick(self, **changes: Any) -> Options:
        """Options for a few samples of each case, to find the fastest or before a comparison."""
        known: dict[str, Any] = {
            "cold": not self.hot, "hot": self.hot, "graph": "graph" in self.method, "blocks": False,
            "uncertainty": 0.05, "max_time_s": min(0.3, self.max_time or 0.3), "minimum_samples": 3,
        }  # fmt: skip
        return Options(**known | changes)


@dataclass(frozen=True)
class SustainedOptions:
    """Speed over seconds."""

    TITLE: ClassVar = "Timing"

    sustained: float | None = option(
        "--sustained",
        type=Seconds(),
        metavar="SECONDS",
        help="Launch back to back until clock, power and temperature are steady, then for this "
        "long (`compare`: in blocks of a second, at least 9 of each kernel): speed, SM clock, "
        "power and energy per launch. Energy needs at least 3 seconds.",
    )

    def require_without(self, **others: object) -> None:
        """`UsageError` if one of these options is given, too."""
        for name, value in others.items():
            if self.sustained is not None and value not in (None, False, ()):
                raise UsageError(f"--sustained cannot be combined with --{name}")


@dataclass(frozen=True)
class DeadlineOptions:
    """Time limits for one case."""

    TITLE: ClassVar = "Deadlines"

    timeout: float = option(
        "--timeout",
        type=Seconds(),
        metavar="SECONDS",
        default=60.0,
        help="Longest time to check and sample one case; its process is then stopped. A build "
        f"may take {_BUILD_S:.0f} s, or as long as this if it is longer.",
    )

    @property
    def deadlines(self) -> Deadlines:
        return Deadlines(build_s=max(_BUILD_S, self.timeout), run_s=self.timeout)


def checked(**given: Any) -> Iterator[Any]:
    """A program's values of options; `UsageError` as on the command line."""
    groups = DeviceOptions, SizeOptions, LaunchOptions, DeadlineOptions, VerdictOptions
    known = {own.name: own.metadata["option"][1] for group in groups for own in fields(group)}
    known["hot"] = {"is_flag": True}  # as `serve` has it
    for name, value in given.items():
        usual = click.BOOL if "is_flag" in known[name] else click.STRING  # writes numbers as texts
        kind = known[name].get("type", usual)
        is_absent = value is None and kind is click.STRING
        try:
            yield None if is_absent else kind.convert(value, None, None)
        except (click.BadParameter, TypeError, AttributeError) as error:
            why = getattr(error, "message", "write it as on the command line")
            raise UsageError(f"{name}={value!r:.60}: {why}".rstrip(".")) from None


@dataclass(frozen=True)
class OutputOptions:
    """Where records are kept."""

    TITLE: ClassVar = "Output"

    output: str | None = option(
        "--output", metavar="FILE", help="Write a record of each case to FILE (JSON Lines)."
    )
    resume: str | None = option(
        "--resume",
        metavar="FILE",
        help="Continue an interrupted run: measure only the cases that FILE lacks.",
    )

    def __post_init__(self) -> None:
        if self.resume is not None and self.output is not None:
            raise UsageError("--resume cannot be combined with --output")

    @property
    def file(self) -> Path | None:
        """The file of records; None: only the record of the last run is kept."""
        name = self.output if self.resume is None else self.resume
        return None if name is None else Path(name)

    def resuming(self, last: Path | None) -> str | None:
        """How to continue, if there is a file to resume.

        Without an output file this is the record of the `last` run, until there is another run.
        """
        path = self.file or last
        when = "" if self.file is not None else ", before any other run,"
        again = f"repeat the command with --resume {path}"
        again += " in place of --output" if self.output is not None else ""
        return None if path is None else f"to continue{when} {again}"
