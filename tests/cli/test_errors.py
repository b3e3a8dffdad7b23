"""Invalid input: a one-line message, exit code 2, and nothing run, lost or written."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support.cli import Matbench, Refusal
from support.kernels import kernel_text

from matbench import backends
from matbench.kernelfile import catalogue

#: Arguments of `run`, and what the message must contain.
BAD_RUNS: dict[str, tuple[list[str], str]] = {
    "unknown kernel": (["tild"], "no kernel 'tild'; did you mean 'tiled'?"),
    "unlike any kernel": (["xyzzy"], "no kernel 'xyzzy'; see `matbench list`"),
    "size 0": (["--sizes", "256,0"], "size '0': must be from 1 to 1,073,741,824"),
    "tile 0": (
        ["--set", "TILE=8,0"],
        "--set TILE '0': must be a whole number above 0, as in 8,16,32",
    ),
    "unknown set": (
        ["--set", "THREDS=8"],
        "--set 'THREDS': no selected kernel sweeps it; did you mean",
    ),
    "set of nothing": (["--set", "THREADS"], "--set 'THREADS': expected NAME=LIST"),
    "set twice": (
        ["block-1d", "--set", "THREADS=128", "--set", "THREADS=64"],
        "THREADS is given twice; list its values once",
    ),
    "set and tuned": (["--set", "TILE=8", "--tuned"], "--tuned cannot be combined with --set"),
    "unknown device": (["--device", "99"], "--device '99': no such device; available: "),
    "unknown device name": (["--device", "abacus"], "--device 'abacus': no such device; available"),
    "empty group": (
        ["--group", "ladder", "--workload", "reverse"],
        "--group ladder: no kernel in it computes reverse",
    ),
    "foreign baseline": (
        ["--workload", "dot", "--baseline", "numpy"],
        "it computes matmul; available: cublas-dot",
    ),
    "one of several inputs is unknown": (
        ["--inputs", "uniform,ones"],
        "'ones' is not one of 'uniform', 'signed', 'normal'",
    ),
    "unknown inputs": (["--inputs", "ones"], "'ones' is not one of 'uniform', 'signed', 'normal'"),
    "unknown format": (["--format", "word"], "'word': not one of rich, csv, json, "),
    "seed negative": (["--seed=-1"], "Invalid value for '--seed': -1 is not in the range"),
    "no time": (["--timeout", "0"], "Invalid value for '--timeout': 0.0 is not in the range"),
    "time no number": (
        ["--timeout", "nan"],
        "Invalid value for '--timeout': 'nan' is not a number",
    ),
    "max time": (["--max-time", "inf"], "Invalid value for '--max-time'"),
    "uncertainty": (["--uncertainty", "fine"], "'fine': write a share such as 5% or 0.05"),
    "graph without hot": (["--graph"], "--graph applies to hot samples only; add --hot"),
    "unknown option": (["--szies", "8"], "No such option '--szies'."),
    "option without value": (["--sizes"], "Option '--sizes' requires an argument."),
    "no such file": (["--kernel", "none.cu"], "none.cu: cannot be read: No such file or directory"),
    "kernel is a folder": (["--kernel", "."], ".: cannot be read: Is a directory"),
    "no such folder": (["--kernels-dir", "none"], "none: no such folder"),
    "empty folder": (["--kernels-dir", "."], ".: no *.cu files in this folder"),
    "resume and output": (["--resume", "kept.jsonl"], "--resume cannot be combined with --output"),
}


@pytest.mark.usefixtures("nothing_runs", "device")
@pytest.mark.parametrize(("arguments", "told"), BAD_RUNS.values(), ids=BAD_RUNS)
def test_bad_input_is_refused_in_one_line(
    arguments: list[str], told: str, refusal: Refusal
) -> None:
    how = [] if "--resume" in arguments else ["--force"]
    assert told in refusal("run", "--output", "kept.jsonl", *how, *arguments)


@pytest.mark.usefixtures("nothing_runs")
def test_record_files_are_compared_by_another_command(refusal: Refusal) -> None:
    assert refusal("compare", "old.jsonl", "new.jsonl") == (
        "to compare record files, use `matbench diff OLD.jsonl NEW.jsonl`"
    )


#: A mistake in a kernel file: what replaces what, and the line and text of the message.
BAD_FILES: dict[str, tuple[str, str, int, str]] = {
    "not TOML": ('"For a test"', '"For a test', 3, "not TOML"),
    "unknown key": ("summary =", "sumary =", 3, "unknown key `sumary`; did you mean `summary`?"),
    "no entry": ("__global__ void", "__device__ void", 2, "no entry `__global__ void mine(…)`"),
    "not closed": (
        "\n// ///\n",
        "\n",
        1,
        "front matter is not closed; end it with a line `// ///`",
    ),
}


@pytest.mark.usefixtures("nothing_runs")
@pytest.mark.parametrize(("old", "new", "line", "told"), BAD_FILES.values(), ids=BAD_FILES)
def test_a_bad_kernel_file_is_told_with_its_line(
    old: str, new: str, line: int, told: str, refusal: Refusal
) -> None:
    text = kernel_text()
    assert text.count(old) == 1
    Path("mine.cu").write_text(text.replace(old, new), encoding="utf-8")
    for command in (["run", "--output", "kept.jsonl", "--force"], ["list"], ["show", "tiled"]):
        message = refusal(*command, "--kernel", "mine.cu")
        assert message.startswith(f"mine.cu:{line}: ")
        assert told in message


@pytest.mark.usefixtures("nothing_runs", "device")
def test_an_output_that_cannot_be_written_is_refused(refusal: Refusal) -> None:
    message = refusal("run", "tiled", "--output", "none/x.jsonl")
    assert message.startswith("none/x.jsonl: no folder ")
    assert message.endswith("create it, or name another file")
    assert refusal("run", "tiled", "--output", ".") == ".: is a folder; name a file in it"
    message = refusal("run", "tiled", "--output", "/sys/matbench.jsonl")
    assert message.startswith("/sys/matbench.jsonl: cannot be written: ")
    assert message.endswith("; name another file")


@pytest.mark.usefixtures("nothing_runs", "device")
def test_an_output_that_exists_is_kept(refusal: Refusal) -> None:
    assert refusal("run", "tiled", "--output", "kept.jsonl") == (
        "kept.jsonl: already exists; use --force to replace it, or --resume to continue it"
    )
    assert refusal("run", "tiled", "--resume", "kept.jsonl").startswith(
        "kept.jsonl:1: not a record"
    )
    assert refusal("run", "tiled", "--resume", "kept.jsonl", "--force") == (
        "--resume cannot be combined with --force"
    )


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


#: Other commands, and what the message must contain.
BAD_COMMANDS: dict[str, tuple[list[str], str]] = {
    "command": (["rnu"], "No such command 'rnu'. Did you mean 'run'?"),
    "show nothing": (["show"], "Missing argument 'NAME'."),
    "show unknown": (["show", "tild"], "no kernel 'tild'; did you mean 'tiled'?"),
    "compare one": (["compare", "tiled"], "name two kernels"),
    "compare three": (
        ["compare", "tiled", "kahan", "naive-2d"],
        "name two kernels, or any number with --against",
    ),
    "compare share": (
        ["compare", "tiled", "kahan", "--fail-if-slower", "lot"],
        "'lot': write a share",
    ),
    "compare both": (
        ["compare", "tiled", "kahan", "--hot", "--cold", "--backend", "opencl"],
        "--cold and --hot cannot be combined here",
    ),
    "compare graph": (
        ["compare", "tiled", "kahan", "--hot", "--graph", "--backend", "opencl"],
        "--graph needs CUDA; this is opencl",
    ),
    "compare numpy": (["compare", "tiled", "numpy"], "numpy runs only on the host"),
    "diff one": (["diff", "kept.jsonl"], "Missing argument 'NEW.jsonl'."),
    "diff none": (["diff", "none.jsonl", "kept.jsonl"], "none.jsonl: cannot be read: No such file"),
    "diff no record": (["diff", "kept.jsonl", "kept.jsonl"], "kept.jsonl:1: not a record"),
    "diff kernels": (["diff", "tiled", "kahan"], "tiled: cannot be read: No such file"),
    "report nothing": (["report"], "Missing argument 'FILE...'."),
    "report none": (
        ["report", "none.jsonl"],
        "none.jsonl: cannot be read: No such file or directory",
    ),
    "explain two sizes": (["explain", "tiled", "--sizes", "8,9"], "this command takes one size"),
    "blocks two alphas": (
        ["blocks", "tiled", "--sizes", "8", "--alpha", "1,2"],
        "--alpha '1,2': this command takes one alpha",
    ),
}


@pytest.mark.usefixtures("nothing_runs", "device")
@pytest.mark.parametrize(("arguments", "told"), BAD_COMMANDS.values(), ids=BAD_COMMANDS)
def test_other_commands_refuse_as_clearly(
    arguments: list[str], told: str, refusal: Refusal
) -> None:
    assert told in refusal(*arguments)


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
