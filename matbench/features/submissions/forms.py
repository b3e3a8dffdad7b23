"""The forms of other evaluators (docs/submissions.md), and how a submission in each is called.

A submission becomes a kernel file of matbench's: its own text, below it a function that calls it as
its form does, and a table. What the sizes mean, and what is computed, comes from the form or from
the problem that it answers, never from what the submission happens to compute.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from matbench.errors import UsageError
from matbench.features.submissions.problem import Product
from matbench.features.submissions.solution import Unpacked
from matbench.features.submissions.supplied import with_supplied
from matbench.kernelfile import python_file, signature
from matbench.model import SCALE_OF

#: The function that calls a submission in Python.
CALL = "submission_call"
#: The forms of one function, by its name; they have no problem.
FORMS = {"solve": "LeetGPU's form", "solution": "Tensara's form"}
#: What the numbers of each form are to BLAS, in its order, and what front matter says then; names
#: may be in any. LeetGPU's plain product has an A of M×N and a B of N×K; Tensara's N alone is of
#: squares, M and K of a vector.
_NUMBERS: dict[str, dict[str, dict[str, Any]]] = {
    "solve": {
        "M K N": {}, "batch M N K": {"batch": [2, 1]},
        # With a beta of 0, nothing would show that C counts.
        "M N K alpha beta": {"alpha": 1.5, "beta": 0.5},
    },
    "solution": {
        "M N K": {}, "batch M N K": {"batch": [2, 1]},
        "N": {"launch": {"where": ["M == N", "N == K"]}},
        "M K": {"launch": {"where": ["N == 1"]}, "sizes": "256x1x256,1000x1x1000"},
    },
}  # fmt: skip
_NAMES = {"m", "n", "k", "batch", "alpha", "beta"}
_OTHER_NAMES = {"b": "batch", "bs": "batch", "batch_size": "batch"}
#: The sizes of the matrices of a call in Python, by their names in BLAS.
_IN_PYTHON = {"M": "A.shape[-2]", "K": "A.shape[-1]", "N": "B.shape[-1]", "batch": "A.shape[0]"}
#: Libraries whose arrays matbench cannot make, in forms that have submissions of theirs.
_UNKNOWN = re.compile(r"^\s*(?:import|from)\s+(tinygrad|cutlass)\b", re.MULTILINE)
_SOLVE_H = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"solve\.h"', re.MULTILINE)
#: A declaration that gives a later definition of this name the linkage of C.
_DECLARED = r'\bextern\s*"C"(?:\s*\{{[^{{}}]*|[^{{}};]*)\b{}\s*\('
#: What is raised of a result that is another one than was asked for.
_RESULT_ERROR = "__import__('matbench.errors').errors.ResultError"
#: What the tuple of kernelbot's `custom_kernel` has, by its length.
_TUPLES = {2: (*"AB",), 3: (*"ABC",), 5: (*"AB", *SCALE_OF.values(), "C")}
#: The usual types of those with scales.
_SCALED = {
    "precision": "e4m3", "storage": "e4m3", "result": "bfloat16", "transpose": "NT",
    "scales": "blocks", "accumulator": "float22", "promotes": 128,
}  # fmt: skip


class Submission(NamedTuple):
    """A file in a form, as messages call that: the text to run, and its front matter."""

    form: str
    text: str
    table: dict[str, Any]


def of_python(
    text: str,
    shown: str,
    problem: Callable[[str], Product] = lambda name: Product({}),
    folder: Path = Path(),
) -> Submission | None:
    """The submission in a Python file; None if it is in none of the forms. `problem` is that of the
    class or function of this name. `UsageError`: no Python, or in a form, but no matrix product."""
    module = python_file.tree(text, shown)
    names = _named(module)
    if "ModelNew" in names:
        return _kernelbench(text, names, problem("ModelNew"))
    if "custom_kernel" in names:
        found = problem("custom_kernel")
        return _kernelbot(with_supplied(text, folder), module, names, shown, found)
    for name in FORMS:
        roles, table = _roles([one.arg for one in _taken(names.get(name))], name)
        if roles:
            if (unknown := _UNKNOWN.search(text)) is not None:
                told = f"{shown}: uses {unknown[1]}; matbench calls PyTorch, Triton, JAX and CuPy"
                raise UsageError(told)
            usual = {"precision": "float16"} if "alpha" in roles else {}
            below = _of_function(text, name, names[name], roles)
            return Submission(FORMS[name], below, usual | table)
    return None


def _named(module: ast.Module) -> dict[str, ast.AST]:
    """What the names at the top of a module stand for: functions, lambdas and classes, also in a
    call such as `torch.compile(f)`, or whatever else is assigned or imported."""
    found: dict[str, ast.AST] = {}
    kinds = ast.FunctionDef, ast.ClassDef, ast.Lambda
    for node in _at_top(module.body):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found[node.name] = node
        elif isinstance(node, ast.ImportFrom):
            found |= {alias.asname or alias.name: alias for alias in node.names}
        elif isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            within = [found.get(getattr(one, "id", ""), one) for one in ast.walk(node.value)]
            meant = next((one for one in within if isinstance(one, kinds)), node.value)
            found |= {one.id: meant for one in targets if isinstance(one, ast.Name)}
    return found


def _at_top(body: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """The statements of a module, also those under `if`, `try` and `with`."""
    for node in body:
        yield node
        if isinstance(node, ast.If | ast.Try | ast.ExceptHandler | ast.With):
            yield from _at_top(ast.iter_child_nodes(node))


def _taken(function: ast.AST | None) -> list[ast.arg]:
    """The parameters of a function that a form passes: those without a default, and numbers."""
    if not isinstance(function, ast.FunctionDef | ast.Lambda):
        return []
    given = function.args
    positional = [*given.posonlyargs, *given.args]
    required = len(positional) - len(given.defaults)
    others = (*positional[required:], *given.kwonlyargs)
    return [*positional[:required], *(one for one in others if one.arg.lower() in _NAMES)]


def _of_function(text: str, name: str, function: ast.AST, roles: Sequence[str]) -> str:
    """The text that calls a function of matrices and numbers; or of the addresses of matrices."""
    passed = []
    for role, parameter in zip(roles, _taken(function), strict=True):
        value = _IN_PYTHON.get(role, role)
        if role in ("B", "C") and "N" not in roles:
            value = f"{role}.reshape(-1)"
        if role in "ABC" and getattr(parameter.annotation, "id", "") == "int":
            value = f"{value}.data_ptr()"
        is_by_name = parameter in function.args.kwonlyargs  # type: ignore[attr-defined]
        passed.append(f"{parameter.arg}={value}" if is_by_name else value)
    parameters = [role for role in roles if role not in _IN_PYTHON]
    call = f"{'' if 'C' in roles else 'return '}{name}({', '.join(passed)})"
    return _below(text, parameters, call)


def of_cuda(text: str, shown: str, folder: Path = Path()) -> Submission | None:
    """The submission in a CUDA file, which is called on the host; None if it is in no form. Of
    LeetGPU, it may include `solve.h`, which declares the function."""
    header = _SOLVE_H.search(text)
    for function in signature.host_functions(text):
        form = FORMS.get(function.name)
        if form is None or not (
            function.is_extern_c
            or (header is not None and function.name == "solve")
            or re.search(_DECLARED.format(function.name), text)
        ):
            continue
        if (table := _called_on_host(function, form, shown)) is not None:
            is_there = header is None or (folder / "solve.h").is_file()
            return Submission(form, text if is_there else _SOLVE_H.sub("", text), table)
    if re.search(r"\b(?:PYBIND11_MODULE|TORCH_LIBRARY)\b", text):
        raise UsageError(
            f"{shown}: a module for PyTorch; name a Python file that loads it, as with "
            "torch.utils.cpp_extension.load, and has a function of A and B, or a class ModelNew"
        )
    return None


def _called_on_host(function: signature.Signature, form: str, shown: str) -> dict[str, Any] | None:
    """The table of a function that takes pointers and sizes; None if it is of no challenge with
    two inputs and a result."""
    given = [parameter.name for parameter in function.parameters]
    pointers = [parameter.pointer for parameter in function.parameters]
    roles, table = _roles(given, function.name)
    if roles and pointers == [role in "ABC" for role in roles]:
        return {"entry": f"host {function.name}", "args": roles, **table}
    if sum(pointers) < 3:
        return None
    asked = f"{function.name}(A, B, C, M, N, K)"
    raise UsageError(
        f"{shown}:{function.line}: {function.name}({', '.join(given)}) is no matrix product in "
        f"{form}, {asked}; if another function is meant, name it with --entry"
    )


def _roles(given: Sequence[str], function: str) -> tuple[list[str], dict[str, Any]]:
    """What these parameters are: two or three matrices, whatever their names, then numbers, in the
    order of the form, and what front matter says of these; both are empty for other ones."""
    names = [name.lower() for name in given]
    names[3:] = [_OTHER_NAMES.get(name, name) for name in names[3:]]
    matrices = next((i for i, name in enumerate(names) if i > 1 and name in _NAMES), 0)
    for numbers, table in _NUMBERS[function].items() if matrices in (2, 3) else ():
        if sorted(numbers.lower().split()) == sorted(names[matrices:]):
            return [*"ABC"[:matrices], *numbers.split()], table
    return [], {}


def _kernelbench(text: str, names: Collection[str], problem: Product) -> Submission:
    """A class whose objects are called with A and B; one is made when the file is loaded, where
    compilers have time."""
    inits = "*get_init_inputs()" * ("get_init_inputs" in names)
    if problem.init:
        inits = f"*__import__('pickle').loads({problem.init})"
    # Results that are to be differentiated take longer, and no evaluator asks for them.
    made = f"""{text}

if "torch" in __import__("sys").modules:
    __import__("torch").set_grad_enabled(False)
submission_model = ModelNew({inits})
submission_run = submission_model if callable(submission_model) else submission_model.forward
submission_place = []
"""
    below = _below(
        made, "AB", 'if not submission_place and hasattr(submission_model, "to"):',
        "    submission_place.append(submission_model.to(A.device))",
        f"returned = submission_run({', '.join(problem.given)})", *_flat(problem),
        "return returned",
    )  # fmt: skip
    return Submission("KernelBench's form", below, problem.table)


def _kernelbot(
    text: str, module: ast.Module, names: dict[str, ast.AST], shown: str, problem: Product
) -> Submission:
    """A function of one tuple, which has C as its last element and returns it, or another one."""
    function = names["custom_kernel"]
    count = problem.values or _count(function, names, ast.unparse(module))
    if count not in _TUPLES:
        raise UsageError(
            f"{shown}:{getattr(function, 'lineno', 1)}: custom_kernel unpacks {count} values; "
            "matbench knows (a, b, c) of matmul_v2 and (a, b, a_scale, b_scale, c) of fp8-mm"
        )
    roles = _TUPLES[count]
    table: dict[str, Any] = {"precision": "float16"} if count < 5 else _SCALED
    table = problem.table if problem.values else table | problem.table
    if count == 5:
        table = table | {"args": [*roles]}
    below = _below(
        text, roles, f"returned = custom_kernel(({', '.join(roles)}))",
        "if not hasattr(returned, 'shape'):",
        "    what = 'nothing' if returned is None else type(returned).__name__",
        f"    raise {_RESULT_ERROR}(f'custom_kernel returned {{what}}')", "return returned",
    )  # fmt: skip
    return Submission("kernelbot's form", below, table)


def _count(function: ast.AST, names: Mapping[str, ast.AST], code: str) -> int:
    """How many values the tuple has that a function takes apart in this code, or one that it is
    passed to; 3 if none says."""
    name = next((one.arg for one in _taken(function)), "data")
    for parts in re.findall(rf"^ *\(?([\w*]+,[\w*, ]*)\)? = {name}$", code, re.MULTILINE):
        count: int = parts.count(",") + 1
        return max(3, count) if "*" in parts else count
    for callee, star in re.findall(rf"\b(\w+)\((\*?){name}\)", code):
        others = {other: node for other, node in names.items() if other != callee}
        if isinstance(helper := names.get(callee), ast.FunctionDef):
            count = len(_taken(helper)) if star else _count(helper, others, ast.unparse(helper))
            if count != 3:
                return count
    return 5 if re.search(rf"\b{name}\[[34]\]", code) else 3


def of_solution(solution: Unpacked, problem: Product) -> Submission:
    """A function that takes the inputs of a definition, and its output if it `fills_C`."""
    table, roles, given = problem.table, [*problem.roles], [*problem.given]
    if solution.fills_C:
        sides = ", ".join(map(str, problem.split))
        roles.append("C")
        given.append(f"C.reshape({sides}, C.shape[-1])" if problem.split else "C")
    if len(problem.roles) > 2:
        table = table | {"args": roles}
    lines = [f"{solution.call}({', '.join(given)})"]
    if not solution.fills_C:
        lines = [
            f"returned = {lines[0]}",
            "returned = [*returned.values()] if isinstance(returned, dict) else returned",
            "if isinstance(returned, (list, tuple)) and len(returned) == 1:",
            "    [returned] = returned",
            *_flat(problem), "return returned",
        ]  # fmt: skip
    return Submission(solution.form, _below(solution.text, roles, *lines), table)


def _flat(problem: Product) -> tuple[str, ...]:
    """What makes a matrix of a result that has the dimensions of a split A."""
    if not problem.split:
        return ()
    columns = "B.shape[-2]" if problem.table["transpose"][1] == "T" else "B.shape[-1]"
    rows = f"A.shape[0] // {-math.prod(problem.split)}"
    sides = ", ".join(str(n) if n > 0 else rows for n in problem.split)
    return (
        f"wanted = ({sides}, {columns})",
        "found = tuple(getattr(returned, 'shape', ()))",
        "if found != wanted:",
        f"    raise {_RESULT_ERROR}(f'returned {{found}} instead of {{wanted}}')",
        "returned = returned.reshape(-1, wanted[-1])",
    )


def _below(text: str, roles: Iterable[str], *lines: str) -> str:
    """The text, and below it the function of these that calls a submission."""
    body = "".join(f"    {line}\n" for line in lines)
    return f"{text}\n\n\ndef {CALL}({', '.join(roles)}):\n{body}"
