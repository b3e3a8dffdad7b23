"""Packs a kernel's files for a host that does not have them."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import msgspec

from matbench.files import below, write_below
from matbench.kernelfile import includes
from matbench.model import Kernel


class Bundle(msgspec.Struct, frozen=True):
    """A kernel file and the headers that it includes, by their paths below a common folder.

    The paths in `kernel` are relative to that folder, which is named by the hash of all files.
    """

    kernel: Kernel
    sha256: str
    files: dict[str, bytes]


def packed(kernel: Kernel) -> Bundle:
    """The kernel with its files.

    Files that can no longer be read are left out, which is noticed when the kernel is built.
    """
    file = Path(kernel.file).absolute()
    folders = [includes.folder_of(file, folder).resolve() for folder in kernel.include_dirs]
    file = file.parent.resolve() / file.name
    paths = [file, *(Path(header.path) for header in kernel.includes)]
    root = Path(os.path.commonpath([*(path.parent for path in paths), *folders]))
    files: dict[str, bytes] = {}
    for path in paths:
        with suppress(OSError):
            files[path.relative_to(root).as_posix()] = path.read_bytes()
    own = tuple(os.path.relpath(folder, file.parent) for folder in folders)
    resolved = msgspec.structs.replace(kernel, file=str(file), include_dirs=own)
    inside = _placed(resolved, lambda path: Path(path).relative_to(root).as_posix())
    contents = msgspec.msgpack.encode(sorted(files.items()))
    return Bundle(inside, hashlib.sha256(contents).hexdigest(), files)


def unpacked(bundle: Bundle, folder: Path) -> Kernel:
    """The kernel of a parcel with its files in `folder`, where those that are missing are written.

    `UsageError` if one would be written elsewhere.
    """
    kernel = bundle.kernel
    root = below(folder, bundle.sha256)
    for name, data in bundle.files.items():
        if not below(root, name).exists():
            write_below(root, name, data)
    return _placed(kernel, lambda path: str(root / path))


def _placed(kernel: Kernel, place: Callable[[str], str]) -> Kernel:
    """The kernel with its files elsewhere."""
    headers = (msgspec.structs.replace(h, path=place(h.path)) for h in kernel.includes)
    return msgspec.structs.replace(kernel, file=place(kernel.file), includes=tuple(headers))
