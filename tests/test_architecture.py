"""The shape of the project: who imports whom, who prints, and what no file may say."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

import matbench
from matbench import catalogue, cuda_c
from matbench.model import Kernel

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "matbench"

#: From the bottom up; a room imports only from rooms before it.
LAYERS = (
    "__init__",
    "signals",
    "model",
    "architectures",
    "workloads",
    "expressions",
    "cuda_c",
    "cache",
    "oracle",
    "catalogue",
    "scaffold",
    "sweep",
    "statistics",
    "backends",
    "judge",
    "limits",
    "roofline",
    "diagnosis",
    "blocks",
    "plots",
    "bench",
    "worker",
    "observer",
    "sanitize",
    "counters",
    "results",
    "report",
    "comparison",
    "explain",
    "watch",
    "tune",
    "cli",
    "__main__",
)
#: Slow to import or not always installed, so imported where they are used.
HEAVY = {
    "cuda", "matplotlib", "nvmath", "pycuda", "pynvml", "pyopencl", "scipy", "watchfiles",
}  # fmt: skip
CPLUSPLUS = re.compile(
    r"\b(?:alignas|auto|class|const_cast|constexpr|decltype|delete|namespace|new|nullptr|operator"
    r"|reinterpret_cast|static_assert|static_cast|template|this|throw|typename|using|virtual)\b"
    r"|::|\[[=&]\]|#\s*include"
)
#: Folders of one machine, and hosts of package registries (named by package alone).
FORBIDDEN = re.compile(r"(?<![\w./-])/(?:home|root|Users|work)/|pypi[.]org|pythonhosted[.]org")

SOURCES = sorted(PACKAGE.rglob("*.py"))


def room(path: Path) -> str:
    """The room that a file of the package belongs to."""
    return path.relative_to(PACKAGE).with_suffix("").parts[0]


def level(name: str) -> int:
    """How high a room stands."""
    assert name in LAYERS, f"give the room {name!r} its place in LAYERS"
    return LAYERS.index(name)


def shown(path: Path) -> str:
    return str(path.relative_to(ROOT))


def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def imports(nodes: Iterable[ast.AST]) -> Iterator[tuple[int, str]]:
    """Line and dotted name of everything that these nodes import."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: imports are absolute"
            yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)


def rooms_imported(path: Path) -> Iterator[tuple[int, str]]:
    """Line and room of everything that a file imports from matbench, in functions too."""
    for line, name in imports(ast.walk(tree(path))):
        top, *rest = name.split(".")
        if top == "matbench":
            is_room = rest and any((PACKAGE / f"{rest[0]}{end}").exists() for end in (".py", ""))
            yield line, rest[0] if is_room else "__init__"


def at_import(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes that run when the module is imported: neither in functions nor for types alone."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        if isinstance(child, ast.If) and ast.unparse(child.test).endswith("TYPE_CHECKING"):
            continue
        yield child
        yield from at_import(child)


def project_files() -> list[Path]:
    """What git tracks, or would track with the next `git add`."""
    names = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
        text=True,
    ).stdout.split("\0")
    return [ROOT / name for name in names if name and (ROOT / name).is_file()]


@pytest.mark.parametrize("path", SOURCES, ids=shown)
def test_imports_point_downwards(path: Path) -> None:
    here = room(path)
    height = level(here)
    for line, other in rooms_imported(path):
        inside = here == other
        assert inside or level(other) < height, (
            f"{shown(path)}:{line}: {here} imports {other}, which stands above it"
        )


@pytest.mark.parametrize("path", SOURCES, ids=shown)
def test_only_the_command_line_knows_a_backend_by_name(path: Path) -> None:
    if room(path) in ("backends", "cli"):
        return
    backends = {f"matbench.backends.{p.stem}" for p in (PACKAGE / "backends").glob("[!_]*.py")}
    for line, name in imports(ast.walk(tree(path))):
        found = [backend for backend in backends if f"{name}.".startswith(f"{backend}.")]
        assert not found, f"{shown(path)}:{line}: imports {name}"


@pytest.mark.parametrize("path", SOURCES, ids=shown)
def test_only_the_command_line_prints_or_exits(path: Path) -> None:
    if room(path) in ("cli", "__main__"):
        return
    banned = {"print", "exit", "quit", "sys.exit", "SystemExit", "click.echo", "sys.stdout.write"}
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            assert name not in banned, f"{shown(path)}:{node.lineno}: {name}"


@pytest.mark.parametrize("path", SOURCES, ids=shown)
def test_heavy_packages_are_imported_where_they_are_used(path: Path) -> None:
    for line, name in imports(at_import(tree(path))):
        assert name.split(".")[0] not in HEAVY, f"{shown(path)}:{line}: {name}"


def test_the_command_line_starts_without_heavy_packages() -> None:
    code = "import sys, matbench.cli; print(*sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    loaded = set(done.stdout.split())
    assert "matbench.cli" in loaded
    assert not loaded & HEAVY


@pytest.mark.parametrize("kernel", catalogue.builtin(), ids=lambda kernel: kernel.name)
def test_kernels_are_plain_c_unless_they_require_cuda(kernel: Kernel) -> None:
    if any(need == "cuda" or need.startswith("sm_") for need in kernel.requires):
        return
    code = cuda_c.without_comments(kernel.source).replace('extern "C"', "")
    found = CPLUSPLUS.search(code)
    line = code.count("\n", 0, found.start()) + 1 if found else 0
    assert found is None, f"{kernel.path}:{line}: {found[0]!r} is C++; say requires = ['cuda']"


def test_no_file_names_a_folder_of_one_machine_or_a_registry() -> None:
    files = project_files()
    assert ROOT / "pyproject.toml" in files
    found = []
    for path in files:
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue  # a picture
        for number, line in enumerate(text.splitlines(), 1):
            if FORBIDDEN.search(line) or str(ROOT) in line:
                found.append(f"{shown(path)}:{number}: {line.strip()[:100]}")
    assert found == []


def test_the_changelog_opens_with_this_version() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    versions = re.findall(r"^## \[(\d[^\]]*)\] - (?:Unreleased|\d{4}-\d\d-\d\d)$", text, re.M)
    assert versions
    assert versions[0] == matbench.__version__
