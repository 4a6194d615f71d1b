"""The stdio door of an engine: a line of JSON asks for a stretch of calls by several callers, and is answered with one time
per call, what the stretch cost this process, and how many results were verified after the clock had stopped."""

import asyncio
import json
import sys
import time


def say(value) -> None:
    print(json.dumps(value, separators=(",", ":")), flush=True)


async def lines():
    """The lines of stdin, until it is closed."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=1 << 20)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while line := await reader.readline():
        yield line


async def stretch(q, prepare):
    """Runs the calls of a question. prepare(q) gives call(caller, i) and check(): how many results were right."""
    calls, callers = q["calls"], min(q["callers"], q["calls"])
    call, check = await prepare(q)
    ns, why = [], []

    async def caller(v):
        for i in range(v, calls, callers):
            begin = time.perf_counter_ns()
            try:
                await call(v, i)
            except Exception as e:
                why.append(repr(e))
                continue
            ns.append(time.perf_counter_ns() - begin)

    cpu, begin = time.process_time_ns(), time.perf_counter_ns()
    await asyncio.gather(*(caller(v) for v in range(callers)))
    elapsed, cpu = time.perf_counter_ns() - begin, time.process_time_ns() - cpu
    out = {"id": q["id"], "ns": ns, "elapsed_ns": elapsed, "cpu_ns": cpu, "checked": await check()}
    if why:
        out |= {"failed": {"other": len(why)}, "why": why[0]}
    return out


async def serve(prepare) -> None:
    async for line in lines():
        if not line.startswith(b"{"):
            say({"gomaxprocs": 1})  # one thread at a time runs Python; it counts no allocations unless it is slowed down
            continue
        q = {}
        try:
            q = json.loads(line)
            say(await stretch(q, prepare))
        except Exception as e:
            say({"id": q.get("id"), "error": repr(e), "ns": [], "elapsed_ns": 0, "checked": 0})
