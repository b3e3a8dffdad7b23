"""A hostile current folder, and hostile text in output for other programs."""

from __future__ import annotations

import ast
import csv
import ctypes
import html
import io
import json
import os
import re
import shutil
import sys
from collections.abc import Iterator, Set
from pathlib import Path
from typing import Any

import msgspec
import pytest
from markdown_it import MarkdownIt
from support import drivers, record_files, records, toml
from support.cli import QUICK, Matbench, csv_rows, outside, ran
from support.kernels import GOOD_BODY, KernelWriter, kernel_text
from support.optional import some
from support.paths import ROOT
from support.products import case_of
from support.records import environment, outcome, repeated
from support.terminal import on_terminal

from matbench import backends, programs
from matbench.backends.protocol import UnavailableError
from matbench.errors import readable
from matbench.features.nvidia_tools import observer
from matbench.model import DeviceInfo, Problem, Skip, SkipKind
from matbench.records import encoding
from matbench.records.outcome import BlockTimes, Outcome
from matbench.show import safe

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


def written(path: Path, name: str, factor: float = 1.0) -> Path:
    """A record file whose every text is `name`: a measured case, a failed and a wrong one."""
    device = records.device(name=name, driver=name, toolkit=name)
    said: dict[str, Any] = {"device": name, "params": {name: 1}, "notes": (name,)}
    samples = records.steady(factor, stopped=name, settled=False)
    found: list[Outcome] = repeated(records.outcome(name, cold=samples, **said))
    found.append(records.outcome(name, cold=samples, device_id=name, **said))  # a column's title
    for size, status in ((5, "failed"), (6, "wrong" if factor > 1 else "measured")):
        problem = Problem(size, size, size)
        reason = None if status == "measured" else name
        found.append(
            records.outcome(f"{name}, too", status=status, reason=reason, problem=problem, **said)
        )
    record_files.write(path, *found, about=records.environment(host=name, devices=(device,)))
    return path


@pytest.fixture
def runs(name: str, tmp_path: Path) -> list[Path]:
    """Two such files; in the second one everything takes longer."""
    return [written(tmp_path / f"{factor}.jsonl", name, factor) for factor in (1.0, 1.2)]


# Spreadsheets

HOSTILE_TEXTS = toml.table(Path(__file__).with_name("hostile.toml"))
COMMANDS: list[str] = HOSTILE_TEXTS["commands"]


@pytest.mark.parametrize("name", HOSTILE_TEXTS["formulas"])
def test_no_cell_is_a_formula(name: str, runs: list[Path], matbench: Matbench) -> None:
    old, new = runs
    for words in (("report", new), ("compare", old, new)):
        text = matbench(*words, "--format", "csv").stdout
        rows = list(csv.reader(io.StringIO(text)))
        cells = [cell.strip() for row in rows for cell in row]
        assert f"'{name.strip()}" in cells
        for cell in cells:
            assert not re.match(r"[=@]|[-+](?![\d.]+$)", cell), cell


def test_numbers_stay_numbers(tmp_path: Path, matbench: Matbench) -> None:
    blocks = BlockTimes(median_ns=1e4, perturbation=-0.25)
    record_files.write(tmp_path / "new", records.outcome("-5", blocks=blocks))
    text = matbench("report", tmp_path / "new", "--format", "csv").stdout
    [row] = csv_rows(text)
    assert (row["block_perturbation"], row["kernel"]) == ("-0.25", "-5")


# GitHub

TABLE = {"p", "table", "thead", "tbody", "tr", "th", "td"}
SUMMARY = {"h3", "ul", "li", "details", "summary", "br"}


def rendered(text: str) -> str:
    return str(MarkdownIt("commonmark").enable(["table", "strikethrough"]).render(text))


@pytest.mark.parametrize("name", HOSTILE_TEXTS["markup"] + HOSTILE_TEXTS["references"])
def test_markdown_shows_text_as_it_is(
    name: str, runs: list[Path], matbench: Matbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    summary = runs[0].with_name("summary.md")
    reported = matbench("report", runs[1], "--format", "github").stdout
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    compared = matbench("compare", *runs, "--format", "github").stdout
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


@pytest.mark.parametrize("name", HOSTILE_TEXTS["references"])
def test_the_control_github_would_find_these(name: str) -> None:
    assert re.search(r"@\w|#\d|\bGH-\d|\w://", html.unescape(rendered(name)))


def test_a_list_of_kernels_shows_them_as_is(matbench: Matbench, write_kernel: KernelWriter) -> None:
    path, summary = write_kernel(), "a|b @octocat <i>"
    path.write_text(path.read_text().replace("For a test", summary))
    require_plain(matbench("kernels", "--format", "github", path.parent).stdout, summary)


# -- text that could command a terminal, a page or a spreadsheet ----------------------------------


#: A title, a cleared screen, blinking, the same as C1, text turned around, NUL, backspace, a
#: carriage return, a new line, a bell, DEL, and the markup of rich for a link.
HOSTILE = (
    "\x1b]0;PWNED\x07\x1b[2J\x1b[5mblink\x9b5m\x9d0;PWNED\x9c\u202eexe\u2066\0\x08\x08\r\n\x7f"
    "[blink]x[/blink][link=http://PWNED]y[/link]"
)
#: rich's own: colours and weights but for blinking, and the movements of its bar and tables.
OWN = re.compile(r"\x1b\[(?!5m|[0-9;]*;5m)[0-9;]*m|\x1b\[\?25[hl]|\x1b\[[0-9]*[AK]|\r(?=\x1b|\n)")
COMMANDS_A_TERMINAL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
FILE_NAME = os.fsdecode(b"evil\x1b]0;PWNED\x07\xff\xc2\x9b5m\n.cu")

#: NVRTC and OpenCL C know printf without a header.
LOUD = GOOD_BODY.replace(
    "    C[",
    r"""    if (column == 0)
        printf("%d \033]0;PWNED\007\033[2J\302\233\377 \342\200\256\n", row);
    C[""",
).replace('extern "C"', '// \x1b]0;PWNED\x07 \x9b5m \u202e\nextern "C"')


def harmless(written: str) -> str:
    """The text, which commands nothing but what rich means to."""
    left = OWN.sub("", written)
    assert not COMMANDS_A_TERMINAL.search(left), repr(left)
    return left


@pytest.fixture
def folder(own_state: None) -> Path:
    """A folder to work in, with hostile records and a hostile kernel file."""
    work = Path.cwd()
    for name in ("old.jsonl", "new.jsonl"):
        (work / name).write_text("\n".join(hostile_records()) + "\n", encoding="utf-8")
    # A summary is one line of printable text; an expression may have a comment.
    comment = json.dumps(f"TILE < 100 # {HOSTILE}".replace("\r\n", "").replace("\0", ""))
    launch = f"where = [{comment}]".replace("\x7f", "\\u007f")
    text = kernel_text("evil", launch=launch, body=LOUD).replace("TILE = [8]", "TILE = [8, 128]")
    (work / FILE_NAME).write_text(text, encoding="utf-8")
    return work


#: What each kind of skip tells besides what is needed.
GIVEN: dict[SkipKind, dict[str, int | float | str]] = {
    "condition": {"N": 8},
    "limit": {"asked": 9, "allowed": 8},
    "requirement": {"device": "opencl"},
    "unavailable": {},
    "argument": {},
    "timeouts": {"size": "64", "option": "--timeout"},
    "pair": {},
}


def hostile_records() -> Iterator[str]:
    """A file of records with hostile text in every field that takes any text."""
    kinds: list[dict[str, Any]] = [
        {},
        {"status": "wrong", "reason": "C is wrong"},
        {"status": "failed", "reason": "no"},
        *(
            {"status": "skipped", "skip": Skip(kind, "this", given)}
            for kind, given in GIVEN.items()
        ),
    ]
    outcomes = [
        outcome(params={"TILE": tile}, notes=("busy",), **kind)
        for tile, kind in enumerate(kinds, 1)
    ]
    for record in (environment(), *outcomes):
        plain = msgspec.to_builtins(record)
        for holder, key in strings(plain):
            before, holder[key] = holder[key], f"{holder[key]}{HOSTILE}"
            try:
                encoding.decode(json.dumps(plain).encode(), plain["type"])
            except (ValueError, msgspec.MsgspecError):
                holder[key] = before
        assert "PWNED" in json.dumps(plain)
        yield json.dumps(plain, ensure_ascii=False).encode("utf-8", "replace").decode()


def strings(value: Any) -> list[tuple[Any, Any]]:
    """Where the strings of plain data are."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    found: list[tuple[Any, Any]] = []
    for key, item in list(items):
        if isinstance(item, str):
            found.append((value, key))
        elif isinstance(item, dict | list):
            found += strings(item)
    return found


@pytest.mark.parametrize("words", some(COMMANDS, *COMMANDS[:4]))
def test_no_command_lets_text_be_commands(folder: Path, words: str) -> None:
    names = {"FILE": FILE_NAME, "OUTPUT": "evil\x1b[2J.jsonl"}
    arguments = [names.get(word, word) for word in words.split()]
    session = on_terminal(*arguments)
    assert session.code == (3 if "--fail-if-slower" in arguments else 0), session.written
    left = harmless(session.written)
    assert "PWNED" in left or "evil" in left


@pytest.mark.parametrize("fmt", ["plain", "json"])
@pytest.mark.parametrize(
    "command", ["report old.jsonl", "compare old.jsonl new.jsonl", "kernels ."]
)
def test_no_format_lets_text_command(
    command: str, fmt: str, folder: Path, matbench: Matbench
) -> None:
    left = harmless(matbench(*command.split(), "--format", fmt).output)
    assert "PWNED" in left or "evil" in left


@pytest.mark.long
def test_watch_shows_hostile_text_as_text(folder: Path) -> None:
    session = on_terminal(
        "watch", FILE_NAME, "--sizes", "8", "--max-time", "0.01",
        interrupt_when=lambda text: "next save" in text,
    )  # fmt: skip
    assert session.code == 0
    harmless(session.written)


@pytest.mark.parametrize("words", HOSTILE_TEXTS["words"])
def test_quoted_words_are_on_one_line(folder: Path, matbench: Matbench, words: str) -> None:
    evil = HOSTILE.replace("\0", "")  # a shell cannot pass one
    result = matbench(*(word.replace("EVIL", evil) for word in words.split()), code=2)
    assert result.stdout == ""
    assert result.stderr.count("\n") == 1
    harmless(result.stderr)


def test_doctor_shows_a_device_of_any_name(
    matbench: Matbench, device: DeviceInfo, monkeypatch: pytest.MonkeyPatch
) -> None:
    hostile = msgspec.structs.replace(
        device, name=HOSTILE, driver=HOSTILE, toolkit=HOSTILE, properties={HOSTILE: HOSTILE}
    )

    def devices(name: str) -> list[DeviceInfo]:
        if name == "cuda":
            raise UnavailableError(HOSTILE)
        return [hostile]

    monkeypatch.setattr(backends, "devices", devices)
    shown = harmless(matbench("doctor", code=None).stdout)
    assert shown.count("PWNED") >= 5
    assert "[blink]x" in shown


@pytest.mark.parametrize("fmt", ["rich", "plain", "github", "csv"])
def test_the_control_without_the_sink_text_commands_the_terminal(
    folder: Path, matbench: Matbench, monkeypatch: pytest.MonkeyPatch, fmt: str
) -> None:
    harmless(matbench("report", "old.jsonl", "--format", fmt).stdout)
    monkeypatch.setattr(safe, "_HOSTILE", re.compile("(?!)"))
    # Before Python 3.11 a CSV file cannot hold such text at all.
    with pytest.raises((AssertionError, csv.Error), match=r"PWNED|need to escape"):
        harmless(matbench("report", "old.jsonl", "--format", fmt).stdout)


def test_json_keeps_the_text_itself_except_in_reasons(folder: Path, matbench: Matbench) -> None:
    (found,) = (
        record
        for record in json.loads(matbench("report", "old.jsonl", "--format", "json").stdout)
        if record.get("status") == "failed"
    )
    assert found["case"]["device"].endswith(HOSTILE)
    assert found["reason"] == readable(f"no{HOSTILE}") == safe.text(found["reason"])


def test_a_source_in_a_pipe_is_what_the_file_holds(folder: Path) -> None:
    shown = outside("kernels", FILE_NAME).stdout
    source = (folder / FILE_NAME).read_text(encoding="utf-8").split("// ///\n", 1)[1]
    assert "\x1b]0;PWNED\x07" in source
    assert shown.endswith(f"\n\n{source.lstrip(chr(10))}")


def test_what_a_kernel_prints_is_shown_in_part(folder: Path, device: DeviceInfo) -> None:
    if device.backend != "opencl":
        pytest.skip("printf of OpenCL C")
    done = outside("run", FILE_NAME, "--sizes", "64", "--format", "json", *QUICK)
    assert done.returncode == 0, done.stderr
    assert [record["status"] for record in json.loads(done.stdout)[1:]] == ["skipped", "measured"]
    said = [line for line in done.stderr.splitlines() if line.startswith("kernel output: ")]
    assert len(said) == 21
    assert re.match("kernel output: [0-9]+ \ufffd]0;PWNED", said[0])
    assert re.fullmatch("kernel output: … [0-9,]+ more lines", said[-1])
    harmless(done.stderr)


def test_all_that_commands_print_goes_through_one_place() -> None:
    printing = {"click.echo", "print", "sys.stdout.write", "sys.stderr.write", "click.secho"}
    for path in sorted((ROOT / "matbench" / "cli").glob("*.py")):
        calls = [
            node
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            if isinstance(node, ast.Call) and ast.unparse(node.func) in printing
        ]
        # `say` itself, one line for an error, and a source for a pipe.
        expected = {"console.py": 1, "app.py": 1, "kernels.py": 1}.get(path.name, 0)
        assert len(calls) == expected, path.name


def test_records_hold_no_control_characters_as_they_are(folder: Path) -> None:
    environments, outcomes = record_files.read(Path("old.jsonl"))
    harmless(encoding.array([*environments, *outcomes]))
