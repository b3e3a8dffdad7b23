"""Times a case with a few samples: enough to tell whether it may be among the fastest."""

from __future__ import annotations

from matbench.bench import checks
from matbench.bench.launches import Times, launches_of, own_times
from matbench.bench.loop import Sampler, positive
from matbench.bench.runnable import Runnable
from matbench.bench.session import Session
from matbench.errors import CaseError
from matbench.model import Case
from matbench.records.outcome import Outcome
from matbench.worker.worker import Worker


def look(
    worker: Worker, case: Case, samples: int, limit_ns: float, *, check: bool,
    limit_s: float | None = None,
) -> Outcome:  # fmt: skip
    """A few samples of one case, fewer if they take longer than `limit_ns`.

    With `limit_s`, it has failed if the look takes longer.
    """
    is_short = limit_s is not None and limit_s < worker.run_s
    deadline_s, option = (limit_s, "--budget") if is_short else (None, "--timeout")
    try:
        return worker.run(
            look_here, case, samples, limit_ns, check,
            case=case, with_inputs=True, deadline_s=deadline_s, option=option,
        )  # fmt: skip
    except CaseError as error:
        return worker.failed(case, error)


def look_here(session: Session, case: Case, samples: int, limit_ns: float, check: bool) -> Outcome:
    """A few samples of a plain build; with `check`, it is checked first.

    Sampling ends early after two samples longer than `limit_ns`.
    """

    def brief(runnable: Runnable) -> Times:
        for one in checks.BEFORE_TIMING if check else ():
            one(runnable)
        launches = launches_of(runnable)
        taken = sample_briefly(launches.sampler(cold=session.options.cold), samples, limit_ns)
        launches.verify()
        notes = (f"a quick look: only {len(taken)} samples",)
        return own_times(taken, session.options, launches.seed, notes)

    return session.measure(case, times_of=brief, variants=("plain",))


def sample_briefly(sample: Sampler, count: int, limit_ns: float) -> list[float]:
    """`count` samples, or only two if neither is within `limit_ns`."""
    sample()  # warm-up
    taken: list[float] = []
    while len(taken) < count and not (len(taken) > 1 and min(taken) > limit_ns):
        taken.append(positive(sample()))
    return taken
