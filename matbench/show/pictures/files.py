"""What all pictures share: checks of the output file, encoding, and the heading.

Colours are safe for colour-blind readers, and every picture says what it does not show.
"""

from __future__ import annotations

import importlib.util
import io
import itertools
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from matbench.errors import UsageError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WIDTH_IN = 12.0
#: M. Okabe and K. Ito, 2008; readable on a light page and on a dark one.
COLOURS = ("#0072b2", "#e69f00", "#009e73", "#d55e00", "#56b4e9", "#cc79a7", "#999999")
_DPI = 110
#: Without dates and versions, so that the same picture has the same bytes.
_NO_METADATA: dict[str, dict[str, Any]] = {
    "png": {"Software": None},
    "svg": {"Date": None, "Creator": None},
}


def require(path: Path, suffixes: tuple[str, ...], inputs: Iterable[str] = ()) -> None:
    """`UsageError` if no picture can be written to `path`; call this before measuring.

    A picture must not replace one of the `inputs` that it is drawn from.
    """
    known = f"{', '.join(suffixes[:-1])} or {suffixes[-1]}"
    require_file(
        path,
        suffixes,
        inputs,
        wrong_suffix=f"a picture's name must end in {known}",
        is_input="the picture is drawn from this file; name another file",
    )
    require_libraries(path, "pictures")


def require_libraries(path: Path, what: str) -> None:
    """`UsageError` if what draws is not installed."""
    for module in ("altair", "vl_convert"):
        if importlib.util.find_spec(module) is None:
            raise UsageError(f"{path}: {what} need {module}; pip install 'matbench-cuda[plots]'")


def require_file(
    path: Path,
    suffixes: tuple[str, ...],
    inputs: Iterable[str],
    *,
    wrong_suffix: str,
    is_input: str,
) -> None:
    """`UsageError` if `path` is one of the `inputs`, has another suffix, or lacks a folder."""
    for file in inputs:
        if path.exists() and Path(file).exists() and path.samefile(file):
            raise UsageError(f"{path}: {is_input}")
    if path.suffix.lower() not in suffixes:
        raise UsageError(f"{path}: {wrong_suffix}")
    if path.is_dir():
        raise UsageError(f"{path}: is a folder; name a file in it")
    if not path.absolute().parent.is_dir():
        raise UsageError(f"{path}: no folder {path.parent}; create it, or name another file")


def unused(path: Path) -> Path:
    """The path, or the first of `NAME_2`, `NAME_3` … that does not exist."""
    numbered = (path.with_name(f"{path.stem}_{n}{path.suffix}") for n in itertools.count(2))
    return next(p for p in itertools.chain([path], numbered) if not p.exists())


def figure(width_in: float, height_in: float, rows: tuple[int, ...] = (1,)) -> tuple[Figure, Any]:
    """A figure with axes stacked vertically, sharing x, with heights in proportion to `rows`."""
    from matplotlib.figure import Figure

    made = Figure(figsize=(width_in, height_in), dpi=_DPI, layout="constrained")
    axes = made.subplots(len(rows), 1, sharex=True, height_ratios=rows, squeeze=False)
    return made, axes[:, 0]


def add_heading(figure: Figure, title: str, lines: list[str]) -> None:
    """Put a title, and lines that explain the picture, above it."""
    text = "\n".join([title, *lines] if title else lines)
    figure.suptitle(text, x=0.01, ha="left", fontsize=11, parse_math=False)


def suffix(path: Path) -> str:
    """`svg` of `Roof.SVG`."""
    return path.suffix.lower().removeprefix(".")


def encoded(figure: Figure, kind: str, description: str | None = None) -> bytes:
    """The picture as the bytes of a file, `kind` being png or svg."""
    import matplotlib

    out = io.BytesIO()
    # Keep text as text, and make the ids in the picture reproducible.
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "matbench"}):
        metadata = {**_NO_METADATA[kind], **({"Description": description} if description else {})}
        figure.savefig(out, format=kind, metadata=metadata)
    return out.getvalue()


def write(path: Path, data: bytes) -> None:
    """Replace the file as a whole, or leave it as it was."""
    target = path.resolve()
    part = target.with_name(f".{target.name}.part")
    try:
        if target.exists() and not target.is_file():  # a device or a pipe
            path.write_bytes(data)
            return
        part.write_bytes(data)
        part.replace(target)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise UsageError(f"{path}: cannot be written: {error.strerror}") from None
