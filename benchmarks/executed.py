"""How much of matbench one case executes: functions and files, in all its processes together."""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from pathlib import Path

import common

import matbench
from matbench import backends

#: Every process that Python starts imports this, and notes each function when it is first called.
NOTING = """
import os, sys, threading
seen, log = set(), open(os.path.join(os.path.dirname(__file__), f"{os.getpid()}.log"), "a", 1)
def note(frame, event, _):
    code = frame.f_code
    if event == "call" and code not in seen:
        seen.add(code)
        if code.co_flags & 1 and not code.co_name.startswith("<"):  # no module and no class
            print(code.co_filename, code.co_firstlineno, file=log)
threading.setprofile(note)
sys.setprofile(note)
"""


def main() -> None:
    parser = common.parser(__doc__)
    parser.add_argument("--case", default="tiled --sizes 256 --set TILE=16", metavar="ARGUMENTS")
    chosen = parser.parse_args()
    info = backends.choose(chosen.backend, chosen.device)
    findings = common.Findings("executed", chosen, info, timed=False)
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "sitecustomize.py").write_text(NOTING, encoding="utf-8")
        os.environ["PYTHONPATH"] = folder
        findings.saw(common.run(*chosen.case.split(), *common.on(info)).outcomes)
        logs = [path.read_text(encoding="utf-8") for path in Path(folder).glob("*.log")]
    package = Path(matbench.__file__).parent
    functions = {
        line for log in logs for line in log.splitlines() if line.startswith(f"{package}{os.sep}")
    }
    files = Counter(os.path.relpath(line.rpartition(" ")[0], package) for line in functions)
    findings.table(
        "Functions by file", [{"file": name, "functions": n} for name, n in files.most_common()]
    )
    findings.figures += [
        common.Figure("functions", len(functions), "functions", 450),
        common.Figure("files with any of them", len(files), "files", 65),
    ]
    findings.close()


if __name__ == "__main__":
    main()
