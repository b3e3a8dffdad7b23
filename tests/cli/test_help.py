"""Help, one meaning for each option, and what is shown of kernels."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from pathlib import Path

import click
import pytest
from click.shell_completion import BashComplete
from support.cli import Matbench, command_at, command_paths
from support.golden import TableRegression
from support.kernels import GOOD_BODY, KernelWriter, saved
from support.terminal import on_terminal

from matbench import __version__
from matbench.cli import main, registry
from matbench.cli.options import FORMATS
from matbench.kernelfile import catalogue
from matbench.model import Kernel

COMMANDS = [path for path in command_paths() if not isinstance(command_at(path), click.Group)]


def shown_options(path: tuple[str, ...]) -> list[click.Option]:
    """The options of a command that its help lists."""
    found = command_at(path).params
    return [each for each in found if isinstance(each, click.Option) and not each.hidden]


@pytest.mark.parametrize("path", command_paths(), ids=" ".join)
def test_every_command_and_option_has_help(path: tuple[str, ...], matbench: Matbench) -> None:
    text = matbench(*path, "--help").stdout
    assert text == matbench(*path, "-h").stdout
    assert text.startswith(f"Usage: {' '.join(('matbench', *path))} ")
    assert command_at(path).help
    for option in shown_options(path):
        assert option.help, option.name
        assert option.opts[0] in text
    if path in COMMANDS:  # no argument is among the options
        options = text.partition("ptions:\n")[2]
        assert not re.search(r"^  [^-\s]", options, re.MULTILINE)


def test_the_help_of_run_begins_with_the_ten_options_that_most_people_need() -> None:
    """They fit on the first screen of 80 columns, and arguments are no options."""
    session = on_terminal("run", "--help", width=80)
    start, end = (session.lines.index(title) for title in ("Most used:", "Kernels:"))
    first = re.findall(r"^  (--[a-z-]+)", "\n".join(session.lines[start:end]), re.MULTILINE)
    assert len(first) == 10
    assert first[:2] == ["--sizes", "--set"]
    assert end <= 50
    listed = re.findall(r"^  (\S+)", "\n".join(session.lines[start:]), re.MULTILINE)
    assert all(option.startswith("-") for option in listed)
    shown = [option.opts[0] for option in shown_options(("run",))]
    assert sorted({*listed} - {"-h,"}) == sorted({*shown} - {"-h"})


def test_the_version(matbench: Matbench) -> None:
    assert matbench("--version").stdout == f"matbench, version {__version__}\n"


# -- options -------------------------------------------------------------------------------------

#: Options with another meaning in another command, shown by their metavar.
DIFFERENT = {
    "--output": {"FILE", "DIR|FILE.cu"},  # of records and pictures; of a kernel file
    "--set": {"NAME=LIST", "NAME=VALUE"},  # `adopt` finds out how a kernel with one is called
    "--format": {f"[{'|'.join(formats)}]" for formats in (FORMATS, (*FORMATS, "junit"))},
}


def test_an_option_takes_the_same_in_every_command() -> None:
    taken: dict[str, set[tuple[str, str]]] = defaultdict(set)
    for path in COMMANDS:
        command = command_at(path)
        context = click.Context(command)
        for option in shown_options(path):
            values = option.make_metavar(context) if not option.is_flag else "a flag"
            for name in (*option.opts, *option.secondary_opts):
                taken[name].add((option.type.name, values))
    for name, kinds in taken.items():
        if name in DIFFERENT:
            assert {values for _, values in kinds} == DIFFERENT[name]
        else:
            assert len(kinds) == 1, f"{name}: {kinds}"


@pytest.mark.parametrize("name", registry.COMMANDS)
def test_a_command_is_listed_with_the_first_sentence_of_its_help(name: str) -> None:
    text = command_at((name,)).help or ""
    assert text.partition("\n\n")[0] == registry.COMMANDS[name].summary


# Kernels in words


def test_list_names_every_kernel(matbench: Matbench) -> None:
    kernels = catalogue.builtin()
    for fmt in ("rich", "plain", "github"):
        text = matbench("kernels", "--format", fmt).stdout
        for kernel in kernels:
            assert kernel.name in text
            assert kernel.summary in text
    rows = json.loads(matbench("kernels", "--format", "json").stdout)
    assert {row["kernel"] for row in rows} == {kernel.name for kernel in kernels}
    [tiled] = [row for row in rows if row["kernel"] == "tiled"]
    assert tiled["sweeps"] == "TILE = 8, 16, 32"
    assert tiled["rung"] == 2
    [loop] = [row for row in rows if row["kernel"] == "host-loop"]
    assert (loop["group"], loop["rung"], loop["requires"]) == ("baseline", None, "host")


@pytest.mark.parametrize("kernel", catalogue.builtin(), ids=lambda kernel: kernel.name)
def test_show_has_front_matter_and_source(kernel: Kernel, matbench: Matbench) -> None:
    text = matbench("kernels", kernel.name).stdout
    assert kernel.summary in text
    assert "// /// matbench" not in text
    assert re.split("^(?://|#) ///\n", kernel.source, flags=re.MULTILINE)[-1].strip() in text
    assert f"{kernel.entry}({', '.join(kernel.args)})" in text
    for condition in kernel.launch.where:
        assert condition in text


def test_kernels_follow_what_they_change(matbench: Matbench, write_kernel: KernelWriter) -> None:
    rows = json.loads(matbench("kernels", "--format", "json").stdout)
    names = [row["kernel"] for row in rows]
    assert names.index("naive-2d") < names.index("tiled")
    assert names.index("double-buffered") + 1 == names.index("async-copied")
    folder = write_kernel("mine", front='previous = "tiled"').parent
    write_kernel("other", front='previous = "mine"')
    rows = json.loads(matbench("kernels", "--format", "json", folder).stdout)
    assert [row["kernel"] for row in rows] == ["mine", "other"]
    wrong = write_kernel("mine", front='previous = "tild"')
    for words in ((folder,), (wrong, "--diff")):
        done = matbench("kernels", *words, code=2)
        assert "no kernel 'tild' (previous); did you mean 'tiled'?" in done.stderr


def test_what_a_kernel_changes_is_a_diff(matbench: Matbench, write_kernel: KernelWriter) -> None:
    one = write_kernel("one", body=GOOD_BODY)
    body = GOOD_BODY.replace("sum", "total").replace("    float", "    // of one\n    float")
    two = write_kernel("two", front='previous = "one"', body=body)
    assert "previous); name its file" in matbench("kernels", two, "--diff", code=2).stderr
    text = matbench("kernels", two, "--diff", one).stdout
    assert text.startswith(f"--- {one}\n+++ {two}\n@@ ")
    assert "previous" not in text, "code alone"
    assert "of one" not in text
    changed = {line.strip("+ ") for line in text.splitlines() if line.startswith("+ ")}
    assert changed == {line.strip() for line in body.splitlines() if "total" in line}
    text = matbench("kernels", "thread-1d", "--diff").stdout
    assert "\n+    const int row = element / N;\n" in text
    assert "-tiled.cu\n+++ " in matbench("kernels", two, "--diff", "tiled").stdout
    assert "# summary" not in matbench("kernels", "numpy", "--diff", "host-loop").stdout
    assert "01-thread-1d.cu\n+++ " in matbench("kernels", "tiled", "--diff").stdout, "a rung"
    assert "04-thread-tile-2d.cu\n+++ " in matbench("kernels", "double-tile", "--diff").stdout


def test_a_diff_of_python_has_all_lines_of_strings(matbench: Matbench, tmp_path: Path) -> None:
    text = (
        'import numpy\nCODE = """\n#define T {}\n"""\n# {}\ndef f(A, B):\n    return A @ B  # C\n'
    )
    one = saved(tmp_path / "one.py", text.format(1, "one"))
    two = saved(tmp_path / "two.py", text.format(2, "two"))
    shown = matbench("kernels", two, "--diff", one).stdout
    changed = [line for line in shown.splitlines()[3:] if line[0] in "+-"]
    assert changed == ["-#define T 1", "+#define T 2"]
    assert "return A @ B  # C" in shown


def test_shells_complete_names_and_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, table_regression: TableRegression
) -> None:
    (tmp_path / "tiles.cu").touch()
    monkeypatch.chdir(tmp_path)

    def completed(line: str) -> str:
        *words, typed = line.split()
        found = BashComplete(main, {}, "matbench", "").get_completions(words, typed)
        return ", ".join(sorted(f"{item.type} {item.value}" for item in found))

    table_regression("completions.txt", completed)
