"""The symbols of C++ functions in machine code."""

from __future__ import annotations

import ctypes
import ctypes.util
import re
from functools import cache
from typing import Any

from matbench.errors import BuildError
from matbench.kernelfile import instrument

_ENTRY = re.compile(r"entry function '([^']+)'")


@cache
def _library() -> Any:
    """The C++ standard library, which nvcc's host compiler needs as well."""
    for name in ("libstdc++.so.6", "libc++abi.so.1", ctypes.util.find_library("stdc++")):
        try:
            library = ctypes.CDLL(name) if name else None
        except OSError:
            continue
        if library is not None:
            library.__cxa_demangle.restype = ctypes.c_void_p
            return library
    raise BuildError("a C++ entry needs the C++ library (libstdc++.so.6); install g++")


def demangled(symbol: str) -> str:
    """A symbol's C++ name; other symbols are returned unchanged."""
    library = _library()
    status = ctypes.c_int()
    text = getattr(library, "__cxa_demangle")(symbol.encode(), None, None, ctypes.byref(status))
    if not text:
        return symbol
    try:
        return ctypes.string_at(text).decode(errors="replace")
    finally:
        ctypes.CDLL(None).free(ctypes.c_void_p(text))


def lowered(report: str, entry: str) -> str:
    """The entry's symbol in the machine code that ptxas reports on.

    The compiler itself identifies it: the template arguments of the mark are the entry's type and
    its address.
    """
    if entry != instrument.MARK:
        return entry
    symbols = _ENTRY.findall(report)
    marks = [demangled(symbol) for symbol in symbols if instrument.MARK in symbol]
    if not marks:
        raise BuildError("nvcc generated no code for the entry")
    for symbol in symbols:
        name = demangled(symbol)
        plain = name[: -len(name[name.rindex("(") :])] if name.endswith(")") else name
        if instrument.MARK not in symbol and marks[0].endswith((f"&({name})>()", f"&{plain}>()")):
            return str(symbol)
    raise BuildError(f"nvcc generated no code for {marks[0].partition('&')[2]}")
