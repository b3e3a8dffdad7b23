"""Which kernels a command line means, how their files are read or adopted, and which cases they
make."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Protocol

import click
import msgspec
from click.shell_completion import CompletionItem

from matbench import backends, workloads
from matbench.backends.protocol import UnavailableError
from matbench.cli import registry
from matbench.cli.console import say
from matbench.cli.options import DeviceOptions, option
from matbench.errors import NotAdoptedError, UsageError, refusing
from matbench.files import temporary_folder
from matbench.kernelfile import catalogue, front_matter, python_file, revision, sweep, tables
from matbench.kernelfile.contract import Contract
from matbench.kernelfile.syntax import located
from matbench.model import Case, DeviceInfo, Kernel, LaunchRules, Problem, Skip
from matbench.workloads import WORKLOADS

#: Each case with the devices of one model that may measure it: any one of them.
PlacedCases = list[tuple[tuple[DeviceInfo, ...], Case]]


def kernel_names(
    context: click.Context, parameter: click.Parameter, typed: str
) -> list[CompletionItem]:
    """Kernel names for shell completion, and the files beside them; files alone if there are none.

    A list, as in `--baseline`, is completed at its end.
    """
    before, comma, last = typed.rpartition("," if isinstance(parameter, click.Option) else "\0")
    found = [k.name for k in catalogue.builtin() if k.name.startswith(last)]
    if not found:
        return [CompletionItem(typed, type="file")]
    files = map(str, Path().glob(f"{glob.escape(last)}*") if last else [])
    return [CompletionItem(before + comma + name) for name in [*found, *files]]


kernel_argument = click.argument("kernel", metavar="KERNEL|FILE", shell_complete=kernel_names)


def is_path(name: str) -> bool:
    """Whether a name means a file or a folder: it has a `/` or `::`, ends in `.cu`, is a version of
    a file, is `.` or `..`, or is a file with a suffix."""
    if name.endswith(".cu") or re.search(r"/|::|\.\w+@|^\.\.?$", name):
        return True
    return bool(Path(name).suffix) and os.path.isfile(name)  # noqa: PTH113 - also of paths that are too long


#: What files in the forms of other evaluators have.
_SUBMITTED = re.compile(
    rb"\b(?:ModelNew|custom_kernel|solve|solution|entry_point|PYBIND11_MODULE|TORCH_LIBRARY)\b"
)


def parsed(
    data: bytes, path: Path, given: Mapping[str, Any], shown_as: str | None = None
) -> tuple[Kernel, str]:
    """The kernel of a file that holds `data`, and what a user should know of how it is read.

    The file is in matbench's form, or in that of another evaluator.
    """
    is_submitted = path.suffix == ".json" or _SUBMITTED.search(data)
    if is_submitted and registry.has(registry.SUBMISSIONS):
        submissions = registry.load(registry.SUBMISSIONS)
        read: tuple[Kernel, str] | None = submissions.kernel(data, path, given, shown_as)
        if read is not None:
            return read
    return catalogue.parse(data, path, shown_as, given), ""


def problem_files(*given: Any) -> Iterable[str]:
    """The files that a submission is read with, for `revision.take`."""
    if not registry.has(registry.SUBMISSIONS):
        return ()
    found: Iterable[str] = registry.load(registry.SUBMISSIONS).beside(*given)
    return found


def load(path: Path, given: Mapping[str, Any], shown_as: str | None = None) -> tuple[Kernel, str]:
    """The same of a file."""
    file = Path(python_file.split(str(path))[0])
    return parsed(catalogue.read(file, shown_as or str(file)), path, given, shown_as)


def files_of(path: str) -> list[str]:
    """The `*.cu` files of a folder; of anything else, and of a folder without any, the path."""
    # Unlike `Path.glob`, it finds nothing where a path is too long.
    found = glob.glob(f"{glob.escape(path)}/*.cu")  # noqa: PTH207
    return sorted(str(Path(file)) for file in found) or [path]


@dataclass(frozen=True)
class ContractOptions:
    """What kernel files are asked to compute."""

    contract: tuple[str, ...] = option(
        "--contract",
        multiple=True,
        metavar="KEY=VALUE",
        help="What kernel files must compute: transpose=NT, layout=column-major, beta=1, "
        "where=N%4==0. Default: C = A·B, row-major, of any size, from those that are adopted. "
        "Repeatable.",
    )

    @property
    def asked(self) -> Contract | None:
        """The contract; None if none is given."""
        given = _given("--contract", self.contract, {}, "transpose=NT")
        return Contract.of(given) if given else None


def _given(name: str, texts: Sequence[str], table: dict[str, Any], example: str) -> dict[str, Any]:
    """The table with the values of an option `KEY=VALUE`, where keys may have parts: `sweep.BM`."""
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            raise UsageError(f"{name} {text!r:.60}: expected KEY=VALUE, such as {example}")
        inner = table
        *tops, last = (part.strip() for part in key.split("."))
        for top in tops:
            inner = inner.setdefault(top, {})
            if not isinstance(inner, dict):
                raise UsageError(f"{name} {text!r:.60}: {top} is given twice")
        if last in inner:
            raise UsageError(f"{name} {text!r:.60}: {key.strip()} is given twice")
        inner[last] = tables.value(value.strip(), *tops, last)
    return table


@dataclass(frozen=True)
class KernelFiles:
    """How a kernel file that is named is read."""

    TITLE: ClassVar = "Front matter of a kernel file"

    front_matter: tuple[str, ...] = option(
        "--front-matter",
        multiple=True,
        metavar="KEY=VALUE",
        help="A key of front matter: precision=tf32, args=A,B,C,N, sweep.BM=64,128. Repeatable.",
    )
    entry: str | None = option(
        "--entry",
        metavar="NAME",
        help="The function to call: sgemm<float>, or 'host sgemm' for one on the host.",
    )

    @property
    def given(self) -> dict[str, Any]:
        """The front matter that the command line gives."""
        table: dict[str, Any] = {} if self.entry is None else {"entry": self.entry}
        return _given("--front-matter", self.front_matter, table, "precision=tf32")

    def read(self, path: str, given: Mapping[str, Any] | None = None) -> Kernel:
        """The kernel of a file, or of one as of a revision: `mine.cu@v1`; keys are those `given`,
        by default the command line's."""
        version = revision.named(path)
        if version is None:
            kernel, told = load(Path(path), self.given if given is None else given)
            if told:
                say(told, err=True)
            return kernel
        found = self.as_of(version)
        if found is None:
            raise UsageError(f"{version}: that revision does not have the file")
        return found

    def as_of(self, version: revision.Version) -> Kernel | None:
        """The kernel of a version, named after it; None if the revision does not have its file.

        Its files are there until the command ends. `UsageError`: there is no git, no repository or
        no such revision, or the kernel is not valid.
        """
        folder = click.get_current_context().with_resource(temporary_folder())
        root, name = revision.place(version)
        sha = revision.commit(str(version), version.revision, root)
        taken = revision.take(version, root, name, sha, folder, self.given, problem_files)
        if taken is None:
            return None
        kernel, _ = load(taken.path, taken.given, taken.shown)
        return msgspec.structs.replace(kernel, name=f"{kernel.name}@{version.revision}")

    def loaded(self, names: Sequence[str]) -> catalogue.Catalogue:
        """All kernels, with those of the files and folders that are named; front matter that is
        given is for one file, or versions of it."""
        paths = [*dict.fromkeys(filter(is_path, names))]
        files = {path: files_of(path) for path in paths}
        every = [*dict.fromkeys(file for path in paths for file in files[path])]
        versions = ((file, revision.named(file)) for file in every)
        if self.given and len({of.shown if of else file for file, of in versions}) != 1:
            named = (
                f"several are named: {', '.join(every)}" if every else "name one such as mine.cu"
            )
            raise UsageError(f"--front-matter and --entry are for one kernel file; {named}")
        kernels = catalogue.told_apart([*map(self.read, every)]) if every else []
        read = dict(zip(every, kernels, strict=True))
        own = {path: [read[file] for file in files[path]] for path in paths}
        return catalogue.Catalogue([*catalogue.builtin(), *read.values()], own)

    def one(self, name: str) -> Kernel:
        """The kernel that `KERNEL|FILE` means."""
        found = self.loaded([name]).named([name])
        if len(found) > 1:
            raise UsageError(f"{name}: this command takes one kernel, not a folder of several")
        return found[0]


def read_for(kernels: Iterable[Kernel], names: Iterable[str] = ()) -> list[Path]:
    """The files that these kernels are read from, and all others that these names mean."""
    kernels = list(kernels)
    named = [Path(file) for name in filter(is_path, names) for file in files_of(name)]
    sources = [*named, *(Path(kernel.file) for kernel in kernels if kernel.file)]
    headers = [Path(header.path) for kernel in kernels for header in kernel.includes]
    return [*sources, *(source.with_suffix(".toml") for source in sources), *headers]


class Adopter(ExitStack):
    """Reads kernels that are to compute what a contract says. If it `is_on`, it finds the front
    matter of files without any by trials on a `device`, in a process of its own, which starts with
    the first."""

    def __init__(self, device: Callable[[], DeviceInfo], *, is_on: bool) -> None:
        super().__init__()
        self._device = device
        self._adoption = registry.load(registry.ADOPTION) if is_on else None
        self._pool: Any = None

    def kernel(
        self,
        read: Callable[[Mapping[str, Any]], Kernel],
        path: Path,
        given: Mapping[str, Any],
        contract: Contract | None,
        text: str | None = None,
    ) -> Kernel:
        """The kernel that `read` makes with the keys `given`; if it makes none, and the file, or
        the `text` in place of one, has no front matter, with others, too, so that it computes what
        the contract and these keys ask for. It never runs if it does something else.

        `UsageError` if there is none, or if no call of it is right.
        """
        try:
            kernel = read(given)
            return kernel if contract is None else contract.judged(kernel)
        except UsageError:
            if self._adoption is None or (foreign := foreign_text(path, text)) is None:
                raise
        front_matter.Reader(str(path), "", None, tables.Table(str(path), "", None, given)).front(
            dict(given)
        )  # raises an error if one of these keys is wrong
        asked = (contract or Contract()).pinned(given)
        self._pool = self._pool or self.enter_context(self._adoption.pool())
        try:
            with located(path):
                worker = self._pool.worker(self._device())
                found = self._adoption.adoption(foreign, path, given, worker)
            kernel = asked.judged(read(found.table))
            if kernel.never is None:
                given = {"beta": asked.beta, **given} if "beta" in kernel.args else given
                kernel = read(tables.merged(found.table, given))
        except NotAdoptedError as error:
            said = f"no front matter, and {error}"
            raise NotAdoptedError(said, error.closest, is_lacking=error.is_lacking) from None
        except UsageError as error:
            raise NotAdoptedError(f"no front matter, and {error}") from None
        return msgspec.structs.replace(kernel, adoption=found)


def foreign_text(path: Path, text: str | None) -> str | None:
    """The text of a kernel file without front matter, or the one in its place; None if it has any,
    or is no file."""
    if text is None and (not path.is_file() or path.with_suffix(".toml").exists()):
        return None
    if path.suffix in (*front_matter.COMPILED, ".json") or python_file.is_python(str(path)):
        return None
    text = text or front_matter.decoded(catalogue.read(path, str(path)), str(path))
    return text if tables.FENCE.search(text) is None else None


@dataclass(frozen=True, kw_only=True)
class Batch(KernelFiles):
    """Kernel files of a command, which an `adopter` reads.

    Only if there are `several` is a bad file not an error: its cases fail.
    """

    several: bool
    adopter: Adopter
    contract: Contract | None

    def read(self, path: str, given: Mapping[str, Any] | None = None) -> Kernel:
        read = partial(super().read, path)
        try:
            with refusing(path):
                kernel = self.adopter.kernel(read, Path(path), self.given, self.contract)
            catalogue.require_no_disguise(kernel)
        except UsageError as error:
            if not self.several:
                raise
            never = Skip("refused", str(error).removeprefix(f"{path}: "))
            return Kernel(path, LaunchRules((), ()), path=path, file=path, never=never)
        if kernel.adoption is not None:
            say(f"adopted {path} for this run; `matbench adopt` writes its table", err=True)
        return kernel


class Devices(Protocol):
    """Where cases can run: the devices of this machine that were selected, or a cluster's."""

    def choose_all(self) -> list[DeviceInfo]: ...


@dataclass(frozen=True)
class SelectionOptions:
    """The kernels to run if none are named, and the baselines to add."""

    TITLE: ClassVar = "Kernels"

    group: str | None = option(
        "--group",
        type=click.Choice(["tutorial", "ladder", "gallery", "baseline", "all"]),
        help="Run a whole group. Default if no kernel is named: tutorial.",
    )
    workload: str | None = option(
        "--workload",
        type=click.Choice(list(WORKLOADS)),
        help="Workload. Default if no kernel is named: matmul.",
    )
    baselines: tuple[str, ...] = option(
        "--baseline",
        multiple=True,
        shell_complete=kernel_names,
        metavar="LIST",
        help="Add baselines: cublas, cublas-tf32, cublaslt-best, numpy and others, 'cublas*' "
        "for all of cuBLAS, or a file's kernel or function. Repeatable.",
    )

    def kernels(
        self, names: Sequence[str], files: KernelFiles, *, of_every_workload: bool = False
    ) -> list[Kernel]:
        """The kernels given by name, file, folder and group, or else the default ones; plus
        baselines.

        Default: the tutorial's matrix products; for another workload also its gallery kernels. A
        group has the kernels of one workload, or those `of_every_workload`.
        """
        baselines = [name.strip() for text in self.baselines for name in text.split(",")]
        own = [*filter(is_path, baselines)]
        known = files.loaded([*names, *own])
        chosen = known.named(names)
        for kernel in chosen:
            if self.workload not in (None, kernel.workload):
                raise UsageError(
                    f"--workload {self.workload}: {kernel.name} computes {kernel.workload}"
                )
        of = self.workload or workloads.DEFAULT
        if self.group is not None:
            found = known.group(self.group, None if of_every_workload else of)
            if not found:
                raise UsageError(
                    f"--group {self.group}: no kernel in it computes {of}; see `matbench kernels`"
                )
            chosen += found
        if not chosen:
            default = ("tutorial",) if of == workloads.DEFAULT else ("tutorial", "gallery")
            chosen = [kernel for each in default for kernel in known.group(each, of)]
        chosen += known.named(own)
        if others := [name for name in baselines if name not in own]:
            chosen += known.baselines(others, {kernel.workload for kernel in chosen})
        return list({kernel.name: kernel for kernel in chosen}.values())

    def cases(
        self,
        kernels: Sequence[Kernel],
        problems: Sequence[Problem],
        overrides: dict[str, tuple[int, ...]],
        device: Devices,
        *,
        quick: bool = False,
    ) -> PlacedCases:
        """Each case with its devices: those selected, or the CPU for host baselines.

        Each model has its own cases; of a `quick` check, sizes that kernels exclude are
        moved to allowed ones near them.
        """
        hosted = [kernel for kernel in kernels if kernel.on_host]
        plain = [kernel for kernel in kernels if kernel not in hosted]
        found: PlacedCases = []
        models: dict[tuple[str, str], list[DeviceInfo]] = {}
        for info in device.choose_all() if plain else []:
            models.setdefault((info.backend, info.name), []).append(info)
        for alike in models.values():
            chosen = sweep.quick if quick else sweep.cases
            placed = chosen(plain, problems, overrides, alike[0])
            found += [(tuple(alike), case) for case in placed]
        for kernel in hosted:
            info, missing = _host_of(kernel)
            if not isinstance(device, DeviceOptions):
                missing = "runs on the CPU of one host: measure it without --cluster"
            for case in sweep.cases([kernel], problems, overrides, info):
                if missing is not None:
                    skip = Skip("unavailable", missing)
                    case = msgspec.structs.replace(case, skip=skip, launch=None)
                found.append(((info,), case))
        return found


def _host_of(kernel: Kernel) -> tuple[DeviceInfo, str | None]:
    """The CPU that a host baseline runs on, and the reason if it cannot run there."""
    try:
        return backends.host_device(kernel.kind.backend), None
    except UnavailableError as error:
        return backends.devices("host")[0], str(error)
