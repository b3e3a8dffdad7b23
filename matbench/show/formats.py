"""Reports in every format but a terminal's: tabulate's markups, CSV, JSON and JUnit XML."""

from __future__ import annotations

import csv
import html
import io
import math
import re
from collections import Counter
from collections.abc import Sequence
from xml.etree import ElementTree

from tabulate import tabulate

from matbench.records import encoding
from matbench.show import safe
from matbench.show.table import Column, Footnotes, JUnitCase, Report, Section, flat, last_cell

_MARKDOWN = ("github", "pipe")
#: What Markdown takes for markup: anywhere, around a word, and at the beginning of a line.
_MARKUP = re.compile(
    r"[\\`*|\[\]~]|(?<![^\W_])_|_(?![^\W_])|^ *(?:[-+=](?![\d.])|[>:]|\d+[.)](?!\S))", re.MULTILINE
)
#: What GitHub looks for apart from Markdown's syntax: mentions, references, addresses, formulas.
_REFERRING = re.compile(r"@(?=\w)|[#$]|:(?=//|[\w+-]+:)|(?<=www)\.|(?<=\bGH)-(?=\d)", re.IGNORECASE)
#: What a spreadsheet takes for a formula; a number is none.
_FORMULA = re.compile(r"[=@\t\r]|[-+](?!\d[\d.,]*%?$)")


def text(report: Report, fmt: str) -> str:
    """The report in any format of `--format` but `rich`; nothing is cut."""
    if fmt == "json":
        return encoding.array(report.records())
    if fmt == "junit":
        return junit(report.tests())
    if fmt == "csv":
        columns = [column for column in report.columns if column.key]
        rows = [[column.at(row) for column in columns] for row in report.rows()]
        return csv_table([column.key for column in columns], rows)
    parts = [part for contents in report.sections for part in section(contents, fmt)]
    return "\n\n".join(part for part in [*parts, prose([report.footer], fmt)] if part)


def section(contents: Section, fmt: str) -> list[str]:
    """Heading, table and notes; a size that all rows share is in the heading."""
    contents, footnotes = contents.printable(), Footnotes()
    sizes = {group.size for group in contents.groups if group.size}
    heading = [*contents.heading]
    if len(sizes) == 1:
        heading += [f"size {size}" for size in sizes]
    first = [Column("size")] if len(sizes) > 1 else []
    last = [Column(contents.last_title)] if contents.last_title else []
    columns, rows = [*first, *contents.columns, *last], list[list[str]]()
    for group in contents.groups:
        for row in group.rows:
            remark = last_cell(row, footnotes, inline=True)  # numbers the footnotes, too
            size = [group.size] if first else []
            rows.append([*size, *row.cells, *([remark] if last else [])])
    notes = [" ".join(line) for line in (*contents.legend, *footnotes.lines())]
    table = tabulate(
        [[escape(cell, fmt) for cell in row] for row in rows],
        headers=[escape(column.title, fmt) for column in columns],
        tablefmt=fmt,
        colalign=["right" if column.right else "left" for column in columns] if rows else None,
        disable_numparse=True,
    )
    return [prose(heading, fmt), table, prose(notes, fmt)]


def escape(cell: str, fmt: str) -> str:
    """`tabulate` escapes for HTML and LaTeX, but not for Markdown."""
    if fmt not in _MARKDOWN:
        return cell
    cell = cell.replace("&", "&amp;").replace("<", "&lt;")
    # An invisible space, because GitHub looks again at what Markdown has made of the rest.
    cell = _REFERRING.sub(lambda match: f"&#{ord(match[0])};&#8203;", cell)
    return _MARKUP.sub(lambda match: f"{match[0][:-1]}\\{match[0][-1]}", cell)


def prose(lines: Sequence[str], fmt: str) -> str:
    """Lines outside a table, made safe; each is a paragraph if the markup joins lines."""
    lines = [safe.text(line) for line in lines]
    if fmt == "html":
        return "\n".join(f"<p>{html.escape(line)}</p>" for line in lines)
    if fmt == "latex":
        return "\n".join("% " + line.replace("\n", "\n% ") for line in lines)
    return ("\n\n" if fmt in _MARKDOWN else "\n").join(escape(line, fmt) for line in lines)


def csv_table(titles: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Titles and rows, without a final newline."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(titles)
    writer.writerows([_csv_value(value) for value in row] for row in rows)
    return out.getvalue().removesuffix("\n")


def _csv_value(value: object) -> object:
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    value = flat(value)
    if not isinstance(value, str):
        return value
    text = safe.lines(value)
    return f"'{text}" if _FORMULA.match(text) else text  # so that a spreadsheet shows it as it is


def junit(cases: Sequence[JUnitCase]) -> str:
    """A document with a suite for each distinct `suite`; in it, cases of one name are numbered,
    because CI systems merge them."""
    root = ElementTree.Element("testsuites", {"name": "matbench", **_counts(cases)})
    for suite in dict.fromkeys(case.suite for case in cases):
        own = [case for case in cases if case.suite == suite]
        name = safe.lines(suite)
        parent = ElementTree.SubElement(root, "testsuite", {"name": name, **_counts(own)})
        known = Counter[str]()
        for case in own:
            known[case.name] += 1
            number = f" ({known[case.name]})" if known[case.name] > 1 else ""
            about = {"name": safe.lines(case.name) + number, "classname": name}
            if case.time_s is not None:
                about["time"] = f"{case.time_s:.9f}"
            element = ElementTree.SubElement(parent, "testcase", about)
            if case.ended != "passed":
                ElementTree.SubElement(element, case.ended, message=safe.lines(case.reason))
            if case.notes:
                notes = ElementTree.SubElement(element, "system-out")
                notes.text = safe.lines("\n".join(case.notes))
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True)


def _counts(cases: Sequence[JUnitCase]) -> dict[str, str]:
    ended = Counter(case.ended for case in cases)
    names = {"failures": "failure", "errors": "error", "skipped": "skipped"}
    return {"tests": f"{len(cases)}", **{key: f"{ended[name]}" for key, name in names.items()}}
