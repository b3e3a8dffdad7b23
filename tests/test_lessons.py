"""Kernel files as lessons: headers true to the results, pages and drawings up to date."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import msgspec
import pytest
from support.paths import ROOT
from support.records import outcome
from support.scripts import load

from matbench.kernelfile import catalogue, front_matter
from matbench.model import Kernel, Problem

lessons = load("docs/generate_lessons.py")
drawings = load("docs/generate_drawings.py")
readme = load("docs/generate_readme.py")

KERNELS = catalogue.Catalogue(catalogue.builtin())
RUNGS = [
    kernel
    for group in ("ladder", "gallery")
    for kernel in KERNELS.group(group, None)
    if "Measured" in lessons.header(kernel) and kernel.name != "double-mma"
]
SVG = "{http://www.w3.org/2000/svg}"


def named(kernel: Kernel) -> str:
    return kernel.name


def kernel_of(source: str) -> Kernel:
    """A kernel whose text is this, below the front matter of `tiled`."""
    tiled = KERNELS.get("tiled")
    front = tiled.source.split("// ///\n", 1)[0]
    return msgspec.structs.replace(tiled, source=f"{front}// ///\n\n{source}")


@pytest.fixture(scope="module")
def measured() -> tuple[object, object]:
    found: tuple[object, object] = lessons.measurements()
    return found


# -- headers ----------------------------------------------------------------------------------


@pytest.mark.parametrize("rung", RUNGS, ids=named)
def test_a_rung_says_what_it_adds_and_what_was_predicted_and_measured(rung: Kernel) -> None:
    header = lessons.header(rung)
    added, bound, speed = header
    assert (added, speed) == ("Adds", "Measured")
    assert bound in ("Predicted", "Limit")
    assert all(1 <= len(lines) <= 3 for lines in header.values())


@pytest.mark.parametrize("rung", RUNGS, ids=named)
def test_what_a_header_calls_measured_is_in_the_results(
    rung: Kernel, measured: tuple[object, object]
) -> None:
    told = lessons.header(rung)["Measured"]
    assert told
    assert set(told) <= lessons.figures(rung.name, *measured)


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("thread-tile-1d", "14.7 TFLOP/s", "14.8 TFLOP/s"),
        ("thread-tile-1d", "29% of cuBLAS", "30% of cuBLAS"),
        ("thread-tile-1d", "n = 4096", "n = 2048"),
        ("split-k", "98% of cuBLAS", "97% of cuBLAS"),
        ("bf16-wgmma", "754 TFLOP/s", "753 TFLOP/s"),
        ("bf16-wgmma", "of cuBLAS in bfloat16", "of cuBLAS"),
        ("dot-shuffle", "4.43 TB/s", "4.44 TB/s"),
        ("dot-shuffle", "110% of copy", "111% of copy"),
    ],
)
def test_a_figure_that_is_off_is_found(
    name: str, old: str, new: str, measured: tuple[object, object]
) -> None:
    rung = KERNELS.get(name)
    changed = msgspec.structs.replace(rung, source=rung.source.replace(old, new))
    assert changed.source != rung.source
    assert not set(lessons.header(changed)["Measured"]) <= lessons.figures(name, *measured)


def test_figures_follow_the_records() -> None:
    size = {"problem": Problem(1000, 1000, 1000)}
    found = [outcome("tiled", ms=0.4, **size), outcome("tiled", ms=0.2, **size)]
    found.append(outcome("cublas", ms=0.1, **size))
    assert lessons.figures("tiled", found, []) == {"10.0 TFLOP/s at n = 1000, 50% of cuBLAS (H200)"}
    assert lessons.figures("tiled", found[:2], []) == set()


def test_a_header_ends_where_its_labels_do() -> None:
    text = "// Adds: one\n//   and more.\n// Limit: two\n// Measured: 1\n//   2\n//\n// Adds: no\n"
    assert lessons.header(kernel_of(text + "\nint x;\n")) == {
        "Adds": ["one", "and more."], "Limit": ["two"], "Measured": ["1", "2"]
    }  # fmt: skip
    assert lessons.header(kernel_of("// Words first.\n// Adds: no\n")) == {}
    assert lessons.header(kernel_of("int x;  // Adds: no\n")) == {}


# -- diffs ------------------------------------------------------------------------------------


def test_a_diff_is_of_code_alone() -> None:
    body = "".join(f"int x{n} = {n};\n" for n in range(9))
    one = kernel_of("// A comment.\n" + body)
    spaced = kernel_of("/* Another. */\n\n" + body.replace(" = ", "=").replace("int", "    int"))
    assert lessons.diff(one, spaced) == ""
    other = kernel_of(body.replace("x4 = 4", "x4 = 5"))
    assert lessons.diff(one, other).splitlines() == [
        " int x3 = 3;", "-int x4 = 4;", "+int x4 = 5;", " int x5 = 5;"
    ]  # fmt: skip
    far = kernel_of(body.replace("x1 = 1", "x1 = 2").replace("x7 = 7", "x7 = 8"))
    assert lessons.diff(one, far).count("\n…\n") == 1
    assert lessons.diff(one, kernel_of(body.replace("x", "y"))) is not None
    assert lessons.diff(kernel_of(body * 9), kernel_of(body.replace("x", "y") * 9)) is None


@pytest.mark.parametrize("rung", RUNGS, ids=named)
def test_a_page_shows_what_a_rung_changes(rung: Kernel) -> None:
    shown = lessons.part(rung, KERNELS.kernels)
    assert f"](../{rung.path})" in shown
    told = re.findall(r"^[-+ ](?!\s*\*\*).*$", shown.partition("```diff\n")[2], re.MULTILINE)
    assert all("//" not in line for line in told)
    if "```diff" not in shown:
        assert "there is no diff" in shown
    page = (ROOT / "docs" / "ladder.md").read_text(encoding="utf-8")
    assert page.count(f"<!-- diff {rung.name} -->\n") == (rung.workload == "matmul")


# -- pages and drawings -----------------------------------------------------------------------


def test_pages_show_the_kernel_files() -> None:
    stale = [path.name for path in lessons.outdated()]
    assert stale == [], "run `python docs/generate_lessons.py`"


def test_a_page_that_is_out_of_date_is_found() -> None:
    page = "before\n<!-- diff coalesced-1d -->\nold\n<!-- /diff coalesced-1d -->\nafter\n"
    new = lessons.written(page)
    assert new != page
    assert lessons.written(new) == new
    assert new.startswith("before\n")
    assert new.endswith("\nafter\n")
    assert "-    const int row = element % M, column = element / M;" in new
    with pytest.raises(Exception, match="no kernel 'gone'"):
        lessons.written(page.replace("coalesced-1d", "gone"))


def test_drawings_are_up_to_date_and_shown() -> None:
    stale = [path.name for path in drawings.outdated()]
    assert stale == [], "run `python docs/generate_drawings.py`"
    files = {path.name for path in (ROOT / "docs" / "drawings").glob("*")}
    assert files == {f"{name}.svg" for name in drawings.DRAWINGS}
    page = (ROOT / "docs" / "ladder.md").read_text(encoding="utf-8")
    assert set(re.findall(r"\(drawings/([^)]+)\)", page)) == files


@pytest.mark.parametrize("name", drawings.DRAWINGS)
def test_a_drawing_is_small_and_nothing_leaves_it(name: str) -> None:
    svg = drawings.DRAWINGS[name]().svg()
    assert len(svg.encode()) < 12_000
    root = ElementTree.fromstring(svg)
    width, height = map(float, root.attrib["viewBox"].split()[2:])
    for text in root.iter(f"{SVG}text"):
        at, size = float(text.attrib["x"]), float(text.attrib["font-size"])
        wide = (0.62 if "font-weight" in text.attrib else 0.54) * size * len(text.text or "")
        left = at - wide * {"start": 0, "middle": 0.5, "end": 1}[text.attrib["text-anchor"]]
        assert 0 <= left <= width - wide, text.text
        assert size <= float(text.attrib["y"]) <= height - 4, text.text


# -- results stay those of the code that was measured -------------------------------------------


def test_comments_and_descriptions_do_not_make_results_stale() -> None:
    tiled = KERNELS.get("tiled")
    code = readme.code_of(tiled)

    def changed(old: str, new: str) -> str:
        assert old in tiled.source
        kernel = front_matter.parse(tiled.source.replace(old, new).encode(), "tiled.cu")
        return str(readme.code_of(kernel))

    assert changed("// Stage: one value", "// One value") == code
    assert changed('// previous = "naive-2d"\n', "") == code
    assert changed('summary = "One', 'summary = "An') == code
    assert changed("#define TILE 16", "#define TILE 8") != code
    assert changed("sum += a[ty][k]", "sum -= a[ty][k]") != code
    assert changed('block = ["TILE", "TILE"]', 'block = ["TILE", "2 * TILE"]') != code
    assert changed("TILE = [8, 16, 32]", "TILE = [8, 16]") != code


def test_measured_files_are_known_by_their_code() -> None:
    """The files have been described anew since they were measured; their code is what it was."""
    _, dot = lessons.measurements()
    [found] = [one for one in dot if one.case.kernel == "dot-single-pass"][:1]
    kernel = KERNELS.get("dot-single-pass")
    assert found.case.sha256 != kernel.sha256
    assert readme.stale([found], [kernel]) == []
    other = kernel.source.replace("done = 0;", "done = 1;")
    assert other != kernel.source
    edited = front_matter.parse(other.encode(), "dot-single-pass.cu")
    assert readme.stale([found], [edited]) == ["dot-single-pass"]
