"""Reads a file in the form of another evaluator as a kernel."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from matbench.errors import UsageError, listed
from matbench.features.submissions import forms, solution
from matbench.features.submissions.problem import WORKLOADS, Product, of_file
from matbench.kernelfile import catalogue, front_matter, python_file, tables
from matbench.model import Kernel

#: The key of a table that names the file of the problem, relative to the submission's.
PROBLEM = "problem"
#: The files of a problem that may lie beside a submission.
_BESIDE = ("task.yml", "definition.json")
#: Files that those are read with.
_NEAR = (*_BESIDE, *WORKLOADS, "reference.py", "task.py", "utils.py")


def kernel(
    data: bytes, path: Path, given: Mapping[str, Any], shown_as: str | None = None
) -> tuple[Kernel, str] | None:
    """The kernel in the data of a submission, and what a user should know of how it is read; None
    if it is in no such form, or has a table. `UsageError`: what is wrong with it, or its problem.

    Keys `given` on the command line take precedence; `problem` is the file of the problem.
    """
    name = python_file.split(str(path))[1]
    file = Path(python_file.split(str(path))[0])
    shown = shown_as or str(file)
    if file.suffix == ".json":
        return _of_solution(data, file, given)
    if file.suffix not in (".cu", ".py") or file.with_suffix(".toml").exists():
        return None
    text = front_matter.decoded(data, shown)
    found = None
    if "/// matbench" in text or "entry" in given:
        return None
    if file.suffix == ".cu":
        found = forms.of_cuda(text, shown, file.parent)
    elif name in ("", "ModelNew", "custom_kernel", *forms.FORMS):
        found = forms.of_python(text, shown, partial(_problem, file, given, text), file.parent)
    if found is None:
        return None
    if PROBLEM in given and found.form in forms.FORMS.values():
        raise UsageError(f"{shown}: problem: {found.form} has none; give --sizes")
    return _kernel(found, file, shown, given)


def _of_solution(data: bytes, path: Path, given: Mapping[str, Any]) -> tuple[Kernel, str]:
    one = solution.unpacked(data, path)
    named = [path.parent / str(given[PROBLEM])] if PROBLEM in given else []
    place = next(iter(named or _definitions(path, one.definition)), None)
    if place is None:
        raise UsageError(
            f"{path}: its definition is not there: {one.definition!r:.60}; name its file, as in "
            "--front-matter problem=definition.json"
        )
    return _kernel(forms.of_solution(one, of_file(place)), one.file, str(path), given)


def _definitions(path: Path, name: str) -> Iterator[Path]:
    """The files that may have a definition of that name: beside its solution, or in the folder
    `definitions` of flashinfer-bench's dataset."""
    names = f"{name}.json", "definition.json"
    yield from (place for one in names if (place := path.parent / one).is_file() and place != path)
    for above in path.absolute().parents:
        found = (above / "definitions").rglob("*.json")
        yield from (place for place in found if place.name == names[0])


def _problem(file: Path, given: Mapping[str, Any], text: str, name: str) -> Product:
    """The problem that is named, or lies beside the file, or in it, for a class or function of that
    name; one that asks for nothing if there is none."""
    if PROBLEM in given:
        return of_file(file.parent / str(given[PROBLEM]))
    if name == "ModelNew":
        has_own = "class Model(" in text or "class Model:" in text
        return of_file(file) if has_own and "def get_inputs" in text else Product({})
    beside = [file.with_name(name) for name in _BESIDE]
    return next((of_file(place) for place in beside if place.is_file()), Product({}))


def beside(text: str, name: str, names: Collection[str], given: Mapping[str, Any]) -> list[str]:
    """Of the files with these names, those that a submission, of that text and name, may be read
    with: its problem and what belongs to that, and the sources of a solution."""
    if not re.search(r"\b(?:ModelNew|custom_kernel|entry_point)\b", text):
        return []
    folder = posixpath.dirname(name)
    asked = posixpath.normpath(posixpath.join(folder, str(given.get(PROBLEM, "."))))
    folders = folder, posixpath.dirname(asked)
    near = {posixpath.join(one, file) for one in folders for file in _NEAR}
    quoted = {*re.findall(r'"([^"\n]+)"', text)} if name.endswith(".json") else set()
    near |= {asked, *(posixpath.join(folder, one) for one in quoted)}
    definitions = {f"{one}.json" for one in quoted} | {f"{one}.jsonl" for one in quoted}
    return [one for one in names if one in near or posixpath.basename(one) in definitions]


def _kernel(
    found: forms.Submission, file: Path, shown: str, given: Mapping[str, Any]
) -> tuple[Kernel, str]:
    table, path = tables.merged(found.table, given), file
    table.pop(PROBLEM, None)
    if file.suffix == ".py":
        table = {"name": front_matter.name_from(Path(shown).stem), **table}
        path = Path(f"{file}{python_file.SEPARATOR}{forms.CALL}")
    read = catalogue.parse(found.text.encode(), path, shown, table)
    told = [f"transpose {table['transpose']}"] if table.get("transpose", "NN") != "NN" else []
    if found.table.get("sizes"):
        told.append(f"sizes of its problem: {table['sizes'].replace(',', ', ')}")
    more = f" ({listed(told, 'and')})" if told else ""
    return msgspec.structs.replace(read, path=shown), f"{shown}: a submission in {found.form}{more}"
