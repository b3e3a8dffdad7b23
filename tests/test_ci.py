"""The action, the release and the workflows of docs/ci.md: linters pass them, their steps work."""

from __future__ import annotations

import html
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.kernels import KernelWriter
from support.repository import cloned, commit, git

from matbench import __version__

ROOT = Path(__file__).parents[1]
BIN = Path(sys.executable).parent
WORKFLOWS = re.findall(r"```yaml\n(.*?)```", (ROOT / "docs/ci.md").read_text(), re.DOTALL)
SMOKE, SPEED = WORKFLOWS
ACTION = (ROOT / "action.yml").read_text()
RELEASE, SITE = (
    (ROOT / f".github/workflows/{name}.yml").read_text() for name in ("release", "site")
)

Step = dict[str, Any]


@pytest.mark.parametrize(
    ("texts", "schema"),
    [([SMOKE, SPEED, RELEASE, SITE, SMOKE.replace("steps:", "stepss:")], "workflows"),
     ([ACTION, ACTION.replace("steps:", "stepss:")], "actions")],
)  # fmt: skip
def test_files_have_githubs_form(texts: list[str], schema: str, tmp_path: Path) -> None:
    """All but the last one, in which a key is misspelt."""
    for number, text in enumerate(texts):
        (tmp_path / f"{number}.yml").write_text(text)
    tool, files = str(BIN / "check-jsonschema"), sorted(map(str, tmp_path.iterdir()))
    command = [tool, "--builtin-schema", f"vendor.github-{schema}", *files]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1
    assert {*re.findall(r"[0-9]+\.yml", done.stdout)} == {f"{len(texts) - 1}.yml"}


def steps_of(text: str) -> list[Step]:
    """The steps of an action, or of a workflow with one job, that run a script."""
    content = yaml.safe_load(text)
    parts = [content["runs"]] if "runs" in content else list(content["jobs"].values())
    return [step for part in parts for step in part["steps"] if "run" in step]


def shellcheck(script: str) -> str:
    command = [str(BIN / "shellcheck"), "--shell=bash", "-"]
    return subprocess.run(command, input=script, capture_output=True, text=True).stdout


@pytest.mark.parametrize("text", [SMOKE, SPEED, ACTION, RELEASE, SITE])
def test_scripts_pass_shellcheck(text: str) -> None:
    for step in steps_of(text):
        assert shellcheck(step["run"]) == ""
        assert "${{" not in step["run"], "an expression in a script can inject commands"
    assert "SC2086" in shellcheck("rm $UNQUOTED")


class Runner:
    """Runs steps as GitHub does, in a repository with the kernel `kernels/mine.cu`.

    Installing is only written down; Python looks for pip as it would, and shows its version.
    """

    def __init__(self, folder: Path) -> None:
        self.summary = folder / "summary.md"
        self.installed = folder / "installed"
        self.repository = folder / "repository"
        self.repository.mkdir()
        tools = folder / "tools"
        tools.mkdir()
        for name, script in {
            "python3": f"""printf "%s\\n" "$@" >> {self.installed}; words="$*"
{sys.executable} ${{words%% install *}} --version || true""",
            "matbench": f'exec {sys.executable} -m matbench "$@"',
        }.items():
            (tools / name).write_text(f"#!/bin/bash\n{script}\n")
            (tools / name).chmod(0o755)
        own = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        self.environment = own | {
            "PATH": f"{tools}:{own['PATH']}",
            "PYTHONPATH": str(ROOT),
            "GITHUB_ACTION_PATH": "/the/action",
            "GITHUB_STEP_SUMMARY": str(self.summary),
        }
        git(self.repository, "init", "--quiet")

    def commit(self, source: str) -> None:
        commit(self.repository, kernels__mine_cu=source)

    def run(self, text: str, inputs: dict[str, str]) -> list[subprocess.CompletedProcess[str]]:
        """The finished steps, up to the first that fails."""
        done: list[subprocess.CompletedProcess[str]] = []
        declared = yaml.safe_load(text).get("inputs", {})
        given = {name: one.get("default", "") for name, one in declared.items()} | inputs
        for step in steps_of(text):
            values = {
                name: re.sub(r"\$\{\{ inputs\.([\w-]+) \}\}", lambda m: given[m[1]], str(value))
                for name, value in step.get("env", {}).items()
            }
            done.append(
                subprocess.run(
                    ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
                    cwd=self.repository, env=self.environment | values,
                    capture_output=True, text=True,
                )
            )  # fmt: skip
            if done[-1].returncode:
                break
        return done


@pytest.fixture
def runner(tmp_path: Path) -> Runner:
    return Runner(tmp_path)


INPUTS = {
    "kernels": "kernels/mine.cu", "against": "HEAD~1", "sizes": "32",
    "options": "--set TILE=8 --max-time 0.3", "extra": "cpu",
}  # fmt: skip


@pytest.mark.long
def test_the_action_takes_what_changed(runner: Runner, write_kernel: KernelWriter) -> None:
    good = write_kernel().read_text()
    runner.commit(good)
    changed = good.replace("sum +=", "sum = sum +")  # the same, to a compiler
    assert changed != good
    runner.commit(changed)
    inputs = INPUTS | {"kernels": "\n  kernels/mine.cu\n"}
    inputs |= {"options": "--max-time\n0.3\n", "fail-if-slower": "900%"}
    installed, checked, compared = runner.run(ACTION, inputs)
    assert [installed.returncode, checked.returncode, compared.returncode] == [0, 0, 0]
    assert runner.installed.read_text().split() == [
        "-I", "-m", "pip", "install", "--quiet", "/the/action[cpu]"
    ]  # fmt: skip
    assert "candidate mine against baseline mine@HEAD~1" in compared.stdout
    shown = "mine against mine@\u200bHEAD\\~1: 1 "  # which mentions nobody
    assert shown in html.unescape(runner.summary.read_text())


@pytest.mark.long
def test_the_action_stops_at_a_wrong_kernel(runner: Runner, write_kernel: KernelWriter) -> None:
    good = write_kernel().read_text()
    (runner.repository / "good.cu").write_text(good)
    runner.commit(good)
    wrong = good.replace("sum +=", "sum -=")
    assert wrong != good
    runner.commit(wrong)
    _, checked = runner.run(ACTION, INPUTS | {"kernels": "good.cu\n \n  kernels/mine.cu tiled"})
    assert checked.returncode == 1
    assert "tiled passed" in checked.stdout, "all are checked, and none is compared"
    assert not runner.summary.exists()


@pytest.mark.parametrize(
    ("kernels", "told"),
    [
        ("", "the input kernels is empty"),
        ("--help", "no kernel '--help'"),
        ("*/*.cu", "*/*.cu: cannot be read"),
    ],
)
def test_the_action_does_not_pass_without_a_kernel(
    kernels: str, told: str, runner: Runner, write_kernel: KernelWriter
) -> None:
    runner.commit(write_kernel().read_text())
    _, checked = runner.run(ACTION, INPUTS | {"kernels": kernels})
    assert checked.returncode != 0
    assert told in checked.stderr


@pytest.mark.parametrize("text", [ACTION, SMOKE])
def test_installing_runs_nothing_of_the_checkout(text: str, runner: Runner) -> None:
    ran = runner.repository / "RAN"
    (runner.repository / "pip.py").write_text("open('RAN', 'w')")
    runner.run(text, {"kernels": ""})
    assert not ran.exists()
    runner.run(text.replace("python3 -I", "python3"), {"kernels": ""})  # the control
    assert ran.exists()


@pytest.mark.long
def test_the_smoke_workflow_passes_and_fails(runner: Runner, write_kernel: KernelWriter) -> None:
    good = write_kernel().read_text()
    runner.commit(good)
    assert [step.returncode for step in runner.run(SMOKE, {})] == [0, 0, 0]
    runner.commit(good.replace("sum +=", "sum -="))
    installed, smoke = runner.run(SMOKE, {})
    assert (installed.returncode, smoke.returncode) == (0, 1)
    assert re.search("[1-9] wrong", smoke.stdout)


def test_the_speed_workflow_gives_inputs_that_the_action_has() -> None:
    (job,) = yaml.safe_load(SPEED)["jobs"].values()
    given = job["steps"][-1]["with"]
    assert given.keys() <= yaml.safe_load(ACTION)["inputs"].keys()
    assert {"kernels", "sizes", "fail-if-slower"} <= given.keys()


# -- the release ---------------------------------------------------------------------------------


def test_publishing_is_off() -> None:
    """The only job that may publish never runs; the others have no right to."""
    release = yaml.safe_load(RELEASE)
    assert release["permissions"] == {"contents": "read"}
    jobs = release["jobs"]
    publishing = [name for name, job in jobs.items() if "publish" in str(job).lower()]
    allowed = [name for name, job in jobs.items() if "permissions" in job]
    assert publishing == allowed == ["publish"]
    assert jobs["publish"]["if"] is False
    assert jobs["publish"]["needs"] == "check"
    assert jobs["check"]["needs"] == "build"


def offline() -> dict[str, str]:
    """An environment without a network: new virtual environments see what tests have installed."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    # The last one is read as if its name had no NO.
    pip = {"PIP_NO_INDEX": "1", "PIP_NO_DEPS": "1", "PIP_NO_BUILD_ISOLATION": "0"}
    return own | pip | {"PATH": f"{BIN}:{own['PATH']}", "PYTHONPATH": sysconfig.get_path("purelib")}


@pytest.mark.slow
@pytest.mark.long
def test_a_release_is_built_and_runs_in_a_clean_environment(tmp_path: Path) -> None:
    clone = cloned(tmp_path / "clone")
    jobs = yaml.safe_load(RELEASE)["jobs"]
    environment = offline() | {"GITHUB_REF_NAME": f"v{__version__}"}

    def run(job: str, folder: Path, **more: str) -> str:
        """The output of a job's last step."""
        for step in (step for step in jobs[job]["steps"] if "run" in step):
            command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
            done = subprocess.run(
                command, cwd=folder, env=environment | more, capture_output=True, text=True
            )
            assert done.returncode == 0, done.stdout + done.stderr
            if "venv" in step["run"]:  # the OpenCL runtime, which is not in a Python package
                for library in Path(sys.prefix, "lib").glob("lib*.so*"):
                    (folder / "clean/lib" / library.name).symlink_to(library)
        return done.stdout

    run("build", clone)
    kinds = jobs["check"]["strategy"]["matrix"]["kind"]
    assert kinds == ["whl", "tar.gz"]
    for kind in kinds:
        shutil.copytree(clone / "dist", tmp_path / kind / "dist")
        told = run("check", tmp_path / kind, KIND=kind)
        assert f"matbench, version {__version__}" in told
        assert "0 wrong, 0 failed" in told
    environment |= {"GITHUB_REF_NAME": "v0.0.1"}
    [tag] = [step["run"] for step in jobs["build"]["steps"] if "tag" in step.get("name", "")]
    assert subprocess.run(["bash", "-ec", tag], cwd=clone, env=environment).returncode == 1
