"""A hostile current folder, and hostile text in output for other programs."""

from __future__ import annotations

import csv
import ctypes
import html
import io
import os
import re
import shutil
import sys
from collections.abc import Set
from pathlib import Path
from typing import Any

import pytest
from markdown_it import MarkdownIt
from support import drivers, record_files, records
from support.cli import QUICK, Matbench, ran
from support.kernels import KernelWriter
from support.paths import ROOT
from support.products import case_of
from support.records import repeated, timing

from matbench import programs
from matbench.features.nvidia_tools import observer
from matbench.model import DeviceInfo, Problem
from matbench.records.outcome import BlockTimes, Outcome
from matbench.records.writing import RecordWriter

#: Modules that the processes of a run, and their parents, import first.
MODULES = ("matbench", "multiprocessing", "signal", "pickle", "numpy", "msgspec", "sitecustomize")
TRAP = "import pathlib\n(pathlib.Path(__file__).parent / 'PWNED').touch()\nraise SystemExit\n"


@pytest.fixture
def trap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with modules of such names; returns what they leave behind."""
    for name in MODULES:
        (tmp_path / f"{name}.py").write_text(TRAP)
    for name in ("uname", "git"):
        drivers.program(tmp_path / name, f"touch {tmp_path / 'PWNED'}")
    monkeypatch.chdir(tmp_path)
    return tmp_path / "PWNED"


#: As the installed script does it: the folder is not on the path of the main process.
START = f"import sys\nsys.path.insert(0, {str(ROOT)!r})\n"
START += "from matbench.__main__ import main\nmain()"
#: A library that leaves a trace when it is loaded.
LIBRARY = """#include <fcntl.h>
__attribute__((constructor)) static void load(void) { creat("TRACE", 0600); }
"""


def measure(cache: Path, **environment: str) -> None:
    """A run in the current folder that compiles everything."""
    words = ("run", "tiled", "--sizes", "8", "--set", "TILE=8", *QUICK)
    own = environment | {"MATBENCH_CACHE_DIR": str(cache)}
    ran(sys.executable, "-I", "-c", START, *words, cwd=Path(), **own)


def test_nothing_in_the_current_folder_is_imported_loaded_or_obeyed(
    trap: Path, device: DeviceInfo, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The loader says which libraries it tries in the current folder: then they are there. Nor is
    a cache used that others may write, from which PyOpenCL would unpickle what it finds."""
    outside = tmp_path_factory.mktemp("outside")
    open_to_all = outside / "open"
    open_to_all.mkdir()
    open_to_all.chmod(0o777)
    measure(
        outside / "1", LD_DEBUG="libs", LD_DEBUG_OUTPUT=str(outside / "log"),
        HOME="/dev/null/home", XDG_CACHE_HOME=str(open_to_all),
    )  # fmt: skip
    assert not list(open_to_all.iterdir())
    log = "".join(path.read_text(errors="replace") for path in outside.glob("log.*"))
    libraries = {"librt.so.1", *re.findall(r"trying file=([^/\s]\S*)", log)}
    built = drivers.shared_library(outside / "library.so", LIBRARY.replace("TRACE", str(trap)))
    for name in libraries:
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(built, name)
    # The settings of Intel's runtime: it would write down what it compiles.
    Path("cl.cfg").write_text("CL_CONFIG_DUMP_BIN = True\n")
    before = set(Path().rglob("*"))
    measure(Path(os.path.relpath(outside / "2")), PATH=f":.:{os.environ['PATH']}")
    assert (outside / "2").is_dir(), "a relative path means the same in all processes"
    assert set(Path().rglob("*")) == before
    if "Intel" in device.toolkit:
        assert len(libraries) > 1, "this runtime searches the current folder"
    ctypes.CDLL(str(built))
    assert trap.exists(), "loading such a library leaves a trace"


def test_an_observed_process_does_not_either(trap: Path, device: DeviceInfo) -> None:
    case = case_of("tiled", 8, device, TILE=8)
    command = ["sh", "-c", 'pwd; exec "$@"', "sh"]
    done = observer.observe(command, device, case, guarded=True, timeout_s=60, tool="sh")
    assert done.returncode == 0, done.stderr
    # Where ncu would find settings, which name files to load.
    assert Path(done.stdout.splitlines()[0]) != trap.parent
    assert not trap.exists()


@pytest.mark.parametrize("path", ["", ".", "{}:", ":{}", "bin", "./bin:{}"])
def test_no_program_here_is_run(path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folders = [tmp_path, tmp_path / "bin", tmp_path / "elsewhere"]
    for folder in folders:
        drivers.program(folder / "nvcc")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", path.format(folders[2]))
    found = programs.which("nvcc")
    assert found == (str(folders[2] / "nvcc") if "{}" in path else None)


# Output for other programs: nothing in a record acts in a spreadsheet, on GitHub or in a page


STEADY = tuple(100_000.0 + 10 * (i % 5) for i in range(20))


def written(path: Path, name: str, factor: float = 1.0) -> Path:
    """A record file whose every text is `name`: a measured case, a failed and a wrong one."""
    device = records.device(name=name, driver=name, toolkit=name)
    said: dict[str, Any] = {"device": name, "params": {name: 1}, "notes": (name,)}
    samples = timing(samples_ns=[factor * each for each in STEADY], stopped=name, settled=False)
    found: list[Outcome] = repeated(records.outcome(name, cold=samples, **said))
    found.append(records.outcome(name, cold=samples, device_id=name, **said))  # a column's title
    for size, status in ((5, "failed"), (6, "wrong" if factor > 1 else "measured")):
        problem = Problem(size, size, size)
        reason = None if status == "measured" else name
        found.append(
            records.outcome(f"{name}, too", status=status, reason=reason, problem=problem, **said)
        )
    with RecordWriter(path, records.environment(host=name, devices=(device,))) as writer:
        for each in found:
            writer.write(each)
    return path


# Spreadsheets

FORMULAS = [
    "=1+1", "+1+1", "-2+3+cmd|' /C calc'!A0", "@SUM(1)", "\t=1+1", "\r\n=1+1", "  -x",
    '=HYPERLINK("x")',
]  # fmt: skip


@pytest.mark.parametrize("name", FORMULAS)
def test_no_cell_is_a_formula(name: str, tmp_path: Path, matbench: Matbench) -> None:
    old, new = (
        written(tmp_path / f"{side}.jsonl", name, factor)
        for side, factor in (("old", 1.0), ("new", 1.2))
    )
    for arguments in (("report", new), ("compare", old, new)):
        text = matbench(*arguments, "--format", "csv").stdout
        rows = list(csv.reader(io.StringIO(text)))
        cells = [cell.strip() for row in rows for cell in row]
        assert f"'{name.strip()}" in cells
        for cell in cells:
            assert not re.match(r"[=@]|[-+](?![\d.]+$)", cell), cell


def test_numbers_stay_numbers(tmp_path: Path, matbench: Matbench) -> None:
    blocks = BlockTimes(median_ns=1e4, perturbation=-0.25)
    record_files.write(tmp_path / "new", records.outcome("-5", blocks=blocks))
    text = matbench("report", tmp_path / "new", "--format", "csv").stdout
    [row] = csv.DictReader(io.StringIO(text))
    assert (row["block_perturbation"], row["kernel"]) == ("-0.25", "-5")


# GitHub

MARKUP = [
    "a|b", "`code`", "<img src=x>", "</details>", "![image](http://evil.example/x.png)", "**bold**",
    "[text](javascript:x)", "~~gone~~", "_it_", "a\n\n# heading\n", "a\n- item", "1. item",
    "> quoted", "a\n===", "www.evil.example", "_www.evil.example", "a\n:-", "a@evil.example",
    "&lt;b&gt;", ":tada:", "\\\\", "$x$", "<!-- ", "| --- | --- |", "a\\|b", "``", "+ item", "***",
    "[ref]: http://evil.example", "WWW.evil.example", "\u202egnp.exe",
]  # fmt: skip
REFERENCES = [
    "@octocat", "#123", "owner/repo#1", "GH-123", "&#64;octocat", "https://evil.example",
    "@org/team",
]  # fmt: skip
TABLE = {"p", "table", "thead", "tbody", "tr", "th", "td"}
SUMMARY = {"h3", "ul", "li", "details", "summary", "br"}


def rendered(text: str) -> str:
    return str(MarkdownIt("commonmark").enable(["table", "strikethrough"]).render(text))


@pytest.mark.parametrize("name", [*MARKUP, *REFERENCES])
def test_markdown_shows_text_as_it_is(
    name: str, tmp_path: Path, matbench: Matbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = (
        written(tmp_path / f"{side}.jsonl", name, factor)
        for side, factor in (("old", 1.0), ("new", 1.2))
    )
    summary = tmp_path / "summary.md"
    reported = matbench("report", new, "--format", "github").stdout
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    compared = matbench("compare", old, new, "--format", "github").stdout
    require_plain(reported, name)
    require_plain(compared, name)
    require_plain(summary.read_text(), name, TABLE | SUMMARY)
    assert rendered(summary.read_text()).count("<details>") <= 1


def require_plain(text: str, name: str, tags: Set[str] = TABLE) -> None:
    page = rendered(text)
    assert set(re.findall(r"</?(\w+)|<!--", page)) <= tags
    # GitHub looks for references behind the markup, and an invisible character hides them.
    shown = html.unescape(html.unescape(page))
    assert not re.search(r"@\w|#\d|\bGH-\d|\w://|www\.\w|:tada:|\$\w|\u202e", shown, re.IGNORECASE)
    cells = re.findall("<td[^>]*>(.*?)</td>", page)
    shown_cells = [re.sub("[\u200b\ufffd]", "", html.unescape(cell)) for cell in cells]
    plain = " ".join(name.replace("\u202e", "").split())
    assert any(cell.startswith(plain) for cell in shown_cells)


@pytest.mark.parametrize("name", REFERENCES)
def test_the_control_github_would_find_these(name: str) -> None:
    assert re.search(r"@\w|#\d|\bGH-\d|\w://", html.unescape(rendered(name)))


def test_a_list_of_kernels_shows_them_as_is(matbench: Matbench, write_kernel: KernelWriter) -> None:
    path, summary = write_kernel(), "a|b @octocat <i>"
    path.write_text(path.read_text().replace("For a test", summary))
    require_plain(matbench("kernels", "--format", "github", path.parent).stdout, summary)
