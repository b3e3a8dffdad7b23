"""Mutants of matbench, drawn at random for `mutants.py`: cosmic-ray's changes to statements."""

from __future__ import annotations

import ast
import difflib
import itertools
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import parso
from cosmic_ray import plugins
from cosmic_ray.ast import ast_nodes
from cosmic_ray.mutating import mutate_code
from coverage.parser import PythonParser

SOURCES = [
    "matbench/analysis/**/*.py",
    "matbench/backends/*.py",
    "matbench/bench/**/*.py",
    "matbench/features/**/*.py",
    "matbench/kernelfile/**/*.py",
    "matbench/records/**/*.py",
    "matbench/worker/**/*.py",
    "matbench/workloads/**/*.py",
]
#: Files that are not drawn from: what is shown, commands, and what needs an NVIDIA GPU.
SHOWN = re.compile(
    r"features/(charts|doctor|page)/|(command|option|gate|view|picture|chart|counters|sanitizer)\.py$"
)
#: Statements that are not drawn, with those within them: what needs a GPU, for example.
NOT_DRAWN = r"if TYPE_CHECKING:|^\s*(assert|import|from) |if [^#]*== \"(cuda|gpu)\""
#: Operators that are not used: `is` in place of `==` is seldom a difference, and bits in place of
#: numbers seldom more than a `TypeError`.
NUMBERS, BITS = "Add|Sub|Mul|Div|FloorDiv|Mod|Pow", "BitOr|BitAnd|BitXor|LShift|RShift"
NOT_USED = re.compile(
    rf"_(Is_Eq|Eq_Is|IsNot_NotEq|NotEq_IsNot|({NUMBERS})_({BITS})|({BITS})_({NUMBERS}))$"
)
#: Keywords that are not changed: they only find mistakes in matbench, as asserts do.
KEYWORDS = ("frozen", "kw_only", "strict")


class Mutant(NamedTuple):
    """A changed file, the line of the change, and those of its statement."""

    file: str
    line: int
    lines: tuple[int, ...]
    #: Whether the statement runs when the file is imported.
    on_import: bool
    code: str
    before: str
    after: str


class Source:
    """A file, and what can be changed in it."""

    def __init__(self, root: Path, file: str) -> None:
        self.file = file
        self.text = (root / file).read_text(encoding="utf-8")
        self.tree = ast.parse(self.text)
        self.parser = PythonParser(text=self.text, exclude=NOT_DRAWN)
        self.parser.parse_source()
        #: The first lines of statements.
        self.statements = sorted(self.parser.statements - self.parser.excluded)

    def kept(self) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
        """Where annotations and some keywords begin and end: nobody would notice their changes."""
        for node in ast.walk(self.tree):
            parts = [getattr(node, name, None) for name in ("annotation", "returns")]
            parts.append(node if isinstance(node, ast.keyword) and node.arg in KEYWORDS else None)
            for part in filter(None, parts):
                yield (part.lineno, part.col_offset), (part.end_lineno, part.end_col_offset)

    def mutations(self, statement: int) -> dict[str, list[tuple[Any, int]]]:
        """Kinds of mutations of a statement: operators, each with the number of its place."""
        kept, nodes = list(self.kept()), list(ast_nodes(parso.parse(self.text)))
        lines = self.lines(statement)
        here = [node for node in nodes if node.start_pos[0] in lines]
        found: dict[str, list[tuple[Any, int]]] = {}
        for name in plugins.operator_names():
            kind = plugins.get_operator(name)
            if kind.arguments() or NOT_USED.search(name):
                continue
            operator = kind()
            if not any(True for node in here for _ in operator.mutation_positions(node)):
                continue
            places = [
                (node, place) for node in nodes for place, _ in operator.mutation_positions(node)
            ]
            for number, (node, place) in enumerate(places):
                is_kept = any(first <= place < last for first, last in kept)
                if place[0] in lines and not is_kept and node.parent.type != "parameters":
                    found.setdefault("_".join(name.split("_")[:2]), []).append((operator, number))
        return found

    def lines(self, statement: int) -> tuple[int, ...]:
        count = len(self.text.splitlines())
        return tuple(n for n in range(1, count + 1) if self.parser.first_line(n) == statement)

    def mutant(self, statement: int, rng: random.Random) -> Mutant | None:
        """A mutant of a statement, if there is one that Python accepts."""
        kinds = self.mutations(statement)
        if not kinds:
            return None
        chosen = rng.choice(kinds[rng.choice(sorted(kinds))])
        try:
            code = mutate_code(self.text, *chosen)
            if ast.dump(ast.parse(code)) == ast.dump(self.tree):
                return None
        except (AttributeError, SyntaxError):  # cosmic-ray cannot replace `module.Error`
            return None
        compared = difflib.ndiff(self.text.splitlines(), code.splitlines())
        changes = [(line[0], " ".join(line[2:].split())) for line in compared if line[0] != "?"]
        line = next(n for n, (sign, _) in enumerate(changes, 1) if sign != " ")
        before, after = ("\n".join(t for s, t in changes if s == sign and t) for sign in "-+")
        functions = ast.FunctionDef | ast.AsyncFunctionDef
        bodies = [node.body for node in ast.walk(self.tree) if isinstance(node, functions)]
        is_inside = any(b[0].lineno <= statement <= (b[-1].end_lineno or 0) for b in bodies)
        return Mutant(self.file, line, self.lines(statement), not is_inside, code, before, after)


def drawn(root: Path, seed: int, count: int) -> list[Mutant]:
    """Mutants of statements drawn at random, each with the same probability."""
    names = {path.relative_to(root).as_posix() for place in SOURCES for path in root.glob(place)}
    sources = [Source(root, name) for name in sorted(names) if not SHOWN.search(name)]
    places = [(source, statement) for source in sources for statement in source.statements]
    rng = random.Random(seed)
    rng.shuffle(places)
    found = filter(None, (source.mutant(statement, rng) for source, statement in places))
    return list(itertools.islice(found, count))
