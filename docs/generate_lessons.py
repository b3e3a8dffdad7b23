"""Writes what the page on the ladder shows of each rung: its figures, and what its code changes.

`python docs/generate_lessons.py` writes them; with `--check` it names the pages that are out of
date and exits 1. A rung's part stands between `<!-- diff NAME -->` and `<!-- /diff NAME -->`: the
lines "Predicted" (or "Limit") and "Measured" of the kernel file's header, and a folded diff with
the kernel that front matter's `previous` names.
"""

from __future__ import annotations

import difflib
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import freshness
import msgspec
from tabulate import tabulate

from matbench.analysis import ranking
from matbench.features.explain.machine_code import busy
from matbench.kernelfile import catalogue, syntax
from matbench.model import Kernel
from matbench.records import reading
from matbench.records.explanation import MachineCode
from matbench.records.outcome import Outcome

ROOT = Path(__file__).parent.parent
PAGES = (ROOT / "docs" / "ladder.md",)
LADDER = ROOT / "results" / "h200-ladder.jsonl"
CEILINGS = ROOT / "results" / "h200-ceilings.json"
#: Resources this busy are named beside the one that binds.
NEARLY = 0.85
DOT = ROOT / "results" / "h200-dot.jsonl"
#: The size that the rungs of the dot product are compared at.
DOT_SIZE = 2**28
#: The cuBLAS product that a rung is compared with, by its precision, and what headers call it.
OPPONENTS = {"float32": ("cublas", "cuBLAS"), "bfloat16": ("cublas-bf16", "cuBLAS in bfloat16")}
#: A diff says more than the file itself if no larger share of it is new, or if the diff is short.
MOST_CHANGED = 0.65
FEW_LINES = 80
MARKERS = re.compile(r"(<!-- diff (\S+) -->\n).*?(<!-- /diff \2 -->)", re.DOTALL)
SUMMARY = re.compile(r"(<!-- predictions -->\n).*?(<!-- /predictions -->)", re.DOTALL)
LABELS = ("Adds", "Predicted", "Limit", "Measured")


# -- headers -------------------------------------------------------------------------------------


def header(kernel: Kernel) -> dict[str, list[str]]:
    """The labelled lines that a kernel file's comment begins with: the lines below each label."""
    comment = kernel.source.split("// ///\n", 1)[-1].lstrip("\n")
    found: dict[str, list[str]] = {}
    for line in comment.splitlines():
        text = re.fullmatch(r"// (.*\S)", line)
        if text is None:
            break
        label, colon, rest = text[1].partition(": ")
        if colon and label in LABELS:
            found[label] = [rest]
        elif found and text[1].startswith("  "):
            found[label_of(found)].append(text[1].strip())
        else:
            break
    return found


def label_of(found: dict[str, list[str]]) -> str:
    """The label that was read last."""
    return next(reversed(found))


def figures(kernel: str, ladder: Sequence[Outcome], dot: Sequence[Outcome]) -> set[str]:
    """What a header may say after "Measured": each speed of a kernel, at its fastest."""
    return {*_of_products(kernel, ladder), *_of_dots(kernel, dot)}


def _of_products(kernel: str, found: Sequence[Outcome]) -> Iterator[str]:
    speeds: dict[tuple[str, str], float] = {}
    precisions = {}
    for outcome in ranking.fastest(found):
        case = outcome.case
        if outcome.median_ns:
            work = 2e-3 * case.problem.M * case.problem.N * case.problem.K
            speeds[case.kernel, case.problem.size] = work / outcome.median_ns
            precisions[case.kernel] = case.claims.precision
    for (name, size), speed in speeds.items():
        if name != kernel or precisions[name] not in OPPONENTS:
            continue
        product, title = OPPONENTS[precisions[name]]
        if (product, size) in speeds:
            shown = f"{speed:.{2 if speed < 1 else 1 if speed < 100 else 0}f}"
            at = size if "x" in size else f"n = {size}"
            share = f"{speed / speeds[product, size]:.0%}"
            yield f"{shown} TFLOP/s at {at}, {share} of {title} (H200)"


def _of_dots(kernel: str, found: Sequence[Outcome]) -> Iterator[str]:
    rungs = [
        outcome
        for outcome in found
        if outcome.case.problem.inputs == "uniform" and outcome.case.problem.N == DOT_SIZE
    ]
    for row in ranking.rank(rungs):
        if row.outcome.case.kernel == kernel and row.work_per_s and row.of_limit:
            share = f"{row.of_limit:.0%} of copy bandwidth"
            yield f"{row.work_per_s / 1e12:.2f} TB/s at N = 2^28, {share} (H200)"


# -- diffs ---------------------------------------------------------------------------------------


def code(kernel: Kernel) -> list[str]:
    """The lines of a kernel's code: no comments, no empty lines, the entry named `kernel`."""
    text = syntax.without_comments(kernel.source)
    text = re.sub(rf"\b{re.escape(kernel.entry)}\b", "kernel", text)
    return [line.rstrip() for line in text.splitlines() if line.strip()]


def diff(before: Kernel, after: Kernel) -> str | None:
    """What changes in the code, whatever its spaces; None if nearly everything does."""
    old, new = code(before), code(after)
    matcher = difflib.SequenceMatcher(None, _squeezed(old), _squeezed(new), autojunk=False)
    kept = sum(block.size for block in matcher.get_matching_blocks())
    hunks = []
    for group in matcher.get_grouped_opcodes(1):
        lines = []
        for kind, first, last, start, end in group:
            if kind == "equal":
                lines += [f" {line}" for line in new[start:end]]
            else:
                lines += [f"-{line}" for line in old[first:last]]
                lines += [f"+{line}" for line in new[start:end]]
        hunks.append("\n".join(lines))
    text = "\n…\n".join(hunks)
    is_new = kept < (1 - MOST_CHANGED) * len(new)
    return None if is_new and text.count("\n") > FEW_LINES else text


def _squeezed(lines: Sequence[str]) -> list[str]:
    return ["".join(line.split()) for line in lines]


# -- pages ---------------------------------------------------------------------------------------


def part(kernel: Kernel, known: dict[str, Kernel]) -> str:
    """What a page shows of a rung."""
    lines = header(kernel)
    shown = [
        f"- **{label}:** {('; ' if label == 'Measured' else ' ').join(lines[label])}"
        for label in LABELS[1:]
        if label in lines
    ]
    before = known[kernel.previous or ""]
    link = f"[`{kernel.name}`](../{kernel.path})"
    changes = diff(before, kernel)
    if changes is None:
        shown.append(f"- Nearly all of the code is new, so there is no diff: {link}")
        return "\n".join(shown)
    shown += [
        f"- **Code:** {link}\n",
        f"<details><summary>What changes from <code>{before.name}</code></summary>\n",
        f"```diff\n{changes}\n```\n",
        "</details>",
    ]
    return "\n".join(shown)


def predictions(kernels: Sequence[Kernel]) -> str:
    """What the machine code of each rung allows, beside what was counted by hand and measured."""
    codes = ceilings()
    rows = []
    for kernel in kernels:
        lines = header(kernel)
        by_hand = re.match(r"at most ([\d.,]+) TFLOP/s", " ".join(lines.get("Predicted", [])))
        measured = " ".join(lines.get("Measured", []))
        speed = re.search(r"([\d.]+) TFLOP/s at n = 4096, (\d+%) of cuBLAS", measured)
        code, measured_ns = codes.get(kernel.name, (None, 0.0))
        if speed is None or (by_hand is None and code is None):
            continue
        allowed, bound_by, reached = "not derived", "", ""
        if code is not None and code.ceiling_operations_per_s is not None:
            allowed = f"{float(f'{code.ceiling_operations_per_s / 1e12:.3g}'):,g}"
            reached = f"{(code.least_ns or 0.0) / measured_ns:.0%}"
            bound_by = busiest(code)
        counted = by_hand[1] if by_hand else ""
        rows.append([f"`{kernel.name}`", counted, allowed, bound_by, speed[1], reached, speed[2]])
    return tabulate(
        rows,
        headers=[
            "rung", "by hand: at most (TFLOP/s)", "by machine code: at most", "busiest then",
            "measured", "reached", "of cuBLAS, same precision",
        ],
        tablefmt="pipe",
        colalign=["left", "right", "right", "left", "right", "right", "right"],
        disable_numparse=True,
    )  # fmt: skip


def busiest(code: MachineCode) -> str:
    """The resources that are busy for most of the time at the ceiling."""
    shown = [f"{name} {share:.0%}" for name, share in busy(code).items() if share >= NEARLY]
    return ", ".join(shown)


def ceilings() -> dict[str, tuple[MachineCode, float]]:
    """What was derived of each rung: its machine code's ceiling, and its measured time in ns."""
    rungs = msgspec.json.decode(CEILINGS.read_bytes())["rungs"]
    return {
        name: (msgspec.convert(rung["code"], MachineCode), rung["measured_ns"])
        for name, rung in rungs.items()
    }


def written(page: str) -> str:
    """A page with what it must hold between its markers."""
    known = catalogue.Catalogue(catalogue.builtin())
    rungs = predictions([*known.group("ladder"), *known.group("gallery")])
    page = SUMMARY.sub(lambda found: f"{found[1]}\n{rungs}\n\n{found[2]}", page)
    return MARKERS.sub(
        lambda found: f"{found[1]}\n{part(known.get(found[2]), known.kernels)}\n\n{found[3]}", page
    )


def measurements() -> tuple[Sequence[Outcome], Sequence[Outcome]]:
    """The committed results of both ladders."""
    return reading.read(LADDER)[1], reading.read(DOT)[1]


def outdated() -> dict[Path, str]:
    """The pages that do not hold what they must, with what that is."""
    found = {path: (old, written(old)) for path in PAGES if (old := path.read_text("utf-8"))}
    return {path: new for path, (old, new) in found.items() if old != new}


def main() -> int:
    return freshness.finish(outdated())


if __name__ == "__main__":
    sys.exit(main())
