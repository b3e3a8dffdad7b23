"""Which kernel files a command is about, and what their tables say."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import click

from matbench.errors import UsageError

if TYPE_CHECKING:
    from matbench.kernelfile.catalogue import Catalogue
    from matbench.model import Kernel


def kernel_names(context: click.Context, parameter: click.Parameter, typed: str) -> list[str]:
    """For the shell's completion."""
    from matbench.kernelfile import catalogue

    return [kernel.name for kernel in catalogue.builtin() if kernel.name.startswith(typed)]


kernel_argument = click.argument("kernel", metavar="KERNEL|FILE", shell_complete=kernel_names)

include_dirs_option = click.option(
    "--include-dir",
    "include_dirs",
    multiple=True,
    metavar="DIR",
    help="A folder of headers; repeatable.",
)
std_option = click.option("--std", metavar="STANDARD", help="The C++ standard: c++17.")


def is_path(name: str) -> bool:
    """Whether a name means a file: it has a folder or ends as kernel files do, or is there."""
    return "/" in name or name.endswith(".cu") or (bool(Path(name).suffix) and Path(name).is_file())


@dataclass(frozen=True)
class KernelFiles:
    """Kernel files beside those that come with matbench, and what the table of one of them says."""

    kernel_files: tuple[str, ...] = ()
    kernels_dir: str | None = None
    entry: str | None = None
    args: str | None = None
    block: str | None = None
    grid: str | None = None
    shared_bytes: str | None = None
    where: tuple[str, ...] = ()
    include_dirs: tuple[str, ...] = ()
    std: str | None = None
    front_matter: tuple[str, ...] = ()

    OPTIONS: ClassVar[tuple[Any, ...]] = (
        click.option(
            "--kernel",
            "kernel_files",
            multiple=True,
            metavar="PATH",
            help="Add a kernel file; repeatable.",
        ),
        click.option(
            "--kernels-dir",
            metavar="DIR",
            help="Add every *.cu file of a folder.",
        ),
        click.option(
            "--entry",
            metavar="NAME",
            help="The kernel of the file that is meant: sgemm, 'sgemm<128, BN>', ns::sgemm.",
        ),
        click.option("--args", metavar="LIST", help="What it is passed: M,N,K,1.0,A,B,0.0,C."),
        click.option("--block", metavar="LIST", help="Threads of a block in x, y, z: 16,16."),
        click.option("--grid", metavar="LIST", help="Blocks in x, y, z: 'ceil_div(N, 16),M'."),
        click.option("--shared-bytes", metavar="BYTES", help="Shared memory sized at launch."),
        click.option(
            "--where",
            multiple=True,
            metavar="CONDITION",
            help="What a case must meet, as in 'M == N'; repeatable.",
        ),
        include_dirs_option,
        std_option,
        click.option(
            "--front-matter",
            multiple=True,
            metavar="KEY=VALUE",
            help="Any other key of its table, as in precision=tf32 or sweep.BM=[64,128]; "
            "repeatable.",
        ),
    )

    @property
    def given(self) -> dict[str, Any]:
        """The table that these options make."""
        from matbench.kernelfile import signature, tables

        found: dict[str, Any] = {}
        for text in self.front_matter:
            key, equals, value = text.partition("=")
            if not equals or not key.strip():
                raise UsageError(
                    f"--front-matter {text!r:.60}: write KEY=VALUE, as in precision=tf32"
                )
            inner = found
            *tops, last = (part.strip() for part in key.split("."))
            for top in tops:
                inner = inner.setdefault(top, {})
                if not isinstance(inner, dict):
                    raise UsageError(f"--front-matter {text!r:.60}: {top} is given twice")
            if last in inner:
                raise UsageError(f"--front-matter {text!r:.60}: {key.strip()} is given twice")
            inner[last] = tables.value(value.strip())
        if self.entry is not None:
            found["entry"] = self.entry
        if self.args is not None:
            found["args"] = list(signature.pieces(self.args))
        launch: dict[str, Any] = {}
        for name, axes in (("block", self.block), ("grid", self.grid)):
            if axes is not None:
                launch[name] = [_number(axis) for axis in signature.pieces(axes)]
                _check_axes(name, axes)
        if self.shared_bytes is not None:
            launch["shared_bytes"] = _number(self.shared_bytes)
        if self.where:
            launch["where"] = list(self.where)
        if launch:
            found["launch"] = {**found.get("launch", {}), **launch}
        if self.include_dirs:
            found["include_dirs"] = [str(Path(each).absolute()) for each in self.include_dirs]
        if self.std is not None:
            found["std"] = self.std
        return found

    @property
    def options(self) -> list[str]:
        """Those about the table that were given, as they are written."""
        own = [field.name for field in fields(self) if not field.name.startswith("kernel")]
        given = [
            name.replace("_", "-").replace("dirs", "dir") for name in own if getattr(self, name)
        ]
        return [f"--{name}" for name in given]

    def load(self, path: str, others: Sequence[str] = ()) -> Kernel:
        """A kernel file, with what the options say of it; they are about one file."""
        from matbench.kernelfile import catalogue

        paths = dict.fromkeys([*self.kernel_files, path, *filter(is_path, others)])
        if self.options and len(paths) > 1:
            raise UsageError(
                f"{self.options[0]} is about one kernel file, and there are {', '.join(paths)}"
            )
        return catalogue.load(Path(path), given=self.given)

    def catalogue(self, names: Sequence[str] = ()) -> tuple[Catalogue, list[Kernel], list[Kernel]]:
        """All kernels, those of the files that were named, and those of the folder.

        `names` are those that stand on the command line beside these options.
        """
        from matbench.kernelfile import catalogue

        if self.options and not self.kernel_files and not any(map(is_path, names)):
            raise UsageError(f"{self.options[0]} is about a kernel file; name one such as mine.cu")
        folder = catalogue.load_folder(Path(self.kernels_dir)) if self.kernels_dir else []
        files = [self.load(path, names) for path in self.kernel_files]
        known = catalogue.Catalogue([*catalogue.builtin(), *folder, *files])
        return known, files, folder

    def named(self, names: Sequence[str]) -> list[Kernel]:
        """Kernels by their names, or by the names of their files, which are read."""
        from matbench.kernelfile import catalogue

        known, _, _ = self.catalogue(names)
        loaded = {name: self.load(name, names) for name in names if is_path(name)}
        everything = catalogue.Catalogue([*known.kernels.values(), *loaded.values()])
        return [loaded.get(name) or everything.get(name) for name in names]

    def one(self, name: str) -> Kernel:
        """The kernel that `KERNEL|FILE` means."""
        (found,) = self.named([name])
        return found


def _check_axes(name: str, text: str) -> None:
    """Refuse other ways to write a list: `(16,16)`, `16x16`."""
    from matbench.kernelfile import signature

    inner = re.fullmatch(r"\s*(?:dim3\s*)?[(\[](.*)[)\]]\s*", text)
    axes = list(signature.pieces(inner[1])) if inner else re.split(r"\s*[x×]\s*", text)
    known = inner is not None or all(axis.strip().isdecimal() for axis in axes)
    if len(axes) > 1 and known and len(signature.pieces(text)) == 1:
        raise UsageError(f"--{name} {text!r:.60}: write {','.join(axes):.60}")


def _number(text: str) -> int | str:
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 20 else text
