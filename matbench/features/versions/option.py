"""The option that compares kernels with their files as of a git revision."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from matbench import temporary
from matbench.cli.console import say
from matbench.cli.options import option
from matbench.errors import UsageError

if TYPE_CHECKING:
    from matbench.cli.compare import Pair, Side


@dataclass(frozen=True)
class VersionOptions:
    """The revision to compare with, if any."""

    TITLE: ClassVar = None  # listed with the options of `compare` alone

    against: str | None = option(
        "--against",
        metavar="REV",
        help="Compare each kernel with its file as of a git revision, such as main or HEAD~1.",
    )

    @contextmanager
    def changed(
        self, sides: Sequence[Side], given: Mapping[str, Any]
    ) -> Iterator[tuple[list[Pair], list[str]]]:
        """Each kernel that has changed since the revision, and its file as of then as the baseline.

        Also prints and returns remarks on the others. `given` is front matter of the command line.
        """
        from matbench.features.versions import git_versions
        from matbench.kernelfile import catalogue

        assert self.against is not None
        pairs, remarks = [], []
        with temporary.folder() as folder:
            for number, side in enumerate(sides):
                kernel, name = side
                version = git_versions.extract(kernel, self.against, folder / str(number))
                if version is None:
                    remarks.append(f"{name}: new since {self.against}, not compared")
                    continue
                shown = f"{kernel.path} at {self.against}"
                old = catalogue.load(version.file, shown, version.given(given))
                if git_versions.unchanged(old, kernel):
                    remarks.append(f"{name}: unchanged since {self.against}, not compared")
                    continue
                label = f"{name} at {self.against}"
                if old.workload != kernel.workload:
                    raise UsageError(f"{label} computes {old.workload}, and now {kernel.workload}")
                pairs.append((side._replace(kernel=old, label=label), side))
            for remark in remarks:
                say(remark, err=True)
            yield pairs, remarks
