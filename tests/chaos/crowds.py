"""Crowds of clients that are slow on purpose."""

import asyncio
import multiprocessing
import os
import random
import signal
import socket

from client import BASE


class Crowd:
    """Clients that take their time, each a connection, in a process of their own: what they cost here must
    not be taken for what they cost the service."""

    # Over how long they come, in seconds: not all at once, and so not closed all at once either.
    RAMP = 8
    # How long who was sent away waits until it comes again, in seconds.
    PAUSE = (0, 1)

    def __init__(self, address, count, seed):
        self.address, self.count, self.seed = address, count, seed
        fork = multiprocessing.get_context("fork")
        # How often one of them was connected, and how many are now.
        self.came, self.there = fork.Value("q", 0), fork.Value("q", 0)
        self.process = fork.Process(target=self._main, daemon=True)

    async def __aenter__(self):
        self.process.start()
        await asyncio.sleep(self.RAMP + 2)
        return self

    async def __aexit__(self, *_):
        self.process.kill()
        self.process.join()

    def _main(self):
        # The end of the run ends this process, too.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        asyncio.run(self._all())

    async def _all(self):
        await asyncio.gather(*(self._keep(random.Random(f"{self.seed}/{number}")) for number in range(self.count)))

    async def _keep(self, chance):
        """Opens a connection again whenever the server has had enough of it."""
        await asyncio.sleep(chance.uniform(0, self.RAMP))
        while True:
            try:
                reader, writer = await asyncio.open_connection(*self.address)
            except OSError:
                await asyncio.sleep(0.5)
                continue
            self.came.value += 1
            self.there.value += 1
            try:
                await self.act(reader, writer, chance)
            except OSError:
                pass
            finally:
                self.there.value -= 1
                writer.transport.abort()
            await asyncio.sleep(chance.uniform(*self.PAUSE))

    async def act(self, reader, writer, chance):
        raise NotImplementedError


async def trickle(reader, writer, data):
    """One byte every ten seconds, until the server says something."""
    for byte in data:
        writer.write(bytes([byte]))
        await writer.drain()
        said = asyncio.ensure_future(reader.read(1))
        done, _ = await asyncio.wait({said}, timeout=10)
        if done:
            return
        said.cancel()


def take_little(writer):
    """Leaves to the server what is not read here: as little as there can be waits on this side."""
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    writer.transport.pause_reading()


class Silent(Crowd):
    """Connects and says nothing."""

    async def act(self, reader, writer, chance):
        await reader.read()


class SlowHead(Crowd):
    """One byte of the head of a request every ten seconds."""

    async def act(self, reader, writer, chance):
        await trickle(reader, writer, f"GET {BASE}/clusters HTTP/1.1\r\nHost: x\r\nX-Slow: {'y' * 100}".encode())


class SlowBody(Crowd):
    """One byte of the body every ten seconds."""

    async def act(self, reader, writer, chance):
        writer.write(f"POST {BASE}/clusters HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n".encode())
        await trickle(reader, writer, b" " * 1000)


class HalfBody(Crowd):
    """Announces 900 KiB, sends 100, and leaves it at that."""

    # Who finds no room is sent away at once. Coming back at once would be a flood, not slowness.
    PAUSE = (5, 15)

    async def act(self, reader, writer, chance):
        head = (f"POST {BASE}/clusters HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                f"Content-Length: {900 << 10}\r\n\r\n")
        writer.write(head.encode() + b" " * (100 << 10))
        await reader.read()


class NoReader(Crowd):
    """Asks for the OpenAPI document and takes nothing of it."""

    async def act(self, reader, writer, chance):
        take_little(writer)
        writer.write(f"GET {BASE}/openapi HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        # A client that reads nothing does not notice that the server has closed: it connects again after a minute.
        await asyncio.sleep(60)


class SlowReader(Crowd):
    """Asks for a big list and reads a kibibyte of it every ten seconds."""

    async def act(self, reader, writer, chance):
        take_little(writer)
        writer.write(f"GET {BASE}/clusters?size=100 HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        connection = writer.get_extra_info("socket")
        while True:
            await asyncio.sleep(chance.uniform(9, 11))
            # By hand: the library reads as much as it can get. Nothing there yet is an OSError, too.
            try:
                if not os.read(connection.fileno(), 1024):
                    return
            except BlockingIOError:
                pass
