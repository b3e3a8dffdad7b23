"""The structure of the project: imports, printing, and text that no file may contain."""

from __future__ import annotations

import ast
import functools
import pkgutil
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest
from support.paths import ROOT
from support.scripts import load

import matbench

PACKAGE = ROOT / "matbench"

#: What each package may import besides itself. `base` are the modules at the top of `matbench`.
MAY_IMPORT: dict[str, set[str]] = {
    "base": set(),
    "kernelfile": {"base"},
    "records": {"base"},
    "analysis": {"base", "kernelfile", "records"},
    "backends": {"base", "kernelfile"},
    "measure": {"base", "kernelfile", "records", "analysis", "backends"},
    "show": {"base", "records", "analysis"},
    "cli": {"base", "kernelfile", "records", "analysis", "backends", "measure", "show"},
    "__main__": {"base", "cli"},
}
#: A longer function should be split. (Ruff counts branches, statements and parameters.)
MOST_LINES = 60
#: Slow to import or not always installed, so imported only where they are used.
HEAVY = {
    "cuda", "dask", "distributed", "nvmath", "pycuda", "pynvml", "pyopencl", "scipy",
    "tree_sitter", "tree_sitter_cuda", "vl_convert", "watchfiles",
}  # fmt: skip
#: Folders of one machine, and hosts of package registries (named by package alone).
FORBIDDEN = re.compile(r"(?<![\w./-])/(?:home|root|Users|work)/|pypi[.]org|pythonhosted[.]org")

SOURCES = sorted(PACKAGE.rglob("*.py"))


def package(path: Path) -> str:
    """The package that a file belongs to."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return parts[0] if len(parts) > 1 or parts[0] in MAY_IMPORT else "base"


def packages() -> set[str]:
    return {name for name in MAY_IMPORT if (PACKAGE / name).is_dir()}


def shown(path: Path) -> str:
    return str(path.relative_to(ROOT))


@functools.cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def imports(nodes: Iterable[ast.AST]) -> Iterator[tuple[int, str]]:
    """Line and dotted name of everything imported by these nodes."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: imports are absolute"
            yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)


@functools.cache
def modules_imported(path: Path) -> list[tuple[int, Path]]:
    """Line and file of everything that a file imports from matbench, in functions too."""
    found = []
    for line, name in imports(ast.walk(tree(path))):
        top, *rest = name.split(".")
        if top != "matbench":
            continue
        place = PACKAGE
        for part in rest:
            if (place / part).is_dir():
                place = place / part
            elif (place / f"{part}.py").is_file():
                place = place / f"{part}.py"
        found.append((line, place if place.is_file() else place / "__init__.py"))
    return found


def at_import(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes that run on import: not those in functions or only for type checking."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        if isinstance(child, ast.If) and ast.unparse(child.test).endswith("TYPE_CHECKING"):
            continue
        yield child
        yield from at_import(child)


def project_files() -> list[Path]:
    """Files that git tracks, or would track after `git add`."""
    names = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
        text=True,
    ).stdout.split("\0")
    return [ROOT / name for name in names if name and (ROOT / name).is_file()]


def test_packages_import_only_what_they_may() -> None:
    found = []
    for path in SOURCES:
        here = package(path)
        assert here in MAY_IMPORT, f"give the package {here!r} its place in MAY_IMPORT"
        for line, other in modules_imported(path):
            if package(other) not in {here} | MAY_IMPORT[here]:
                found.append(f"{shown(path)}:{line}: {here} imports {shown(other)}")
    assert found == []


def test_no_module_imports_itself_by_way_of_others() -> None:
    graph = {path: {other for _, other in modules_imported(path)} - {path} for path in SOURCES}
    # A package's __init__ is imported with any of its modules: not a separate edge.
    for path, others in graph.items():
        graph[path] = {o for o in others if not (o.name == "__init__.py" and o.parent == PACKAGE)}
    order = TopologicalSorter(graph)
    try:
        order.prepare()
    except CycleError as error:
        pytest.fail(" imports ".join(map(shown, error.args[1])))


def page() -> str:
    return (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")


def test_the_documentation_tells_who_may_import_whom() -> None:
    rows = re.findall(r"^\| `(\w+)/?` \|[^|]*\| ([^|]*) \|[^|]*\|$", page(), re.MULTILINE)
    told = {name: set(re.findall(r"`(\w+)`", allowed)) for name, allowed in rows}
    assert told == MAY_IMPORT


def test_the_picture_shows_who_may_import_whom() -> None:
    generator = load("docs/generate_architecture.py")
    inner = packages() - {"cli"}
    assert set(generator.ARROWS) == {(a, b) for a in inner for b in MAY_IMPORT[a] & inner}
    assert generator.PICTURE.read_text(encoding="utf-8") == generator.picture()


def test_the_documentation_follows_a_case_through_what_there_is() -> None:
    steps = page().partition("## Following one case")[2].partition("\n## ")[0]
    found = re.findall(r"`((\w+)\.[\w.]+)`", steps)
    names = [name for name, package in found if package in packages()]
    assert len(names) > 15
    for name in names:
        pkgutil.resolve_name(f"matbench.{name}")


def test_no_test_imports_another() -> None:
    """Shared code is in tests/support, so that tests can be in any folder."""
    imports_a_test = re.compile(r"^\s*(from|import) (tests\.)?(test_|conftest\b)", re.MULTILINE)
    paths = sorted((ROOT / "tests").rglob("*.py"))
    assert [path for path in paths if imports_a_test.search(path.read_text("utf-8"))] == []


def test_no_function_is_too_long() -> None:
    functions = [
        (node.end_lineno - node.lineno + 1, f"{shown(path)}:{node.lineno}: {node.name}")
        for path in SOURCES
        for node in ast.walk(tree(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno
    ]
    assert functions
    assert [function for function in functions if function[0] > MOST_LINES] == []


def test_only_the_command_line_knows_a_backend_by_name() -> None:
    found = []
    for path in SOURCES:
        for line, other in modules_imported(path):
            inside = package(other) == "backends" and other != PACKAGE / "backends" / "__init__.py"
            if inside and package(path) not in ("backends", "cli"):
                found.append(f"{shown(path)}:{line}: imports {shown(other)}")
    assert found == []


def test_only_the_command_line_prints_or_exits() -> None:
    banned = {"print", "exit", "quit", "sys.exit", "SystemExit", "click.echo", "sys.stdout.write"}
    found = []
    for path in SOURCES:
        if package(path) in ("cli", "__main__"):
            continue
        found += [
            f"{shown(path)}:{node.lineno}: {ast.unparse(node.func)}"
            for node in ast.walk(tree(path))
            if isinstance(node, ast.Call) and ast.unparse(node.func) in banned
        ]
    assert found == []


def test_heavy_packages_are_imported_where_they_are_used() -> None:
    found = [
        f"{shown(path)}:{line}: {name}"
        for path in SOURCES
        for line, name in imports(at_import(tree(path)))
        if name.split(".")[0] in HEAVY
    ]
    assert found == []


def test_the_command_line_starts_without_heavy_packages() -> None:
    code = "import sys, matbench.cli; print(*sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    loaded = set(done.stdout.split())
    assert "matbench.cli" in loaded
    assert not loaded & HEAVY


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
    versions = re.findall(
        r"^## \[(\d[^\]]*)\] - (?:Unreleased|\d{4}-\d\d-\d\d)$", text, re.MULTILINE
    )
    assert versions
    assert versions[0] == matbench.__version__
