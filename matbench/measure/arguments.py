"""The arguments of a launch, from the expressions in front matter."""

from __future__ import annotations

from collections.abc import Mapping

from matbench import workloads
from matbench.backends import Argument, Buffer, TensorMap
from matbench.kernelfile import expressions, signature
from matbench.model import Case


def of(case: Case, buffers: Mapping[str, Buffer], limits: Mapping[str, int]) -> list[Argument]:
    """The arguments of a case in their order; `buffers` are its matrices by name."""
    kernel, problem = case.kernel, case.problem
    values = {**limits, **case.params, **kernel.values(problem)}

    def argument(text: str) -> Argument:
        if text in buffers:
            return buffers[text]
        described = signature.tensor_map(text)
        if described is None:
            return expressions.evaluate(text, values)
        name, *box = described
        rows, columns = (expressions.whole(side, values) for side in box)
        storage = kernel.reading.result if name == "C" else kernel.reading.storage
        shape = workloads.of(problem).shape(name, problem)
        place = kernel.placing.place(name, *shape)
        return TensorMap(buffers[name], storage, (place.lines, place.width), (rows, columns))

    return [argument(text) for text in kernel.args]
