"""Kernels that are published compiled: PTX, or machine code in a cubin.

Neither has a signature in C: the file says how large each parameter is, and the table what it is.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from matbench import workloads
from matbench.errors import UsageError
from matbench.kernelfile import signature, syntax
from matbench.kernelfile.entry import Entry
from matbench.kernelfile.front_matter import WRITTEN, Reader, decoded, default_name, identified
from matbench.kernelfile.signature import Signature
from matbench.kernelfile.tables import Beside, Table
from matbench.model import SCALE_OF, WORKSPACE, FrontMatter, Included, Kernel, Parameter, Storage

#: The largest file of compiled code that is read.
MAX_BYTES = 1 << 27
_UNUSED = ("std", "include_dirs", "link", "options")
_TARGET = re.compile(r"^[ \t]*\.target[ \t]+(sm_\w+)", re.MULTILINE)
_ENTRY = re.compile(r"\.entry\s+([\w$%]+)\s*(?:\(([^()]*)\))?")
_PARAMETER = re.compile(r"\.param\s+(?:\.align\s+\d+\s+)?\.([a-z]+)(\d+)[^,\[]*(?:\[(\d+)\])?")
#: Types of numbers by their bytes, and whether they are real.
_NUMBERS = {
    (1, False): "char", (2, False): "short", (4, False): "int", (8, False): "long long",
    (4, True): "float", (8, True): "double",
}  # fmt: skip
_REAL = re.compile(r"\b(?:alpha|beta)\b|\.")
_TENSOR_MAP_BYTES = 128
_LONGEST_NAME = 4096
#: The most bytes that describe all kernels of a file.
_MOST_INFO = 4_000_000
_CONSTANTS = ".nv.constant0."
#: Attributes in a cubin's `.nv.info` that describe a parameter; the second in newer formats.
_KPARAM_INFO, _KPARAM_INFO_V2 = 0x17, 0x45


class Slot(NamedTuple):
    """A parameter without a type; `is_real` is None if the file does not tell."""

    bytes: int
    is_real: bool | None = None


class Code(NamedTuple):
    """What a file says: the architecture that it `needs`, and the parameters of each kernel."""

    needs: str
    kernels: Mapping[str, list[Slot]]
    variable_bytes: int = 0


def of_ptx(text: str) -> Code:
    """What PTX says; `ValueError` if it is none."""
    text = syntax.without_comments(text)
    target = _TARGET.search(text)
    if target is None:
        raise ValueError("no line `.target sm_…`")
    reals = {"f": True, "b": None}
    kernels = {
        entry: [
            Slot(int(bits) // 8 * int(many or 1), reals.get(letter, False))
            for letter, bits, many in _PARAMETER.findall(parameters)
        ]
        for entry, parameters in _ENTRY.findall(text)
    }
    return Code(target[1], kernels)


def is_cubin(data: bytes) -> bool:
    """Whether this is ELF of 64 bits for CUDA."""
    return data[:5] == b"\x7fELF\x02" and data[18:20] == b"\xbe\0"


def of_cubin(data: bytes) -> Code:
    """What a cubin says, which runs on its architecture and later ones of the same family;
    `ValueError`, `IndexError`, `OverflowError` or `struct.error` if it is none."""
    if not is_cubin(data):
        raise ValueError("not machine code of CUDA in ELF")
    sections, kernels = sections_of(data), {}
    if sum(size for name, (_, size) in sections.items() if ".nv.info." in name) > _MOST_INFO:
        raise ValueError(f"more than {_MOST_INFO:,} bytes describe its kernels")
    for name in sections:
        if name.startswith(_CONSTANTS):  # only kernels have some: their parameters
            kernel = name.removeprefix(_CONSTANTS)
            slots = _described(data, *sections.get(f".nv.info.{kernel}", (0, 0)))
            kernels[kernel] = [slot for _, slot in sorted(slots)]
    variables = (sections.get(name, (0, 0))[1] for name in (".nv.global", ".nv.global.init"))
    (flags,) = struct.unpack_from("<I", data, 48)
    architecture = flags >> 8 & 255 if data[8] > 7 else flags & 255
    return Code(f"sm_{architecture}f", kernels, sum(variables))


def sections_of(data: bytes) -> dict[str, tuple[int, int]]:
    """The place and the size of each section of an ELF file."""
    start, count, names = struct.unpack_from("<40xQ12x2H", data)
    listed = [struct.unpack_from("<I20x2Q", data, start + 64 * i) for i in range(count)]
    sections: dict[str, tuple[int, int]] = {}
    for name, at, size in listed:
        first = listed[names][1] + name
        last = data.index(b"\0", first, first + _LONGEST_NAME)
        sections[data[first:last].decode()] = at, size
    return sections


def _described(data: bytes, at: int, size: int) -> Iterator[tuple[int, Slot]]:
    """The parameters that a section describes, with their numbers."""
    end = at + size
    while at < end:
        form, kind, length = struct.unpack_from("<2BH", data, at)
        at += 4
        if kind in (_KPARAM_INFO, _KPARAM_INFO_V2):
            number, word = struct.unpack_from("<4xH2xI", data, at)
            yield number, Slot(word >> 18 if kind == _KPARAM_INFO else word)
        at += length if form == 4 else 0  # other values are in place of the length


def is_compiled(path: Path | str) -> bool:
    """Whether a path names PTX or a cubin."""
    return str(path).endswith((".ptx", ".cubin"))


def parse(
    data: bytes, shown: str, file: Path, beside: Beside | None, given: Mapping[str, Any] | None
) -> Kernel:
    """The kernel that a table describes, of PTX or a cubin; `UsageError` names what is wrong."""
    is_ptx = shown.endswith(".ptx")
    text = decoded(data, shown) if is_ptx else ""
    try:
        code = of_ptx(text) if is_ptx else of_cubin(data)
        if not code.kernels:
            raise ValueError("it has no kernel")
    except (ValueError, struct.error, IndexError, OverflowError) as error:
        raise UsageError(f"{shown}: not {'PTX' if is_ptx else 'a cubin'}: {error}") from None
    table = Table(shown, text, beside, given or {})
    kernel = identified(_Reader(shown, file, table, code).kernel(), data, table)
    return msgspec.structs.replace(kernel, code=data)


class _Reader(Reader):
    """Reads the table of compiled code, with the checks of other front matter."""

    def __init__(self, shown: str, file: Path, table: Table, code: Code) -> None:
        super().__init__(shown, "", file, table)
        self.code = code

    def front(self, table: dict[str, Any]) -> FrontMatter:
        self.refuse(_UNUSED, "for kernels that are compiled here")
        name = f"{default_name(self.shown)}{Path(self.shown).suffix}"
        front = super().front({"name": name, **table})
        needs = dict.fromkeys((*front.requires, "cuda", self.code.needs))
        return msgspec.structs.replace(front, requires=tuple(needs))

    def entry(
        self, front: FrontMatter, included: tuple[Included, ...]
    ) -> tuple[Entry, Signature, tuple[Parameter, ...]]:
        names = [*self.code.kernels]
        name = front.entry or names[0]
        there = f"it has {', '.join(names):.300}"
        if name not in names:
            self.wrong(f"no kernel {name!r:.80} in {self.shown}; {there}", "entry")
        if len(names) > 1 and not front.entry:
            self.wrong(f'several kernels; choose one, as in entry = "{name}"; {there}', "entry")
        parameters = tuple(self.parameters(front, self.code.kernels[name]))
        return Entry(name, ()), Signature(name, parameters), parameters

    def parameters(self, front: FrontMatter, slots: list[Slot]) -> Iterator[Parameter]:
        """Parameters with the types that their arguments need; of buffers if there are none."""
        workload = workloads.get(front.workload)
        inputs = front.storage or ("float32" if front.precision == "tf32" else front.precision)
        kinds: dict[str, Storage] = dict.fromkeys(workload.reads, inputs)
        for buffer, kind in (kinds | {"C": front.result or inputs}).items():
            allowed = workload.storages(buffer)
            key = "result" if buffer == "C" else "storage"
            if kind not in allowed and getattr(front, key) is not None:
                self.wrong(f"{key}: {kind}; known: {', '.join(allowed)}", key)
            kinds[buffer] = kind if kind in allowed else allowed[0]
        half = "__nv_bfloat16" if kinds["A"] == "bfloat16" else "__half"
        numbers = {**_NUMBERS, (2, True): half}
        args = front.args if self.table.values.get("args") else ()
        for index, slot in enumerate(slots):
            text = args[index] if index < len(args) else ""
            name = f"parameter {index + 1}"
            if slot.bytes == 8 and text in (*kinds, WORKSPACE, *SCALE_OF.values(), ""):
                written = WRITTEN[kinds.get(text, "float32")].split(" or ")[0]
                yield Parameter(written, name, True)
            elif slot.bytes == _TENSOR_MAP_BYTES:
                yield Parameter(signature.TENSOR_MAP, name, False)
            else:
                is_real = slot.is_real or (slot.is_real is None and _REAL.search(text) is not None)
                if (slot.bytes, is_real) not in numbers:
                    what = f"{name} has {slot.bytes} bytes; only numbers, pointers and tensor maps"
                    self.wrong(f"args: {what} can be passed", "args")
                yield Parameter(numbers[slot.bytes, is_real], name, False)
