"""The topology of the zmq transport without the framework: one PUB and one SUB in each of two processes, an XSUB/XPUB proxy in
a thread of the first, an event loop in both. What it costs less than civitas-zmq is the framework's."""

import asyncio
import itertools
import sys
import threading

import zmq
import zmq.asyncio

TARGET, BACK = b"target\0", b"back\0"


def proxy(context, xsub, xpub):
    """Forwards between the processes, in a thread, until the context ends; returns where they connect."""
    ends = [context.socket(xsub), context.socket(xpub)]
    ports = [s.bind_to_random_port("tcp://127.0.0.1") for s in ends]

    def run():
        try:
            zmq.proxy(*ends)
        except zmq.ContextTerminated:
            pass
        for s in ends:
            s.close(linger=0)

    threading.Thread(target=run, daemon=True).start()
    return [f"tcp://127.0.0.1:{p}" for p in ports]


def connect(pub_at, sub_at, topic):
    context = zmq.asyncio.Context()
    pub, sub = context.socket(zmq.PUB), context.socket(zmq.SUB)
    pub.connect(pub_at)
    sub.connect(sub_at)
    sub.subscribe(topic)
    return pub, sub


async def worker(pub_at, sub_at, lines):
    pub, sub = connect(pub_at, sub_at, TARGET)

    async def echo():
        while True:
            _, number, body = await sub.recv_multipart()
            await pub.send_multipart([BACK, number, body])

    task = asyncio.create_task(echo())
    async for _ in lines():
        pass
    task.cancel()


class Bus:
    """Asks the worker; replies are told apart by their number."""

    def __init__(self, ends):
        self.pub, self.sub = connect(*ends, BACK)
        self.numbers, self.waiting = itertools.count(), {}
        self.task = asyncio.create_task(self.receive())

    async def receive(self):
        while True:
            _, number, body = await self.sub.recv_multipart()
            if reply := self.waiting.pop(number, None):
                reply.set_result(body)

    async def ask(self, body, timeout):
        number = next(self.numbers).to_bytes(8, "big")
        self.waiting[number] = reply = asyncio.get_running_loop().create_future()
        try:
            await self.pub.send_multipart([TARGET, number, body])
            return await asyncio.wait_for(reply, timeout)
        finally:
            self.waiting.pop(number, None)

    async def answered(self):
        """Subscriptions take a moment to reach the other end; until then messages are lost."""
        for _ in range(300):
            try:
                return await self.ask(b"", 0.1)
            except TimeoutError:
                continue
        raise TimeoutError("the worker does not answer")


async def open_bus(file):
    ends = proxy(zmq.Context(), zmq.XSUB, zmq.XPUB)
    child = await asyncio.create_subprocess_exec(
        sys.executable, file, "bare-worker", *ends, stdin=asyncio.subprocess.PIPE, stdout=sys.stderr
    )
    bus = Bus(ends)
    await bus.answered()
    return bus, child
