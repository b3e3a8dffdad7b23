"""What a kernel file includes is part of its identity, however it is included."""

from __future__ import annotations

import hashlib
import os
import time
from pathlib import Path

import msgspec
import pytest
from support.kernels import GOOD_BODY, kernel_text, saved
from support.sources import SEVERAL
from support.toml import table

from matbench.errors import UsageError
from matbench.kernelfile import catalogue, includes, syntax
from matbench.kernelfile.includes import code_of
from matbench.model import Kernel

WAYS = table(Path(__file__).with_name("ways.toml"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The kernel's folder; its parent belongs to this test, too."""
    folder = tmp_path / "kernels"
    folder.mkdir()
    return folder


def written(folder: Path, text: str, **others: str) -> Path:
    path = folder / "mine.cu"
    path.write_bytes(kernel_text(body=f"{text}\n{kernel_text()}").encode())
    for name, content in others.items():
        other = folder / name
        other.parent.mkdir(parents=True, exist_ok=True)
        other.write_text(content, encoding="utf-8")
    return path


def hash_of(path: Path) -> str:
    return catalogue.load(path).sha256


@pytest.mark.parametrize("way", WAYS)
def test_a_header_that_changes_appears_or_goes_is_another_kernel(way: str, folder: Path) -> None:
    row = WAYS[way]
    path = written(folder, row["text"], **row.get("others", {}))
    without = hash_of(path)
    header = folder / row.get("place", "") / "x.h"
    header.parent.mkdir(exist_ok=True, parents=True)
    hashes = [without]
    for content in ("#define AMOUNT 1\n", "#define AMOUNT 2\n", ""):
        header.write_text(content, encoding="utf-8")
        hashes.append(hash_of(path))
    assert len(set(hashes)) == 4
    header.write_text("#define AMOUNT 1\n", encoding="utf-8")
    os.utime(header)
    assert hash_of(path) == hashes[1]
    header.unlink()
    assert hash_of(path) == without


def test_where_the_kernel_lies_does_not_matter(folder: Path, tmp_path: Path) -> None:
    text = '#include "sub/x.h"\n#define N(t) STRING(t)\n#include N(y)'
    hashes = set()
    for place in (folder, tmp_path / "elsewhere"):
        place.mkdir(exist_ok=True)
        hashes.add(hash_of(written(place, text, **{"sub/x.h": "int x;", "y.h": "int y;"})))
    assert len(hashes) == 1


@pytest.mark.parametrize(
    "text",
    [
        "int x;",
        "#include <cuda_fp16.h>\n#include <cstdint>",
        '#include "nowhere.h"',
        '// #include "x.h"\n/*\n#include "x.h"\n*/ // \\\n#include "x.h"',
        'const char *text = "#include <x.h>";',
        "#define include_x x\n#pragma unroll\n#undef x",
    ],
)
def test_without_headers_the_hash_is_that_of_the_file(text: str, folder: Path) -> None:
    path = written(folder, text, **{"x.h": "int x;", "y.h": "int y;"})
    assert hash_of(path) == hashlib.sha256(path.read_bytes()).hexdigest()


def test_files_that_are_not_included_do_not_matter(folder: Path) -> None:
    path = written(folder, '#include "x.h"', **{"x.h": "int x;"})
    before = hash_of(path)
    (folder / "y.h").write_text("int y;")
    (folder / "results.jsonl").write_text("{}")
    assert hash_of(path) == before
    # If only the compiler knows the name, every source file of the folder counts, but
    # not files that a run leaves there.
    path = written(folder, "#include CHOSEN", **{"x.h": "int x;"})
    before = hash_of(path)
    (folder / "results.jsonl").write_text("{}\n")
    assert hash_of(path) == before
    (folder / "y.h").write_text("int z;")
    assert hash_of(path) != before


def test_special_files_are_not_opened(folder: Path) -> None:
    os.mkfifo(folder / "pipe.h")
    (folder / "folder.h").mkdir()
    path = written(folder, '#include "pipe.h"\n#include "folder.h"\n#include CHOSEN')
    assert hash_of(path) == hashlib.sha256(path.read_bytes()).hexdigest()
    assert includes.find_includes('#include "a\0b"\n#include "/dev/zero"', path) == ()


def test_what_is_no_text_is_hashed_too(folder: Path) -> None:
    path = written(folder, '#include "x.h"')
    hashes = set()
    for content in (b"\xff\xfe", b"\xff\xff", b'\xef\xbb\xbf#include "\xff.h"\n'):
        (folder / "x.h").write_bytes(content)
        hashes.add(hash_of(path))
    Path(os.fsdecode(os.fsencode(folder) + b"/\xff.h")).write_text("int x;")
    assert len(hashes | {hash_of(path)}) == 4


def test_what_would_take_too_long_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(folder, '#include "x.h"', **{"x.h": '#include "y.h"', "y.h": "int y;"})
    monkeypatch.setattr(includes, "MAX_FILE_BYTES", 10)
    with pytest.raises(UsageError, match=r"x\.h: included file is larger than 10 bytes"):
        catalogue.load(path)
    monkeypatch.undo()
    needed = 2 * 1000 + len('#include "y.h"')
    monkeypatch.setattr(includes, "MAX_BYTES", needed)
    catalogue.load(path)
    monkeypatch.setattr(includes, "MAX_BYTES", needed - 1)
    with pytest.raises(UsageError, match=r"mine\.cu: includes too many files, or too large ones"):
        catalogue.load(path)
    monkeypatch.undo()
    monkeypatch.setattr(includes, "MAX_FILES", 1)
    with pytest.raises(UsageError, match=r"mine\.cu: includes more than 1 files"):
        catalogue.load(path)
    path = written(folder, "#include CHOSEN")
    with pytest.raises(UsageError, match=r"`#include CHOSEN` may mean any file in .*write out"):
        catalogue.load(path)


def test_a_file_that_changed_since_is_named(folder: Path) -> None:
    path = written(folder, '#include "x.h"', **{"x.h": "int x;"})
    kernel = catalogue.load(path)
    assert includes.changed(kernel) is None
    (folder / "x.h").write_text("int y;")
    assert includes.changed(kernel) == "x.h"
    (folder / "x.h").unlink()
    assert includes.changed(kernel) == "x.h"
    assert includes.changed(Kernel("mine", kernel.launch)) is None


def test_a_character_that_is_a_quote_hides_no_comment() -> None:
    source = SEVERAL.replace("{ return", "{ char q = '\"'; /* \" */ return")
    assert '/* " */' not in syntax.without_comments(source)
    assert "'\"'" in syntax.without_comments(source)


@pytest.mark.parametrize("text", ["/* ", 'R"(', "'\"", "1'", "\\\n#", "#include H\n"])
def test_no_text_takes_long(text: str, folder: Path) -> None:
    path = written(folder, '#include "x.h"', **{"x.h": text * (400_000 // len(text))})
    start = time.process_time()
    catalogue.load(path)
    assert time.process_time() - start < 20


@pytest.mark.parametrize(("named", "text"), [('"y.h"', "int inner;"), ("<y.h>", "int outer;")])
def test_a_quoted_name_is_sought_near_its_header_first(named: str, text: str, folder: Path) -> None:
    """As compilers do; the text that other languages are translated from has the same header."""
    headers = {"sub/x.h": f"#include {named}", "sub/y.h": "int inner;", "y.h": "int outer;"}
    flat = includes.flattened(catalogue.load(written(folder, '#include "sub/x.h"', **headers)))
    assert [line for line in ("int inner;", "int outer;") if line in flat] == [text]


def test_only_the_header_that_says_so_is_included_once(folder: Path) -> None:
    twice = '#include "a.h"\n#include "a.h"'
    headers = {"a.h": '#include "b.h"\nint a;', "b.h": "#pragma once\nint b;"}
    flat = includes.flattened(catalogue.load(written(folder, twice, **headers)))
    assert (flat.count("int a;"), flat.count("int b;")) == (2, 1)


# What is code


BODY = '#include "own.h"\n' + GOOD_BODY
HEADER = "#define FACTOR 1 // as it is\n"


def code(folder: Path, text: str = "", header: str = HEADER) -> str:
    """Of a kernel file in a folder of its own."""
    folder.mkdir(exist_ok=True)
    (folder / "mine.cu").write_text(text or kernel_text("mine", body=BODY))
    (folder / "own.h").write_text(header)
    return code_of(catalogue.load(folder / "mine.cu"))


def test_comments_blanks_and_descriptions_do_not_count(tmp_path: Path) -> None:
    text = kernel_text("mine", body=BODY)
    first = code(tmp_path / "a")
    others = (
        text + "// more\n",
        text.replace("float sum", "/* the\nsum */ float   sum"),
        text.replace('"For a test"', '"For another"'),
        text.replace("\n    if", "\n\n\n    if"),
    )
    for other in others:
        assert code(tmp_path / "b", other) == first
    assert code(tmp_path / "b", header="#define FACTOR 1\n// else\n") == first


def test_all_else_counts(tmp_path: Path) -> None:
    text = kernel_text("mine", body=BODY)
    others = [
        code(tmp_path / "a", text.replace("sum += ", "sum -= ")),
        code(tmp_path / "a", text.replace("[8]", "[16]")),
        code(tmp_path / "a", text.replace("ceil_div(M", "ceil_div(2 * M")),
        code(tmp_path / "a", header="#define FACTOR 2\n"),
        code(tmp_path / "a", text.replace("int k = 0", 'int k = "//"[0] - 47')),
    ]
    assert len({code(tmp_path / "a"), *others}) == 6


def test_lines_count_where_the_code_uses_their_numbers(tmp_path: Path) -> None:
    text = kernel_text("mine", body=BODY).replace("sum = 0.0f", "sum = 0 * __LINE__")
    assert code(tmp_path / "a", text) != code(tmp_path / "a", text.replace("\n{", "\n\n{"))
    assert code(tmp_path / "a", text) == code(tmp_path / "a", text.replace("\n{", "\n{ // here"))


def test_a_header_that_only_the_preprocessor_finds_counts_as_it_is(tmp_path: Path) -> None:
    """Whose name is a macro's, or that comes after another of its name."""
    macro = kernel_text("mine", body='#define OWN "own.h"\n#include OWN\n' + GOOD_BODY)
    first = code(tmp_path / "a", macro)
    assert code(tmp_path / "a", macro, header="#define FACTOR 2\n") != first
    assert code(tmp_path / "a", macro + "// more\n") == first
    (tmp_path / "a" / "more").mkdir()
    later = saved(tmp_path / "a" / "more" / "own.h", "#define FACTOR 1\n")
    front = kernel_text("mine", front='include_dirs = ["more"]', body=BODY)
    first = code(tmp_path / "a", front, header="#include_next <own.h>\n")
    later.write_text("#define FACTOR 2\n")
    assert code(tmp_path / "a", front, header="#include_next <own.h>\n") != first


def test_without_a_source_the_file_counts() -> None:
    compiled = msgspec.structs.replace(catalogue.builtin()[0], source="")
    assert code_of(compiled) == compiled.sha256
