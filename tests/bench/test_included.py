"""An included header changes while the kernel is measured or watched."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.kernels import GOOD_BODY, KernelWriter, saved
from support.products import case_of

from matbench.backends import Backend
from matbench.bench.options import Options
from matbench.bench.session import Session
from matbench.cache import Cache
from matbench.errors import CaseError
from matbench.features.watch.versions import Saves


def test_a_header_changed_midway_fails(write_kernel: KernelWriter, backend: Backend) -> None:
    path = write_kernel(body='#include "x.h"\n' + GOOD_BODY)
    header = path.with_name("x.h")
    session = Session(backend, Cache(), Options(timed=False))

    header.write_text("struct a;\n")
    loaded = case_of(path, 24, backend.info, TILE=8)
    header.write_text("struct b;\n")
    with pytest.raises(CaseError, match=r"^x\.h changed after .*mine\.cu was read; run "):
        session.measure(loaded)
    loaded = case_of(path, 24, backend.info, TILE=8)
    assert session.measure(loaded).status == "measured"
    # The build stays the one that the record names.
    header.write_text("#error\n")
    assert session.measure(loaded).status == "measured"


def test_a_header_is_saved(tmp_path: Path) -> None:
    path, header = tmp_path / "mine.cu", tmp_path / "x.h"
    path.write_text('#include "x.h"\n')
    saves = Saves(path)
    for content in ("int a;", "int b;"):
        header.write_text(content)
        assert saves.new() == path.read_bytes()
        assert saves.new() == path.read_bytes()  # until it was judged
        saves.see()
        assert saves.new() is None
    header.touch()
    (tmp_path / "y.h").write_text("int y;")
    assert saves.new() is None
    header.unlink()
    assert saves.new() == path.read_bytes()


def test_a_header_in_the_same_folder_is_told_of(tmp_path: Path) -> None:
    saves = Saves(saved(tmp_path / "mine.cu", '#include "x.h"\n'))
    saves.see()
    turns = saves.wait()
    next(turns)
    (tmp_path / "x.h").write_text("int x;")
    for _ in range(10):
        next(turns)
        if saves.new() is not None:
            return
    raise AssertionError("no turn came with the header")
