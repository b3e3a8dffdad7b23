"""How much of matbench one case executes: functions, files, frames, and launches on its device."""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from pathlib import Path

import common

import matbench
from matbench import backends

#: Every process imports this, or is forked from one that did. It notes each function when it is
#: first called, how deep a request and a timed launch lie, and every launch.
NOTING = """
import os, sys, threading
package, seen = PACKAGE, set()
def begin():
    global log
    seen.clear()
    log = open(os.path.join(os.path.dirname(__file__), f"{os.getpid()}.log"), "a", 1)
def deep(frame):
    own = 0
    while frame is not None:
        own += frame.f_code.co_filename.startswith(package)
        frame = frame.f_back
    return own
def note(frame, event, _):
    code = frame.f_code
    if event == "call":
        name, file = code.co_name, code.co_filename
        is_backend = file.startswith(os.path.join(package, "backends"))
        if name == "timed_ns" and is_backend:
            print("deep timed", deep(frame), file=log)
        if name == "call" and file.endswith(os.path.join("worker", "process.py")):
            print("deep", frame.f_locals["task"].__name__, deep(frame), file=log)
        is_enqueued = name == "launch" and file.endswith("opencl.py")
        if is_enqueued or name == "function_prepared_async_call":
            own, caller = False, frame.f_back
            for _ in range(2):
                own = own or caller.f_code.co_filename.endswith("device_kernels.py")
                caller = caller.f_back
            print("launch of its own" if own else "launch of the kernel", file=log)
        if code not in seen:
            seen.add(code)
            if code.co_flags & 1 and not code.co_name.startswith("<"):  # no module and no class
                print(code.co_filename, code.co_firstlineno, code.co_name, file=log)
begin()
os.register_at_fork(after_in_child=begin)
threading.setprofile(note)
sys.setprofile(note)
"""


def main() -> None:
    parser = common.parser(__doc__)
    parser.add_argument("--case", default="tiled --sizes 256 --set TILE=16", metavar="ARGUMENTS")
    parser.add_argument("--list", action="store_true", help="name each function of the worker")
    chosen = parser.parse_args()
    info = backends.choose(chosen.backend, chosen.device)
    findings = common.Findings("executed", chosen, info, timed=False)
    package = f"{Path(matbench.__file__).parent}{os.sep}"
    with tempfile.TemporaryDirectory() as folder:
        noting = NOTING.replace("PACKAGE", repr(package))
        Path(folder, "sitecustomize.py").write_text(noting, encoding="utf-8")
        os.environ["PYTHONPATH"] = os.pathsep.join(
            filter(None, [folder, os.environ.get("PYTHONPATH")])
        )
        findings.saw(common.run(*chosen.case.split(), *common.on(info)).outcomes)
        logs = [
            path.read_text(encoding="utf-8").splitlines()
            for path in Path(folder).iterdir()
            if path.suffix == ".log"
        ]

    def depths(name: str, log: list[str]) -> list[int]:
        return [int(line.split()[2]) for line in log if line.startswith(f"deep {name} ")]

    worker = max(logs, key=lambda log: len(depths("timed", log)))

    def functions(lines: list[str]) -> set[str]:
        return {line for line in lines if line.startswith(package)}

    requests = [depth for log in logs for depth in depths("measure", log)]
    timed = depths("timed", worker)
    if not timed:
        parser.error("--case: name a kernel; the process of a function allows no profiler")
    of_kernel = worker.count("launch of the kernel")
    launches = 22 * (1 + worker.count("launch of its own") / of_kernel)
    every = functions([line for log in logs for line in log])
    files = Counter(os.path.relpath(line.rsplit(" ", 2)[0], package) for line in every)
    findings.table(
        "Functions by file", [{"file": name, "functions": n} for name, n in files.most_common()]
    )
    if chosen.list:
        own = (line.removeprefix(package).rsplit(" ", 2) for line in functions(worker))
        rows = [
            {"function": name, "line": f"{file}:{number}"}
            for file, number, name in sorted(own, key=lambda one: (one[0], int(one[1])))
        ]
        findings.table("Functions in the worker", rows)
    findings.figures += [
        common.Figure("functions", len(every), "functions", 490),
        common.Figure("files with any of them", len(files), "files", 60),
        common.Figure("functions in the worker", len(functions(worker)), "functions", 190),
        common.Figure(
            "frames down to the request to measure, and from there to the timed launch",
            max(requests) + max(timed),
            "frames",
            20,
        ),
        common.Figure("launches on the device for 22 of the kernel", launches, "launches", 200),
    ]
    findings.close()


if __name__ == "__main__":
    main()
