"""What the system lacks or refuses: a one-line message, and nothing run, lost or written."""

from __future__ import annotations

import re

import pytest
from support.cli import Matbench, Refusal

from matbench import backends
from matbench.kernelfile import catalogue


@pytest.mark.usefixtures("nothing_runs", "device")
def test_an_output_that_cannot_be_written_is_refused(refusal: Refusal) -> None:
    message = refusal("run", "tiled", "--output", "/sys/matbench.jsonl")
    assert message.startswith("/sys/matbench.jsonl: cannot be written: ")
    assert message.endswith("; name another file")


@pytest.mark.usefixtures("nothing_runs")
def test_a_backend_without_a_device_says_what_is_missing(refusal: Refusal) -> None:
    try:
        backends.devices("cuda")
    except backends.UnavailableError:
        pass
    else:
        pytest.skip("CUDA can be used here")
    message = refusal("run", "tiled", "--backend", "cuda", "--output", "kept.jsonl")
    assert message.startswith("no device to run on; cuda: ")
    assert re.search("install|driver", message)


@pytest.mark.usefixtures("own_state")
def test_ctrl_c_where_there_is_no_table(
    matbench: Matbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(catalogue, "builtin", interrupted)
    for command in (["run"], ["list"], ["compare", "tiled", "kahan"], ["show", "tiled"]):
        result = matbench(*command, code=130)
        assert (result.stdout, result.stderr) == ("", "interrupted\n")
