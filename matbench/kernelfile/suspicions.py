"""What in the text of a kernel that is wrong, or did not end, may be why: barriers that are missing
or that not all threads reach, and arrays that are added to but never set."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from matbench.kernelfile import includes, signature, syntax
from matbench.model import Kernel

#: What differs between the threads of a block.
_OF_THREADS = {"threadIdx", "thread_rank", "thread_index", "laneid", "lane_id"}
_BARRIER = re.compile(r"__syncthreads|__barrier_sync|this_thread_block\(\) ?\.sync")
#: What makes threads wait for others, in any way.
_WAITING = re.compile("sync|barrier|wait", re.IGNORECASE)
_LEAVING = ("return_statement", "break_statement", "continue_statement")
_LOOPS = ("for_statement", "while_statement", "do_statement", "for_range_loop")
_PLACES = ("subscript_expression", "pointer_expression")
_INNER = ("subscript_expression", "field_expression", "parenthesized_expression")
_USES = {"update_expression": "added"} | dict.fromkeys(
    ("pointer_expression", "init_declarator", "argument_list"), "set"
)
_SHARED = {"__shared__", "extern", "static"}
#: The most places where threads leave that are compared with all barriers.
_MOST = 200


def suspicions(kernel: Kernel, told: Sequence[str] = ()) -> Iterator[str]:
    """In words, with lines of its file and of the user's headers; what its compiler has `told` is
    left out."""
    texts = [(one.path, text) for one in kernel.includes for text in includes.texts([one])]
    wanted = signature.entry_of(kernel).last_name
    for path, source in ((kernel.path, kernel.source), *texts):
        defined = [*syntax.outside(syntax.parse(syntax.expanded(source)))]
        functions = [n for n in defined if n.type == "function_definition"]
        helpers = [n for n in functions if "__device__" in signature.words(n)]
        macros = [n for n in defined if n.type in syntax.MACROS]
        known = {_named(node): _words(node) for node in (*helpers, *macros)}
        for function in functions:
            if _named(function) in {wanted, *known}:
                yield from _divergent(function, known, Path(path).name)
                yield from _unguarded(function, known, Path(path).name)
                yield from _unset(function, Path(path).name, told)


def _named(node: syntax.Node) -> str:
    return syntax.text_of(syntax.fields(node, "name") or syntax.declared(node)).rpartition("::")[2]


def _words(node: syntax.Node) -> set[str]:
    return {*syntax.WORD.findall(syntax.text_of(node))}


def _divergent(function: syntax.Node, known: Mapping[str, set[str]], file: str) -> Iterator[str]:
    """The first barrier under a condition that varies within a block, or that threads miss which
    leave under one."""
    nodes = [*syntax.walk(function)]
    given = [*known.items()]  # names that are set, with the words of what they are set to
    for node in nodes:
        if node.type in ("init_declarator", "assignment_expression"):
            target = node.named_children[0]
            declared = syntax.declared(target) if target.type not in _PLACES else None
            if declared is not None:
                given.append((syntax.text_of(declared), _words(node)))
    varying = set(_OF_THREADS)
    while more := {name for name, words in given if words & varying} - varying:
        varying |= more
    waiting = {name for name, words in known.items() if any(map(_BARRIER.match, words))}
    calls = [node for node in nodes if node.type in ("call_expression", "identifier")]
    barriers = [n for n in calls if _called(n) in waiting or _BARRIER.search(_called(n))]
    met = [(node, node, "is") for node in barriers]
    left = [node for node in nodes if node.type in _LEAVING][:_MOST]
    met += [(n, b, "is missed by threads that leave") for n in left for b in _missed(n, barriers)]
    for node, barrier, how in met:
        if (condition := _condition(node, varying)) is not None:
            called = f"{_called(barrier)}{'()' * (barrier.type == 'call_expression')}"
            what = f"`{called}` at {file}:{syntax.line_of(barrier)} {how}"
            under = f"under a condition (line {syntax.line_of(condition)})"
            yield f"{what} {under} that not all threads of a block may meet"
            return


def _unguarded(function: syntax.Node, known: Mapping[str, set[str]], file: str) -> Iterator[str]:
    """The first shared memory that a loop fills and reads, with fewer barriers than that needs:
    one before others read it, and one before it is filled again, unless there are several tiles."""
    nodes = [*syntax.walk(function)]
    declared = [n for n in nodes if n.type == "declaration" and "__shared__" in _words(n)]
    shared = {_named(inner) for node in declared for inner in node.named_children}
    waiting = {name for name, words in known.items() if any(map(_WAITING.search, words))}
    for node in nodes if shared else ():
        target = node.named_children[0] if node.type == "assignment_expression" else None
        if target is None or target.type != "subscript_expression":
            continue
        loop = next((n for n in [*syntax.parents(node)][::-1] if n.type in _LOOPS), None)
        name, right = syntax.WORD.search(syntax.text_of(target)), node.named_children[-1]
        if not loop or not name or name[0] not in shared or name[0] in _words(right):
            continue  # or one of a tree of sums, for which one is enough
        inner = [*syntax.walk(loop)]
        uses = [n for n in inner if n.type == "identifier" and syntax.text_of(n) == name[0]]
        called = {n.start_byte: _called(n) for n in inner if n.type == "call_expression"}
        barriers = sum(c in waiting or bool(_WAITING.search(c)) for c in called.values())
        is_filled = "=" in {child.type for child in node.children}
        is_read = is_filled and any(_use(use, "array_declarator") == "read" for use in uses)
        if is_read and barriers < (2 if syntax.text_of(target).count("[") < 3 else 1):
            what = f"`{name[0]}` at {file}:{syntax.line_of(node)} is filled and read in one loop"
            yield f"{what}; is a `__syncthreads()` missing?"
        return


def _called(node: syntax.Node) -> str:
    return syntax.text_of(syntax.fields(node, "function") or node)


def _condition(node: syntax.Node, varying: set[str]) -> syntax.Node | None:
    """The innermost condition that varies and decides whether a thread gets there."""
    for above in syntax.parents(node):
        condition = syntax.fields(above, "condition")
        if condition is not None and _words(condition) & varying and not _is_in(node, condition):
            return condition
    return None


def _is_in(node: syntax.Node, outer: syntax.Node) -> bool:
    return outer.start_byte <= node.start_byte < outer.end_byte


def _missed(node: syntax.Node, barriers: list[syntax.Node]) -> list[syntax.Node]:
    """The barriers that threads miss which leave a loop, one of its passes, or the function."""
    if node.type == "return_statement":
        return [barrier for barrier in barriers if barrier.start_byte > node.start_byte][:1]
    left = _LOOPS if node.type == "continue_statement" else (*_LOOPS, "switch_statement")
    outer = next((above for above in syntax.parents(node) if above.type in left), node)
    return [barrier for barrier in barriers if outer.type in _LOOPS and _is_in(barrier, outer)][:1]


def _unset(function: syntax.Node, file: str, told: Sequence[str]) -> Iterator[str]:
    """Sums that nothing sets first: nvcc does not warn of them, nor other compilers of arrays."""
    named: dict[str, list[syntax.Node]] = {}
    for node in syntax.walk(function):
        if node.type == "identifier":
            named.setdefault(syntax.text_of(node), []).append(node)
    for text, (name, *others) in named.items():
        declared = name
        while declared.parent is not None and declared.parent.type == "array_declarator":
            declared = declared.parent
        above = declared.parent
        if above is None or above.type != "declaration" or _SHARED & _words(above):
            continue
        uses = {_use(node, declared.type) for node in others}
        is_told = any(re.search(rf"\b{text}\b", warning) for warning in told)
        if "added" in uses and "set" not in uses and not is_told:
            yield f"`{text}` at {file}:{syntax.line_of(name)} is added to, but never set"


def _use(name: syntax.Node, declared: str) -> str:
    """What is done with a variable there: `set`, perhaps by what gets its address, `added` to, or
    read."""
    used, text = name, syntax.text_of(name)
    while used.parent is not None and used.parent.type in _INNER:
        used = used.parent
    if (used == name and declared == "array_declarator") or used.parent is None:
        return "set"
    outer = next((n for n in syntax.parents(used) if n.type == "assignment_expression"), None)
    left, *_, right = outer.named_children if outer is not None else (used, used)
    if outer is not None and text in _words(left):
        is_sum = "=" not in {child.type for child in outer.children} or text in _words(right)
        return "read" if left != used else "added" if is_sum else "set"
    return _USES.get(used.parent.type, "read")
