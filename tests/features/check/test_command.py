"""The output of `matbench check`: what was probed, what was not, and why."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from pytest_regressions.file_regression import FileRegressionFixture
from support import scripted
from support.cli import Matbench
from support.golden import paged
from support.kernels import GOOD_BODY, PRODUCT, WRONG_BODY, KernelWriter, changed, text_of
from support.tables import GPU, outcome, printed

from matbench.features.check import view as probes
from matbench.features.check.probe import Need, Probe
from matbench.model import DeviceInfo, Problem, Skip
from matbench.records.outcome import Outcome


def last(text: str) -> str:
    return text.splitlines()[-1]


@pytest.mark.usefixtures("scripted_device")
def test_several_kernels_are_checked(matbench: Matbench, write_kernel: KernelWriter) -> None:
    """At the sizes of `run --smoke`, and without their claims."""
    good = write_kernel("good", front="error_constant = 16")
    bad = write_kernel("bad", body=WRONG_BODY)
    text = matbench("check", good, bad, good, "--quick", code=1).stdout
    right, wrong = text.split("\n\n")[1::2]
    assert right == f"good passed 4 of 4 probes on {scripted.DEVICE.label}"
    assert last(wrong).startswith("bad passed 0 of 4 probes")
    told = matbench("check", good, "dot-tree", "--quick", "--format", "json").stdout
    _, *found = json.loads(told)
    cases = [one["outcome"]["case"] for one in found]
    assert [case["kernel"] for case in cases] == [*["good"] * 4, *["dot-tree"] * (len(cases) - 4)]
    assert [case["problem"]["M"] for case in cases[:4]] == [1, 17, 33, 65]


def test_nothing_probed(matbench: Matbench, device: DeviceInfo, write_kernel: KernelWriter) -> None:
    path = write_kernel(launch='block = [1]\ngrid = [1]\nwhere = ["M > 2**20"]')
    start = f"mine: no probe could run on {device.label}: needs M > 2**20 (M = 1…"
    result = matbench("check", path, code=1)
    assert last(result.stdout).startswith(start)
    assert "where M > 2**20" not in result.stdout, "where nothing runs, no claim is tried"
    assert result.stderr == "nothing was probed; use --allow-skips to exit with 0 anyway\n"
    result = matbench("check", path, "--allow-skips")
    assert last(result.stdout).startswith(start)
    assert result.stderr == ""


#: The front matter of a dot product of 16-bit numbers.
DOT = text_of("of-a-workload.cu").partition("extern")[0]
DOT = DOT.replace("WORKLOAD", "dot").replace("PRECISION", 'precision = "float16"')


def test_a_kernel_that_needs_cuda(matbench: Matbench, device: DeviceInfo, tmp_path: Path) -> None:
    if device.backend != "opencl":
        pytest.skip("CUDA has its headers")
    body = 'extern "C" __global__ void mine(const KIND *A, const KIND *B, float *C, int N) { }\n'
    hint = 'if it needs CUDA\'s headers, set requires = ["cuda"]'
    path = tmp_path / "mine.cu"
    path.write_text(DOT + "#include <cuda_fp16.h>\n" + body.replace("KIND", "half"))
    skipped = matbench("check", path, code=1)
    assert "needs CUDA (cuda_fp16.h, line 10)" in skipped.output
    for kind in ("__half", "half"):
        path.write_text(DOT + body.replace("KIND", kind))
        text = matbench("check", path, code=1).stdout
        assert text.count(f"needs CUDA (`{kind}`, line 10)") == 1
    path.write_text(DOT + body.replace("KIND", "half").replace("{ }", "{ C[0] = oops; }"))
    path.write_text(path.read_text().replace("half", "float"))
    assert hint not in matbench("check", path, code=1).stdout


def test_inputs_beyond_16_bits_are_refused(matbench: Matbench, tmp_path: Path) -> None:
    path = tmp_path / "mine.cu"
    path.write_text(
        f"{DOT}#ifndef __CUDACC__\n#define __half ushort\n#else\n#include <cuda_fp16.h>\n#endif\n"
        'extern "C" __global__ void mine(const __half *A, const __half *B, float *C, int N) { }\n'
    )
    result = matbench("run", path, "--inputs", "ramp", "--format", "plain", code=1)
    assert "inputs up to 67,584 exceed 65,504, the maximum of float16" in result.stdout
    assert "Warning" not in result.output


#: GOOD_BODY with an operation on each product, or on each number that is read.
BODY = "static __device__ float read(float x) { return READ; }" + changed(
    GOOD_BODY, (PRODUCT, f"read({PRODUCT.replace(' * B', ') * read(B')}) * FACTOR")
)


@pytest.mark.parametrize(
    ("front", "read", "factor", "line"),
    [
        ('precision = "bfloat16"', "__uint_as_float(__float_as_uint(x) & 0xffff0000u)", "1.0f",
         'precision = "bfloat16": needed: does not pass as float32 at '),
        # Each product is 6 · 2⁻²⁴ too large, and rounded.
        ("error_constant = 16", "x", "1.00000036f", "error_constant = 16: needs 8"),
    ],
)  # fmt: skip
def test_how_much_of_a_claim_is_needed(
    front: str, read: str, factor: str, line: str, matbench: Matbench, write_kernel: KernelWriter
) -> None:
    path = write_kernel(front=front, body=BODY.replace("READ", read).replace("FACTOR", factor))
    lines = matbench("check", path).stdout.splitlines()
    assert lines[-1].startswith("mine passed 30 of 30 probes")
    assert lines[-2].startswith(line)


@pytest.mark.usefixtures("scripted_device")
def test_a_condition_that_is_needed(matbench: Matbench, write_kernel: KernelWriter) -> None:
    whole = 'block = ["TILE", "TILE"]\ngrid = ["N // TILE", "ceil_div(M, TILE)"]\n'
    body = f"#define WRONG N % TILE != 0\n{GOOD_BODY}"
    path = write_kernel(launch=f'{whole}where = ["N % TILE == 0"]', body=body)
    lines = matbench("check", path).stdout.splitlines()
    assert lines[-2].startswith("where N % TILE == 0: needed: 0 of ")


# How it is shown


def probe(size: int, tile: int = 16, **changes: Any) -> Probe:
    found: Outcome = outcome(
        "tiled", device=GPU, params={"TILE": tile}, problem=Problem(size, size, size), **changes
    )
    return Probe(purpose=f"one of {size}", outcome=found)


NEEDS = (
    Need(key="where", declared="where N > 3", needed=None, finding="not tried"),
    Need(key="error_constant", declared="error_constant = 8", needed=True, finding="needs 2"),
)


def pages() -> dict[str, str]:
    def shown(*found: Probe, needs: Sequence[Need] = ()) -> str:
        return printed(probes.renderables("tiled", GPU, found, needs))

    bad = probe(15, 32, status="wrong", reason="C[0] is 1")
    alike = [probe(n, status="wrong", reason=f"{n} of 400 elements") for n in (20, 30, 40)]
    skips = [
        probe(n, status="skipped", skip=Skip("condition", "N <= 8", {"N": n})) for n in (15, 16)
    ]
    return {
        "shapes are rows, and parameters columns": shown(probe(15), bad, probe(16), probe(16, 32)),
        "reasons that differ in numbers are told once, the worst first": shown(
            probe(15, status="failed", reason="killed"), *alike
        ),
        "what claims are needed for": shown(bad, probe(16), needs=NEEDS),
        "nothing could run": shown(*skips),
        "one could run": shown(probe(3), *skips),
        "nothing was probed": shown(),
    }


def test_pages(file_regression: FileRegressionFixture) -> None:
    file_regression.check(paged(pages()), encoding="utf-8")
