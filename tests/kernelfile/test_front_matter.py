"""Front matter: reading it, and reporting mistakes with their line."""

from __future__ import annotations

import hashlib
import re
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from pytest_regressions.file_regression import FileRegressionFixture
from support.golden import TableRegression
from support.h200 import H200
from support.kernels import kernel_text, refusal, text_of

from matbench.errors import UsageError
from matbench.kernelfile import catalogue, instrument, opencl_c, sweep
from matbench.model import Arithmetic, Kernel, LaunchRules, Problem
from matbench.records.outcome import CaseRecord

FULL = text_of("full.cu")


def load(path: Path, text: str | bytes) -> Kernel:
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return catalogue.load(path)


# -- what is read --------------------------------------------------------------------------------


def test_everything_that_front_matter_can_say(tmp_path: Path) -> None:
    kernel = load(tmp_path / "full.cu", FULL)
    assert kernel == Kernel(
        name="full-one",
        summary="Says everything that can be said",
        group="ladder",
        entry="other",
        args=("A", "B", "C", "M", "N", "K", "1.0", "2 * TILE", "workspace"),
        sweep={"TILE": (8, 16), "WIDE": (1,)},
        tune={"TILE": (8, 16, 32, 64), "DEEP": (2, 4)},
        requires=("cuda", "sm_80"),
        precision="tf32",
        error_constant=2.5,
        deterministic=False,
        launch=LaunchRules(
            where=("TILE * TILE <= max_threads_per_block", "K % 4 == 0"),
            block=("TILE", 2, "1"),
            grid=("ceil_div(N, TILE)", "M"),
            shared_bytes="K * 4 + DEEP",
            workspace_bytes="4 * M * N * multiprocessors",
        ),
        model={"global_loads": "2 * M * N * K / TILE"},
        source=FULL,
        path=str(tmp_path / "full.cu"),
        file=str(tmp_path / "full.cu"),
        sha256=hashlib.sha256(FULL.encode()).hexdigest(),
        parameters=kernel.parameters,
    )
    assert [(p.type, p.name, p.pointer) for p in kernel.parameters] == [
        ("float", "A", True), ("float", "B", True), ("float", "C", True), ("int", "m", False),
        ("unsigned int", "n", False), ("long long", "k", False), ("float", "alpha", False),
        ("double", "beta", False), ("void", "scratch", True),
    ]  # fmt: skip


def test_what_is_left_out_has_its_default(tmp_path: Path) -> None:
    kernel = load(tmp_path / "mine.cu", kernel_text("my-own"))
    assert (kernel.group, kernel.entry, kernel.precision) == ("tutorial", "my_own", "float32")
    assert kernel.args == ("A", "B", "C", "M", "N", "K")
    assert (kernel.requires, kernel.tune, kernel.model) == ((), {}, {})
    assert (kernel.error_constant, kernel.deterministic) == (0.0, True)
    assert kernel.launch.shared_bytes == 0
    assert kernel.launch.workspace_bytes is None
    assert kernel.launch.where == ()


def test_what_a_kernel_multiplies_with(tmp_path: Path) -> None:
    def arithmetic(front: str = "") -> Arithmetic | None:
        kernel = load(tmp_path / "mine.cu", kernel_text(front=front))
        case = sweep.case(kernel, Problem(8, 8, 8), {"TILE": 8}, H200)
        return CaseRecord.from_case(case, H200).arithmetic

    assert arithmetic('arithmetic = "3 tf32"') == Arithmetic(3, "tf32")
    assert arithmetic('arithmetic = " 16  bfloat16 "') == Arithmetic(16, "bfloat16")
    assert arithmetic() is None


def test_an_error_constant_may_be_as_large_as_its_limit(tmp_path: Path) -> None:
    kernel = load(tmp_path / "mine.cu", kernel_text(front="error_constant = 64"))
    assert kernel.error_constant == 64


def test_lines_may_end_as_on_windows(tmp_path: Path) -> None:
    text = kernel_text()
    unix = load(tmp_path / "mine.cu", text)
    windows = load(tmp_path / "mine.cu", text.replace("\n", "\r\n"))
    assert windows.source == text
    assert windows.sha256 != unix.sha256
    assert msgspec.structs.replace(windows, sha256=unix.sha256) == unix


def test_a_byte_order_mark_does_no_harm(tmp_path: Path) -> None:
    kernel = load(tmp_path / "mine.cu", b"\xef\xbb\xbf" + kernel_text().encode())
    assert kernel.name == "mine"
    assert kernel.source == kernel_text()


def test_front_matter_need_not_be_at_the_top(tmp_path: Path) -> None:
    text = f"// A licence.\n\n{kernel_text()}"
    assert load(tmp_path / "mine.cu", text).name == "mine"


# -- mistakes, and their lines -------------------------------------------------------------------


#: Marks the line that the message must name, in a file with one mistake.
MARK = re.compile(r"(#|//|/\*) here\b")

GOOD = text_of("minimal.cu")
SUMMARY, NAME, TILE = '// summary = "For a test"\n', '// name = "mine"\n', "// TILE = [8]\n"
BLOCK = '// block = ["TILE", "TILE"]\n'
GRID = '// grid = ["ceil_div(N, TILE)", "ceil_div(M, TILE)"]\n'


def instead(old: str, new: str) -> str:
    assert GOOD.count(old) == 1
    return GOOD.replace(old, new)


#: Edits of GOOD, each with a mistake, and what is said of it. A new one is written there, before
#: `--regen-all`.
EDITS = Path(__file__).with_name("mistakes.txt")
PLACES = {"name": NAME, "summary": SUMMARY, "TILE": TILE, "block": BLOCK, "grid": GRID}


def edited(edit: str) -> str:
    """GOOD with lines `after` one of it, or `instead of` that, of which the last has the mistake
    unless another is marked; or `with` other texts. ⏎ separates lines."""
    if edit.startswith("with "):
        text = GOOD
        for change in edit.removeprefix("with ").split(" ; "):
            old, new = change.replace("⏎", "\n").replace("␀", "\0").split(" → ")
            assert text.count(old) == 1, change
            text = text.replace(old, new.removeprefix("∅"))
        return text
    [(how, place, lines)] = re.findall(r"^(after|instead of) (\w+): (.*)$", edit)
    lines += "" if "# here" in lines else " # here"
    marked = "".join(f"// {line}\n" for line in lines.split(" ⏎ "))
    return instead(PLACES[place], PLACES[place] * (how == "after") + marked)


def told_of(text: str, path: Path) -> str:
    """What is told of a file with one mistake, with the line that is marked."""
    message = refusal(path, text)
    assert len(message) < 400
    line = re.match(r":(\d+): ", message)
    assert line
    marks = [number for number, one in enumerate(text.splitlines(), 1) if MARK.search(one)]
    # A missing key has no line: the first lines show where it belongs.
    assert int(line[1]) == marks[0] if marks else 1 <= int(line[1]) <= 6
    return message


def test_a_mistake_is_told_with_its_line(
    tmp_path: Path, file_regression: FileRegressionFixture
) -> None:
    edits = re.findall(r"(?m)^\S.*$", EDITS.read_text(encoding="utf-8"))
    told = {edit: told_of(edited(edit), tmp_path / "mine.cu") for edit in edits}
    text = "".join(f"{edit}\n    {message}\n" for edit, message in told.items())
    text = re.sub("not TOML: .*", "not TOML: …", text)  # each Python has its own words
    file_regression.check(text, fullpath=EDITS, encoding="utf-8")


def test_the_file_without_a_mistake_is_taken(tmp_path: Path) -> None:
    assert load(tmp_path / "mine.cu", GOOD).name == "mine"


def test_what_is_no_kernel_file(tmp_path: Path, table_regression: TableRegression) -> None:
    """Names of files, and their bytes as expressions."""

    def told(question: str) -> str:
        name, _, expression = question.partition(": ")
        return refusal(tmp_path / name, eval(expression))

    table_regression("no-kernels.txt", told)


# -- anything at all -----------------------------------------------------------------------------

fuzzing = settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture]  # each example writes its file
)

keys = st.sampled_from(
    ["name", "summary", "group", "entry", "args", "requires", "precision", "error_constant",
     "deterministic", "sweep", "tune", "launch", "model", "launch.block", "launch.grid",
     "launch.where", "launch.shared_bytes", "launch.workspace_bytes", "sweep.TILE", "tune.TILE",
     "model.loads", "other"]
)  # fmt: skip
texts = st.sampled_from(
    ["mine", "M", "N", "TILE", "C", "ceil_div(N, TILE)", "9**9**9", "M // 0", "1.0", "cuda",
     "sm_90", "float32", "ladder", "", "__import__('os')", "(" * 30 + "M" + ")" * 30]
) | st.text(max_size=8)  # fmt: skip
scalars = st.one_of(texts, st.integers(-(2**70), 2**70), st.booleans(), st.floats())
toml_values = st.one_of(scalars, st.lists(scalars, max_size=4))


def as_toml(value: Any) -> str:
    if isinstance(value, str):
        unsafe = re.compile(r'[\x00-\x1f"\\\x7f-\x9f\u2028\u2029]|[\ud800-\udfff]')
        return '"' + unsafe.sub(lambda m: f"\\u{ord(m[0]) % 0xD800:04x}", value) + '"'
    if isinstance(value, list):
        return "[" + ", ".join(map(as_toml, value)) + "]"
    return str(value).lower()


@fuzzing
@given(st.dictionaries(keys, toml_values, max_size=8), st.booleans())
def test_any_values_give_a_kernel_or_a_clean_error(
    tmp_path: Path, changes: dict[str, Any], start_from_good: bool
) -> None:
    good = {
        "name": "mine", "summary": "For a test", "sweep.TILE": [8],
        "launch.block": ["TILE", "TILE"], "launch.grid": ["ceil_div(N, TILE)", "ceil_div(M, TILE)"],
    }  # fmt: skip
    values = {**good, **changes} if start_from_good else changes
    front = "".join(f"// {key} = {as_toml(value)}\n" for key, value in values.items())
    source = GOOD.split("// ///\n", 1)[1]
    read_or_refuse(tmp_path / "mine.cu", f"// /// matbench\n{front}// ///\n{source}".encode())


lines = st.sampled_from(GOOD.splitlines()) | st.text(max_size=30).map("// {}".format) | st.text()


@fuzzing
@given(st.lists(lines, max_size=20).map("\n".join).map(lambda t: t.encode("utf-8", "replace")))
@example(GOOD.replace("\n", "\r").encode())
@example(GOOD.replace("// TILE", "//\tTILE").encode())
def test_any_file_gives_a_kernel_or_a_clean_error(tmp_path: Path, data: bytes) -> None:
    read_or_refuse(tmp_path / "mine.cu", data)


def test_what_a_message_quotes_commands_no_terminal(tmp_path: Path) -> None:
    hostile = instead("int K) {}", "struct\x1b[1\n2\x00) {}")
    assert refusal(tmp_path / "mine.cu", hostile)
    (tmp_path / "a\x1b[2Jb.cu").write_text("nothing")
    with pytest.raises(UsageError, match=r"a\ufffd\[2Jb\.cu:1: no front matter"):
        catalogue.load(tmp_path / "a\x1b[2Jb.cu")


def read_or_refuse(path: Path, data: bytes) -> None:
    path.write_bytes(data)
    started = time.process_time()
    try:
        kernel = catalogue.load(path)
    except UsageError as error:
        assert str(error).startswith(f"{path}:")
        assert "\n" not in str(error)
        assert str(error).isprintable()
    else:
        assert "C" in kernel.args
        assert len(kernel.args) == len(kernel.parameters)
        for side in (1, 2**30):
            sweep.cases([kernel], [Problem(side, side, side)], {}, H200)
        for unit in (instrument.plain_unit, instrument.staggered_unit, opencl_c.unit):
            assert unit(kernel, {})
    assert time.process_time() - started < 5
