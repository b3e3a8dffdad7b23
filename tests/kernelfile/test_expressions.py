"""Expressions in front matter: a number or an error in bounded time, consistent with Python."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support.golden import TableRegression

from matbench.kernelfile import expressions
from matbench.kernelfile.expressions import ExpressionError

VALUES: dict[str, int | float] = {"M": 1000, "N": 33, "K": 7, "TILE": 16, "limit": 49152}


def test_what_is_no_bounded_arithmetic_is_refused_at_once(
    table_regression: TableRegression,
) -> None:
    """Each would call, import, loop, look inside, or grow too large if it were let."""

    def refused(text: str) -> str:
        started = time.process_time()
        with pytest.raises(ExpressionError) as raised:
            expressions.evaluate(eval(text), VALUES)
        assert time.process_time() - started < 2
        assert 0 < len(str(raised.value)) < 200
        assert str(raised.value).isprintable()
        return str(raised.value)

    table_regression("hostile.txt", refused)


def test_chains_inside_chains_take_no_longer() -> None:
    text = "M"
    for _ in range(38):
        text = f"1<({text})<2"
    started = time.process_time()
    assert expressions.evaluate(text, VALUES) == 0
    assert expressions.evaluate(text, {"M": 1}) == 0
    assert time.process_time() - started < 2


def test_what_is_not_evaluated_is_checked_when_it_is_read() -> None:
    """So that a mistake is found before a size reaches it."""
    for branch, told in (
        ("Q", "unknown name 'Q'"),
        ("'x'", "'x' is not a number"),
        ("abs(1)", "can be called"),
        ("max(1)", "max: missing a required argument: 'b'"),
        ("ceil_div(1, 2, 3)", "ceil_div: too many positional arguments"),
        ("M.real", "attribute is not arithmetic"),
        ("~M", "invert is not arithmetic"),
    ):
        for text in (f"1 or {branch}", f"1 if M else {branch}", f"0 > 1 > ({branch})"):
            with pytest.raises(ExpressionError, match=told):
                expressions.evaluate(text, VALUES)


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and abs(value) <= expressions.MAX_MAGNITUDE


words = st.sampled_from(
    [*VALUES, "ceil_div", "max", "min", "(", ")", ",", "+", "-", "*", "**", "/", "//", "%", "<",
     "<=", "==", "!=", "and", "or", "not", "if", "else", "lambda", ":", ".", "[", "]", "=", "in",
     "for", "0", "1", "2", "9", "64", "1e9", "1e308", "0.5", "True", "None", "'x'", "_",
     "__class__", "~", "\n"]
)  # fmt: skip


@given(st.text(max_size=60) | st.lists(words, max_size=25).map(" ".join))
@example("max(1e400, 1)")
@example("min(1e400, 5)")
@example("M if K else 0 / 0")
def test_any_text_gives_a_number_or_an_error_soon(text: str) -> None:
    started = time.process_time()
    try:
        value = expressions.evaluate(text, VALUES)
    except ExpressionError:
        pass
    else:
        assert is_number(value)
    assert time.process_time() - started < 2


atoms = st.integers(0, 10**6).map(str) | st.sampled_from(list(VALUES))


def compound(parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    binary = st.sampled_from(["+", "-", "*", "/", "//", "%", "<", "<=", ">", ">=", "==", "!="])
    return st.one_of(
        st.builds("({} {} {})".format, parts, binary, parts),
        st.builds("({} {} {})".format, parts, st.sampled_from(["and", "or"]), parts),
        st.builds("{}({}, {})".format, st.sampled_from(["ceil_div", "max", "min"]), parts, parts),
        st.builds("max({}, {}, {})".format, parts, parts, parts),
        st.builds("({} if {} else {})".format, parts, parts, parts),
        st.builds("({})**{}".format, parts, st.integers(0, 3)),
        st.builds("(-{})".format, parts),
        st.builds("(not {})".format, parts),
        st.builds("({} < {} <= {})".format, parts, parts, parts),
    )


@given(st.recursive(atoms, compound, max_leaves=8))
def test_values_are_what_python_computes(text: str) -> None:
    scope = {"__builtins__": {}, **expressions.FUNCTIONS}
    try:
        value = expressions.evaluate(text, VALUES)
    except ExpressionError as error:
        if "division by zero" in str(error):
            with pytest.raises(ZeroDivisionError):
                eval(text, scope, dict(VALUES))
        else:
            assert any(told in str(error) for told in ("power", "longer"))
        return
    assert value == eval(text, scope, dict(VALUES))


def test_powers_of_two() -> None:
    found = [n for n in range(-2, 1030) if expressions.evaluate("is_power_of_two(n)", {"n": n})]
    assert found == [2**k for k in range(11)]
    assert not expressions.evaluate("is_power_of_two(2.5)", {})


@given(st.integers(-(10**30), 10**30), st.integers(1, 10**15))
def test_ceil_div_covers_with_the_fewest_pieces(a: int, b: int) -> None:
    pieces = expressions.ceil_div(a, b)
    assert pieces * b >= a
    assert (pieces - 1) * b < a


def test_a_whole_number_is_asked_for() -> None:
    assert expressions.whole(7, {}) == 7
    assert expressions.whole("M // 3", VALUES) == 333
    with pytest.raises(ExpressionError, match="not a whole number; divide with // or ceil_div"):
        expressions.whole("M / 2", VALUES)


def test_an_unknown_name_is_told_with_the_known_ones() -> None:
    with pytest.raises(ExpressionError, match=r"^unknown name 'TIEL'; known: K, M$"):
        expressions.evaluate("TIEL * 2", {"M": 1, "K": 2})


def test_names_in_their_order_and_once() -> None:
    assert expressions.names_in("max(K, M) * K + TILE", VALUES) == ["K", "M", "TILE"]
    assert expressions.names_in("1 + 2", VALUES) == []
