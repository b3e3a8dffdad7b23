"""Random inputs for `fuzz.py`: kernel files, records, sizes, settings, command lines, variables."""

from __future__ import annotations

import json
from typing import Any

import msgspec
from hypothesis import strategies as st

from matbench import cli
from matbench.backends import host
from matbench.kernelfile import catalogue
from matbench.model import Problem
from matbench.records import provenance
from matbench.records.outcome import Accuracy, BlockTimes, CaseRecord, Outcome, Timing

KERNELS = [kernel for kernel in catalogue.builtin() if kernel.source]
NAMES = [
    "M",
    "N",
    "K",
    "TILE",
    "A",
    "B",
    "C",
    "max_threads_per_block",
    "x",
    "__import__",
    "ceil_div",
]
NUMBERS = st.one_of(
    st.integers(-3, 40),
    st.integers(),
    st.sampled_from([2**31 - 1, 2**31, 2**63, 2**64, 10**30, 10**300]),
    st.floats(),
)
#: Characters that control a terminal, or hide the real text.
HOSTILE = st.sampled_from(
    [
        "\x1b]0;title\x07", "\x1b[2J", "\x9b31m", "\x9d0;t\x9c", "\u202etxt.exe", "\0", "\x07",
        "\r", "\n", "\u2028", "\x7f", "\ud800", "\udc80", "[red]", "[/]", "[link=x]", ":boom:",
        "%s", "{0}",
    ]
)  # fmt: skip
LETTERS = st.lists(st.text(max_size=8) | HOSTILE, max_size=5).map("".join)
TEXT = st.text(max_size=40) | LETTERS | st.text("0123456789xX,.-+eE_ \t\n", max_size=30)


def operations(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Expressions composed of expressions, not all of them valid."""
    two = st.sampled_from(
        "+ - * / // % ** == != < <= > >= and or if<< & | , := is in".split()  # noqa: SIM905
    )
    return st.one_of(
        st.tuples(inner, two, inner).map(" ".join),
        inner.map(lambda a: f"({a})"),
        inner.map(lambda a: f"-{a}"),
        inner.map(lambda a: f"not {a}"),
        st.tuples(st.sampled_from(NAMES), st.lists(inner, max_size=4)).map(
            lambda call: f"{call[0]}({', '.join(call[1])})"
        ),
        st.tuples(inner, inner, inner).map(lambda t: f"{t[0]} if {t[1]} else {t[2]}"),
        st.tuples(inner, inner).map(lambda t: f"{t[0]}[{t[1]}]"),
        inner.map(lambda a: f"({a}).__class__"),
        inner.map(lambda a: f"[{a} for x in {a}]"),
    )


EXPRESSIONS = st.recursive(
    st.one_of(st.sampled_from(NAMES), NUMBERS.map(repr), st.just("9**9**9")),
    operations,
    max_leaves=12,
) | st.text(max_size=400)
DEEP = st.tuples(st.sampled_from(["(", "-", "not ", "1+(", "max(1,"]), st.integers(1, 400)).map(
    lambda drawn: drawn[0] * drawn[1] + "1" + ")" * (drawn[1] if "(" in drawn[0] else 0)
)

TOML_VALUES = st.recursive(
    st.one_of(
        st.integers(-5, 2**40).map(str),
        EXPRESSIONS.map(lambda text: json.dumps(text)),
        st.floats().map(lambda x: {"inf": "inf", "-inf": "-inf"}.get(repr(x), repr(x))),
        st.sampled_from(["true", "false", "1979-05-27", "07:32:00", "''", "[]", "{}", "nan"]),
        LETTERS,
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4).map(lambda items: f"[{', '.join(items)}]"),
        inner.map(lambda item: f"{{ a = {item} }}"),
    ),
    max_leaves=5,
)
KEYS = st.sampled_from(
    [
        "name", "summary", "group", "entry", "args", "requires", "precision", "error_constant",
        "deterministic", "block", "grid", "shared_bytes", "where", "TILE", "THREADS", "flops",
        "[launch]", "[sweep]", "[tune]", "[model]", "launch", "sweep", "nmae", '"', "a.b", "[[x]]",
    ]
)  # fmt: skip
TOML_LINES = st.one_of(
    st.tuples(KEYS, TOML_VALUES).map(lambda kv: kv[0] if "[" in kv[0] else f"{kv[0]} = {kv[1]}"),
    st.text(max_size=30),
)


@st.composite
def kernel_files(draw: st.DrawFn) -> bytes:
    """One of matbench's kernel files with a few lines changed, or arbitrary bytes."""
    lines = draw(st.sampled_from(KERNELS)).source.splitlines()
    end = lines.index("// ///")
    for _ in range(draw(st.integers(1, 4))):
        where = draw(st.integers(0, min(len(lines) - 1, end + 25)))
        comment = "// " if where <= end else ""
        change = draw(st.sampled_from(["insert", "replace", "value", "delete", "cut", "swap"]))
        if change == "insert":
            lines.insert(where, comment + draw(TOML_LINES))
        elif change == "replace":
            lines[where] = comment + draw(TOML_LINES)
        elif change == "value" and " = " in lines[where]:
            lines[where] = lines[where].split(" = ")[0] + " = " + draw(TOML_VALUES)
        elif change == "delete":
            del lines[where]
        elif change == "cut":
            lines[where] = lines[where][: draw(st.integers(0, 40))]
        else:
            other = draw(st.integers(0, len(lines) - 1))
            lines[where], lines[other] = lines[other], lines[where]
        end = min(end, len(lines) - 1)
    text = "\n".join(lines).encode("utf-8", "surrogatepass")
    if draw(st.integers(0, 9)) == 0:
        text = text[: draw(st.integers(0, len(text)))] + draw(st.binary(max_size=20)) + text
    return text


JSON_VALUES = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=20), LETTERS,
        st.sampled_from([1e308, -1.0, 0, 2**63, "measured", "outcome", "\x1b[31m", "<b>", "=1+1"]),
    ),
    lambda inner: st.lists(inner, max_size=4)
    | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=6,
)  # fmt: skip


def example_records() -> list[Any]:
    """The objects of a small, valid record file."""
    case = CaseRecord(
        kernel="tiled", sha256="ab" * 32, group="tutorial", params={"TILE": 16},
        problem=Problem(8, 9, 10), backend="cuda", device="GPU", device_kind="gpu",
    )  # fmt: skip
    samples = tuple(1000.0 + i for i in range(12))
    timing = Timing(samples_ns=samples, median_ns=1005.5, interval_ns=(1002.0, 1009.0))
    outcome = Outcome(
        case=case, status="measured", cold=timing, accuracy=Accuracy(1e-6, 1e-7, 0.1),
        blocks=BlockTimes(median_ns=900.0, sm_mhz=1980.0), notes=("busy",),
    )  # fmt: skip
    skipped = Outcome(case=case, status="skipped", reason="no")
    environment = provenance.environment(["run"], [host.device()], {"seed": 0})
    return [msgspec.to_builtins(record) for record in (environment, outcome, skipped)]


RECORDS = example_records()


@st.composite
def record_files(draw: st.DrawFn) -> bytes:
    """A valid file with fields changed, added and removed; lines torn, repeated or reordered."""
    lines = []
    for record in RECORDS if draw(st.booleans()) else draw(st.lists(st.sampled_from(RECORDS))):
        changed: dict[str, Any] = json.loads(json.dumps(record))
        for _ in range(draw(st.integers(0, 3))):
            place = changed
            key = draw(st.sampled_from(sorted(place)))
            inner = place[key]
            if isinstance(inner, dict) and inner and draw(st.booleans()):
                place, key = inner, draw(st.sampled_from(sorted(inner)))
            if draw(st.integers(0, 4)) == 0:
                place.pop(key)
            else:
                place[key] = draw(JSON_VALUES)
            if draw(st.integers(0, 9)) == 0:
                changed[draw(st.text(max_size=8))] = draw(JSON_VALUES)
            if not changed:
                break
        lines.append(json.dumps(changed, ensure_ascii=draw(st.booleans())))
    data = "\n".join(lines).encode("utf-8", "surrogatepass")
    how = draw(st.integers(0, 5))
    if how == 0:
        data = data[: draw(st.integers(0, len(data)))]
    if how == 1:
        data += draw(st.binary(max_size=30))
    if how == 2:
        data = draw(st.binary(max_size=60)) + data
    return data + (b"\n" if draw(st.booleans()) else b"")


COMMANDS: dict[str, Any] = {
    name: command for name, command in cli.main.commands.items() if name not in ("watch", "plot")
}
COMMANDS["cache"] = cli.main.commands["cache"].commands["clear"]  # type: ignore[attr-defined]
#: Output of commands stays in the folder of this run.
FILES = ["old.jsonl", "new.jsonl", "mine.cu", "nowhere/mine.cu", ".", "", "out.png", "out.jsonl"]
WORDS = st.one_of(
    st.sampled_from([k.name for k in KERNELS] + FILES),
    st.sampled_from(["cublas", "numpy", "cpu", "cuda", "opencl", "0", "1", "64", "17x33x65", "5%"]),
    NUMBERS.map(str),
    LETTERS,
)
VARIABLES = st.sampled_from(
    [
        "MATBENCH_STATE_DIR", "MATBENCH_CACHE_BYTES", "COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR",
        "TERM", "XDG_STATE_HOME", "HOME", "CUDA_VISIBLE_DEVICES", "LANG", "TTY_COMPATIBLE",
        "GIT_DIR", "TMPDIR", "PAGER",
    ]
)  # fmt: skip


#: Valid command lines.
LINES = [
    line.split()
    for line in (
        "run tiled --sizes 64", "run --kernel mine.cu --output out.jsonl", "run --smoke",
        "run tiled --resume old.jsonl --sizes 8x9x10", "diff old.jsonl new.jsonl",
        "report old.jsonl new.jsonl", "compare tiled naive-2d --sizes 64", "show mine.cu",
        "compare --matrix tiled naive-2d shared-row", "list --kernel mine.cu", "check tiled",
        "tune tiled --sizes 64 --budget 3s", "explain tiled --sizes 64 --arch hopper",
        "blocks tiled --sizes 64", "info", "new mine2 --from tiled", "cache clear",
    )
]  # fmt: skip


@st.composite
def command_lines(draw: st.DrawFn) -> list[str]:
    """A valid line or a bare command, with more options and words."""
    words = list(draw(st.sampled_from([*LINES, *LINES, *([name] for name in COMMANDS)])))
    command = COMMANDS[words[0]]
    for _ in range(draw(st.integers(0, 3))):
        option = draw(st.sampled_from(command.params or cli.main.params))
        value = draw(option_values(option) | WORDS)
        if option.param_type_name == "argument":
            words.append(value)
        else:
            words.append(draw(st.sampled_from(option.opts + option.secondary_opts)))
            if not getattr(option, "is_flag", False) or draw(st.integers(0, 9)) == 0:
                words.append(value)
    return [word.replace("/", "") if word.startswith(("/", "..")) else word for word in words]


def option_values(option: Any) -> st.SearchStrategy[str]:
    """Values that an option documents, if it does."""
    if hasattr(option.type, "choices"):
        return st.sampled_from(sorted(option.type.choices))
    return WORDS


def storable(text: str) -> str:
    """Values for a variable; paths are below this folder."""
    return text.replace("\0", "").replace("/", "").encode("utf-8", "replace").decode()


VALUES = st.one_of(TEXT, st.lists(NUMBERS.map(str), max_size=4).map(",".join))
SIZES = TEXT | st.lists(st.lists(NUMBERS.map(str), max_size=4).map("x".join)).map(",".join)
SETTINGS = st.tuples(
    st.lists(
        TEXT
        | st.tuples(st.sampled_from(["TILE", "THREADS", "BM", "tile", ""]), VALUES).map("=".join),
        max_size=3,
    ),
    st.sampled_from(KERNELS),
)


def variables() -> st.SearchStrategy[tuple[dict[str, str], list[str]]]:
    """Values of some variables, and a command line."""
    values = st.dictionaries(VARIABLES, WORDS.map(storable), min_size=1, max_size=3)
    return st.tuples(values, command_lines())
