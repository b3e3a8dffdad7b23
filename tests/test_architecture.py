"""The structure of the project: imports, printing, and text that no file may contain."""

from __future__ import annotations

import ast
import functools
import importlib
import pkgutil
import re
import shutil
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest
from support.cli import ran
from support.paths import ROOT, programs
from support.toml import table

import matbench
from matbench.cli import registry
from matbench.kernelfile import catalogue, syntax

PACKAGE = ROOT / "matbench"

PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
#: What each package may import besides itself, as the page says. `base` are the modules at the top
#: of `matbench`.
MAY_IMPORT = {
    name: {*re.findall(r"`(\w+)`", allowed)}
    for name, allowed in re.findall(r"(?m)^\| `(\w+)/?` \|[^|]*\| ([^|]*) \|[^|]*\|$", PAGE)
}
#: The longest chain of imports between the modules of a folder.
MOST_DEPTH = 7
#: Slow to import or not always installed, so imported only where they are used.
HEAVY = {
    "cuda", "dask", "distributed", "ml_dtypes", "pycuda", "pynvml", "pyopencl", "scipy",
    "tree_sitter", "tree_sitter_cuda", "vl_convert", "watchfiles",
}  # fmt: skip
STARTS = programs(__file__)["starts every command"]
CPLUSPLUS = re.compile(
    r"\b(?:alignas|auto|class|const_cast|constexpr|decltype|delete|namespace|new|nullptr|operator"
    r"|reinterpret_cast|static_assert|static_cast|template|this|throw|typename|using|virtual)\b"
    r"|::|\[[=&]\]|#\s*include"
)
#: Folders of one machine, and hosts of package registries (named by package alone).
FORBIDDEN = re.compile(r"(?<![\w./-])/(?:home|root|Users|work)/|pypi[.]org|pythonhosted[.]org")

SOURCES = sorted(PACKAGE.rglob("*.py"))


def package(path: Path) -> str:
    """The package that a file belongs to."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return parts[0] if len(parts) > 1 or parts[0] in MAY_IMPORT else "base"


def feature(path: Path) -> str | None:
    """The feature that a file belongs to; None for the core."""
    parts = path.relative_to(PACKAGE).parts
    return parts[1] if parts[0] == "features" and len(parts) > 2 else None


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
    command = ("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    names = ran(*command, cwd=ROOT).split("\0")
    return [ROOT / name for name in names if name and (ROOT / name).is_file()]


def test_packages_import_only_what_they_may() -> None:
    assert {"base", "__main__"} < MAY_IMPORT.keys() == {package(path) for path in SOURCES}
    found = []
    public = PACKAGE / "__init__.py"  # it imports what it offers when that is first used
    for path in (path for path in SOURCES if path != public):
        here = package(path)
        for line, other in modules_imported(path):
            if package(other) not in {here} | MAY_IMPORT[here]:
                found.append(f"{shown(path)}:{line}: {here} imports {shown(other)}")
    assert found == []


FEATURES = sorted(
    path.name for path in (PACKAGE / "features").iterdir() if (path / "__init__.py").is_file()
)


def uses(name: str) -> set[str]:
    """The features that a feature declares to use."""
    return {*getattr(importlib.import_module(f"matbench.features.{name}"), "USES", ())}


def test_a_feature_imports_others_only_if_it_says_so() -> None:
    assert len(FEATURES) > 10
    found = {name: set[str]() for name in FEATURES}
    for path in SOURCES:
        here = feature(path)
        if here is not None:
            others = {feature(other) for _, other in modules_imported(path)}
            found[here] |= {other for other in others if other not in (None, here)}
    assert found == {name: uses(name) for name in FEATURES}


def test_all_that_the_registry_names_is_there() -> None:
    for part in registry.PARTS:
        module = registry.load(part.module)
        assert part.options is None or hasattr(module, part.options[2])
        for place in (part.kind.view, part.kind.drawn) if part.kind is not None else ():
            registry.load(place)
    named = {part.module.split(".")[1] for part in registry.PARTS if "features" in part.module}
    offered = registry.PICTURE, registry.PAGE, registry.ADOPTION, registry.SUBMISSIONS, registry.MCP
    for place in offered:
        registry.load(place)
        named.add(place.split(".")[1])
    entries = table(ROOT / "pyproject.toml")["project"]["entry-points"]["pytest11"]
    for place in (*entries.values(), *matbench._PLACES):
        importlib.import_module(place)
        named |= {*place.split(".")[2:3]} if "features" in place else set()
    alone = {"nvidia_tools", "probes"}
    assert {*FEATURES} - named == alone, "they work for other features alone"


def copied(folder: Path, without: Iterable[str]) -> Path:
    """A copy of the project without some features."""
    for name in ("matbench", "kernels", "pyproject.toml"):
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, folder)
    for name in without:
        shutil.rmtree(folder / "matbench" / "features" / name)
    return folder


def output(copy: Path, *command: str) -> str:
    """What Python prints in a copy of the project."""
    return ran(sys.executable, *command, cwd=copy, PYTHONPATH=str(copy))


@pytest.mark.slow
@pytest.mark.long
def test_the_core_works_without_any_feature(tmp_path: Path) -> None:
    copy = copied(tmp_path / "copy", FEATURES)

    def matbench(*words: str) -> str:
        return output(copy, "-m", "matbench", *words)

    told = matbench("--help")
    core = {name for name, part in registry.COMMANDS.items() if part.module.startswith("cli")}
    listed = re.findall(r"^  (\S+)", told.partition("Commands:")[2], re.MULTILINE)
    assert set(listed) == core
    shown = "import sys\nfrom matbench.cli import main\nfor name in sys.argv[1:]:\n"
    shown += "    main([name, '--help'], standalone_mode=False)"
    options = output(copy, "-c", shown, *sorted(core))
    assert options.count("--help") == len(core)
    assert not re.search("^  --(cluster|picture|page|fail-if-slower) ", options, re.MULTILINE)
    quick = ("--sizes", "33", "--set", "TILE=8", "--max-time", "0.1")
    assert "33" in matbench("run", "tiled", *quick, "--output", "mine.jsonl")
    assert "naive-2d" in matbench("compare", "tiled", "naive-2d", *quick)
    assert "tiled" in matbench("report", "mine.jsonl")


@pytest.mark.long
@pytest.mark.parametrize("name", FEATURES)
def test_a_feature_can_be_deleted(name: str, tmp_path: Path) -> None:
    """With all that need it: no type error is left, and all commands that are left load."""
    users = {name}
    while more := {other for other in FEATURES if uses(other) & users} - users:
        users |= more
    copy = copied(tmp_path / "copy", users)
    loaded = "from matbench.cli.registry import *\nfor part in COMMANDS.values(): load(part.module)"
    output(copy, "-m", "mypy", "matbench")
    output(copy, "-c", loaded)


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


@pytest.mark.parametrize("name", sorted(packages()))
def test_a_package_says_what_lives_there_and_what_it_must_never_import(name: str) -> None:
    text = ast.get_docstring(tree(PACKAGE / name / "__init__.py")) or ""
    first, _, rule = text.partition("\n\n")
    assert re.fullmatch(r"[A-Z][^.]*[.]", first), "what lives there, in one sentence"
    found = re.search(
        r"Must never .*or (?:import anything but (.*)|be imported by .*)[.]", rule, re.DOTALL
    )
    assert found is not None, "what it must never import, in one sentence"
    if found[1] is None:
        assert not any(name in allowed for who, allowed in MAY_IMPORT.items() if who in packages())
    else:
        assert {"base", *re.findall(r"`(\w+)`", found[1])} == MAY_IMPORT[name]


def test_the_picture_shows_who_may_import_whom() -> None:
    arrows = re.findall(r"^    (\w+) --> (\w+)$", PAGE, re.MULTILINE)
    inner = packages() - {"cli", "features"}
    assert sorted(arrows) == sorted((a, b) for a in inner for b in MAY_IMPORT[a] & inner)


def test_the_documentation_follows_a_case_through_what_there_is() -> None:
    steps = PAGE.partition("## Following one case")[2].partition("\n## ")[0]
    found = re.findall(r"`((\w+)\.[\w.]+)`", steps)
    names = [name for name, package in found if package in packages()]
    assert len(names) > 15
    for name in names:
        pkgutil.resolve_name(f"matbench.{name}")


def test_files_and_folders_that_the_page_names_are_there() -> None:
    names = set(re.findall(r"`((?:\w+/)*\w+(?:\.(?:py|cu|toml)|/))`", PAGE))
    assert len(names) > 25
    places = (ROOT, PACKAGE, *(PACKAGE / name for name in ("backends", "bench", "show")))
    missing = {name for name in names if not any((place / name).exists() for place in places)}
    of_any_folder = {"__init__.py", "command.py", "option.py", "view.py", "trials.py", "samples.cu"}
    assert missing <= {*of_any_folder, "expected.toml", "matbench/kernels/"}


def test_no_test_imports_another() -> None:
    """Shared code is in tests/support, so that tests can be in any folder."""
    imports_one = re.compile(r"^\s*(?:from|import) (?:tests\.)?(?:test_|conftest\b)", re.MULTILINE)
    paths = sorted((ROOT / "tests").rglob("*.py"))
    found = [shown(path) for path in paths if imports_one.search(path.read_text(encoding="utf-8"))]
    assert found == []


def depths(folder: Path) -> dict[Path, int]:
    """Of each module, the longest chain of imports within its folder."""
    modules = [path for path in folder.glob("*.py") if path.name != "__init__.py"]
    uses = {path: {other for _, other in modules_imported(path)} & {*modules} for path in modules}
    found: dict[Path, int] = {}
    for path in TopologicalSorter(uses).static_order():
        found[path] = 1 + max((found[other] for other in uses[path]), default=0)
    return found


def test_no_folder_is_a_tower() -> None:
    """Those that are too deep are as deep as is said: a limit that is met can be lowered."""
    deepest = {
        folder.relative_to(PACKAGE).as_posix(): max(depths(folder).values(), default=0)
        for folder in {path.parent for path in SOURCES}
    }
    assert max(deepest.values()) <= MOST_DEPTH, deepest


def test_no_two_public_classes_share_a_name() -> None:
    names = Counter(
        node.name
        for path in SOURCES
        for node in ast.walk(tree(path))
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    assert len(names) > 100
    assert [name for name, count in names.items() if count > 1] == []


#: What the package offers to all others.
OF_ALL_BACKENDS = ("__init__", "protocol")


def test_only_the_command_line_the_doctor_and_explain_know_a_backend_by_name() -> None:
    found = []
    for path in SOURCES:
        for line, other in modules_imported(path):
            is_named = other.parent != PACKAGE / "backends" or other.stem not in OF_ALL_BACKENDS
            inside = package(other) == "backends" and is_named
            known = package(path) in ("backends", "cli") or feature(path) in ("doctor", "explain")
            if inside and not known:
                found.append(f"{shown(path)}:{line}: imports {shown(other)}")
    assert found == []


def test_only_the_command_line_prints_or_exits() -> None:
    banned = {"print", "exit", "quit", "sys.exit", "SystemExit", "click.echo", "sys.stdout.write"}
    found = []
    for path in SOURCES:
        if package(path) in ("cli", "__main__") or path.name in ("command.py", "option.py"):
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


def test_only_features_use_scipy() -> None:
    """Its import takes longer than measuring a case."""
    names = {shown(p): imports(ast.walk(tree(p))) for p in SOURCES if feature(p) is None}
    assert not [p for p, found in names.items() if any("scipy" in name for _, name in found)]


def test_help_refusals_and_completion_are_quick() -> None:
    """They import nothing heavy. Measuring does, which shows that it would be seen."""
    heavy = HEAVY | {"numpy", "rich", "matbench.worker.worker"}
    ran(sys.executable, "-m", "matbench", "kernels")  # which are read once, and kept
    *started, measuring = ran(sys.executable, "-c", STARTS, *heavy).splitlines()
    assert started == [f"{name} 0 2 tiled" for name in registry.COMMANDS]
    assert measuring == "matbench.worker.worker numpy"


def test_kernels_are_plain_c_unless_they_require_cuda() -> None:
    found = []
    for kernel in catalogue.builtin():
        if any(need == "cuda" or need.startswith("sm_") for need in kernel.requires):
            continue
        code = syntax.without_comments(kernel.source).replace('extern "C"', "")
        code = re.sub(r'#include "[./a-z]*helpers\.cuh"', "", code)  # its first part is C
        for match in CPLUSPLUS.finditer(code):
            line = code.count("\n", 0, match.start()) + 1
            found.append(f"{kernel.path}:{line}: {match[0]!r} is C++; set requires = ['cuda']")
    assert found == []


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
