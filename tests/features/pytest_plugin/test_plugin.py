"""The fixture `matmul` and its marker, in tests of a user, on a real device."""

from __future__ import annotations

import re
from argparse import Namespace
from itertools import groupby
from pathlib import Path

import pytest
from support.devices import GPU
from support.kernels import SLOW_BODY, WRONG_BODY, kernel_text
from support.paths import ROOT, programs

from matbench.features.pytest_plugin.fixture import Matmul
from matbench.model import DeviceInfo

pytest_plugins = ["pytester"]

PROGRAMS = programs(__file__)
CONFTEST, MARKED = PROGRAMS["options"], PROGRAMS["one that needs a GPU"]


@pytest.fixture
def project(pytester: pytest.Pytester, device: DeviceInfo) -> pytest.Pytester:
    """A folder with kernels and a package, whose tests measure on the CPU."""
    pytester.makeini("[pytest]\naddopts = -p no:hypothesispytest\n")  # slow to import
    options = CONFTEST.replace("BACKEND", repr(device.backend))
    pytester.makeconftest(options.replace("DEVICE", repr(device.place)))
    bodies = {"mine": "", "bad": WRONG_BODY, "slow": SLOW_BODY}
    for name, body in bodies.items():
        Path(f"{name}.cu").write_text(kernel_text(name, body=body), encoding="utf-8")
    Path("package").mkdir()
    Path("package/products.py").write_text(
        "from package.helper import product\n\ndef multiply(A, B):\n    return product(A, B)\n"
        "\nalso = multiply\n", encoding="utf-8",
    )  # fmt: skip
    Path("package/helper.py").write_text("def product(A, B):\n    return A @ B\n", encoding="utf-8")
    return pytester


def test_a_wrong_product_fails_its_test_as_check_tells_it(project: pytest.Pytester) -> None:
    project.makepyfile(PROGRAMS["wrong products"])
    result = project.runpytest_subprocess("-ra")
    result.assert_outcomes(passed=3, failed=6)
    text = result.stdout.str()
    first = re.findall(r"^_+ .* _+\n(.*)", text, re.MULTILINE)
    assert first[0].startswith("bad passed 0 of 4 probes on ")
    result.stdout.re_match_lines(
        ["M×N×K +inputs +probes +TILE=8", "65x31x129 +uniform +quick +WRONG", "",
         r"TILE=8 at 1, uniform: reference: 1 of 1 elements wrong; .*"],
        consecutive=False,
    )  # fmt: skip
    assert "no `def named` at the top of this file; it has " in first[1]
    assert re.search(r"print>: .*: give a function at the top of a Python file", first[2])
    assert first[3].startswith("no.cu: cannot be read: ")
    assert first[4] == "mine: computes C = A·B; asked for C = A·B + C"
    assert "no probe could run" in first[5]
    assert "Traceback" not in text
    assert "During handling" not in text


def test_a_slower_product_fails_its_test(project: pytest.Pytester) -> None:
    project.makepyfile(PROGRAMS["slower products"])
    Path("bare.cu").write_text("int x;\n", encoding="utf-8")
    result = project.runpytest_subprocess("-ra")
    result.assert_outcomes(passed=2, failed=7)
    first = re.findall(r"^_+ test_.* _+\n(.*)", result.stdout.str(), re.MULTILINE)
    assert first[0] == "SLOWER by more than 3.0% at 2 of 2 sizes"
    result.stdout.fnmatch_lines(["candidate slow against baseline mine", "*× slower* SLOWER"])
    assert first[1].startswith("bad: wrong: reference: ")
    assert first[2].startswith("no size could be judged")
    assert first[3:5] == [
        "max_slower=nan: write a share such as 0.03",
        "numpy runs only on the host; use `matbench run`",
    ]
    assert first[5] == first[6]
    assert first[5].startswith("bare.cu: no front matter, and ")
    assert "beyond ±0%" in " ".join(result.stdout.str().split())


def test_each_folder_has_its_own_options(project: pytest.Pytester) -> None:
    """A mistake in them is one line, and skips no test that needs a GPU."""
    own = "import pytest\n\n@pytest.fixture(scope='session')\ndef matmul_options():\n    return "
    test = "def test_product(matmul):\n    matmul.check('mine.cu', quick=True)\n"
    marked = "import pytest\n\n@pytest.mark.matmul_gpu\ndef test_marked():\n    pass\n"
    told = {
        "{'contract': {'transpose': 'NT'}}": "mine: computes C = A·B; asked for C = A·Bᵀ",
        "{'bakend': 'cuda'}": "matmul_options: TypeError: .* unexpected keyword argument 'bakend'",
        "None": "matmul_options: TypeError: .* must be a mapping",
        "{'backend': 'metal'}": "backend='metal': 'metal' is not one of ",
    }
    for number, options in enumerate(told):
        folder = Path(f"folder{number}")
        folder.mkdir()
        (folder / "conftest.py").write_text(own + options, encoding="utf-8")
        (folder / f"test_{number}.py").write_text(test, encoding="utf-8")
    Path("folder3/test_3.py").write_text(marked, encoding="utf-8")
    project.makepyfile(test)
    result = project.runpytest_subprocess("-ra")
    result.assert_outcomes(passed=1, failed=3, errors=1)
    result.stdout.re_match_lines(list(told.values())[-1:])
    result.stdout.re_match_lines(list(told.values())[:-1])


def test_a_cache_that_cannot_be_written_is_one_line(
    project: pytest.Pytester, device: DeviceInfo, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = "cpu" if device.kind == "cpu" else re.sub(r"[^0-9A-Za-z]", "-", device.identity)
    Path(f"cache/pytest-{place}.lock").mkdir(parents=True)
    project.makepyfile("def test_product(matmul):\n    matmul.check('mine.cu')\n")
    for name, told in ("mine.cu", "not a folder"), ("cache", "cannot be written"):
        monkeypatch.setenv("MATBENCH_CACHE_DIR", str(Path(name).absolute()))
        result = project.runpytest_subprocess()
        result.assert_outcomes(failed=1)
        result.stdout.re_match_lines([f"cache folder .*/{name}: {told}.*; set MATBENCH_CACHE_DIR"])


def test_what_needs_a_gpu_is_skipped_without_one(
    project: pytest.Pytester, device: DeviceInfo, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.makepyfile(MARKED)
    result = project.runpytest_subprocess("-ra", "--strict-markers")
    result.assert_outcomes(passed=1, skipped=1)
    result.stdout.fnmatch_lines([f"*needs a GPU; matbench would use {device.label}"])
    monkeypatch.setattr(Matmul, "_judge", Namespace(device=GPU))
    project.runpytest_inprocess("--strict-markers").assert_outcomes(passed=2)


def test_what_needs_a_gpu_is_skipped_without_any_device(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    project.makeconftest(CONFTEST.replace("BACKEND", "'cuda'").replace("DEVICE", "None"))
    project.makepyfile(f"{MARKED}\ndef test_product(matmul):\n    matmul.check('mine.cu')\n")
    result = project.runpytest_subprocess("-ra")
    result.assert_outcomes(passed=1, skipped=1, failed=1)
    result.stdout.re_match_lines(["no device to run on; ", "SKIPPED .*no device to run on; "])


def test_what_a_function_leaves_behind_affects_no_other_test(project: pytest.Pytester) -> None:
    project.makepyfile(PROGRAMS["a function that leaves something behind"])
    project.runpytest_subprocess().assert_outcomes(passed=1)


def test_processes_take_turns_on_a_device(project: pytest.Pytester) -> None:
    log = project.path / "log"
    project.makepyfile(PROGRAMS["two that write into a log"].replace("LOG", repr(str(log))))
    project.runpytest_subprocess("-n", "2").assert_outcomes(passed=2)
    calls = log.read_text(encoding="utf-8")
    assert sorted(name for name, _ in groupby(calls)) == ["1", "2"]
    assert len(calls) < 2 * 4 * 16, "a check takes no times"


def test_nothing_is_imported_before_it_is_needed(pytester: pytest.Pytester) -> None:
    """The plugin takes a thousandth of a second of other runs."""
    pytester.makeconftest(
        "import sys\n\ndef pytest_unconfigure():\n    print('loaded', sorted(sys.modules))\n"
    )
    pytester.makepyfile("def test_other(): pass")
    result = pytester.runpytest_subprocess("-s")
    [loaded] = [line for line in result.outlines if line.startswith("loaded")]
    plugin = "matbench.features.pytest_plugin"
    names = ("matbench", "matbench.features", plugin, f"{plugin}.plugin")
    assert re.findall(r"'(matbench[\w.]*)'", loaded) == [*names]
    assert not re.search(r"'(numpy|click|msgspec|rich|filelock)'", loaded)


def test_the_example_of_the_page(project: pytest.Pytester, device: DeviceInfo) -> None:
    page = (ROOT / "docs/pytest.md").read_text(encoding="utf-8")
    products, tests, conftest = re.findall(
        r"^```python\n(.*?)^```$", page, re.DOTALL | re.MULTILINE
    )
    project.makepyfile(products=products, test_products=tests)
    project.makeconftest(conftest.replace('"opencl"', repr(device.backend)))
    is_gpu = device.kind == "gpu"
    project.runpytest_subprocess("--strict-markers").assert_outcomes(
        passed=4 + is_gpu, skipped=not is_gpu
    )
