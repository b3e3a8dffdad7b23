"""Every command of the README and the pages in docs works; a test's name says which only parse."""

from __future__ import annotations

import contextlib
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import click
import pytest
from support.cli import Matbench, ran
from support.kernels import kernel_text
from support.paths import PAGES, ROOT, blocks
from support.repository import cloned, git
from support.toml import table

from matbench.cli import main

PATTERNS = table(Path(__file__).with_name("commands-of-the-docs.toml"))
ONLY_PARSED, EXIT_CODES = PATTERNS["only-parsed"], PATTERNS["exit-codes"]
LONG = "|".join(PATTERNS["long"]["patterns"])
#: Empties the cache, which all tests share.
CLEARS = "--clear-cache"
BARE = kernel_text("mine").partition("// ///\n")[2].replace("TILE", "16")
TABLE = 'launch = { block = [16, 16], grid = ["ceil_div(N, 16)", "ceil_div(M, 16)"] }\n'


class Shown(NamedTuple):
    """A command as a page shows it, without its comment."""

    page: str
    text: str

    @property
    def words(self) -> list[str]:
        return shlex.split(self.text)

    @property
    def why_only_parsed(self) -> str | None:
        found = (why for pattern, why in ONLY_PARSED.items() if re.search(pattern, self.text))
        return next(found, None)


def commands() -> list[Shown]:
    """Every command of a shell block or after a prompt, and `pip install` in the text."""
    found = []
    for path in PAGES:
        text = path.read_text(encoding="utf-8")
        lines = [line for block in blocks(text, "sh") for line in joined(block)]
        for block in blocks(text, "console"):
            lines += [line[2:] for line in joined(block) if line.startswith("$ ")]
        prose = re.sub(r"(?ms)^```.*?^```$", "", text)
        lines += re.findall(r"`(pip install '?\.[^`]*|matbench \w+ results/[^`]*)`", prose)
        for line in lines:
            plain = re.sub(r"(^|\s)#.*", "", line).strip()
            found += [Shown(path.name, piece.strip(" &")) for piece in plain.split(" && ")]
    return [shown for shown in dict.fromkeys(found) if shown.text not in ("", "done")]


def joined(block: str) -> list[str]:
    return re.sub(r" *\\\n *", " ", block).splitlines()


EVERY = commands()
OURS = [shown for shown in EVERY if re.match(r"((uvx|pipx run) .*)?matbench ", shown.text)]
PIP = [
    shown for shown in EVERY if re.match(r"pip install .*(\.\[|\.whl|matbench-cuda)", shown.text)
]


def parsed(words: list[str]) -> None:
    """Let click parse a command of matbench; it raises if one of its words is wrong."""
    command: click.Command = main
    context = click.Context(main, info_name="matbench", **main.context_settings)
    words = words[words.index("matbench") + 1 :]
    while words and isinstance(command, click.Group):
        child = command.get_command(context, words.pop(0))
        assert child is not None, words
        command = child
    command.make_context(command.name, words, parent=context)


# -- commands of matbench ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with the files that the pages name, some of them changed since `main`."""
    folder = tmp_path_factory.mktemp("prepared")
    own = {name: kernel_text(name) for name in ("mine", "tiled")}
    files = {
        "mine.cu": own["mine"],
        "sgemm.cuh": BARE,
        "sgemm.toml": TABLE,
        "textbook.cu": BARE,
        "last-row.cu": BARE.replace("row >= M", "row >= M - 1"),
        **{f"{where}/tiled.cu": own["tiled"] for where in ("old", "new", "kernels")},
        "kernels/mine.cu": own["mine"],
        "product.py": blocks((ROOT / "docs/python.md").read_text(), "python")[0],
        "strip.cu": blocks((ROOT / "docs/writing-kernels.md").read_text(), "c")[0],
    }
    for name, text in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    examples = {"all.jsonl": "new.jsonl", "mine.jsonl": "new.jsonl", "pairs.json": "compare.json",
                "search.json": "tune.json", "limits.json": "explain.json"}  # fmt: skip
    for name, example in {**examples, "old.jsonl": "old.jsonl", "new.jsonl": "new.jsonl"}.items():
        shutil.copy(ROOT / "docs/examples" / example, folder / name)
    (folder / "results").symlink_to(ROOT / "results")
    git(folder, "init", "-q", "-b", "main")
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "before")
    for name in ("sgemm.cuh", "kernels/mine.cu", "kernels/tiled.cu", "new/tiled.cu"):
        with (folder / name).open("a", encoding="utf-8") as file:
            file.write("// changed\n")
    return folder


RUN = [shown for shown in OURS if shown.why_only_parsed is None]


def named(shown: Shown) -> Any:
    """A parameter of a test whose name says if and why it is only parsed."""
    why = shown.why_only_parsed
    return pytest.param(shown.text, id=f"only parsed, {why}: {shown.text}" if why else shown.text)


@pytest.mark.parametrize("text", [named(shown) for shown in OURS])
def test_a_command_is_one_that_matbench_takes(text: str) -> None:
    parsed(shlex.split(text))


@pytest.mark.parametrize("path", PAGES, ids=lambda p: p.name)
def test_commands_in_sentences_are_ones_that_matbench_takes(path: Path) -> None:
    """As far as they go: a sentence may leave out values and kernels."""
    prose = re.sub(r"(?ms)^```.*?^```$", "", path.read_text(encoding="utf-8"))
    for text in re.findall(r"`(matbench [a-z]+ [^`]*)`", prose):
        if "--help" not in text:
            with contextlib.suppress(click.BadOptionUsage, click.MissingParameter):
                parsed(shlex.split(text))


def written(words: list[str]) -> Path | None:
    """The file that a command writes instead of printing."""
    if "--output" in words:
        return Path(words[words.index("--output") + 1])
    suffix = {"adopt": ".toml", "new": ".cu", "page": ".html"}.get(words[0])
    return Path(words[1]).with_suffix(suffix) if suffix else None


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        pytest.param(text, marks=[pytest.mark.long] * (re.search(LONG, text) is not None))
        for text in dict.fromkeys(shown.text for shown in RUN)
    ],
)
def test_a_command_runs(
    text: str, prepared: Path, tmp_path: Path, matbench: Matbench, own_state: None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    folder = tmp_path / "folder"
    shutil.copytree(prepared, folder, symlinks=True)
    monkeypatch.chdir(folder)
    if CLEARS in text:
        monkeypatch.setenv("MATBENCH_CACHE_DIR", str(tmp_path / "cache"))
    _, *words = shlex.split(text)
    made = written(words)
    if made is not None:
        made.unlink(missing_ok=True)
    codes = next((c for pattern, c in EXIT_CODES.items() if re.search(pattern, text)), [0])
    result = matbench(*words, code=None)
    assert result.exit_code in codes, result.output
    assert result.stdout if made is None or result.exit_code else made.stat().st_size


def test_every_reason_not_to_run_a_command_is_needed() -> None:
    given = {shown.why_only_parsed for shown in EVERY}
    assert given - {None} == {*ONLY_PARSED.values()}
    assert len(RUN) > len(OURS) / 2
    assert any(CLEARS in shown.text for shown in RUN)
    with pytest.raises(click.UsageError):
        parsed(["matbench", "run", "--size", "3"])


# -- shells, pip and make ------------------------------------------------------------------------


@pytest.mark.parametrize("path", PAGES, ids=lambda p: p.name)
def test_shell_blocks_have_no_mistake_in_their_syntax(path: Path) -> None:
    for block in blocks(path.read_text(encoding="utf-8"), "sh"):
        subprocess.run(["bash", "-n"], input=block, text=True, check=True)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_of_a_shell(shell: str) -> None:
    [line] = [shown.text for shown in EVERY if f"_MATBENCH_COMPLETE={shell}_source" in shown.text]
    assert re.search(r"_MATBENCH_COMPLETE=\w+ matbench", line)
    told = ran(sys.executable, "-m", "matbench", _MATBENCH_COMPLETE=f"{shell}_source")
    assert "_matbench_completion" in told


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return cloned(tmp_path_factory.mktemp("clone"))


@pytest.mark.long
@pytest.mark.parametrize("text", dict.fromkeys(shown.text for shown in PIP))
def test_pip_finds_what_it_shall_install(text: str, clone: Path) -> None:
    """In a clone or at a git URL; without a network nothing that matbench needs is installed."""
    [extras] = re.findall(r"\[([a-z,]+)\]", text)
    known = table(ROOT / "pyproject.toml")["project"]["optional-dependencies"]
    assert {*extras.split(",")} <= {*known}
    if "--find-links" in text or "dist/" in text:
        ran(sys.executable, "-m", "hatchling", "build", "-t", "wheel", cwd=clone)
    offline = "--dry-run --ignore-installed --no-deps --no-index --no-build-isolation"
    script = text.replace("pip install", f'"{sys.executable}" -m pip install {offline}')
    script = script.replace("links wheels", "links dist")
    told = ran("bash", "-euc", script, cwd=clone, URL=f"file://localhost{clone}")
    assert "Would install matbench-cuda-" in told


def test_nothing_is_installed_by_a_name_that_no_index_has() -> None:
    for path in PAGES:
        for line in path.read_text(encoding="utf-8").splitlines():
            named = "matbench-cuda[" in line
            assert not named or "git+$URL" in line or "--find-links" in line, f"{path.name}: {line}"


@pytest.mark.skipif(shutil.which("make") is None, reason="needs make")
def test_make_knows_every_target_that_is_named() -> None:
    texts = [path.read_text(encoding="utf-8") for path in [*PAGES, ROOT / "CONTRIBUTING.md"]]
    pattern = re.compile(r"(?:^|`)(make [a-zA-Z= -]+)", re.MULTILINE)
    lines = {line for text in texts for line in pattern.findall(text)}
    assert len(lines) > 8
    words = dict.fromkeys(word for line in sorted(lines) for word in line.split()[1:])
    ran("make", "-n", *words, cwd=ROOT)
