"""civitas as a contender: `peer.py gateway|spawn` behind its HTTP gateway, `peer.py engine` in its process, `peer.py zmq|nats`
as an engine that asks an agent in a process of its own over that transport, `peer.py bare` the same over pyzmq alone."""

import asyncio
import importlib.metadata
import itertools
import logging
import os
import socket
import sys

import bare
from agents import CHILDREN, Child, Echo, Empty, Fibonacci, Spawner
from civitas import DynamicSupervisor, GatewayConfig, HTTPGateway, Runtime, Supervisor, Worker
from stretch import lines, say, serve

TARGET = "target"
SIZES = {"rtt/128B": 128, "rtt/4KiB": 4096}


def ready(where: str, sdk: str = "civitas") -> None:
    say({"ready": where, "version": importlib.metadata.version(sdk), "name": sdk, "language": "python", "sdk": sdk})


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


async def started(children, **kwargs) -> Runtime:
    runtime = Runtime(supervisor=Supervisor("root", children=children), **kwargs)
    await runtime.start()
    return runtime


async def http(port: int, routes, agents) -> None:
    host = os.environ.get("TOLL_HOST", "127.0.0.1")
    gateway = HTTPGateway("gateway", GatewayConfig(host=host, port=port, routes=routes, docs_enabled=False))
    runtime = await started([*agents, gateway])
    while True:  # its server comes up in a task of its own
        try:
            _, w = await asyncio.open_connection(host, port)
            w.close()
            break
        except OSError:
            await asyncio.sleep(0.01)
    ready(f"http://{host}:{port}")
    async for _ in lines():
        say({"gomaxprocs": 1})
    await runtime.stop()


def route(path: str, agent: str, **extra):
    return {"method": "POST", "path": path, "agent": agent, "mode": "call", **extra}


async def gateway(port: int) -> None:
    routes = [route("/v1/echo", "echo"), route("/v1/fibonacci", "fibonacci"), route("/v1/empty", "empty")]
    await http(port, routes, [Echo("echo"), Fibonacci("fibonacci"), Empty("empty")])


async def spawn(port: int) -> None:
    await http(port, [route("/v1/{what}", "spawner")], [DynamicSupervisor(CHILDREN), Spawner("spawner")])


async def engine() -> None:
    runtime = await started([DynamicSupervisor(CHILDREN), Echo("echo")])
    numbers, live = itertools.count(), []

    async def born() -> str:
        return await runtime.spawn(CHILDREN, Child, f"child-{next(numbers)}")

    async def keep(count: int) -> None:
        while len(live) < count:
            live.append(await born())
        while len(live) > count:
            await runtime.despawn(CHILDREN, live.pop())

    async def prepare(q):
        await keep((q.get("input") or {}).get("live", 0))
        kind, _, count = q["case"].partition("@")[0].partition("/")
        if kind == "ask":
            return asker(runtime, "echo", 16)
        if kind != "spawn":
            raise ValueError(f"case {q['case']} is none of this engine")
        count, before = int(count), Child.started

        async def call(caller, i):
            for name in [await born() for _ in range(count)]:
                await runtime.despawn(CHILDREN, name)

        async def check():
            return min(q["calls"], (Child.started - before) // count)

        return call, check

    ready("stdio:")
    await serve(prepare)
    await runtime.stop()


def asker(runtime, agent: str, size: int):
    """Asks with a text of size bytes that no two calls share, and compares the reply."""
    right = 0

    async def call(caller, i):
        nonlocal right
        text = f"{caller}.{i}.".ljust(size, "x")
        reply = await runtime.ask(agent, {"text": text}, timeout=5.0)
        if reply.payload != {"text": text}:
            raise ValueError(f"wrong_content: {str(reply.payload)[:100]}")
        right += 1

    async def check():
        return right

    return call, check


def transport(kind: str, ports):
    if kind == "zmq":
        return {"transport": "zmq", "zmq_pub_addr": f"tcp://127.0.0.1:{ports[0]}", "zmq_sub_addr": f"tcp://127.0.0.1:{ports[1]}"}
    return {"transport": "nats", "nats_servers": f"nats://127.0.0.1:{ports[0]}"}


async def worker(kind: str, *ports: str) -> None:
    w = Worker(agents=[Echo(TARGET)], **transport(kind, ports))
    await w.start()
    async for _ in lines():
        pass
    await w.stop()


async def bus(kind: str) -> None:
    """The coordinator asks; the agent lives in a worker process. Between them its own proxy thread, or a nats-server."""
    ports = [free_port(), free_port()]
    children = []

    async def child(*command):
        children.append(await asyncio.create_subprocess_exec(*command, stdin=asyncio.subprocess.PIPE, stdout=sys.stderr))

    try:
        if kind == "nats":
            await child("nats-server", "-a", "127.0.0.1", "-p", str(ports[0]))
            await reachable(ports[0])
        runtime = await started([Echo("here")], **transport(kind, ports))
        await child(sys.executable, __file__, "worker", kind, *map(str, ports))
        await answered(runtime)

        async def prepare(q):
            return asker(runtime, TARGET, SIZES[q["case"]])

        ready("stdio:")
        await serve(prepare)
        await runtime.stop()
    finally:
        for c in reversed(children):
            if c.returncode is None:
                c.stdin.close()
                if kind == "nats" and c is children[0]:
                    c.terminate()
                await c.wait()


async def pyzmq() -> None:
    bus, child = await bare.open_bus(__file__)
    try:

        async def prepare(q):
            size = SIZES[q["case"]]

            async def call(caller, i):
                body = f"{caller}.{i}.".ljust(size, "x").encode()
                if (reply := await bus.ask(body, 5.0)) != body:
                    raise ValueError(f"wrong_content: {reply[:100]!r}")
                call.right += 1

            async def check():
                return call.right

            call.right = 0
            return call, check

        ready("stdio:", "pyzmq")
        await serve(prepare)
    finally:
        child.stdin.close()
        await child.wait()


async def reachable(port: int) -> None:
    for _ in range(500):
        try:
            _, w = await asyncio.open_connection("127.0.0.1", port)
            w.close()
            return
        except OSError:
            await asyncio.sleep(0.01)
    raise TimeoutError("nats-server does not listen")


async def answered(runtime) -> None:
    """Its workers announce themselves once, so the first asks may find nobody."""
    for _ in range(60):
        try:
            await runtime.ask(TARGET, {"text": ""}, timeout=0.5)
            return
        except Exception:
            await asyncio.sleep(0.05)
    raise TimeoutError("the worker's agent does not answer")


def main() -> None:
    logging.basicConfig(level=logging.ERROR)
    what, *rest = sys.argv[1:]
    if what in ("gateway", "spawn"):
        work = {"gateway": gateway, "spawn": spawn}[what](free_port())
    elif what == "engine":
        work = engine()
    elif what == "worker":
        work = worker(*rest)
    elif what == "bare-worker":
        work = bare.worker(*rest, lines)
    elif what == "bare":
        work = pyzmq()
    else:
        work = bus(what)
    try:
        import uvloop

        uvloop.run(work)
    except ImportError:
        asyncio.run(work)


if __name__ == "__main__":
    main()
