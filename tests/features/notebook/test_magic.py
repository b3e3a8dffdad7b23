"""`%%matbench` in IPython, on a real device."""

from __future__ import annotations

import base64
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
from support.cli import ran
from support.golden import TableRegression
from support.kernels import SPIN_BODY, WRONG_BODY, kernel_text
from support.paths import ROOT
from traitlets.config import Config

from matbench.model import DeviceInfo

PRODUCT = "def product(A, B):\n    return A @ B\n"
#: Without front matter.
BARE = kernel_text().partition("// ///\n")[2].replace("k < K", "k < K - 1")


class Shown(NamedTuple):
    """Whether a cell went through, what it printed, and what it displayed."""

    went_through: bool
    printed: str
    text: str = ""
    html: str = ""


Cell = Callable[[str], Shown]


@pytest.fixture(scope="module")
def shell(own_folders: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    config = Config({"HistoryManager": {"enabled": False}})
    folder = str(tmp_path_factory.mktemp("ipython"))
    yield InteractiveShell.instance(config=config, ipython_dir=folder)
    InteractiveShell.clear_instance()


@pytest.fixture
def run(shell: Any, device: DeviceInfo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cell:
    monkeypatch.chdir(tmp_path)

    def cell(text: str) -> Shown:
        here = f"%%matbench --backend {device.backend} --max-time 0.01"
        with capture_output() as captured:
            result = shell.run_cell(text.replace("%%matbench", here))
        data = captured.outputs[0].data if captured.outputs else {}
        printed = captured.stdout + captured.stderr
        return Shown(result.success, printed, data.get("text/plain", ""), data.get("text/html", ""))

    shell.run_cell("%load_ext matbench")
    return cell


def test_a_cell_shows_its_table(run: Cell) -> None:
    shown = run(f"%%matbench --sizes 33,64 --baseline tiled\n{kernel_text()}")
    assert (shown.went_through, shown.printed) == (True, "")
    assert re.search(r"^size 33\n(mine|tiled) ", shown.text, re.MULTILINE)
    assert re.search(r"<td[^>]*>mine\b", shown.html)
    assert re.search(r"<td[^>]*>tiled\b", shown.html)
    assert "8 measured" in shown.html
    assert "<img" not in shown.html
    python = run(f"%%matbench --sizes 33\n{PRODUCT}")
    assert re.search("^product .*", python.text, re.MULTILINE)


@pytest.mark.parametrize("source", [kernel_text(body=WRONG_BODY), BARE], ids=["table", "bare"])
def test_a_wrong_kernel_has_a_map_of_its_errors(source: str, run: Cell) -> None:
    """Also one without front matter, none of whose calls is right."""
    shown = run(f"%%matbench --sizes 33\n{source}")
    assert shown.went_through
    assert "it leaves out the last term of K" in shown.html
    [[said, image]] = re.findall(
        r'<img alt="([^"]*)" src="data:image/svg\+xml;base64,([^"]+)"', shown.html
    )
    assert re.match(r"Where C is wrong: (mine|candidate) .* at 33: .*1,089 of 1,089 elements", said)
    svg = base64.b64decode(image).decode()
    assert "row of C" in svg
    assert ">Where C is wrong</text>" in svg
    assert len(re.findall("<path", svg)) > 33 * 33
    assert ("none of the calls of" in shown.text) == (source is BARE)


def test_a_mistake_is_one_line(run: Cell, table_regression: TableRegression) -> None:
    def line(cell: str) -> str:
        shown = run(cell.replace("PRODUCT", PRODUCT))
        assert not shown.went_through
        assert shown.printed.count("\n") == 1
        assert shown.html == ""
        return shown.printed.rstrip()

    table_regression("mistakes.txt", line)


def test_jupyter_shows_nothing_else(run: Cell, shell: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """There, rich adds outputs of its own; it takes this variable for a sign of Jupyter."""
    monkeypatch.setenv("DATABRICKS_RUNTIME_VERSION", "1")
    with capture_output() as captured:
        shell.run_cell(f"%%matbench --sizes 33\n{PRODUCT}")
    assert [bool(output.data["text/plain"]) for output in captured.outputs] == [True]


def test_one_process_stays_warm_between_cells(run: Cell, shell: Any) -> None:
    magic = shell.magics_manager.magics["cell"]["matbench"].__self__
    run(f"%%matbench --sizes 33\n{kernel_text()}")
    [judge] = magic.judges._made.values()
    two = f"{PRODUCT}\n{PRODUCT.replace('product', 'other')}"
    named = run(f"%%matbench --sizes 64 --contract transpose=NN --entry product\n{two}")
    assert re.search("^product ", named.text, re.MULTILINE)
    assert [*magic.judges._made.values()] == [judge]
    run(f"%%matbench --sizes 64 --timeout 1\n{kernel_text('endless', body=SPIN_BODY)}")
    assert not judge._end.alive
    [judge] = magic.judges._made.values()
    assert shell.run_cell("%unload_ext matbench").success
    assert not judge._end.alive
    assert "`%%matbench` not found" in run(f"%%matbench\n{PRODUCT}").printed


def test_the_cells_of_the_page_show_what_it_says(run: Cell) -> None:
    page = (ROOT / "docs" / "notebook.md").read_text(encoding="utf-8")
    loading, *cells = re.findall(r"^```(?:python|cpp)\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    assert loading == "%load_ext matbench\n"
    shown = [run(cell.replace("256,1000", "64")) for cell in cells]
    assert [one.printed for one in shown] == ["", ""]
    assert [re.findall(r"\d+ measured", one.text) for one in shown] == [
        ["1 measured"],
        ["5 measured"],
    ]


def test_nothing_of_ipython_is_imported_without_it() -> None:
    code = "import sys, matbench.features.notebook.magic; print('IPython' in sys.modules)"
    assert ran(sys.executable, "-c", code) == "False\n"
