"""Text from outside never controls the terminal.

Each command runs on a pseudo-terminal with hostile text wherever text can be: in every string of
records, in kernel files, in names of files, in what a kernel prints, in arguments and variables.
"""

from __future__ import annotations

import ast
import csv
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from support.cli import QUICK, Matbench, outside
from support.kernels import GOOD_BODY, kernel_text
from support.paths import ROOT
from support.records import environment, outcome
from support.terminal import on_terminal

from matbench import backends
from matbench.errors import readable
from matbench.model import DeviceInfo, Skip, SkipKind
from matbench.records import encoding, reading
from matbench.show import safe

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
    "timeouts": {"probes": 3, "timeouts": 2},
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
                reading.decode(json.dumps(plain).encode())
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


@pytest.mark.parametrize(
    "arguments",
    [
        ("report", "old.jsonl"),
        ("compare", "old.jsonl", "new.jsonl", "--fail-if-slower", "1%"),
        ("kernels", FILE_NAME),
        ("run", FILE_NAME, "--sizes", "8,20", "--output", "evil\x1b[2J.jsonl", *QUICK),
        *(
            pytest.param(arguments, marks=pytest.mark.long)
            for arguments in (
                ("run", "--resume", "old.jsonl", FILE_NAME, "--sizes", "8", *QUICK),
                ("compare", FILE_NAME, "tiled", "--sizes", "8", "--max-time", "0.01"),
                ("check", FILE_NAME),
                ("tune", FILE_NAME, "--sizes", "8", "--budget", "1s"),
                ("explain", FILE_NAME, "--set", "TILE=8,128", "--arch", "g80", "--sizes", "8"),
                ("blocks", FILE_NAME, "--sizes", "8"),
            )
        ),
    ],
    ids=lambda arguments: " ".join(arguments[:1] + arguments[-1:]).encode("ascii", "ignore"),
)
def test_no_command_lets_text_be_commands(folder: Path, arguments: tuple[str, ...]) -> None:
    session = on_terminal(*arguments)
    assert session.code == (3 if "--fail-if-slower" in arguments else 0), session.written
    left = harmless(session.written)
    assert "PWNED" in left or "evil" in left


@pytest.mark.parametrize(
    ("command", "formats"),
    [
        (("report", "old.jsonl"), ("plain", "github", "json", "csv")),
        (("compare", "old.jsonl", "new.jsonl"), ("plain", "json")),
        (("kernels", "."), ("plain", "json")),
    ],
    ids=["report", "compare", "kernels"],
)
def test_no_format_lets_text_command_the_terminal(
    command: tuple[str, ...], formats: tuple[str, ...], folder: Path, matbench: Matbench
) -> None:
    for name in formats:
        left = harmless(matbench(*command, "--format", name).output)
        assert "PWNED" in left or "evil" in left


@pytest.mark.long
def test_watch_shows_hostile_text_as_text(folder: Path) -> None:
    session = on_terminal(
        "watch", FILE_NAME, "--sizes", "8", "--max-time", "0.01",
        interrupt_when=lambda text: "next save" in text,
    )  # fmt: skip
    assert session.code == 0
    harmless(session.written)


@pytest.mark.parametrize(
    "words",
    ["EVIL", "--EVIL", "run EVIL", "run --EVIL", "run --sizes EVIL", "run --set TILE=EVIL",
     "run --set EVIL=1", "run ./EVIL", "run --device EVIL", "run --format EVIL",
     "run tiled --output EVIL/x.jsonl", "run tiled --resume EVIL", "report EVIL",
     "compare EVIL.jsonl EVIL.jsonl",
     "compare old.jsonl new.jsonl --threshold EVIL", "explain tiled --arch EVIL", "new EVIL",
     "new mine --output EVIL/", "report old.jsonl --picture EVIL.svg", "watch EVIL"],
)  # fmt: skip
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
            raise backends.UnavailableError(HOSTILE)
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
    environments, outcomes = reading.read(Path("old.jsonl"))
    harmless(encoding.array([*environments, *outcomes]))
