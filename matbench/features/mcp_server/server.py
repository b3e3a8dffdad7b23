"""A server of the Model Context Protocol with one tool, over standard input and output."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import msgspec

from matbench import __version__
from matbench.records import encoding
from matbench.show import comparisons, formats, outcomes

#: What gives lines to a function, in a thread of its own: at the end an empty one.
Reader = Callable[[Callable[[bytes], None]], None]
_TOOL = "judge"
_ABOUT = (
    "Is this matrix-product kernel right, how fast is it, and is it faster than a baseline? "
    "Compiles CUDA C (on a GPU, or on a CPU through OpenCL) or calls a function in Python, checks "
    "C against a float64 reference at each size, and times it. The answer is a JSON object and a "
    "table. `status` is measured (right, and timed), wrong, failed or skipped; `reason` says why, "
    "and often where; `median_ns` is the time. With a `baseline`, both are timed in turns: "
    "`verdict` is FASTER, SLOWER, SAME or UNDECIDED, and `ratios` below 1 are faster. Ask for "
    "sizes that show mistakes, such as 256,17,65x31x129."
)


def serve(request: type, answer: Callable[[bytes], dict[str, Any]], read: Reader) -> None:
    """Answer calls of the tool, whose arguments are the fields of a request, one after the other,
    until what it reads ends."""
    import mcp_types as types
    from mcp.server.lowlevel import Server
    from mcp.server.stdio import stdio_server

    tool = types.Tool(name=_TOOL, description=_ABOUT, input_schema=schema(request))

    async def listed(_context: Any, _params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[tool])

    async def called(_context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        if params.name != _TOOL:
            found = {"error": f"no tool {params.name!r:.60}; there is {_TOOL!r}"}
        else:
            line = msgspec.json.encode(params.arguments or {})
            found = await asyncio.get_running_loop().run_in_executor(one_by_one, answer, line)
        texts = [types.TextContent(text=text) for text in parts(found)]
        return types.CallToolResult(content=[*texts], is_error="error" in found)

    async def run() -> None:
        server = Server("matbench", version=__version__, on_list_tools=listed, on_call_tool=called)
        messages = _messages(read, lambda message: answers.send(message))
        async with stdio_server(stdin=messages) as (requests, answers):
            await server.run(requests, answers, server.create_initialization_options())

    one_by_one = ThreadPoolExecutor(1)  # so that pings are answered meanwhile
    try:
        asyncio.run(run())
    except Exception as error:
        while inner := getattr(error, "exceptions", ()):  # the groups of the SDK's tasks
            error = inner[0]
        raise error from None
    finally:  # the end of the judge ends what runs
        one_by_one.shutdown(wait=False, cancel_futures=True)


async def _messages(read: Reader, send: Callable[[Any], Any]) -> Any:
    """Lines that are messages; the others, of which the SDK says nothing, are answered here.

    The SDK's own reading would go on after a signal, until the next line.
    """
    import mcp_types as types
    from mcp.shared.message import SessionMessage

    loop, lines = asyncio.get_running_loop(), asyncio.Queue[bytes]()

    def put(line: bytes) -> None:
        with suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(lines.put_nowait, line)

    read(put)
    while line := await lines.get():
        try:
            types.jsonrpc_message_adapter.validate_json(line, by_name=False)
        except ValueError:
            why = types.ErrorData(code=types.PARSE_ERROR, message="not a JSON-RPC message")
            await send(SessionMessage(types.JSONRPCError(jsonrpc="2.0", id=None, error=why)))
        else:
            yield line


def schema(request: type) -> dict[str, Any]:
    """The JSON schema of a request, without its `id`: the protocol has its own."""
    _, types = msgspec.json.schema_components((request,), ref_template="#/$defs/{name}")
    own = types.pop(request.__name__)
    del own["properties"]["id"], own["description"]
    return {**own, "$defs": types}


def parts(answer: dict[str, Any]) -> list[str]:
    """An answer as texts: JSON, and in place of its records, whose samples no agent reads, their
    table."""
    answer.pop("id", None)
    cases, pairs = answer.pop("cases", ()), answer.pop("comparisons", ())
    reports = [outcomes.report(cases, ())] if cases else []
    reports += [comparisons.report(pairs)] if pairs else []
    return [encoding.line(answer), *(formats.text(report, "plain") for report in reports)]
