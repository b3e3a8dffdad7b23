"""Options that commands share, and the types of their values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from matbench.workloads import MATMUL, WORKLOADS

F = TypeVar("F", bound=Callable[..., Any])


def kernel_names(context: click.Context, parameter: click.Parameter, typed: str) -> list[str]:
    """For the shell's completion."""
    from matbench.kernelfile import catalogue

    return [kernel.name for kernel in catalogue.builtin() if kernel.name.startswith(typed)]


def stack(*options: Callable[[F], F]) -> Callable[[F], F]:
    def decorate(command: F) -> F:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


class Seconds(click.FloatRange):
    """More than none, a day at most; NaN is neither."""

    def __init__(self) -> None:
        super().__init__(0, 86400, min_open=True)

    def convert(self, value: Any, param: Any, ctx: Any) -> float:
        seconds = float(super().convert(value, param, ctx))
        if seconds != seconds:
            self.fail(f"{value!r} is no number", param, ctx)
        return seconds


class Share(click.ParamType[float]):
    """A share written as `5%` or `0.05`."""

    name = "share"

    def convert(self, value: Any, param: Any, ctx: Any) -> float:
        text = str(value).strip()
        try:
            share = float(text[:-1]) / 100 if text.endswith("%") else float(text)
        except ValueError:
            share = -1
        if not 0 <= share < 10:
            self.fail(f"{value!r}: write a share such as 5% or 0.05", param, ctx)
        return share


kernel_file_options = stack(
    click.option(
        "--kernel",
        "kernel_files",
        multiple=True,
        metavar="PATH.cu",
        help="Add a kernel file to those at hand; repeatable.",
    ),
    click.option("--kernels-dir", metavar="DIR", help="Add every *.cu file of a folder."),
)
one_kernel = stack(
    click.argument("kernel", metavar="KERNEL|FILE.cu", shell_complete=kernel_names),
    kernel_file_options,
)
size_option = click.option(
    "--size",
    metavar="N",
    help="The size: 1000 (the default) for a square product, MxNxK for A (M×K) times B (K×N); "
    "2^20 for a row of numbers.",
)
device_options = stack(
    click.option(
        "--backend",
        type=click.Choice(["auto", "cuda", "opencl"]),
        default="auto",
        show_default=True,
        help="auto: CUDA if it can be used, else an OpenCL GPU, else the CPU through OpenCL.",
    ),
    click.option("--device", metavar="N|NAME", help="Which device, as `matbench info` lists them."),
)
problem_options = stack(
    click.option(
        "--sizes",
        metavar="LIST",
        help="Sizes: 1000 for a square product, MxNxK for A (M×K) times B (K×N); 2^20 for a row "
        f"of numbers. By default {MATMUL.default_sizes}, or what suits the workload.",
    ),
    click.option(
        "--tiles", metavar="LIST", help="Values of TILE, in place of each kernel's own: 8,16,32."
    ),
    click.option(
        "--set",
        "settings",
        multiple=True,
        metavar="NAME=LIST",
        help="Values of another swept constant, as in THREADS=128,256; repeatable.",
    ),
    click.option(
        "--inputs",
        type=click.Choice(list(dict.fromkeys(i for w in WORKLOADS.values() for i in w.inputs))),
        help="What inputs are drawn from: [0, 1) (the default of matmul), [-1, 1), a normal "
        "distribution; 0, 1, 2, …; digits from 0 to 9.",
    ),
    click.option(
        "--seed",
        type=click.IntRange(0, 2**63 - 1),
        default=0,
        show_default=True,
        help="Seed of the inputs.",
    ),
)
launch_options = stack(
    click.option(
        "--cold",
        is_flag=True,
        help="Time single launches, the L2 cache overwritten before each (a GPU's default).",
    ),
    click.option("--hot", is_flag=True, help="Time launches back to back."),
    click.option("--graph", is_flag=True, help="Launch the hot ones as a CUDA graph."),
)
sampling_options = stack(
    launch_options,
    click.option(
        "--precision",
        type=Share(),
        metavar="SHARE",
        help="Sample until the median is known to this: 0.5% (GPU) or 2% (CPU) by default.",
    ),
    click.option(
        "--max-time",
        type=Seconds(),
        metavar="SECONDS",
        help="Sample one case no longer than this: 2 (GPU) or 0.5 (CPU) by default.",
    ),
)
deadline_options = stack(
    click.option(
        "--timeout",
        type=Seconds(),
        default=60.0,
        show_default=True,
        metavar="SECONDS",
        help="How long checking and timing one case may take before its process is stopped.",
    ),
    click.option(
        "--build-timeout",
        type=Seconds(),
        default=120.0,
        show_default=True,
        metavar="SECONDS",
        help="How long building one kernel may take.",
    ),
)


class Format(click.ParamType[str]):
    """A choice whose values are looked up only when one is given: imports cost start-up time."""

    name = "format"

    def convert(self, value: Any, param: Any, ctx: Any) -> str:
        from matbench.show.report import FORMATS

        if value not in FORMATS:
            self.fail(f"{value!r} is none of {', '.join(FORMATS)}", param, ctx)
        return str(value)


format_option = click.option(
    "--format",
    "fmt",
    type=Format(),
    default="rich",
    show_default=True,
    metavar="FORMAT",
    help="rich, csv, json, or one of tabulate's formats: plain, github, pipe, tsv, html, latex …",
)
