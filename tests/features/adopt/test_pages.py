"""What `matbench adopt` says of kernels, their mistakes and the files around them, and the tables
that it writes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from support.cli import Matbench
from support.golden import paged
from support.kernels import changed, plain, text_of
from support.paths import FOREIGN
from support.toml import table

pytestmark = pytest.mark.usefixtures("few_sizes")
PAGES = table(Path(__file__).with_name("pages.toml"))
#: Those of a wrong result, which are the device's.
FIGURES = r": reference: .*?; first .*?;( largest error .*?;)?"


def read(name: str) -> str:
    """A file of foreign, or else of tests/kernels/texts."""
    path = FOREIGN / name
    return path.read_text(encoding="utf-8") if path.is_file() else text_of(name)


def contents(text: str) -> str:
    return read(text.removeprefix("file:")) if text.startswith("file:") else text


def kernel(row: Mapping[str, Any]) -> str:
    """The text of a kernel in the table."""
    whole = read(row["of"]) if "of" in row else plain(**row.get("filled", {}))
    whole = changed(row.get("text", whole), *row.get("changes", ()))
    whole = contents(row.get("before", "")) + whole + (read(row["host"]) if "host" in row else "")
    if "launch" in row:
        grid, block, passed = row["launch"]
        whole += "void go(float *a, float *b, float *c, int m, int n, int k, int times)\n"
        whole += f"{{\n    mm<<<dim3({grid}), dim3({block})>>>({passed});\n}}\n"
    return whole


@pytest.mark.parametrize(
    "which", [pytest.param(name, marks=[pytest.mark.long] * (name == "long")) for name in PAGES]
)
def test_pages(
    which: str, tmp_path: Path, matbench: Matbench, file_regression: Any,
    request: pytest.FixtureRequest,
) -> None:  # fmt: skip
    """Only few sizes are tried here, at which a smaller grid than the right one may do."""
    found = {}
    if which == "functions":  # whose calls are tried at all sizes of probes
        request.getfixturevalue("few_probes")
    for number, (name, row) in enumerate(PAGES[which].items()):
        folder, file = tmp_path / str(number), row.get("file", "mine.cu")
        for at, text in {file: kernel(row), **row.get("beside", {})}.items():
            (folder / at).parent.mkdir(parents=True, exist_ok=True)
            (folder / at).write_text(contents(text), encoding="utf-8")
        words = [word for key in row.get("given", ()) for word in ("--front-matter", key)]
        done = matbench("adopt", folder / file, *words, *row.get("words", ()), code=None)
        said = done.stdout.partition("wrote ")[0] + (done.stderr if done.exit_code == 2 else "")
        said = said.replace(f"{folder}/", "").replace(str(folder), "FOLDER")
        said = re.sub(FIGURES, ": …;", said)
        written = folder / "mine.toml"
        made = written.read_text(encoding="utf-8") if written.exists() else ""
        found[name] = f"{said}\n{made}".rstrip()
    file_regression.check(paged(found), encoding="utf-8")
