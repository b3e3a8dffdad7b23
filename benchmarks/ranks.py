"""How often `run` stars one of four equal kernels alone, and how often it excludes a slower one.

The kernels are copies of `tiled` under other names. In the second part the last copy also goes
through a share of its tiles once more, and does not use the result.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import common

from matbench import backends
from matbench.analysis import ranking
from matbench.kernelfile import catalogue
from matbench.records.outcome import Outcome

COPIES = 4
LOOP, STORE = "    for (int start = 0; start < K;", "    if (row < M && column < N)\n"


def copy(number: int, slower: float = 0.0) -> str:
    """The text of `tiled` under another name, with a share of its tiles twice."""
    text = catalogue.Catalogue(catalogue.builtin()).get("tiled").source
    text = text.replace('// name = "tiled"\n', f'// name = "copy-{number}"\n// entry = "tiled"\n')
    if not slower:
        return text
    start, end = text.index(LOOP), text.index(STORE)
    again = text[start:end].replace("start < K;", f"start < (int)({slower} * K);")
    again = "    float unused = 0.0f;\n" + again.replace("sum +=", "unused +=")
    return text[:end] + again + "    if (M < 0) sum += unused;\n\n" + text[end:]


def leaders(outcomes: list[Outcome]) -> dict[str, list[str]]:
    """The kernels with a star at each size."""
    return {
        str(problem.N): [row.outcome.case.kernel for row in rows if row.leads]
        for table in ranking.tables(outcomes)
        for problem, rows in table.problems.items()
    }


def count(
    findings: common.Findings, options: argparse.Namespace, slower: float, folder: Path
) -> int:
    """In how many rankings the outcome is the one in question; each is printed."""
    files = [folder / f"copy-{number}.cu" for number in range(COPIES)]
    for number, file in enumerate(files):
        last = number == COPIES - 1
        file.write_text(copy(number, slower if last else 0.0), encoding="utf-8")
    words = [*map(str, files), "--sizes", options.sizes, "--set", "TILE=8", "--no-blocks"]
    rows: list[dict[str, object]] = []
    for number in range(options.runs):
        run = common.run(*words, *common.on(findings.info))
        findings.saw(run.outcomes)
        medians = {(o.case.kernel, o.case.problem.N): o.median_ns or 0.0 for o in run.outcomes}
        for size, names in leaders(run.outcomes).items():
            fastest, *_, slowest = sorted(ns for (_, n), ns in medians.items() if str(n) == size)
            alone = len(names) == 1 if not slower else files[-1].stem not in names
            rows.append(
                {"run": number + 1, "n": size, "leaders": len(names), "counts": alone,
                 "slowest / fastest": slowest / fastest, "wall s": run.wall_s}
            )  # fmt: skip
    what = f"the last {slower:.0%} slower, and not a leader" if slower else "one leads alone"
    findings.table(f"{COPIES} copies: {what}", rows)
    return sum(bool(row["counts"]) for row in rows)


def main() -> None:
    parser = common.parser(__doc__)
    parser.add_argument("--sizes", help="default: 256,1000,2048 on a GPU, 256,512,1000 on a CPU")
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--slower", type=float, help="0.03 on a GPU, 0.3 on a CPU")
    chosen = parser.parse_args()
    info = backends.choose(chosen.backend, chosen.device)
    findings = common.Findings("ranks", chosen, info)
    gpu = info.kind == "gpu"
    chosen.sizes = chosen.sizes or ("256,1000,2048" if gpu else "256,512,1000")
    slower = chosen.slower or (0.03 if gpu else 0.3)
    rankings = chosen.runs * len(chosen.sizes.split(","))
    with tempfile.TemporaryDirectory() as folder:
        for share, bar in ((0.0, 0.05), (slower, 0.95)):
            found = count(findings, chosen, share, Path(folder)) / rankings
            what = f"{share:.0%} slower: not a leader" if share else "equal: one leads alone"
            findings.figures.append(
                common.Figure(what, found, f"of {rankings}", bar, at_least=share > 0)
            )
    findings.close()


if __name__ == "__main__":
    main()
