"""Files in the forms of other evaluators: how each is called, what it is asked for, and at which
sizes it is measured. The forms' usual library is PyTorch; NumPy's arrays show the same on a CPU."""

from __future__ import annotations

import codecs
import contextlib
import json
import re
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from support import toml
from support.cli import QUICK, Matbench, Refusal, last_run
from support.golden import TableRegression
from support.optional import present
from support.repository import commit

import matbench
from matbench.errors import UsageError
from matbench.features.submissions import forms, problem, solution, supplied

HERE = Path(__file__).parent
DEFINITION, SOLUTION = (
    json.loads((HERE / name).read_text(encoding="utf-8")) for name in ("gemm.json", "solution.json")
)
TEXTS = toml.table(HERE / "texts.toml")
MODEL, KERNELBENCH, KERNELBOT = (TEXTS[name] for name in ("model", "kernelbench", "kernelbot"))
LEETGPU = TEXTS["leetgpu"]
ROUNDED = KERNELBENCH.replace("A @ B)", "(A.astype('f2') @ B.astype('f2')).astype('f4'))")
FLOAT32 = "--front-matter", "precision=float32"

LOCAL = TEXTS["local"].encode()
ODD = b"def generate_input(**sizes): return MADE\ndef ref_kernel(data): pass\n"


def test_each_form_is_measured(
    matbench: Matbench, tmp_path: Path, table_regression: TableRegression
) -> None:
    """At sizes whose sides differ, so that what M, N and K mean shows."""
    file = tmp_path / "submission.py"

    def said(question: str) -> str:
        name, *options = question.split()
        file.write_text(f"import functools\nimport numpy as np\n{TEXTS[name]}")
        told = matbench("run", file, "--sizes", "17x24x9", *options, *QUICK).stderr
        [form] = re.findall(f"^{file}: a submission in (.+)", told, re.MULTILINE)
        [outcome] = last_run()
        return f"{outcome.case.kernel}, in {form}: {outcome.status}"

    table_regression("forms.txt", said)


def test_what_a_form_asks_for_is_not_what_its_submission_does(
    matbench: Matbench, tmp_path: Path, table_regression: TableRegression
) -> None:
    """A change of a text, from what stands there."""
    file = tmp_path / "submission.py"

    def said(change: str) -> str:
        name, old, new = change.split(" | ")
        assert old in TEXTS[name]
        file.write_text(TEXTS[name].replace(old, new))
        matbench("run", file, "--sizes", "32", *FLOAT32, *QUICK, code=1)
        [outcome] = last_run()
        figures = r"[\d,]+ of [\d,]+ elements wrong; first .*?; (largest error .*?; )?"
        reason = re.sub(figures, "… elements wrong; ", outcome.reason or "")
        return f"{outcome.status}: {reason.replace(str(tmp_path), 'FOLDER')}"

    table_regression("wrong.txt", said)


def test_a_problem_says_what_is_computed_and_at_which_sizes(
    matbench: Matbench, tmp_path: Path
) -> None:
    """In a file of its own, or in the submission; `--sizes` takes precedence."""
    own = MODEL.format(name="Model", product="A.T @ B", A="(K, M)", B="(K, N)")
    own = own.replace("= 64,", "= abs(-64),")
    new = "\n\nclass ModelNew:\n    def forward(self, A, B):\n        return A.T @ B\n"
    (tmp_path / "asked.py").write_text(own)
    (tmp_path / "other.py").write_text(new)
    both = own.replace("Model:\n", "Model:\n    def __init__(self, f): pass\n\n") + new
    both = both.replace("return []", "return [lambda: 1]").replace("(K, N)", "(Model.K, N)")
    both = both.replace("return [np", "yield from [np") + "\nModel.K = K\n"
    (tmp_path / "both.py").write_text(both + "import absent\nraise_if_run = int('x')\n")
    asked = "--front-matter", "problem=asked.py"
    told = matbench("run", tmp_path / "other.py", *asked, *QUICK).stderr
    assert "(transpose TN and sizes of its problem: 64x96x40)" in told
    [outcome] = last_run()
    assert outcome.status == "measured"
    assert outcome.case.problem.size == "64x96x40"
    matbench("run", tmp_path / "other.py", *asked, "--sizes", "33", *QUICK)
    assert last_run()[0].case.problem.size == "33"
    told = matbench("run", tmp_path / "both.py", *QUICK, code=1).stderr
    assert "transpose TN" in told, "of a submission, only the problem is run to name the product"


def test_which_product_a_reference_computes(
    tmp_path: Path, table_regression: TableRegression
) -> None:
    """Given what it returns, the shapes of A and B, and their type if it is not float32."""
    file = tmp_path / "problem.py"

    def said(question: str) -> str:
        product, A, B, *kind = question.split("; ")
        text = MODEL.format(name="Model", product=product, A=A, B=B)
        file.write_text(text.replace('"f4"', f'"{kind[0]}"') if kind else text)
        try:
            found = problem.of_file(file)
        except UsageError as error:
            return str(error).replace(str(file), "FILE")
        return f"{found.table}, of {found.split}" if found.split else str(found.table)

    table_regression("references.txt", said)


def test_an_A_of_three_dimensions_has_a_result_of_three(matbench: Matbench, tmp_path: Path) -> None:
    """The class is made with what its problem says, whether that has a literal or not."""
    asked = MODEL.format(name="Model", product="A @ B", A="(batch, M, K)", B="(K, N)")
    asked = asked.replace("[]", "[float('inf'), np.float32]")
    made = "    def __init__(self, inf, kind):\n        assert inf > kind(1e30)\n\n"
    (tmp_path / "asked.py").write_text(asked.replace("Model:\n", f"Model:\n{made}"))
    for product, status in (("A @ B", "measured"), ("None", "wrong"), ("(A @ B)[0]", "wrong")):
        new = f"class ModelNew:\n{made}    def forward(self, A, B):\n        return {product}\n"
        (tmp_path / "new.py").write_text(new)
        asking = "--front-matter", "problem=asked.py"
        matbench("run", tmp_path / "new.py", *asking, *QUICK, code=None)
        assert last_run()[0].status == status
    assert last_run()[0].reason == "returned (64, 96) instead of (3, 64, 96)"


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("p.py", b"class Model(\n", "p.py:1: not Python: '(' was never closed"),
        ("p.py", b"x = 1\0\n", "p.py:1: not Python: source code string cannot contain null bytes"),
        ("p.py", b"import sys\nsys.stderr.buffer.write(b'\\xff')\nsys.exit(3)", "with code 3"),
        ("p.py", b"raise OSError('one\\ntwo')", "p.py: its reference: OSError: one two"),
        ("p.py", LOCAL, "get_init_inputs() has what cannot be passed on: Can't pickle "),
        ("p.py", ODD.replace(b"MADE", b"1"), "its reference: takes 1 input, not two matrices"),
        ("p.py", ODD.replace(b"MADE", b"{}, 1"), "takes a value of type dict, not two matrices"),
        ("p.yml", b"tests: " + b"9" * 5000, "or has an impossible number or date"),
        ("p.yml", b"tests: [", "k: while parsing a flow node did not find expected node content"),
        ("p.yml", b"tests:\n- {m: -8, n: 8, k: 8}", "Expected `int` >= 1 - at `$.tests[0].m`"),
    ],
)
def test_a_problem_that_cannot_be_read_is_one_line(
    refusal: Refusal, tmp_path: Path, name: str, text: bytes, told: str
) -> None:
    (tmp_path / "submission.py").write_text(KERNELBENCH)
    (tmp_path / name).write_bytes(text)
    assert told in refusal("run", tmp_path / "submission.py", "--front-matter", f"problem={name}")


def test_what_a_reference_starts_ends_with_it(tmp_path: Path) -> None:
    file = tmp_path / "problem.py"
    text = MODEL.format(name="Model", product="A @ B", A="(M, K)", B="(K, N)")
    starts = "import subprocess\nstarted = subprocess.Popen(['sleep', '600']).pid\n"
    file.write_text(f"{starts}open({str(tmp_path / 'pid')!r}, 'w').write(str(started))\n{text}")
    problem.of_file(file)
    with contextlib.suppress(psutil.NoSuchProcess):
        started = psutil.Process(int((tmp_path / "pid").read_text()))
        while started.status() != psutil.STATUS_ZOMBIE:
            time.sleep(0.01)


def test_a_task_has_sizes(matbench: Matbench, refusal: Refusal, tmp_path: Path) -> None:
    (tmp_path / "submission.py").write_text(KERNELBOT)
    task = tmp_path / "task.yml"
    task.write_text("tests:\n- {m: 8, n: 8, k: 8}\nbenchmarks:\n- {m: 16, n: 24, k: 8, seed: 1}\n")
    command = "run", tmp_path / "submission.py", "--front-matter", "precision=float32", *QUICK
    assert "(sizes of its problem: 16x24x8)" in matbench(*command).stderr
    assert [outcome.case.problem.size for outcome in last_run()] == ["16x24x8"]
    task.write_text("benchmarks:\n- {size: 16}\n")
    assert f"{task}: no task with `benchmarks` of m, n and k" in refusal(*command)


def test_the_tuple_of_an_8_bit_product_has_its_scales() -> None:
    text = KERNELBOT.replace("a, b, c = data", "a, b, a_scale, b_scale, c = data")
    found = forms.of_python(text, "submission.py")
    assert found is not None
    assert found.table["args"] == ["A", "B", "scale_a", "scale_b", "C"]
    assert (found.table["transpose"], found.table["scales"]) == ("NT", "blocks")
    with pytest.raises(UsageError, match=r"submission.py:10: custom_kernel unpacks 4 values"):
        forms.of_python(KERNELBOT.replace("a, b, c = data", "a, b, c, d = data"), "submission.py")
    helpers = {"f(*data)": "f(a, b, s, t, c): pass", "f(data)": "f(x):\n    a, b, s, t, c = x"}
    for call, helper in helpers.items():
        text = f"def g(x):\n    y, z = x\ndef {helper}\ndef custom_kernel(data): return {call}\n"
        assert present(forms.of_python(text, "submission.py")).table["args"] == found.table["args"]


def test_what_the_sizes_of_a_function_on_the_host_mean(table_regression: TableRegression) -> None:
    def said(function: str) -> str:
        old = forms.of_cuda(f'#include "solve.h"\nvoid {function} {{}}\n', "mine.cu")
        assert (old is not None) == ("solve" in function), "as LeetGPU declared its functions"
        assert old is None or "include" not in old.text
        return str(present(forms.of_cuda(f'extern "C" void {function} {{}}\n', "mine.cu")).table)

    table_regression("on-the-host.txt", said)


def test_another_challenge_is_no_product(refusal: Refusal, tmp_path: Path) -> None:
    file = tmp_path / "add.cu"
    file.write_text('extern "C" void solve(const float *A, const float *B, float *C, int N) {}\n')
    asked = "add.cu:1: solve(A, B, C, N) is no matrix product in LeetGPU's form"
    said = refusal("run", file)
    assert asked in said
    assert "if another function is meant, name it with --entry" in said
    assert forms.of_cuda("void solve(float *A) {}", "mine.cu") is None, "a function of C++ is not"
    one = "void solve(float *A, float *B, float *C, int M, int N, int K)"
    for declared in (f'extern "C" {one};', f'extern "C" {{ int f(); {one}; }}'):
        assert forms.of_cuda(f"{declared}\n{one} {{}}", "mine.cu") is not None
    assert forms.of_cuda(f'extern "C" int f();\n{one} {{}}', "mine.cu") is None
    other = f'extern "C" {one} {{}}\n'.replace("solve", "other")
    assert forms.of_cuda(other, "mine.cu") is None
    assert forms.of_cuda('extern "C" void solve(float *x, int n) {}\n', "mine.cu") is None
    file.write_text("PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {}\n")
    assert "add.cu: a module for PyTorch; name a Python file that loads it" in refusal("run", file)
    file.with_suffix(".py").write_text("import cutlass.cute as cute\n" + LEETGPU)
    assert "add.py: uses cutlass; matbench calls" in refusal("run", file.with_suffix(".py"))


def test_squares_have_one_size(matbench: Matbench, refusal: Refusal, tmp_path: Path) -> None:
    file = tmp_path / "solution.py"
    file.write_text("def solution(a, b, c, n):\n    assert len(a) == n\n    c[...] = a @ b\n")
    matbench("run", file, "--sizes", "24,24x24x8", *QUICK)
    assert [outcome.status for outcome in last_run()] == ["measured", "skipped"]
    told = refusal("run", file, "--front-matter", "problem=p.py")
    assert "problem: Tensara's form has none; give --sizes" in told


def test_a_table_or_an_entry_takes_precedence(matbench: Matbench, tmp_path: Path) -> None:
    """Then the file is one of matbench's own: M, N and K are those of BLAS."""
    file = tmp_path / "mine.py"
    table = "# /// matbench\n# precision = 'float32'\n# ///\n"
    file.write_text(table + "def solve(A, B, C, M, N, K):\n    C[:M, :N] = A[:, :K] @ B\n")
    assert "submission" not in matbench("run", file, "--sizes", "8x9x7", *QUICK).stderr
    assert last_run()[0].status == "measured"


def write_solution(folder: Path, **changes: object) -> Path:
    (folder / "gemm.json").write_text(json.dumps(DEFINITION))
    (folder / "solution.json").write_text(json.dumps(SOLUTION | changes))
    return folder / "solution.json"


def test_a_solution_is_measured_at_the_sizes_of_its_workloads(
    matbench: Matbench, tmp_path: Path
) -> None:
    lines = {"axes": {"M": 8}}, {"workload": {"axes": {"M": 33}}}, {"axes": {"other": 1}}
    (tmp_path / "workloads.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    told = matbench("run", write_solution(tmp_path), *QUICK).stderr
    assert (
        "flashinfer-bench's form (transpose NT and sizes of its problem: 8x24x40, 33x24x40)" in told
    )
    assert [(one.case.problem.size, one.status) for one in last_run()] == [
        ("8x24x40", "measured"), ("33x24x40", "measured")
    ]  # fmt: skip
    matbench("run", tmp_path / "solution.json", "--sizes", "16", *QUICK, "--allow-skips")
    [outcome] = last_run()
    assert outcome.status == "skipped", "its sides of one value are conditions"
    sources = [{"path": "main.py", "content": "def run(A, B): return A @ B.T, A\n"}]
    matbench("run", write_solution(tmp_path, sources=sources), *QUICK, code=1)
    assert last_run()[0].reason == "returned tuple instead of an array"


def test_a_solution_of_sol_execbench_fills_what_it_is_given(
    matbench: Matbench, tmp_path: Path
) -> None:
    spec = {"languages": ["python"], "entry_point": "main.py::run"}
    sources = [{"path": "main.py", "content": "def run(A, B, C): C[...] = A @ B.T\n"}]
    file = write_solution(tmp_path, spec=spec, sources=sources)
    told = matbench("run", file, "--sizes", "8x24x40", *QUICK).stderr
    assert "SOL-ExecBench's form" in told
    assert last_run()[0].status == "measured"


def test_a_solution_may_be_in_a_data_set_and_in_folders(matbench: Matbench, tmp_path: Path) -> None:
    """Then its definition is found by name; sources without content lie beside it."""
    for folder in ("definitions/gemm", "workloads/gemm", "solutions/gemm/pkg"):
        (tmp_path / folder).mkdir(parents=True)
    spec = {"languages": ["pytorch"], "entry_point": "pkg/main.py::run"}
    sources = [{"path": "pkg/main.py", "content": "from . import own\nrun = own.fill\n"},
               {"path": "pkg/own.py"}]  # fmt: skip
    file = write_solution(tmp_path / "solutions/gemm", spec=spec, sources=sources)
    file.with_name("gemm.json").unlink()
    own = "import numpy as np\ndef fill(A, B, C): np.matmul(A, B.T, out=C)\n"
    (file.parent / "pkg" / "own.py").write_text(own)
    text = json.dumps(DEFINITION).replace('"value": 40', '"type": "expr", "expression": "N + 16"')
    (tmp_path / "definitions/gemm/gemm.json").write_text(text)
    (tmp_path / "workloads/gemm/gemm.jsonl").write_text('{"workload": {"axes": {"M": 16}}}\n')
    assert "sizes of its problem: 16x24x40" in matbench("run", file, *QUICK).stderr
    assert last_run()[0].status == "measured"


def test_a_batch_has_the_values_of_its_workloads(matbench: Matbench, tmp_path: Path) -> None:
    """Also 1; without workloads, usual sizes, of which expressions are made."""
    axes = {"b": {}, "M": {}, "N": {"expression": "M * 2"}, "K": {"value": 40}}
    inputs = {"A": {"shape": [*"bMK"]}, "B": {"shape": [*"bKN"]}}
    code = "def run(A, B):\n    len(A), A[0, 0], B[0, 0]\n    return A @ B\n"
    file = write_solution(tmp_path, sources=[{"path": "main.py", "content": code}])
    said = DEFINITION | {"axes": axes, "inputs": inputs, "reference": code}
    (tmp_path / "gemm.json").write_text(json.dumps(said))
    found = problem.of_file(tmp_path / "gemm.json").table
    assert (found["sizes"], found["batch"]) == ("16x32x40,512x1024x40,4096x8192x40", [2])
    lines = {"axes": {"b": 1, "M": 8, "K": 7}}, {"axes": {"b": 3, "M": 8}}
    (tmp_path / "workloads.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    for of in ["bNK KN", "bKK KN M % 40 == 0", "KKK KN M == 1600", "KMK KKN batch == 40"]:
        A, B, *more = of.split(" ", 2)
        asked = said | {"inputs": {"A": {"shape": [*A]}, "B": {"shape": [*B]}}}
        (tmp_path / "of.json").write_text(json.dumps(asked))
        assert problem.of_file(tmp_path / "of.json").table["launch"]["where"] == ["K == 40", *more]
    matbench("run", file, *QUICK)
    told = [(one.case.problem.size, one.case.problem.batch, one.status) for one in last_run()]
    assert told == [("8x16x40", 1, "measured"), ("8x16x40", 3, "measured")]


def test_a_definition_may_have_scales(tmp_path: Path) -> None:
    axes = {name: {"value": n} for name, n in zip("MNKnk", (8, 130, 160, 2, 2), strict=True)}
    tensors = {"A": "MK", "a": "Mk", "B": "NK", "b": "nk", "C": "MN"}
    inputs = {name: {"shape": [*shape], "dtype": "float8_e4m3fn" if name.isupper() else "float32"}
              for name, shape in tensors.items()}  # fmt: skip
    outputs = {"C": inputs.pop("C") | {"dtype": "bfloat16"}}
    code = ("def run(A, a, B, b):\n    A, B = A.astype('f4'), B.astype('f4')\n"
            "    a, b = a.repeat(128, 1)[:, :160], b.repeat(128, 0).repeat(128, 1)[:130, :160]\n"
            "    return (A * a) @ (B * b).T\n")  # fmt: skip
    said = {"axes": axes, "inputs": inputs, "outputs": outputs, "reference": code}
    (tmp_path / "d.json").write_text(json.dumps(said))
    found = problem.of_file(tmp_path / "d.json")
    told = *found.roles, *(found.table[key] for key in ("scales", "storage", "result"))
    assert told == ("A", "scale_a", "B", "scale_b", "blocks", "e4m3", "bfloat16")
    assert found.table["launch"]["where"] == ["M == 8", "N == 130", "K == 160"]


def test_a_revision_has_the_problem_of_its_time(matbench: Matbench, project: Path) -> None:
    """A task may have a reference, which says how B is given."""
    task, new = "benchmarks:\n- {m: 8, n: 16, k: 24, more: 1}\n", KERNELBENCH
    asked = MODEL.format(name="Model", product="A @ B", A="(M, K)", B="(K, N)")
    more = {"task_yml": task, "gemm_json": json.dumps(DEFINITION), "asked__p_py": asked}
    texts = {"reference_py": TEXTS["reference"], "bot_py": TEXTS["of_reference"], "new_py": new}
    commit(project, **more, **texts, solution_json=json.dumps(SOLUTION))
    later = {name: text.replace("24", "48").replace("96", "48") for name, text in more.items()}
    commit(project, **later, reference_py="")
    sizes = {"new.py": "64x96x40", "bot.py": "8x16x24", "solution.json": "16x24x40"}
    for name, size in sizes.items():
        given = ("--front-matter", "problem=asked/p.py") if name == "new.py" else ()
        matbench("run", project / f"{name}@HEAD~1", *given, *QUICK)
        first = last_run()[0]
        assert (first.status, first.case.problem.size) == ("measured", size)


def test_a_bad_solution_or_definition_is_one_line(
    refusal: Refusal, tmp_path: Path, table_regression: TableRegression
) -> None:
    def said(changes: str) -> str:
        changed = json.loads(changes)
        file = write_solution(tmp_path, **changed)
        if changed.keys() < DEFINITION.keys():
            file.with_name("gemm.json").write_text(json.dumps(DEFINITION | changed))
        return refusal("run", file).replace(str(tmp_path), "FOLDER")

    table_regression("refused.txt", said)


def test_a_reference_may_insist_on_a_long_sum_of_a_narrow_type(tmp_path: Path) -> None:
    text = json.dumps(DEFINITION).replace("40", "256").replace("float32", "float16")
    (tmp_path / "gemm.json").write_text(text)
    found = problem.of_file(tmp_path / "gemm.json").table
    assert (found["transpose"], found["precision"]) == ("NT", "float16")


def test_other_json_is_no_solution() -> None:
    data = codecs.BOM_UTF8 + json.dumps(SOLUTION).encode()
    assert solution.unpacked(data, Path("x.json")).definition == SOLUTION["definition"]
    for other in (data[:-1], b"", b"[1]", b'{"name": 1}', b'{"name": "\xff"}'):
        with pytest.raises(UsageError, match=r"^x\.json: no solution: "):
            solution.unpacked(other, Path("x.json"))


def test_sources_in_cpp_are_loaded_by_pytorch(tmp_path: Path) -> None:
    """What is run is Python that compiles them when it is loaded."""
    spec = {"entry_point": "mm.cu::run", "binding": "torch"}
    code = "PYBIND11_MODULE(m)\n"
    sources = [{"path": "mm.cu", "content": code}, {"path": "mm.h", "content": ""}]
    data = json.dumps(SOLUTION | {"spec": spec, "sources": sources}).encode()
    found = solution.unpacked(data, Path("solution.json"))
    assert found is not None
    assert (found.call, found.file.suffix) == ("module.run", ".py")
    assert "sources=[str(here / name) for name in ['mm.cu']]" in found.text
    assert (found.file.parent / "mm.cu").read_text() == code


def test_programs_judge_submissions(tmp_path: Path) -> None:
    right, wrong = tmp_path / "right.py", tmp_path / "wrong.py"
    right.write_text(KERNELBENCH)
    wrong.write_text(ROUNDED)
    with matbench.Judge(sizes="32") as judge:
        assert judge.run(right).status == "measured"
        assert judge.run(wrong).status == "wrong"
        refused = judge.run(write_solution(tmp_path, spec={"entry_point": 3}))
        assert "solution.json: no solution: Expected `str`" in (refused.reason or "")


def test_a_long_line_of_spaces_is_read_at_once() -> None:
    line = " " * 100_000
    began_s = time.monotonic()
    for text in (f"{line}x", f"import {line}x"):
        assert supplied.with_supplied(text, Path()) == text
    assert time.monotonic() < began_s + 5
    assert supplied.with_supplied("try:  import os, task", Path()).startswith("try:  from matbench")


def test_a_reference_runs_without_matbench_in_its_way(tmp_path: Path) -> None:
    """Its process knows the problem alone, whatever that prints."""
    file = tmp_path / "problem.py"
    text = MODEL.format(name="Model", product="print('C') or A @ B", A="(M, K)", B="(K, N)")
    file.write_text(text)
    assert problem.of_file(file).table["transpose"] == "NN"
    asked = tmp_path / "asked.json"
    asked.write_text(json.dumps({"file": text.replace("A @ B", "A"), "is_own": False}))
    command = [sys.executable, "-m", "matbench.features.submissions.reference", str(asked)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.endswith("\nNoProductError: computes no product of two matrices\n")
