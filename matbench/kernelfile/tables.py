"""The table of front matter: where it comes from, its values, and the line of each key.

It is TOML in a fenced comment of the kernel file, as PEP 723 puts metadata into a script,

    // /// matbench
    // name = "mine"
    // …
    // ///

or in a file `NAME.toml` beside it. Keys given on the command line replace those in either. A table
in it may be that of a function on the host.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, get_args, get_type_hints

import msgspec

from matbench.errors import UsageError, listed
from matbench.kernelfile import signature
from matbench.kernelfile.signature import Entry, Signature
from matbench.model import FrontMatter
from matbench.workloads import Workload

#: The front matter between its two fences, in comments of C++ or Python.
FENCE = re.compile(
    r"^(?P<open>(?P<mark>//|#) /// matbench[ \t]*\n)"
    r"(?P<body>(?:(?!(?P=mark) /// matbench)(?P=mark)[^\n]*\n)*?)(?P=mark) ///[ \t]*$",
    re.MULTILINE,
)
_OPEN = re.compile(r"^// /// matbench[ \t]*$", re.MULTILINE)
#: The most characters of a table. A key of many parts takes the square of their number to parse.
_MOST = 32_000
_LONG_KEY = re.compile(r"""(?<![\w"'-])(?:[\w"'-]+[ \t]*\.[ \t]*){16}""")


class Beside(NamedTuple):
    """The TOML file beside a kernel file: what messages call it, and its text."""

    shown: str
    text: str


class Table:
    """The table of one kernel file; `shown` is what messages call the file that contains it.

    `given` are keys of the command line. `is_there`: there is a table in the kernel file or beside
    it; `is_fenced`: it is in the file.
    """

    def __init__(
        self, shown: str, source: str, beside: Beside | None, given: Mapping[str, Any]
    ) -> None:
        self.shown = shown
        self.given = given
        self.beside_name = Path(shown).with_suffix(".toml").name
        self.lines: list[str] = []
        fence = FENCE.search(source)
        opened = fence or _OPEN.search(source)
        self.first_line = source.count("\n", 0, opened.start()) + 1 if opened else 1
        if opened is not None and fence is None:
            self.fail("front matter is not closed; end it with a line `// ///`", self.first_line)
        if fence is not None and beside is not None:
            self.fail(f"front matter here and in {beside.shown}; keep only one", self.first_line)
        self.is_fenced = fence is not None
        self.is_there = self.is_fenced or beside is not None
        if beside is not None:
            self.shown, self.lines = beside.shown, beside.text.split("\n")
        elif fence is not None:
            self.first_line += 1
            lines = fence["body"].splitlines()
            self.lines = [line.removeprefix(fence["mark"]).removeprefix(" ") for line in lines]
        text = "\n".join(self.lines)
        if len(text) > _MOST:
            self.fail(f"front matter has more than {_MOST:,} characters", self.first_line)
        if key := _LONG_KEY.search(text):
            line = self.first_line + text.count("\n", 0, key.start())
            self.fail("a key of more than 16 parts", line)
        try:
            self.values = merged(_of_entry(msgspec.toml.decode(text), given), given)
        except RecursionError:
            self.fail("not TOML: nested too deeply", self.first_line)
        except (msgspec.DecodeError, ValueError) as error:
            where = re.search(r"\(at line ([0-9]+), column [0-9]+\)", str(error))
            line = self.first_line + (int(where[1]) - 1 if where else 0)
            self.fail(f"not TOML: {str(error).split(' (at ')[0]}", line)

    def fail(self, reason: str, line: int) -> NoReturn:
        raise UsageError(f"{self.shown}:{line}: {reason}")

    def wrong(self, reason: str, *keys: str) -> NoReturn:
        """Raise an error at the line that sets these keys."""
        given: Any = self.given
        for key in keys:
            given = given.get(key) if isinstance(given, Mapping) else None
        if given is not None:
            raise UsageError(f"{self.shown}: {reason} (from --front-matter)")
        self.fail(reason, self.line_of(*keys))

    def line_of(self, *keys: str) -> int:
        """The line that sets the last of `keys`, inside its table if it has one."""
        line, table = 0, ""
        for number, text in enumerate(self.lines):
            if header := re.match(r"\s*\[\s*([\w.-]+)\s*\]", text):
                table = header[1]
                if keys == (table,):
                    line = number
            name = re.match(r"\s*[\"']?([\w.-]+)[\"']?\s*=", text)
            if name and name[1] == keys[-1] and (len(keys) == 1 or table == keys[0]):
                line = number
                break
        return self.first_line + line


def _of_entry(values: dict[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """The keys for the entry that is asked for: a function on the host may have a table by its
    name, such as `["host sgemm"]`, and has no use for that of a kernel."""
    asked = str(given.get("entry", ""))
    own = {name: values.pop(name) for name in [*values] if name.startswith("host ")}
    if isinstance(table := own.get(asked), dict):
        return table
    launch, entry = values.get("launch"), str(values.get("entry", asked))
    has_blocks = isinstance(launch, dict) and "block" in launch
    is_of_host = entry.startswith("host ") and not has_blocks
    return values if asked.startswith("host ") == is_of_host or not asked else {}


class MissingKeysError(UsageError):
    """Front matter lacks keys, all in one error; what it is for may tell what they could be."""

    def __init__(
        self, table: Table, lacking: Sequence[str], workload: Workload, function: Signature,
        entry: Entry,
    ) -> None:  # fmt: skip
        self.table, self.lacking, self.workload = table, lacking, workload
        self.function, self.entry = function, entry
        self.where = f"{table.shown}:{table.line_of('launch')}" if table.is_there else table.shown
        named = [f"`{key}`" for key in lacking]
        self.told = f"{listed(named, 'and')} {'are' if len(named) > 1 else 'is'} missing"
        if not table.is_there:
            names = ", ".join(key.removeprefix("launch.") for key in lacking)
            self.told = f"front matter is missing ({names})"
        super().__init__(f"{self.where}: {self.told}; see docs/kernels.md")


def value(text: str, *keys: str) -> Any:
    """A value from the command line: TOML, or text without quotes; a list also without brackets."""
    given: Any = text
    with contextlib.suppress(msgspec.DecodeError, ValueError, RecursionError):
        given = msgspec.toml.decode(f"value = {text}")["value"]
    pieces = signature.pieces(text)
    for parts in () if fits(given, *keys) else ([*map(value, pieces)], pieces):
        with contextlib.suppress(msgspec.ValidationError):
            return [*msgspec.convert(parts, type_of(keys), strict=False)]
    return given


def fits(given: object, *keys: str) -> bool:
    with contextlib.suppress(msgspec.ValidationError):
        msgspec.convert(given, type_of(keys))
        return True
    return False


def type_of(keys: Iterable[str]) -> Any:
    """The type of a key's value, such as that of `args`, `launch.block` or `sweep.BM`."""
    kind: Any = FrontMatter if keys else Any
    for key in keys:
        inside = get_type_hints(kind, include_extras=True) if isinstance(kind, type) else {}
        kind = inside.get(key) or next(iter(get_args(kind)[1:]), Any)
    return kind


def merged(table: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """A table in which the `given` keys replace those of the same name, in tables in it, too."""
    values = dict(table)
    for key, more in given.items():
        current = values.get(key)
        if isinstance(current, dict) and isinstance(more, Mapping):
            more = merged(current, more)
        values[key] = more
    return values
