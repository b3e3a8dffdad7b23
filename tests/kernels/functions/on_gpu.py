"""Functions of PyTorch that try to gain time without working for it, each with an honest twin."""

import gc
import sys
import threading
import time

import torch

kept = {}
side = torch.cuda.Stream()


def honest(A, B, C):
    torch.mm(A, B, out=C)


# A stream that starts before the inputs are ready; one whose end nobody waits for; the twin waits.


def cheat_early(A, B, C):
    with torch.cuda.stream(side):
        torch.mm(A, B, out=C)
    torch.cuda.current_stream().wait_stream(side)


def cheat_late(A, B, C):
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        torch.mm(A, B, out=C)


def twin_early(A, B, C):
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        torch.mm(A, B, out=C)
    torch.cuda.current_stream().wait_stream(side)


def twin_late(A, B, C):
    torch.mm(A, B, out=C)
    torch.cuda.synchronize()


# A thread that goes on after the function has returned; the twin waits for it.


def cheat_thread(A, B, C):
    def work():
        time.sleep(0.001)
        torch.mm(A, B, out=C)

    threading.Thread(target=work).start()


def twin_thread(A, B, C):
    thread = threading.Thread(target=twin_late, args=(A, B, C))
    thread.start()
    thread.join()


# A result that is computed when someone looks at it; the twin's class is an ordinary tensor.


class Lazy(torch.Tensor):
    def contiguous(self):
        return kept["lazy"]()


class Ordinary(torch.Tensor):
    pass


def cheat_lazy(A, B):
    kept["lazy"] = lambda: torch.mm(A, B)
    return torch.empty(A.shape[0], B.shape[1], device=A.device).as_subclass(Lazy)


def twin_lazy(A, B):
    return torch.mm(A, B).as_subclass(Ordinary)


# The first result for these addresses, or for these versions; the twins keep only its memory.


def cheat_by_address(A, B):
    key = A.data_ptr(), B.data_ptr()
    if key not in kept:
        kept[key] = torch.mm(A, B)
    return kept[key]


def twin_by_address(A, B):
    key = A.shape, B.shape
    if key not in kept:
        kept[key] = torch.empty(A.shape[0], B.shape[1], device=A.device)
    return torch.mm(A, B, out=kept[key])


def cheat_by_version(A, B):
    key = A._version, B._version, A.shape
    if key not in kept:
        kept[key] = torch.mm(A, B)
    return kept[key]


def twin_by_version(A, B):
    kept["version"] = A._version, B._version
    return torch.mm(A, B)


# The result for these values, of which it looks at a few; the twin looks at them, and works.


def cheat_by_value(A, B):
    key = A.shape, float(A[:2].abs().sum() > 0), float(B[:2].abs().sum() > 0)
    if key not in kept:
        kept[key] = torch.mm(A, B)
    return kept[key]


def twin_by_value(A, B):
    kept[A.shape] = float(A[0, 0])
    return torch.mm(A, B)


# A graph that computes from the first inputs; the twin's reads copies of the ones it is given.


def captured(A, B):
    torch.mm(A, B)  # allocates what the library needs
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        C = torch.mm(A, B)
    return graph, A, B, C


def cheat_graph(A, B):
    if A.shape not in kept:
        kept[A.shape] = captured(A.clone(), B.clone())
    graph, *_, C = kept[A.shape]
    graph.replay()
    return C


def twin_graph(A, B):
    if A.shape not in kept:
        kept[A.shape] = captured(A.clone(), B.clone())
    graph, own_A, own_B, C = kept[A.shape]
    own_A.copy_(A)
    own_B.copy_(B)
    graph.replay()
    return C


# Inputs that are zeros afterwards; the twin changes a copy.


def cheat_inputs(A, B, C):
    torch.mm(A, B, out=C)
    A.zero_()


def twin_inputs(A, B, C):
    torch.mm(A * 2, B, out=C)
    C /= 2


# The tensor of C moves to the memory of another one; the twin copies from there.


def cheat_elsewhere(A, B, C):
    C.set_(torch.mm(A, B))


def twin_elsewhere(A, B, C):
    C.copy_(torch.mm(A, B))


# Events that show no time, clocks and comparisons; the twin only uses them.


def cheat_events(A, B, C):
    import pycuda.driver

    pycuda.driver.Event.time_till = lambda *_: 1e-3
    torch.mm(A, B, out=C)


def cheat_clock(A, B, C):
    clock_ns = time.perf_counter_ns
    if not kept:
        kept["clock"] = time.perf_counter_ns = lambda: clock_ns() // 2
    torch.mm(A, B, out=C)


def cheat_comparison(A, B, C):
    torch.allclose = torch.equal = lambda *_, **__: True
    torch.cuda.Event.elapsed_time = lambda *_: 1e-3
    C.zero_()


def twin_events(A, B, C):
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    torch.mm(A, B, out=C)
    end.record()
    end.synchronize()
    kept["ms"] = start.elapsed_time(end)


def twin_comparison(A, B, C):
    torch.mm(A, B, out=C)
    assert torch.allclose(C, C)


def twin_clock(A, B, C):
    started = time.perf_counter_ns()
    torch.mm(A, B, out=C)
    kept["ns"] = time.perf_counter_ns() - started


# Events that the collector and the callers' frames lead to, recorded again when the work is done;
# the twin only finds them.


def events_of_others():
    import pycuda.driver

    frame, places = sys._getframe(), [vars(module) for module in [*sys.modules.values()]]
    while frame is not None:
        places, frame = [*places, frame.f_locals], frame.f_back
    places += [one for one in gc.get_objects() if isinstance(one, dict | list | tuple)]
    every = [v for p in places for v in ([*p.values()] if isinstance(p, dict) else p)]
    every += gc.get_objects()
    return [one for one in every if isinstance(one, pycuda.driver.Event)]


def cheat_recorded(A, B, C):
    if "events" not in kept:
        kept["events"] = events_of_others()
    torch.mm(A, B, out=C)
    for event in kept["events"]:
        event.record()


def twin_recorded(A, B, C):
    if "events" not in kept:
        kept["events"] = events_of_others()
    torch.mm(A, B, out=C)


# Every result is kept; the twins keep the last two, and the last eight.


def cheat_memory(A, B):
    kept[len(kept)] = torch.mm(A, B)
    return kept[len(kept) - 1]


def twin_memory(A, B):
    kept["before"] = kept.get("now")
    kept["now"] = torch.mm(A, B)
    return kept["now"]


def twin_ring(A, B):
    kept[kept.setdefault("calls", 0) % 8] = torch.mm(A, B)
    kept["calls"] += 1
    return kept[(kept["calls"] - 1) % 8]


# TF32 without a word; the twin does not allow it.


def cheat_tf32(A, B, C):
    torch.backends.cuda.matmul.allow_tf32 = True
    torch.mm(A, B, out=C)


def twin_tf32(A, B, C):
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.mm(A, B, out=C)
