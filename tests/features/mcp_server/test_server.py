"""`matbench serve --mcp`, asked by the protocol's own client over standard input and output."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters
from support.cli import Refusal, ran
from support.kernels import SLOW_BODY, SPIN_BODY, WRONG_BODY, kernel_text
from support.optional import some
from support.paths import ROOT
from support.terminal import COMMAND

from matbench.cli.serve import JudgeRequest
from matbench.model import DeviceInfo

OPTIONS = ["serve", "--mcp", "--sizes", "33", "--max-time", "0.01", "--timeout", "30"]


def answers(device: DeviceInfo, *requests: dict[str, Any] | None) -> Any:
    """The tools, and the results of requests that are made at the same time."""

    async def ask() -> Any:
        words: list[str] = [*COMMAND, *OPTIONS, "--backend", device.backend]
        server = StdioServerParameters(command=words[0], args=words[1:], env=dict(os.environ))
        async with Client(server) as client:
            [tool] = (await client.list_tools()).tools
            calls = [client.call_tool(tool.name, request) for request in requests]
            other = await client.call_tool("other", {})
            return tool, other, await asyncio.gather(*calls)

    return asyncio.run(ask())


def test_a_tool_answers_the_requests_of_serve(device: DeviceInfo) -> None:
    mistakes = {"pathh": "tiled"}, None, {"path": "tiled", "sizes": "2x"}
    tool, other, results = answers(
        device, {"source": kernel_text()}, {"source": kernel_text("bad", body=WRONG_BODY)},
        {"source": "def multiply(A, B):\n    return A @ B\n", "sizes": "64,17"},
        {"source": kernel_text("slow", body=SLOW_BODY), "baseline": "tiled", "sizes": "64"},
        {"path": "none.cu"}, *mistakes,
    )  # fmt: skip
    assert {*tool.input_schema["properties"]} == {*JudgeRequest.__struct_fields__} - {"id"}
    assert all("description" in field for field in tool.input_schema["properties"].values())
    texts = [[part.text for part in result.content] for result in results]
    assert [result.is_error for result in results] == [False] * 5 + [True] * len(mistakes)
    right, wrong, python, slow, missing, *errors = [json.loads(own[0]) for own in texts]
    assert (right["kernel"], right["status"], right["reason"]) == ("mine", "measured", None)
    assert right["median_ns"] > 0
    assert {*right} == {"kernel", "status", "reason", "median_ns", "adoption"}, "and no samples"
    assert (wrong["status"], wrong["median_ns"]) == ("wrong", None)
    assert "it leaves out the last term of K" in wrong["reason"]
    assert (python["kernel"], python["status"]) == ("multiply", "measured")
    assert (slow["verdict"], slow["ratios"][0] > 1) == ("SLOWER", True)
    assert missing["status"] == "failed"
    tables = [own[1] for own in texts[:4]]
    assert [re.search(want, table) is not None for want, table in zip(
        ("1 measured", "1 wrong", "2 measured", "1 SLOWER"), tables, strict=True
    )] == [True] * 4  # fmt: skip
    assert "unknown field `pathh`" in errors[0]["error"]
    assert "give either `path` or `source`" in errors[1]["error"]
    assert other.is_error
    assert "there is 'judge'" in other.content[0].text


def message(number: int, method: str, **params: Any) -> str:
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params})


ABOUT = {"protocolVersion": "2025-06-18", "capabilities": {}}
INITIALIZE = message(1, "initialize", **ABOUT, clientInfo={"name": "a test", "version": "1"}) + "\n"


@pytest.mark.parametrize(
    "number", some([signal.SIGINT, signal.SIGTERM, None], signal.SIGTERM, None)
)
def test_a_signal_or_the_end_of_the_input_ends_it_at_once(
    number: signal.Signals | None, device: DeviceInfo
) -> None:
    spin = {"source": kernel_text("endless", body=SPIN_BODY)}
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [*COMMAND, *OPTIONS, "--backend", device.backend], stdin=pipe, stdout=pipe, stderr=pipe,
        text=True,
    ) as process:  # fmt: skip
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdin.write(INITIALIZE)
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["result"]["serverInfo"]["name"] == "matbench"
        process.stdin.write("{\n")
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["error"]["message"] == "not a JSON-RPC message"
        process.stdin.write('{"jsonrpc": "2.0", "method": "notifications/initialized"}\n')
        process.stdin.write(message(2, "tools/call", name="judge", arguments=spin) + "\n")
        process.stdin.write(message(3, "ping") + "\n")
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["id"] == 3, "while the kernel runs"
        time.sleep(1)
        if number is None:
            process.stdin.close()
        else:
            process.send_signal(number)
        assert process.wait(15) == (0 if number is None else 128 + number)
        assert process.stderr.read() == ("" if number is None else "interrupted\n")


def test_an_output_that_cannot_be_written_ends_it_with_one_line(device: DeviceInfo) -> None:
    words = [*COMMAND, *OPTIONS, "--backend", device.backend]
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        ended = subprocess.run(
            words, input=INITIALIZE, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60
        )
    told = "matbench: standard output: No space left on device\n"
    assert (ended.returncode, ended.stderr) == (1, told)


def test_without_the_sdk_it_says_what_to_install(
    refusal: Refusal, monkeypatch: pytest.MonkeyPatch
) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "mcp" else find(name)
    )
    told = refusal("serve", "--mcp")
    assert told == "--mcp needs the package mcp; pip install 'matbench-cuda[mcp]'"


def test_the_example_of_the_page(tmp_path: Path, device: DeviceInfo) -> None:
    page = (ROOT / "docs/agents.md").read_text(encoding="utf-8")
    [code] = re.findall(r"^```python\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    [settings] = re.findall(r"^```json\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    server = json.loads(settings)["mcpServers"]["matbench"]
    assert f'command="{server["command"]}", args={json.dumps(server["args"][:3])[:-1]}' in code
    (tmp_path / "mine.cu").write_text(kernel_text(), encoding="utf-8")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    told = ran(sys.executable, "-c", code, cwd=tmp_path, PATH=path)
    assert json.loads(told.splitlines()[0])["status"] == "measured"
