"""What counts as the same code."""

from __future__ import annotations

from pathlib import Path

import msgspec
from support.kernels import GOOD_BODY, kernel_text

from matbench.kernelfile import catalogue
from matbench.kernelfile.includes import code_of

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
    later = tmp_path / "a" / "more" / "own.h"
    later.write_text("#define FACTOR 1\n")
    front = kernel_text("mine", front='include_dirs = ["more"]', body=BODY)
    first = code(tmp_path / "a", front, header="#include_next <own.h>\n")
    later.write_text("#define FACTOR 2\n")
    assert code(tmp_path / "a", front, header="#include_next <own.h>\n") != first


def test_without_a_source_the_file_counts() -> None:
    compiled = msgspec.structs.replace(catalogue.builtin()[0], source="")
    assert code_of(compiled) == compiled.sha256
