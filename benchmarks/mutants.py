"""Breaks lines of matbench at random, one at a time, and counts how many the tests notice.

A statement is drawn at random from `analysis`, `backends`, `bench`, `kernelfile`, `records`,
`worker`, `workloads` and what features compute, then one of cosmic-ray's mutations of it. Each
mutant runs the tests that run its statement, those of its module first, then the fastest, until one
fails. It counts as noticed if that test passes, after the same others, without the mutation.
`mutants.toml` lists mutants that change nothing that a user could see.

Everything happens in clones of the last commit. Which tests run which line is found once per
commit, by running all tests with coverage.py, and kept in the user's cache folder. The exit code is
1 if fewer than 9 of 10 mutants are noticed. `make mutants` installs what this needs.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

import common
import platformdirs
import psutil

from matbench.backends import host

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    from mutants_drawn import Mutant

FOLDER = Path(__file__).parent
ROOT = FOLDER.parent
BAR = 0.9
PROCESSES = 2
#: A mutant that no test has noticed in this time has survived.
LIMIT_S = 300.0
#: A test hangs if it takes longer than this and ten times what it took before.
HANG_S = 120.0
#: The module of a worker process, which says when a task begins and ends while lines are mapped.
PROCESS = "matbench/worker/process.py"
#: In it, the last statements before a task, and after it.
TASK = ("task, args = pickle.loads(asked)", "ctypes.CDLL(None).fflush(None)")


class Clone:
    """A clone of the last commit, in which tests run."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.root = folder, folder / "clone"
        self.log, self.tests = folder / "log.txt", folder / "tests.txt"
        self.passed: set[str] = set()
        folder.mkdir(exist_ok=True)
        subprocess.run(["git", "clone", "--quiet", ROOT, self.root], check=True)

    def start(self, *words: str, **variables: Path) -> subprocess.Popen[bytes]:
        """Start pytest: it, and every process that it starts, imports the clone."""
        self.log.write_text("started\tcollection\t0\n", encoding="utf-8")
        paths = os.pathsep.join(map(str, (self.root, FOLDER)))
        own = {"PYTHONPATH": paths, "MUTANTS_LOG": self.log} | variables
        command = [sys.executable, "-m", "pytest", "-q", "-p", "mutants_plugin", *words]
        command += ["-p", "no:cacheprovider", f"--basetemp={self.folder / 'tmp'}"]
        with (self.folder / "output.txt").open("wb") as output:
            return subprocess.Popen(
                [*command, "-m", "not gpu and not long", "--hypothesis-seed=0"],
                cwd=self.root,
                env=os.environ | {name: str(value) for name, value in own.items()},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    def said(self) -> list[tuple[str, str, float]]:
        """What has happened: a word, a test, and seconds."""
        lines = [line.split("\t") for line in self.log.read_text(encoding="utf-8").splitlines()]
        return [(word, test, float(took_s)) for word, test, took_s in lines]

    def failed(self, tests: dict[str, float], limit_s: float = float("inf")) -> str | None:
        """The first test that fails or hangs, of these in this order with their usual seconds.

        None if there is none, or not in that time.
        """
        self.tests.write_text("\n".join(tests), encoding="utf-8")
        files = dict.fromkeys(test.partition("::")[0] for test in tests)
        start, hangs, is_late = time.time(), False, False
        process = self.start("-x", *files, MUTANTS_TESTS=self.tests)
        while process.poll() is None and not (hangs or is_late):
            time.sleep(0.2)
            usual_s = tests.get(self.said()[-1][1], 0.0)
            hangs = time.time() > self.log.stat().st_mtime + HANG_S + 10 * usual_s
            is_late = time.time() > start + limit_s
        if hangs or is_late:
            killed(process)
        said = self.said()
        self.passed.update(test for word, test, _ in said if word == "passed")
        return said[-1][1] if hangs or (process.returncode and not is_late) else None

    def noticed(self, mutant: Mutant, tests: dict[str, float]) -> str | None:
        """The test that fails with the mutant, and passes with a change that changes nothing."""
        path, left = self.root / mutant.file, list(tests)
        source = path.read_text(encoding="utf-8")
        try:
            while left:
                path.write_text(mutant.code, encoding="utf-8")
                test = self.failed({name: tests[name] for name in left}, LIMIT_S)
                if test is None:
                    break
                path.write_text(f"{source.rstrip()}  # the same\n", encoding="utf-8")
                so_far = left[: left.index(test) + 1] if test in left else left[:1]
                unstable = self.failed({name: tests[name] for name in so_far})
                if unstable is None:
                    return test
                left.remove(unstable)
            return None
        finally:
            path.write_text(source, encoding="utf-8")


def killed(process: subprocess.Popen[bytes]) -> None:
    """Kill a process and all that it has started."""
    parent = psutil.Process(process.pid)
    for each in (*parent.children(recursive=True), parent):
        with suppress(psutil.NoSuchProcess):
            each.kill()
    process.wait()


# -- which tests run a line ----------------------------------------------------------------------


class Map:
    """Which tests run a line, and how long they take."""

    def __init__(self, folder: Path) -> None:
        from coverage import CoverageData

        self.seconds: dict[str, float] = json.loads((folder / "tests.json").read_text("utf-8"))
        self.data = CoverageData(str(folder / "lines"))
        self.data.read()

    def tests(self, mutant: Mutant) -> list[dict[str, float]]:
        """The tests for a mutant with their usual seconds: those of its module, then the others.

        What runs on import concerns all tests of the module and its package.
        """
        module = Path(mutant.file)
        lines = self.data.contexts_by_lineno(mutant.file)
        wanted = lines if mutant.on_import else mutant.lines
        found = {test_of(context) for line in wanted for context in lines.get(line, ())}
        if mutant.on_import:
            near = "/".join(("tests", *module.parts[1:-1], ""))
            found |= {test for test in self.seconds if test.startswith(near)}
        own = f"/test_{module.parent.name if module.stem == '__init__' else module.stem}.py"
        known = sorted(found & self.seconds.keys(), key=lambda test: self.seconds[test])
        parts = ([t for t in known if own in t], [t for t in known if own not in t])
        return [{test: self.seconds[test] for test in part} for part in parts]


def test_of(context: str) -> str:
    """The test that a process of coverage.py ran a line for: the last, if it outlives tests."""
    return re.sub(r" \((setup|call|teardown)\)$", "", context.rpartition("\n")[2])


def mapped() -> Map:
    """The map of the last commit: from the cache, or made now."""
    command = ["git", "rev-parse", *(f"HEAD:{name}" for name in ("matbench", "tests", "kernels"))]
    trees = subprocess.run(command, cwd=ROOT, check=True, capture_output=True).stdout
    key = hashlib.sha256(trees + sys.version.encode()).hexdigest()[:16]
    folder = platformdirs.user_cache_path("matbench-mutants") / key
    if not (folder / "tests.json").exists():
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory() as place:
            make_map(Clone(Path(place)), folder)
    return Map(folder)


def make_map(clone: Clone, folder: Path) -> None:
    """Run all tests with coverage.py."""
    # A worker process outlives a test and is killed in the end: it says so itself what it does.
    process_py = clone.root / PROCESS
    text, plugin = process_py.read_text(encoding="utf-8"), '__import__("mutants_plugin")'
    for before, added in zip(
        TASK, (f"; {plugin}.begin_task()", f"; {plugin}.end_task()"), strict=True
    ):
        assert text.count(before) == 1
        text = text.replace(before, before + added)
    process_py.write_text(text, encoding="utf-8")
    parts, settings = clone.folder / "parts", clone.folder / "coverage.ini"
    parts.mkdir()
    settings.write_text(
        f"[run]\nparallel = true\ndata_file = {parts}/lines\nrelative_files = true\ncore = ctrace\n"
        f"source = {clone.root}/matbench\ncontext = ${{PYTEST_CURRENT_TEST-}}\n"
        f"[paths]\nmatbench =\n  matbench\n  {clone.root}/matbench\n",
        encoding="utf-8",
    )
    print("running all tests with coverage.py; this takes a while", flush=True)
    start = time.monotonic()
    more = ("-n", str(PROCESSES), "--dist", "worksteal")
    clone.start(*more, COVERAGE_PROCESS_START=settings).wait()
    said, seconds = clone.said(), defaultdict[str, float](float)
    for _, test, took_s in said:
        seconds[test] += took_s
    failed = {test for word, test, _ in said if word == "failed"}
    print(f"{len(seconds)} tests in {time.monotonic() - start:.0f} s", flush=True)
    print("".join(f"not used, as it fails: {test}\n" for test in sorted(failed)), end="")
    words = ("combine", "-q", f"--rcfile={settings}", f"--data-file={folder / 'lines'}", str(parts))
    subprocess.run([sys.executable, "-m", "coverage", *words], cwd=clone.root, check=True)
    passed = {test: took_s for test, took_s in seconds.items() if test not in failed}
    (folder / "tests.json").write_text(json.dumps(passed, indent=1), encoding="utf-8")


# -- verdicts ------------------------------------------------------------------------------------


def main() -> None:
    parser = common.parser(__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=60, help="the first mutants of that seed")
    parser.add_argument("--set-aside", type=Path, default=FOLDER / "mutants.toml")
    chosen = parser.parse_args()
    from mutants_drawn import drawn

    findings = common.Findings("mutants", chosen, host.devices()[0], timed=False)
    listed = tomllib.loads(chosen.set_aside.read_text(encoding="utf-8")).get("mutant", [])
    reasons = {(row["file"], row["before"], row["after"]): row["reason"] for row in listed}
    lines = mapped()
    clones: SimpleQueue[Clone] = SimpleQueue()

    def judged(number: int, mutant: Mutant) -> dict[str, Any]:
        clone, start, parts = clones.get(), time.monotonic(), lines.tests(mutant)
        clone.passed.clear()
        reason = reasons.get((mutant.file, mutant.before, mutant.after))
        fates = (clone.noticed(mutant, tests) for tests in parts if reason is None)
        test = next(filter(None, fates), None)
        row = {
            "number": number,
            "line": f"{mutant.file}:{mutant.line}",
            "change": f"- {mutant.before}\n+ {mutant.after}",
            "fate": "noticed" if test else "SURVIVED" if reason is None else "set aside",
            "by": test or reason or f"{len(clone.passed)} of {sum(map(len, parts))} tests passed",
            "seconds": round(time.monotonic() - start),
        }
        clones.put(clone)
        print(*row.values(), sep="  ", flush=True)
        return row

    with tempfile.TemporaryDirectory() as place, ThreadPoolExecutor(PROCESSES) as pool:
        made = [Clone(Path(place, str(number))) for number in range(PROCESSES)]
        mutants = drawn(made[0].root, chosen.seed, chosen.count)
        parts = [part for mutant in mutants for part in lines.tests(mutant)]
        if test := made[0].failed({test: part[test] for part in parts for test in list(part)[:1]}):
            sys.exit(f"{test} fails without a mutant, see `make test`")
        for clone in made:
            clones.put(clone)
        rows = list(pool.map(judged, itertools.count(1), mutants))
    findings.table("Mutants", rows)
    fates = Counter(row["fate"] for row in rows)
    share = fates["noticed"] / max(1, fates["noticed"] + fates["SURVIVED"])
    findings.figures += [
        common.Figure("mutants", len(rows), "mutants"),
        common.Figure("set aside", fates["set aside"], "mutants"),
        common.Figure("noticed, of the others", share, "share", BAR, at_least=True),
    ]
    findings.close()
    sys.exit(share < BAR)


if __name__ == "__main__":
    main()
