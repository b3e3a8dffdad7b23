"""Functions and files of matbench that one case executes, in all its processes together.

Code that runs on import, comprehensions and lambdas do not count.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

import common

import matbench
from matbench import backends

PACKAGE = Path(matbench.__file__).parent
#: Each process writes down a function when it first runs.
HOOK = f"""
import os, sys, threading
PACKAGE, seen = {str(PACKAGE)!r}, set()
output = os.open(os.environ["EXECUTED_FUNCTIONS"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)

def note(frame, event, argument):
    code = frame.f_code  # of a function if the first flag is set, else of a module or a class
    if code.co_flags & 1 and code not in seen and code.co_filename.startswith(PACKAGE):
        seen.add(code)
        name = f"{{code.co_filename}}:{{code.co_firstlineno}}:{{code.co_name}}"
        os.write(output, f"{{name}}\\n".encode())

threading.setprofile(note)
sys.setprofile(note)
"""


def main() -> None:
    parser = common.parser(__doc__)
    parser.add_argument("--by-file", action="store_true", help="list the files, most first")
    chosen = parser.parse_args()
    info = backends.choose(chosen.backend, chosen.device)
    findings = common.Findings("executed", chosen, info, timed=False)
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "sitecustomize.py").write_text(HOOK, encoding="utf-8")
        written = Path(folder, "functions.txt")
        own = {"PYTHONPATH": folder, "EXECUTED_FUNCTIONS": str(written)}
        own["MATBENCH_STATE_DIR"] = own["MATBENCH_CACHE_DIR"] = folder
        words = ["run", "tiled", "--sizes", "256", *common.on(info)]
        command = [sys.executable, "-m", "matbench", *words]
        for _ in range(2):  # what is compiled only once does not count
            written.unlink(missing_ok=True)
            subprocess.run(command, env=os.environ | own, check=True, capture_output=True)
        functions = set(written.read_text(encoding="utf-8").splitlines())
    paths = [Path(line.split(":")[0]) for line in functions if not line.endswith(">")]
    files = Counter(str(path.relative_to(PACKAGE)) for path in paths)
    if chosen.by_file:
        rows = [{"file": file, "functions": count} for file, count in files.most_common()]
        findings.table("functions by file", rows)
    findings.figures += [
        common.Figure("functions executed", len(paths), "functions", 450),
        common.Figure("files with one", len(files), "files", 65),
    ]
    findings.close()


if __name__ == "__main__":
    main()
