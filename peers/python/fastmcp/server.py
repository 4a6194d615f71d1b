"""The tools of the first TM Dev Lab benchmark of MCP servers over FastMCP, as its manual shows it."""

import asyncio
import json
import os
import socket
import sys
import threading
import time
from datetime import datetime, timezone
from importlib.metadata import version

import httpx
import uvicorn
from fastmcp import FastMCP

SERVER = "fastmcp"
mcp = FastMCP("tmdevlab-v1")


def fib(n: int) -> int:
    return n if n < 2 else fib(n - 1) + fib(n - 2)


@mcp.tool
async def calculate_fibonacci(n: int) -> dict:
    """Calculates a Fibonacci number by naive recursion."""
    if not 0 <= n <= 40:
        raise ValueError(f"n is {n}; want 0 to 40")
    return {"input": n, "result": fib(n), "server_type": SERVER}


@mcp.tool
async def fetch_external_data(endpoint: str) -> dict:
    """Gets a URL and says how that went."""
    out = {"url": endpoint, "status_code": 0, "server_type": SERVER}
    begin = time.perf_counter()
    try:
        async with httpx.AsyncClient(timeout=10) as client:
            out["status_code"] = (await client.get(endpoint)).status_code
    except httpx.HTTPError as e:
        out["error"] = repr(e)
    out["response_time_ms"] = round((time.perf_counter() - begin) * 1000, 3)
    return out


def upper(v):
    if isinstance(v, str):
        return v.upper()
    if isinstance(v, dict):
        return {k: upper(e) for k, e in v.items()}
    if isinstance(v, list):
        return [upper(e) for e in v]
    return v


@mcp.tool
async def process_json_data(data: dict) -> dict:
    """Turns every text within an object into upper case."""
    return {"original_keys": list(data), "transformed_data": upper(data), "server_type": SERVER}


@mcp.tool
async def simulate_database_query(query: str, delay_ms: int = 0) -> dict:
    """Waits as long as a query would take."""
    if not 0 <= delay_ms <= 5000:
        raise ValueError(f"delay_ms is {delay_ms}; want 0 to 5000")
    await asyncio.sleep(delay_ms / 1000)
    return {"query": query, "delay_ms": delay_ms, "timestamp": datetime.now(timezone.utc).isoformat(), "server_type": SERVER}


def stop_with_stdin(server: uvicorn.Server) -> None:
    for _ in sys.stdin:  # the line stats is not answered: Python counts no allocations unless it is slowed down
        pass
    server.should_exit = True


async def main() -> None:
    tools, host = sys.argv[1:]
    if tools != "tmdevlab-v1":
        raise SystemExit(f"tools {tools}: want tmdevlab-v1")
    listener = socket.create_server((host, 0), backlog=1024)
    app = mcp.http_app(path="/mcp", stateless_http=True, allowed_hosts=[f"{host}:*"])
    config = uvicorn.Config(app, log_level="error", access_log=False, timeout_graceful_shutdown=2)
    server = uvicorn.Server(config)
    threading.Thread(target=stop_with_stdin, args=(server,), daemon=True).start()
    task = asyncio.create_task(server.serve(sockets=[listener]))
    while not server.started and not task.done():
        await asyncio.sleep(0.01)
    if not task.done():
        ready = f"http://{host}:{listener.getsockname()[1]}/mcp"
        print(json.dumps({"ready": ready, "version": version("fastmcp"), "language": "python", "sdk": "fastmcp"}), flush=True)
    await task
    os._exit(0)  # a thread that waits for stdin does not end by itself


asyncio.run(main())
