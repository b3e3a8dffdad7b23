"""Grades the kernels in tests/graded again and again with other seeds, and counts changed verdicts.

    python benchmarks/grades.py --repetitions 1000 --output grades.json

Every kernel is graded with seed 1, then every kernel with seed 2, and so on. Repeated runs of one
launch do not depend on the seed and are left out. A verdict has changed if it is not the one that
tests/graded/expected.toml gives.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from support import graded  # type: ignore[import-not-found]

from matbench import backends
from matbench.cache import Cache
from matbench.measure.options import Options
from matbench.measure.session import Session

WITHOUT = frozenset({"runs"})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=1000)
    parser.add_argument("--minutes", type=float, default=60.0, help="stop after so long")
    parser.add_argument("--output", type=Path, required=True)
    chosen = parser.parse_args()
    device = backends.choose("auto", None)
    session = Session(backends.open_backend(device, Cache()), Cache(), Options(timed=False))
    # Without repeated runs nothing is known of these: their order may differ each time.
    names = [name for name, row in graded.EXPECTED.items() if row.get("runs") != "differ"]
    until = time.monotonic() + 60 * chosen.minutes
    done: Counter[str] = Counter()
    changed = []
    for index in range(chosen.repetitions):
        if time.monotonic() > until:
            break
        seed, name = 1 + index // len(names), names[index % len(names)]
        grade = graded.graded(graded.load(name), session, seed, WITHOUT)
        done[name] += 1
        found = graded.surprises(name, grade, WITHOUT)
        if found:
            changed.append({"kernel": name, "seed": seed, "said": found})
            print(f"{name}, seed {seed}: {found}", flush=True)
        text = {"device": device.label, "repetitions": done.total(), "changed": changed, "by": done}
        chosen.output.write_text(json.dumps(text, indent=1) + "\n", encoding="utf-8")
    print(f"{len(changed)} of {done.total()} repetitions changed a verdict")


if __name__ == "__main__":
    main()
