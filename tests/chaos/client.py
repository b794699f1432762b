"""A small HTTP/1.1 client: one connection, made again when it is lost."""

import asyncio
import json

BASE = "/api/hyperfleet/v1"


class Lost(Exception):
    """The connection ended before the answer: the result of the request is unknown."""


class Refused(Lost):
    """No connection could be made: the request was never sent."""


class Answer:
    """Status, headers with lower-case names, body."""

    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    def json(self):
        return json.loads(self.body)


async def read_answer(reader, has_body=True):
    """The next answer on a connection."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
        lines = head.decode("latin-1").split("\r\n")
        status = int(lines[0].split(" ")[1])
        pairs = (line.split(":", 1) for line in lines[1:] if line)
        headers = {name.strip().lower(): value.strip() for name, value in pairs}
        body = b""
        if has_body and status not in (204, 304):
            if headers.get("transfer-encoding", "").lower() == "chunked":
                while size := int(await reader.readline(), 16):
                    body += await reader.readexactly(size)
                    await reader.readexactly(2)
                await reader.readline()
            else:
                body = await reader.readexactly(int(headers.get("content-length", 0)))
        return Answer(status, headers, body)
    except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError, IndexError) as error:
        raise Lost(repr(error)) from error


class Client:
    """One connection to one of several addresses, taken in turn."""

    def __init__(self, *addresses, seconds=30):
        self.addresses, self.turn, self.seconds = addresses, 0, seconds
        self.reader = self.writer = None
        # The one that was last connected to.
        self.address = None

    async def call(self, method, path, body=None, headers=()):
        """One request. `Lost`: the connection ended, or the time was up."""
        data = b"" if body is None else json.dumps(body).encode()
        head = f"{method} {path} HTTP/1.1\r\nHost: chaos\r\nContent-Length: {len(data)}\r\n"
        if data:
            head += "Content-Type: application/json\r\n"
        for name, value in headers:
            head += f"{name}: {value}\r\n"
        try:
            async with asyncio.timeout(self.seconds):
                if self.writer is None:
                    await self._connect()
                self.writer.write(head.encode() + b"\r\n" + data)
                await self.writer.drain()
                answer = await read_answer(self.reader, method != "HEAD")
        except (OSError, TimeoutError) as error:
            self.close()
            raise Lost(repr(error)) from error
        except Lost:
            self.close()
            raise
        if answer.headers.get("connection", "").lower() == "close":
            self.close()
        return answer

    async def _connect(self):
        self.address = self.addresses[self.turn % len(self.addresses)]
        self.turn += 1
        try:
            self.reader, self.writer = await asyncio.open_connection(*self.address, limit=1 << 24)
        except OSError as error:
            raise Refused(repr(error)) from error

    def close(self):
        if self.writer:
            self.writer.close()
        self.reader = self.writer = None
