"""Kernels that are published compiled: PTX, or machine code in a cubin. Neither has a signature in
C: the file says how large each parameter is, and the table what it is."""

from __future__ import annotations

import re
import struct
from pathlib import Path

from matbench import workloads
from matbench.errors import UsageError
from matbench.kernelfile import syntax
from matbench.kernelfile.front_matter import Reader
from matbench.kernelfile.signature import TENSOR_MAP, Entry, Signature
from matbench.kernelfile.tables import Table
from matbench.model import COMPILED, FrontMatter, Included, Parameter

_TARGET = re.compile(r"^[ \t]*\.target[ \t]+(sm_\w+)", re.MULTILINE)
_ENTRY = re.compile(r"\.entry\s+([\w$%]+)\s*(?:\(([^()]*)\))?")
_PARAMETER = re.compile(r"\.param\s+(?:\.align\s+\d+\s+)?\.([a-z]+)(\d+)[^,\[]*(?:\[(\d+)\])?")
#: The architecture that a file needs; of each kernel's parameters the bytes, and whether they are
#: real numbers (None if it does not tell); and the bytes of variables.
Code = tuple[str, dict[str, list[tuple[int, bool | None]]], int]


def of_ptx(text: str) -> Code:
    """What PTX says; `UsageError` if it is none."""
    text = syntax.without_comments(text)
    if (target := _TARGET.search(text)) is None:
        raise UsageError("no line `.target sm_…`")
    kernels = {}
    for entry, parameters in _ENTRY.findall(text):
        kernels[entry] = [
            (int(bits) // 8 * int(many or 1), {"f": True, "b": None}.get(letter, False))
            for letter, bits, many in _PARAMETER.findall(parameters)
        ]
    return target[1], kernels, 0


def of_cubin(data: bytes) -> Code:
    """What a cubin says; if it is none, `UsageError`, or what reading beyond its end raises."""
    if data[:5] != b"\x7fELF\x02" or data[18:20] != b"\xbe\0":
        raise UsageError("not machine code of CUDA in ELF")
    sections = sections_of(data)
    if sum(size for name, (_, size) in sections.items() if ".nv.info." in name) > 4_000_000:
        raise UsageError("more than 4,000,000 bytes describe its kernels")
    kernels: dict[str, list[tuple[int, bool | None]]] = {}
    for kernel in [name[14:] for name in sections if name.startswith(".nv.constant0.")]:
        at, size = sections.get(f".nv.info.{kernel}", (0, 0))
        end, found = at + size, dict[int, int]()
        while at < end:
            form, kind, length = struct.unpack_from("<2BH", data, at)
            if kind in (0x17, 0x45):  # describes a parameter; the second in newer formats
                number, word = struct.unpack_from("<8xH2xI", data, at)
                found[number] = word >> 18 if kind == 0x17 else word
            at += 4 + (length if form == 4 else 0)  # other values are in place of the length
        kernels[kernel] = [(found[number], None) for number in sorted(found)]
    variables = (sections.get(name, (0, 0))[1] for name in (".nv.global", ".nv.global.init"))
    (flags,) = struct.unpack_from("<I", data, 48)
    return f"sm_{flags >> 8 & 255 if data[8] > 7 else flags & 255}f", kernels, sum(variables)


def sections_of(data: bytes) -> dict[str, tuple[int, int]]:
    """The place and the size of each section of an ELF file."""
    start, count, names = struct.unpack_from("<40xQ12x2H", data)
    listed = [struct.unpack_from("<I20x2Q", data, start + 64 * i) for i in range(count)]
    sections = {}
    for name, at, size in listed:
        first = listed[names][1] + name
        sections[data[first : data.index(b"\0", first, first + 4096)].decode()] = at, size
    return sections


class CompiledReader(Reader):
    """Reads the table of PTX or of a cubin; parameters have the types that their arguments need."""

    kind = COMPILED
    unused = ("std", "include_dirs", "link", "options"), "for kernels that are compiled here"

    def __init__(self, shown: str, source: str, file: Path, table: Table, data: bytes) -> None:
        super().__init__(shown, "", file, table)
        self.code, is_ptx = data, file.suffix == ".ptx"
        what = f"{shown}: not {'PTX' if is_ptx else 'a cubin'}"
        try:
            needs, self.kernels, _ = of_ptx(source) if is_ptx else of_cubin(data)
            if not self.kernels:
                raise UsageError("it has no kernel")
        except UsageError as error:
            raise UsageError(f"{what}: {error}") from None
        except (ValueError, struct.error, IndexError, OverflowError):
            raise UsageError(f"{what}: it is damaged or incomplete; compile it again") from None
        self.needs = ("cuda", needs)

    def entry(self, front: FrontMatter, _: tuple[Included, ...]) -> tuple[Entry, Signature]:
        entry = front.entry or next(iter(self.kernels))
        there = f"it has {', '.join(self.kernels):.300}"
        if entry not in self.kernels:
            self.wrong(f"no kernel {entry!r:.80} in {self.shown}; {there}", "entry")
        if not front.entry and len(self.kernels) > 1:
            self.wrong(f'several kernels; choose one, as in entry = "{entry}"; {there}', "entry")
        pointers, parameters = self.pointers(front), []
        half = "__nv_bfloat16" if pointers["A"] == "__nv_bfloat16" else "__half"
        reals = {2: half, 4: "float", 8: "double", 128: TENSOR_MAP}
        others = {1: "char", 2: "short", 4: "int", 8: "long long", 128: TENSOR_MAP}
        args = front.args if self.table.values.get("args") else ()
        for index, (size, is_real) in enumerate(self.kernels[entry]):
            text, name = args[index] if index < len(args) else "", f"parameter {index + 1}"
            if is_real is None:  # then the argument decides
                is_real = re.search(r"\b(?:alpha|beta)\b|\.", text) is not None
            is_buffer = size == 8 and text in (*workloads.memory_of(front), "")
            numbers = reals if is_real else others
            kind = pointers.get(text, "float") if is_buffer else numbers.get(size, "")
            if not kind:
                what = f"{name} has {size} bytes; only numbers, pointers and tensor maps"
                self.wrong(f"args: {what} can be passed", "args")
            parameters.append(Parameter(kind, name, is_buffer))
        return Entry(entry, ()), Signature(entry, tuple(parameters))
