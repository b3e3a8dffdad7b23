"""Functions of Python files as kernels: `matmul.py::multiply`. The file is parsed, not run."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from matbench.errors import UsageError, listed
from matbench.kernelfile import includes
from matbench.kernelfile.front_matter import Reader, decoded
from matbench.kernelfile.signature import Entry, Signature
from matbench.kernelfile.tables import FENCE, Table
from matbench.model import PYTHON, SCALE_OF, FrontMatter, Included, Kernel, Parameter

#: Between the path of a file and the name of its function.
SEPARATOR = "::"
#: The modules whose arrays a function takes, in the order in which a file's imports are searched:
#: one that uses Triton imports PyTorch. Without any, it takes NumPy's.
ARRAYS = {
    "torch": "torch", "triton": "torch", "cuda.tile": "torch", "jax": "jax", "cupy": "cupy",
    "numba.cuda": "numba",
}  # fmt: skip
#: Those of them that cannot run on a CPU.
_ONLY_CUDA = ("triton", "cuda.tile", "cupy", "numba.cuda")
#: The name of C if it is no parameter.
RETURNED = "return"
#: What a function may take by name, besides its matrices and constants, and their types.
_NUMBERS = {"M": "long long", "N": "long long", "K": "long long", "batch": "int"}
_NUMBERS |= {"alpha": "double", "beta": "double"}
#: The most functions of which one is chosen if none is named.
_MOST_FUNCTIONS = 100
_OPENING = re.compile(r"^[ \t]*#[ \t]*/// matbench", re.MULTILINE)


def is_python(path: str) -> bool:
    return f".py{SEPARATOR}" in path or path.endswith(".py")


def split(path: str) -> tuple[str, str]:
    """The file and the function, empty if none is named; folders may have `::` in their names."""
    file, ending, name = path.rpartition(f".py{SEPARATOR}")
    return (f"{file}.py", name) if ending else (path, "")


def parse(
    data: bytes, path: Path, given: Mapping[str, Any] | None = None, shown_as: str | None = None
) -> Kernel:
    """The function that `path` or a given `entry` names, or the only one that takes matrices."""
    file, name = split(str(path))
    given = dict(given or {})
    if not name and isinstance(given.get("entry"), str):
        name = given.pop("entry")
    shown = shown_as or file
    source = decoded(data, shown)
    module = tree(source, shown)
    function = _function(module, source, shown, name)
    for opening in _OPENING.finditer(source):
        if not FENCE.match(source, opening.start()):
            line = source.count("\n", 0, opening.start()) + 1
            what = "a table: `# /// matbench`, lines with `#`, then `# ///`"
            raise UsageError(f"{shown}:{line}: not {what}")
    table = Table(shown, _table_above(module, function, source, shown), None, given)
    reader = _Reader(shown, source, Path(file), table, module, function)
    kernel = reader.kernel()
    said = repr((function.name, table.values)).encode()
    named = f"{shown}{SEPARATOR}{function.name}"
    sha256 = includes.identity(data + said, kernel.includes)
    return msgspec.structs.replace(kernel, path=named, sha256=sha256, arrays=reader.arrays)


def tree(source: str, shown: str) -> ast.Module:
    """The tree of a Python file; a `UsageError` names the line that is wrong."""
    try:
        return includes.python(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = getattr(error, "lineno", None) or 1
        why = getattr(error, "msg", error) or "too deep"
        raise UsageError(f"{shown}:{line}: not Python: {why}") from None


def _function(module: ast.Module, source: str, shown: str, name: str) -> ast.FunctionDef:
    functions = {node.name: node for node in module.body if isinstance(node, ast.FunctionDef)}
    if name in functions:
        return functions[name]
    public = [known for known in functions if not known.startswith("_")]
    taking = []
    for known in public if len(public) <= _MOST_FUNCTIONS else []:
        table = Table(shown, _table_above(module, functions[known], source, shown), None, {})
        sweep = table.values.get("sweep")
        if len(_matrices(functions[known], sweep if isinstance(sweep, dict) else {})) in (2, 3):
            taking.append(known)
    plain = [known for known in taking if not functions[known].decorator_list] or taking
    for few in (plain, public):
        if not name and len(few) == 1:
            return functions[few[0]]
    if not public:
        raise UsageError(
            f"{shown}: no function at the top of this file; methods, lambdas, imported and "
            "`async` functions, and functions within others or under `if` cannot be called"
        )
    which = listed(f"{shown}{SEPARATOR}{known}" for known in (taking or public)[:8])
    wrong = f"no `def {name:.60}` at the top of this file; it has" if name else "which function?"
    raise UsageError(f"{shown}: {wrong} {which}")


def _matrices(function: ast.FunctionDef, constants: Collection[str]) -> list[str]:
    """The parameters without a default that are no number or constant: A, B and perhaps C."""
    positional = [*function.args.posonlyargs, *function.args.args]
    required = positional[: len(positional) - len(function.args.defaults)]
    return [name.arg for name in required if name.arg not in {*_NUMBERS, *constants}]


def place_of(kernel: Kernel) -> tuple[int, str]:
    """The first line of a function or of its decorators, and its table as `_table_above` has it."""
    module = ast.parse(kernel.source)
    function = _function(module, kernel.source, kernel.path, kernel.entry)
    line = min([function.lineno, *(node.lineno for node in function.decorator_list)])
    return line, _table_above(module, function, kernel.source, kernel.path)


def _table_above(module: ast.Module, function: ast.FunctionDef, source: str, shown: str) -> str:
    """The table between a function and the one before it, with its fences, and at the same lines;
    empty if there is none."""
    others = [n.end_lineno or 0 for n in module.body if isinstance(n, ast.FunctionDef)]
    above = max((line for line in others if line < function.lineno), default=0)
    tables = []
    start = at = 0
    for fence in FENCE.finditer(source):
        start, at = start + source.count("\n", at, fence.start()), fence.start()
        if fence["mark"] == "#" and above <= start < function.lineno:
            tables.append("\n" * start + fence[0])
    if len(tables) > 1:
        line = tables[1].count("\n", 0, tables[1].index("#")) + 1
        raise UsageError(f"{shown}:{line}: a second table above {function.name}; join them")
    return tables[0] if tables else ""


class _Reader(Reader):
    """Reads the table of a function, with the checks of other front matter."""

    kind = PYTHON
    launch = ("where",)
    unused = (
        ("entry", "std", "include_dirs", "link", "options", "finish", "reads", "tune"),
        "a function of Python has no use for it; remove it",
    )  # fmt: skip

    def __init__(
        self, shown: str, source: str, file: Path, table: Table, module: ast.Module,
        function: ast.FunctionDef,
    ) -> None:  # fmt: skip
        super().__init__(shown, source, file, table)
        self.function = function
        names: set[str] = set()
        for node in ast.walk(module):
            if isinstance(node, ast.Import):
                names |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        within = [one for one in ARRAYS if any(f"{name}.".startswith(f"{one}.") for name in names)]
        self.arrays = ARRAYS[within[0]] if within else "numpy"
        self.needs = () if within else ("host",)
        if {*within} & {*_ONLY_CUDA}:
            self.needs = ("cuda",)

    def front(self, table: dict[str, Any]) -> FrontMatter:
        front = super().front({"name": self.function.name.lower().strip("_"), **table})
        usual = "float32" if front.precision == "tf32" else front.precision
        if "precision" in table and front.storage not in (None, usual):
            self.wrong(f"storage: {front.storage} is not read as {front.precision}", "storage")
        return front

    def entry(self, front: FrontMatter, _: tuple[Included, ...]) -> tuple[Entry, Signature]:
        name, types = self.function.name, self.pointers(front)
        matrices, named = self.parameters(front)
        scales = SCALE_OF.values() if front.scales else ()
        usual = ["A", "B", *scales, "C"][: len(matrices)]
        named_so = [name if name in scales else name.upper() for name in matrices]
        is_named = sorted(named_so) == sorted(usual)
        args = self.table.values.get("args", named_so if is_named else usual)
        if sorted(args) != sorted(usual):
            example = ", ".join(f'"{one}"' for one in usual)
            self.wrong(f"args: must be {example}, in the order of the parameters", "args")
        if "C" not in args and (front.layout, front.padding) != ("row-major", 0):
            key = "padding" if front.layout == "row-major" else "layout"
            self.wrong(f"{key}: only for a function that fills C", key)
        roles = args if "C" in args else (*args, "C")  # a C that is returned comes last
        pairs = zip(roles, [*matrices, RETURNED], strict=False)
        parameters = [Parameter(types.get(role, "float"), called, True) for role, called in pairs]
        parameters += [Parameter(_NUMBERS[number], number, False) for number in named]
        self.args = (*roles, *named)
        return Entry(name, ()), Signature(name, tuple(parameters), is_extern_c=True)

    def arguments(self, front: FrontMatter, parameters: Sequence[Parameter]) -> tuple[str, ...]:
        return self.args

    def parameters(self, front: FrontMatter) -> tuple[list[str], tuple[str, ...]]:
        """The parameters that are matrices, and what else it takes by name."""
        function, args, constants = self.function, self.function.args, {*front.sweep}
        matrices = _matrices(function, constants)
        scales = 2 if front.scales else 0
        if len(matrices) - scales not in (2, 3):
            taken = ", ".join(matrices) or "none"
            more = ", and scale_a and scale_b" if scales else ""
            self.fail(
                f"{function.name}: two matrices (A, B), or three (A, B, C to fill), are expected"
                f"{more}, not {taken}; other parameters are M, N, K, alpha, beta, batch, constants "
                "of [sweep] in a table `# /// matbench` above it, or have a default",
                function.lineno,
            )
        positional = [parameter.arg for parameter in (*args.posonlyargs, *args.args)]
        by_place = {*positional[: len(args.posonlyargs)], *positional[: len(matrices)]}
        if by_place & (constants | {*_NUMBERS}):
            what = f"{function.name}: matrices come first, and what else it takes is passed by name"
            self.fail(f"{what}; move {min(by_place - {*matrices})}", function.lineno)
        every = {parameter.arg for parameter in (*args.args, *args.kwonlyargs)}
        if missing := constants - every:
            name = min(missing)
            self.wrong(f"[sweep] {name}: {function.name} has no such parameter", "sweep", name)
        required = [p.arg for p, d in zip(args.kwonlyargs, args.kw_defaults, strict=True) if not d]
        if unknown := set(required) - constants - set(_NUMBERS):
            self.fail(f"{function.name}: no value for {min(unknown)}", function.lineno)
        if front.batch != 1:
            every.add("batch")
        return matrices, tuple(name for name in _NUMBERS if name in every)
