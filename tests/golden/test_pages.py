"""Tables of made-up records, as a terminal shows them: the files beside this one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from pytest_regressions.file_regression import FileRegressionFixture
from support.tables import printed, report, rows, shown
from support.toml import table

from matbench.model import CUBLAS, Kernel, LaunchRules
from matbench.show import kernels
from matbench.show.formats import text
from matbench.show.table import Report

FOLDER = Path(__file__).parent
#: Tables by the caption of each, of each page.
REPORTS = {
    page: {caption: report(row) for caption, row in table(FOLDER / f"{page}.toml").items()}
    for page in ("pages-outcomes", "pages-notes", "pages-comparisons")
}
TILED = Kernel(
    name="tiled", summary="Tiles in shared memory.",
    launch=LaunchRules(block=("TILE", "TILE"), grid=(1,), where=("TILE <= 32",)), entry="tiled",
    sweep={"TILE": (8, 16)}, tune={"TILE": (4,)}, requires=("sm_80",),
    model={"global_loads": "2 * M"},
    source='/// [x]\n// ///\n\nextern "C" __global__ void tiled() {}\n', path="kernels/tiled.cu",
)  # fmt: skip
FOLLOWER = msgspec.structs.replace(TILED, name="mine", previous="tiled")
BASELINE = Kernel(
    name="cublas", summary="cuBLAS.", launch=LaunchRules(block=(1,), grid=(1,)), group="baseline",
    kind=CUBLAS, deterministic=False,
)  # fmt: skip


def of_reports(reports: dict[str, Report]) -> Iterator[str]:
    """What a terminal shows, and what is in the CSV alone."""
    for caption, found in reports.items():
        yield f"=== {caption}\n\n{shown(found)}\n"
        of_csv = rows(found)
        if best := [row["kernel"] for row in of_csv if row.get("best") == "true"]:
            yield f"csv: best: {', '.join(best)}"
        for row in of_csv:
            for name, cell in row.items():
                if cell and re.match("claims|notes|timing_mode|hot_|sustained_", name):
                    yield f"csv: {row.get('kernel')}: {name}: {cell}"
        yield ""


def of_formats() -> Iterator[str]:
    found, listed = REPORTS["pages-outcomes"], [TILED, FOLLOWER, BASELINE]
    mixed = found["every status, on two devices and the host"]
    few = REPORTS["pages-comparisons"]["slower, faster and not timed"]
    yield f"=== 80 columns\n\n{shown(mixed, 80)}\n"
    yield f"=== 60 columns\n\n{shown(few, 60)}\n"
    for fmt in ("plain", "github"):
        yield "\n\n".join((f"=== {fmt}", text(mixed, fmt), text(kernels.report(listed), fmt), ""))
    for name in ("claims", "no result at several sizes"):
        yield f"=== plain: {name}\n\n{text(found[name], 'plain')}\n"
    narrow = shown(found["shares of the limit and of cuBLAS"], 80)
    yield f"=== 80 columns for more\n\n{narrow}\n"
    yield f"=== json\n\n{text(kernels.report(listed), 'json')}\n"
    yield f"=== a list\n\n{shown(kernels.report(listed), 80)}\n"
    for kernel in (FOLLOWER, BASELINE):
        yield f"=== {kernel.name}\n\n{printed([kernels.details(kernel)], 100)}\n"


@pytest.mark.parametrize("name", [*REPORTS, "pages-formats"])
def test_pages(name: str, file_regression: FileRegressionFixture) -> None:
    page = of_reports(REPORTS[name]) if name in REPORTS else of_formats()
    lines = "".join(f"{line}\n" for line in page)
    # `make golden` accepts what differs.
    file_regression.check(lines, fullpath=FOLDER / f"{name}.txt", encoding="utf-8")
