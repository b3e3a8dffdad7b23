"""The forms in which other evaluators take a matrix product, and how each of them is called.

A submission becomes a kernel file of matbench's: its own text, below it a function that calls it as
its form does, and a table. What the sizes mean, and what is computed, comes from the form or from
the problem that it answers, never from what the submission happens to compute. docs/submissions.md
has the forms.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from matbench.errors import UsageError, listed
from matbench.features.submissions.problem import Product
from matbench.kernelfile import includes, signature
from matbench.kernelfile.signature import Signature
from matbench.model import SCALE_OF

#: The function that calls a submission in Python.
CALL = "submission_call"
_LEETGPU, _TENSARA = "LeetGPU's form", "Tensara's form"
_FORMS = {"solve": _LEETGPU, "solution": _TENSARA}
WITHOUT_PROBLEM = (_LEETGPU, _TENSARA)
#: What their sizes are to BLAS. LeetGPU's plain product has an A of M×N and a B of N×K; its others,
#: with factors or batches, have those of BLAS.
_SIZES = {"m": "M", "n": "N", "k": "K", "batch": "batch"}
_PLAIN_LEETGPU = {"m": "M", "n": "K", "k": "N"}
_FACTORS = {"alpha": "alpha", "beta": "beta"}
#: The sizes of the matrices of a call in Python, by their names in BLAS.
_IN_PYTHON = {"M": "A.shape[-2]", "K": "A.shape[-1]", "N": "B.shape[-1]", "batch": "A.shape[0]"}
#: What the tuple of kernelbot's `custom_kernel` has, by its length.
_TUPLES = {
    3: ("A", "B", "C"),
    5: ("A", "B", *SCALE_OF.values(), "C"),
}
#: The usual types of those problems.
_OF_TUPLES: dict[int, dict[str, Any]] = {
    3: {"precision": "float16"},
    5: {
        "precision": "e4m3", "storage": "e4m3", "result": "bfloat16", "transpose": "NT",
        "scales": "blocks", "accumulator": "float22", "promotes": 128,
    },
}  # fmt: skip


class Submission(NamedTuple):
    """A file in a form, as messages call that: the text to run, and its front matter."""

    form: str
    text: str
    table: dict[str, Any]


def of_python(
    text: str, shown: str, problem: Callable[[str], Product | None] = lambda name: None
) -> Submission | None:
    """The submission in a Python file; None if it is in none of the forms. `problem` is that of the
    class or function of this name.

    `UsageError`: it is in a form, but no matrix product.
    """
    try:
        module = includes.python(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None  # whoever reads it says so
    functions = {node.name: node for node in module.body if isinstance(node, ast.FunctionDef)}
    classes = {node.name for node in module.body if isinstance(node, ast.ClassDef)}
    if "ModelNew" in classes:
        return _kernelbench(text, {*functions}, problem("ModelNew"))
    if "custom_kernel" in functions:
        kernel = functions["custom_kernel"]
        return _kernelbot(text, module, kernel, shown, problem("custom_kernel"))
    for name, form in _FORMS.items():
        if name in functions:
            roles = _roles([parameter.arg for parameter in functions[name].args.args], name)
            if roles is None:
                return None
            matrices = [role for role in roles if role in "ABC"]
            named = [role for role in roles if role in _FACTORS]
            passed = ", ".join(_IN_PYTHON.get(role, role) for role in roles)
            more = ", ".join([*matrices, *named])
            below = _below(text, more, f"{name}({passed})", fills_C="C" in roles)
            return Submission(form, below, _table(roles))
    return None


def of_cuda(text: str, shown: str) -> Submission | None:
    """The submission in a CUDA file, which is called on the host; None if it is in no form."""
    for name, form in _FORMS.items():
        if not re.search(rf'extern\s+"C"[^;{{}}]*\b{name}\s*\(', text):
            continue
        function = next((f for f in signature.host_functions(text) if f.name == name), None)
        if function is not None:
            return Submission(form, text, _called_on_host(function, form, shown))
    return None


def _called_on_host(function: Signature, form: str, shown: str) -> dict[str, Any]:
    """The table of a function that takes pointers and sizes."""
    given = [parameter.name for parameter in function.parameters]
    pointers = [parameter.pointer for parameter in function.parameters]
    roles = _roles(given, function.name)
    if roles is None or pointers != [role in "ABC" for role in roles]:
        asked = ", ".join([*"ABC", *(name.upper() for name in "mnk")])
        raise UsageError(
            f"{shown}:{function.line}: {function.name}({', '.join(given)}) is no matrix product in "
            f"{form}, {function.name}({asked}); matbench judges matrix products"
        )
    return {"entry": f"host {function.name}", "args": roles, **_table(roles)}


def _table(roles: Sequence[str]) -> dict[str, Any]:
    """What front matter says of a function that takes these."""
    table: dict[str, Any] = {"batch": [2, 1]} if "batch" in roles else {}
    if "M" not in roles:
        table["launch"] = {"where": ["M == N", "N == K"]}
    return table


def _roles(given: Sequence[str], function: str) -> list[str] | None:
    """What these parameters are: two or three matrices, then sizes and factors, by their names;
    None for other ones. Tensara's squares have `n` alone."""
    names = [name.lower() for name in given]
    matrices = next((i for i, name in enumerate(names) if name in _SIZES), 0)
    names = names[matrices:]
    if matrices not in (2, 3) or not {*names} <= {*_SIZES, *_FACTORS}:
        return None
    is_square = function == "solution" and names == ["n"]
    if not is_square and not {"m", "n", "k"} <= {*names}:
        return None
    known = _SIZES | _FACTORS
    if function == "solve" and len(names) == len(_PLAIN_LEETGPU):
        known |= _PLAIN_LEETGPU
    return [*"ABC"[:matrices], *(known[name] for name in names)]


def _kernelbench(text: str, functions: set[str], problem: Product | None) -> Submission:
    """A class whose objects are called with A and B; made when it is first called."""
    has_inits = "get_init_inputs" in functions
    inits = f"*{problem.init}" if problem is not None else "*get_init_inputs()" * has_inits
    folded = "" if problem is None or problem.split == 1 else f".reshape({problem.split}, -1, K)"
    A = f"A{folded.replace('K', 'A.shape[-1]')}"
    result = "returned.reshape(-1, returned.shape[-1])" if folded else "returned"
    # Results that are to be differentiated take longer, and no evaluator asks for them.
    below = f"""

if "torch" in globals():
    torch.set_grad_enabled(False)
submission_model = []


def {CALL}(A, B):
    if not submission_model:
        made = ModelNew({inits})
        submission_model.append(made.to(A.device) if hasattr(made, "to") else made)
    [model] = submission_model
    returned = model({A}, B) if callable(model) else model.forward({A}, B)
    return {result}
"""
    table = {} if problem is None else problem.table
    return Submission("KernelBench's form", text + below, table)


def _kernelbot(
    text: str,
    module: ast.Module,
    function: ast.FunctionDef,
    shown: str,
    problem: Product | None,
) -> Submission | None:
    """A function of one tuple, which has C as its last element and returns it, or another one."""
    arguments = function.args.args
    if len(arguments) != 1:
        return None
    name, counts = arguments[0].arg, []
    for node in ast.walk(function):
        if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Name):
            continue
        if node.value.id == name and isinstance(target := node.targets[0], ast.Tuple):
            counts.append(len(target.elts))
    count = counts[0] if counts else 3
    if count not in _TUPLES:
        raise UsageError(
            f"{shown}:{function.lineno}: custom_kernel unpacks {count} values; matbench knows "
            "(a, b, c) of matmul_v2 and (a, b, a_scale, b_scale, c) of fp8-mm"
        )
    roles = ", ".join(_TUPLES[count])
    table = _OF_TUPLES[count] | ({} if problem is None else problem.table)
    if count == 5:
        table["args"] = [*_TUPLES[count]]
    return Submission(
        "kernelbot's form", _below(_without_task(text, module), roles, f"custom_kernel(({roles}))"),
        table,
    )  # fmt: skip


def _without_task(text: str, module: ast.Module) -> str:
    """The text without what it imports of kernelbot's `task`, which has the types of annotations:
    any will do. Lines stay where they are."""
    lines = text.split("\n")
    for node in module.body:
        if isinstance(node, ast.ImportFrom) and node.module == "task":
            names = [alias.asname or alias.name for alias in node.names]
            last = node.end_lineno or node.lineno
            lines[node.lineno - 1] = " = ".join([*names, "object"]) if "*" not in names else "pass"
            lines[node.lineno : last] = [""] * (last - node.lineno)
    return "\n".join(lines)


def of_solution(text: str, call: str, problem: Product, *, fills_C: bool, form: str) -> Submission:
    """A function that takes the inputs of a definition, and its output if it `fills_C`."""
    roles = "A, B, C" if fills_C else "A, B"
    below = _below(text, roles, f"{call}({roles})", fills_C=fills_C)
    return Submission(form, below, problem.table)


def _below(text: str, parameters: str, call: str, *, fills_C: bool = False) -> str:
    """The text, and what calls it; what a function returns that fills C says nothing."""
    returned = "" if fills_C else "return "
    return f"{text}\n\n\ndef {CALL}({parameters}):\n    {returned}{call}\n"


def words(submission: Submission, table: dict[str, Any]) -> str:
    """What a user should know of how a submission is read."""
    told = [f"transpose {table['transpose']}"] if table.get("transpose", "NN") != "NN" else []
    if submission.table.get("sizes"):
        told.append(f"sizes of its problem: {table['sizes'].replace(',', ', ')}")
    more = f" ({listed(told, 'and')})" if told else ""
    return f"a submission in {submission.form}{more}"
