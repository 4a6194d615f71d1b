"""The agents of the benchmarks, as a user of civitas writes them. They stand in a module of their own because the supervisor
imports a child's class by its path."""

import itertools
import time

from civitas import AgentProcess
from civitas.messages import Message

CHILDREN = "children"  # the dynamic supervisor


class Echo(AgentProcess):
    """Answers with a document made of what it was sent; over the bus with that itself."""

    async def handle(self, message: Message) -> Message | None:
        if message.type == "http.request":
            return self.reply({"keys": sorted(message.payload), "payload": message.payload, "server": "civitas"})
        return self.reply(message.payload)


class Empty(AgentProcess):
    async def handle(self, message: Message) -> Message | None:
        return self.reply({})


def fib(n: int) -> int:
    return n if n < 2 else fib(n - 1) + fib(n - 2)


class Fibonacci(AgentProcess):
    """The naive recursion that the published tables measure."""

    async def handle(self, message: Message) -> Message | None:
        n = message.payload.get("n")
        if type(n) is not int or not 0 <= n <= 40:
            return self.reply({"error": "n must be an integer from 0 to 40"})
        return self.reply({"result": fib(n), "server": "civitas"})


class Child(AgentProcess):
    """What is spawned. It counts its starts itself: a spawn that starts nothing is found out."""

    started = 0

    async def on_start(self) -> None:
        Child.started += 1

    async def handle(self, message: Message) -> Message | None:
        return self.reply(message.payload)


class Spawner(AgentProcess):
    """Spawns and despawns as many children as a request says, each ready before the next."""

    async def on_start(self) -> None:
        self.numbers = itertools.count()
        self.live: list[str] = []

    async def handle(self, message: Message) -> Message | None:
        accepted = time.monotonic_ns()
        call = message.payload
        count = call["count"]
        if call["what"] == "live":
            await self.keep(count)
            return self.reply(self.done(call, count, 0, 0))
        names = []
        for _ in range(count if call["what"] == "spawn" else 0):
            names.append(await self.born())
        ready = time.monotonic_ns()
        for name in names:
            await self.gone(name)
        return self.reply(self.done(call, len(names), ready - accepted, time.monotonic_ns() - ready, names))

    async def keep(self, count: int) -> None:
        while len(self.live) < count:
            self.live.append(await self.born())
        while len(self.live) > count:
            await self.gone(self.live.pop())

    async def born(self) -> str:
        return await self.spawn_into(CHILDREN, Child, f"child-{next(self.numbers)}")

    async def gone(self, name: str) -> None:
        reply = await self.ask(CHILDREN, {"name": name}, message_type="civitas.dynamic.despawn")
        if reply.payload.get("status") != "ok":
            raise RuntimeError(f"despawn of {name}: {reply.payload}")

    def done(self, call, spawned, ready, gone, names=()):
        return {
            "id": call["id"],
            "status": "ok",
            "spawned": spawned,
            "live": len(self.live),
            "child": names[-1] if names else f"child-{next(self.numbers)}",
            "ready_ns": ready,
            "gone_ns": gone,
        }
