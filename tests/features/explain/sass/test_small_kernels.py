"""Small kernels whose machine code has a known answer, compiled with the nvcc at hand."""

from __future__ import annotations

import functools

import pytest
from support.kernels import text_of
from support.machine_code import followed, needs_nvdisasm

from matbench.cache import Cache
from matbench.features.explain import disassembly, explanation, machine_code
from matbench.features.explain.architectures import device_of, named
from matbench.features.explain.record import MachineCode, NotDerived
from matbench.features.explain.sass import effects, flow, listing, pipes
from matbench.kernelfile import catalogue, sweep
from matbench.model import CUDA_C, Kernel, Problem

pytestmark = needs_nvdisasm

LOOP = text_of("loop.cu")


@pytest.mark.parametrize("unroll", [1, 4])
def test_a_loop_is_counted_exactly_however_it_is_unrolled(unroll: int) -> None:
    for n in (0, 1, 3, 4, 5, 63, 64, 1003):
        found = followed(LOOP.replace("UNROLL", str(unroll)), n)
        assert found.is_complete, found.unknown
        assert found.classes.get("float32", 0) == n
        loads = found.traffic.get("global loads")
        assert (0 if loads is None else loads.requested_bytes) == 128 * n
        if n >= 64:
            assert found.loop
            assert found.passes == n // unroll


#: A product of a warp by one instruction of tensor cores, in a loop.
TENSOR = text_of("tensor.cu")


@pytest.mark.parametrize(
    ("types", "total", "arch", "rate"),
    [("f32.e4m3.e4m3.f32", "float", "sm_89", None), ("s32.s8.s8.s32", "int", "sm_89", 1024),
     pytest.param("s32.u8.s8.s32", "int", "sm_80", 2048, marks=pytest.mark.long),
     pytest.param("s32.s8.s8.s32", "int", "sm_90", 4096, marks=pytest.mark.long)],
)  # fmt: skip
def test_tensor_cores_of_8_bits(types: str, total: str, arch: str, rate: int | None) -> None:
    register = "f" if total == "float" else "r"
    source = TENSOR.replace("TYPES", types).replace("SUM", total).replace("REG", register)
    found = followed(source, 100, arch=arch)
    assert found.is_complete, found.unknown
    assert found.classes["tensor"] == 100
    if rate is None:
        [missing] = found.unknown
        assert (missing.what, missing.name) == ("rate", "QMMA.16832.F32.E4M3.E4M3")
    else:
        assert found.tensor_cycles == pytest.approx(100 * 16 * 8 * 32 / rate)


#: A ring whose stages decide branches: the last one stores.
STAGES = text_of("stages.cu")


@pytest.mark.parametrize("stages", [pytest.param(2, marks=pytest.mark.long), 3, 32])
def test_the_stages_of_a_ring_are_counted_exactly(stages: int) -> None:
    for n in (5, 200):
        found = followed(STAGES.replace("STAGES", str(stages)), n, 5, block=128)
        assert found.is_complete, found.unknown
        assert found.traffic["global stores"].requested_bytes == 128 * (n + n // stages * 5)


# Every kernel of matbench


#: Those that the quick tests compile.
QUICK = ("naive-2d", "tiled", "thread-tile-1d")
KERNELS = {
    kernel.name: kernel
    for kernel in catalogue.builtin()
    if kernel.source and not kernel.on_host and kernel.kind == CUDA_C
}
NAMES = [name if name in QUICK else pytest.param(name, marks=pytest.mark.long) for name in KERNELS]


@pytest.fixture(scope="module")
def cache(own_folders: None) -> Cache:
    return Cache()


def disassembled(name: str, arch: str, cache: Cache) -> disassembly.Disassembly:
    kernel, capability = KERNELS[name], named(arch).compute_capability
    params = next(iter(sweep.parameter_sets(kernel, {})))
    if sweep._unmet_requirement(kernel, device_of(named(arch))):
        pytest.skip(f"{name} is not for {arch}")
    return disassembly.disassembled(capability, kernel, params, cache)


@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
@pytest.mark.parametrize("name", NAMES)
def test_every_instruction_is_known(name: str, arch: str, cache: Cache) -> None:
    made = disassembled(name, arch, cache)
    code = flow.code(listing.function(made.listing, made.entry))
    for each in code.function.instructions:
        assert pipes.class_of(each) is not None, each.opcode
        assert each.stem not in ("BRA", "BSSY", "CALL") or each.target is not None
        assert list(effects.sources(each)) is not None
    starts = set(code.graph)
    assert all(goal in starts for block in code.graph.values() for goal in block.next)
    assert sum(len(block.instructions) for block in code.graph.values()) == len(
        code.function.instructions
    )


def found(kernel: Kernel, n: int, arch: str, cache: Cache) -> MachineCode:
    architecture = named(arch)
    device = device_of(architecture)
    problem, params = Problem(n, n, n), next(iter(sweep.parameter_sets(kernel, {})))
    case = sweep.case(kernel, problem, params, device)
    made = disassembly.disassembled(architecture.compute_capability, kernel, params, cache)
    return machine_code.machine_code(made, case, architecture)


@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
@pytest.mark.parametrize("name", QUICK)
def test_the_traffic_in_the_code_is_the_models(name: str, arch: str, cache: Cache) -> None:
    """For sizes that the tiles divide, `[model]` counts what the threads load, to the byte."""
    kernel = KERNELS[name]
    params = next(iter(sweep.parameter_sets(kernel, {})))
    for n in (64, 512):
        told = found(kernel, n, arch, cache)
        assert told.not_derived == ()
        modelled = explanation.traffic(kernel, Problem(n, n, n), params, {})
        assert told.global_load_bytes == 4 * (modelled.loads or 0)
        assert told.global_store_bytes == 4 * n * n


@pytest.mark.parametrize("arch", ["sm_75", "sm_100", "sm_120"])
def test_where_each_architecture_has_the_geometry_of_a_launch(arch: str, cache: Cache) -> None:
    """`block-1d` strides by `blockDim.x` over columns, and by `gridDim.x` over rows."""
    told = found(KERNELS["block-1d"], 64, arch, cache)
    assert told.global_store_bytes == 4 * 64 * 64


def test_a_kernel_without_a_model_gets_its_traffic_from_the_code(cache: Cache) -> None:
    import msgspec

    kernel = msgspec.structs.replace(KERNELS["naive-2d"], model={})
    told = found(kernel, 256, "sm_90", cache)
    least = explanation.traffic(kernel, Problem(256, 256, 256), {"TILE": 8}, {})
    assert least.loads is None
    derived = explanation.of_code(least, told, kernel)
    assert derived.is_derived
    assert derived.loads == 2 * 256**3
    unknown = msgspec.structs.replace(told, global_load_bytes=None)
    assert explanation.of_code(least, unknown, kernel) == least


def test_an_architecture_without_rates_is_said(cache: Cache) -> None:
    told = found(KERNELS["naive-2d"], 64, "sm_75", cache)
    assert told.cycles == {}
    assert told.operations_per_cycle is None
    assert told.not_derived == (NotDerived("cycles", "Turing 7.5"),)
    assert functools.reduce(lambda a, b: a + b, told.instructions.values()) > 0
