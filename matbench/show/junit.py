"""Reports as JUnit XML, which CI systems show: a test case for each row of the table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple
from xml.etree import ElementTree

from matbench.show import safe


class JUnitCase(NamedTuple):
    """A row: what it is about (`suite`), its name, how it ended, its time in seconds, and notes.

    `ended`: `passed`, `skipped`, `failure` (a wrong result, or slower than allowed), or `error` (it
    did not run).
    """

    suite: str
    name: str
    ended: str = "passed"
    reason: str = ""
    time_s: float | None = None
    notes: tuple[str, ...] = ()


def text(cases: Sequence[JUnitCase]) -> str:
    """The cases as one document, with a suite for each distinct `suite`; in it, cases of one name
    are numbered, because CI systems merge them."""
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
    return {
        "tests": f"{len(cases)}",
        "failures": f"{ended['failure']}",
        "errors": f"{ended['error']}",
        "skipped": f"{ended['skipped']}",
    }
