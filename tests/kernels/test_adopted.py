"""Files as others write them: `matbench adopt` finds out what they compute, or says why not."""

from __future__ import annotations

import re
import shutil
import time
from pathlib import Path

import pytest
from support.cli import QUICK, Matbench, last_run
from support.expected import Backend, entries, tried

from matbench.features.adopt import trials
from matbench.model import DeviceInfo

FOREIGN = entries("foreign")
COMPUTES = {name: entry for name, entry in FOREIGN.items() if entry.expected.computes}
REFUSED = {name: entry for name, entry in FOREIGN.items() if not entry.expected.computes}
ONLY_CUDA = [name for name, entry in COMPUTES.items() if entry.expected.backends == ("cuda",)]


def test_there_are_enough_and_each_has_its_file() -> None:
    folder = FOREIGN["textbook.cu"].path.parent
    files = {path.relative_to(folder).as_posix() for path in folder.rglob("*.cu*")}
    assert set(FOREIGN) == files
    assert len(COMPUTES) >= 48


@pytest.mark.parametrize(("name", "backend_name", "size"), tried(COMPUTES))
def test_a_foreign_file_is_adopted_and_runs(
    name: str, backend_name: Backend, size: str, tmp_path: Path, matbench: Matbench,
    request: pytest.FixtureRequest,
) -> None:  # fmt: skip
    entry = COMPUTES[name]
    if backend_name == "opencl":
        request.getfixturevalue("few_probes")
    path = Path(shutil.copy(entry.path, tmp_path))
    started = time.monotonic()
    output = matbench("adopt", path, "--backend", backend_name).stdout
    # Whether the sums of atomics were met in another order is luck.
    computes = f"computes {entry.expected.computes}, correct at "
    assert computes in output.replace(", deterministic = False", "")
    assert re.search(r"correct at (?:all \d+ sizes|the only size) tried", output)
    assert path.read_bytes() == entry.path.read_bytes()
    assert f"wrote {path.with_suffix('.toml')}" in output
    assert output.endswith(f"next: matbench run {path}\n")
    assert backend_name == "opencl" or time.monotonic() - started < 60
    matbench("run", path, "--sizes", size, "--backend", backend_name, *QUICK)
    assert {outcome.status for outcome in last_run()} == {"measured"}


@pytest.mark.parametrize(("name", "backend_name", "size"), tried(REFUSED))
def test_no_table_is_written_for_a_wrong_kernel(
    name: str, backend_name: Backend, size: str, tmp_path: Path, matbench: Matbench,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    if name == "wrong/forever.cu":
        monkeypatch.setattr(trials, "_LAUNCH_S", 0.5)
        monkeypatch.setattr(trials, "_REPEATED_S", 0.5)
    entry = REFUSED[name]
    path = Path(shutil.copy(entry.path, tmp_path))
    output = matbench("adopt", path, "--backend", backend_name, code=1).stdout
    assert entry.expected.reason or entry.expected.any_of
    assert all(words in output for words in entry.expected.reason), output
    some_of = entry.expected.some_words(backend_name)
    assert not some_of or any(words in output for words in some_of), output
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("name", ONLY_CUDA)
def test_only_nvcc(name: str, tmp_path: Path, matbench: Matbench, device: DeviceInfo) -> None:
    if device.backend == "cuda":
        pytest.skip("there is nvcc")
    path = Path(shutil.copy(COMPUTES[name].path, tmp_path))
    output = matbench("adopt", path, code=1).stdout
    assert "cannot be built here: " in output
    assert "CUDA" in output
    assert list(tmp_path.iterdir()) == [path]
