"""Requests that are wrong in every way we can think of, and clients that are slow on purpose."""

import asyncio
import json
import multiprocessing
import os
import random
import socket
import time

from client import Client, Lost, read_answer
from ledger import BASE
from world import percentile

OK_ANSWERS = range(100, 500)


def malformed(chance):
    """Endless raw requests, each with what it is called."""
    letters = lambda count: "".join(chance.choices("abcdefghijklmnopqrstuvwxyz", k=count))
    noise = lambda count: chance.randbytes(count)
    length = lambda body: f"Content-Length: {len(body)}\r\n"

    def request(method, path, body=b"", headers=""):
        body = body.encode() if isinstance(body, str) else body
        return f"{method} {path} HTTP/1.1\r\nHost: x\r\n{headers}{length(body)}\r\n".encode("latin-1") + body

    def post(body, path="/clusters"):
        return request("POST", BASE + path, body, "Content-Type: application/json\r\n")

    good = {"kind": "Cluster", "name": "abc", "spec": {}}
    some_id = "0190a6f0-1c2b-7def-8123-456789abcdef"
    makers = {
        "noise instead of HTTP": lambda: noise(chance.randrange(1, 300)),
        "half a head": lambda: f"GET {BASE}/clusters HTTP/1.1\r\nHost: {letters(9)}".encode(),
        "a head of 200 KiB": lambda: request("GET", f"{BASE}/clusters", headers=f"X-Big: {letters(200_000)}\r\n"),
        "a thousand headers": lambda: request(
            "GET", f"{BASE}/clusters", headers="".join(f"X-{i}: {i}\r\n" for i in range(1000))),
        "another protocol version": lambda: f"GET {BASE}/clusters HTTP/{chance.randrange(3, 99)}.7\r\n\r\n".encode(),
        "TLS": lambda: b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + noise(200),
        "lengths that disagree": lambda: (
            f"POST {BASE}/clusters HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nContent-Length: 50\r\n\r\nabcde").encode(),
        "a length and chunks": lambda: (
            f"POST {BASE}/clusters HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n"
            "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n").encode(),
        "a length below nothing": lambda: f"POST {BASE}/clusters HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n".encode(),
        "a length beyond all bounds": lambda: (
            f"POST {BASE}/clusters HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999\r\n\r\n").encode(),
        "chunks that are none": lambda: (
            f"POST {BASE}/clusters HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\n").encode() + noise(20),
        "less body than promised": lambda: post(json.dumps(good))[:-7],
        "no JSON": lambda: post(noise(chance.randrange(1, 2000))),
        "JSON cut off": lambda: post(json.dumps(good)[:chance.randrange(1, 40)]),
        "JSON a thousand levels deep": lambda: post('{"spec":' * 1000 + "1" + "}" * 1000),
        "a body of 2 MiB": lambda: post(json.dumps({**good, "spec": {"x": "y" * (2 << 20)}})),
        "a body of the wrong type": lambda: post(chance.choice(["null", "[]", "7", '"x"', "true", ""])),
        "members of wrong types": lambda: post(json.dumps(
            {k: chance.choice([None, 7, [], {}, True, "\u0000", -1e308, "x" * 300]) for k in
             ("kind", "name", "spec", "labels", "references", letters(5))})),
        "numbers without bounds": lambda: post('{"kind":"Cluster","name":"abc","spec":{"x":' + "9" * 400 + "e999}}"),
        "names that are none": lambda: post(json.dumps({**good, "name": chance.choice(
            ["", "-", "A", "a" * 500, "é", "\u202e", "../../etc", "a\nb", "' OR 1=1 --"])})),
        "text that is no UTF-8": lambda: post(b'{"kind":"Cluster","name":"\xff\xfe","spec":{}}'),
        "lone surrogates": lambda: post('{"kind":"Cluster","name":"\\ud800","spec":{}}'),
        "paths with noise": lambda: request("GET", f"{BASE}/%{letters(2)}/" + "%00" * chance.randrange(9)),
        "paths upwards": lambda: request("GET", f"{BASE}/../../" + letters(5)),
        "ids that are none": lambda: request("GET", f"{BASE}/clusters/{letters(40)}'--"),
        "a path of 60 KiB": lambda: request("GET", f"{BASE}/clusters/{letters(60_000)}"),
        "methods nobody knows": lambda: request(letters(8).upper(), f"{BASE}/clusters"),
        "searches that are none": lambda: request("GET", f"{BASE}/clusters?search=" + chance.choice(
            ["%27", "name%20%3D", "((((", "labels.%27%3B--%3D1", "a" * 5000, "name%20in%20()", "spec.%00=1"])),
        "parameters without sense": lambda: request("GET", f"{BASE}/clusters?" + chance.choice(
            ["size=-1", "page=99999999999999999999", "order=;drop", "fields=" + "a," * 3000, "size=1&size=2",
             "continue=" + letters(200), "includeDeleted=perhaps", "ref_type=x", "page=%FF"])),
        "patches without sense": lambda: request(
            "PATCH", f"{BASE}/clusters/{some_id}", chance.choice(["{}", '{"name":"x"}', '{"labels":7}', "[{}]"])),
        "reports without sense": lambda: request(
            "PUT", f"{BASE}/clusters/{some_id}/statuses",
            json.dumps({"adapter": chance.choice(["", "x" * 400, 7, None]), "observed_generation": chance.choice(
                [-1, 2**63, "1", 1.5]), "observed_time": letters(5), "conditions": chance.choice([[], {}, [7], None])})),
        "force without reason": lambda: request("POST", f"{BASE}/clusters/{some_id}/force-delete", '{"reason": ""}'),
        "gzip bombs": lambda: request(
            "POST", f"{BASE}/clusters", noise(500), "Content-Encoding: gzip\r\nContent-Type: application/json\r\n"),
        "tokens of noise": lambda: request(
            "GET", f"{BASE}/clusters", headers=f"Authorization: Bearer {letters(30)}.{letters(90)}.{letters(40)}\r\n"),
        "twenty at once": lambda: request("GET", f"{BASE}/clusters?size=0") * 20,
        "upgrades": lambda: request(
            "GET", f"{BASE}/clusters", headers="Connection: Upgrade\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n"),
    }
    return makers


async def send_raw(address, data, seconds=8):
    """The first answer's status; None if the server just closed."""
    try:
        async with asyncio.timeout(seconds):
            reader, writer = await asyncio.open_connection(*address, limit=1 << 24)
            try:
                writer.write(data)
                await writer.drain()
                # Half of these promise more than they send: this says that nothing more comes.
                if writer.can_write_eof():
                    writer.write_eof()
                return (await read_answer(reader)).status
            finally:
                writer.close()
    except (OSError, TimeoutError, Lost):
        return None


class Slow:
    """Clients that take their time, each a connection, in a process of their own: what they cost here must
    not be taken for what they cost the service."""

    # Over how long they come, in seconds: not all at once, and so not closed all at once either.
    RAMP = 8

    def __init__(self, address, count):
        self.address, self.count, self.process = address, count, None

    async def __aenter__(self):
        self.process = multiprocessing.get_context("fork").Process(target=self._main, daemon=True)
        self.process.start()
        await asyncio.sleep(self.RAMP + 2)
        return self

    async def __aexit__(self, *_):
        self.process.kill()
        self.process.join()

    def _main(self):
        asyncio.run(self._all())

    async def _all(self):
        await asyncio.gather(*(self._keep() for _ in range(self.count)))

    async def _keep(self):
        """Opens a connection again whenever the server has had enough of it."""
        await asyncio.sleep(random.uniform(0, self.RAMP))
        while True:
            try:
                reader, writer = await asyncio.open_connection(*self.address)
            except OSError:
                await asyncio.sleep(0.5)
                continue
            try:
                await self.act(reader, writer)
            except OSError:
                pass
            finally:
                writer.close()
            await asyncio.sleep(random.uniform(0, 1))

    async def act(self, reader, writer):
        raise NotImplementedError


class Silent(Slow):
    """Connects and says nothing."""

    async def act(self, reader, writer):
        await reader.read()


class SlowHead(Slow):
    """One byte of the head of a request every ten seconds."""

    async def act(self, reader, writer):
        for byte in f"GET {BASE}/clusters HTTP/1.1\r\nHost: x\r\nX-Slow: {'y' * 100}".encode():
            writer.write(bytes([byte]))
            await writer.drain()
            done, _ = await asyncio.wait({asyncio.ensure_future(reader.read(1))}, timeout=10)
            if done:
                return


class SlowBody(Slow):
    """One byte of the body every ten seconds."""

    async def act(self, reader, writer):
        writer.write(f"POST {BASE}/clusters HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n".encode())
        while True:
            writer.write(b" ")
            await writer.drain()
            done, _ = await asyncio.wait({asyncio.ensure_future(reader.read(1))}, timeout=10)
            if done:
                return


class SlowReader(Slow):
    """Asks for a big list and reads a kibibyte of it every ten seconds."""

    async def act(self, reader, writer):
        connection = writer.get_extra_info("socket")
        # As little as there can be: what waits, waits at the server.
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        writer.transport.pause_reading()
        writer.write(f"GET {BASE}/clusters?size=100 HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        await writer.drain()
        while True:
            await asyncio.sleep(random.uniform(9, 11))
            # By hand: the library reads as much as it can get.
            os.read(connection.fileno(), 1024)


async def latencies(address, seconds, rate=100, path=f"{BASE}/clusters?size=1"):
    """Times of requests that come at a steady rate, and how many failed. What waits counts, too."""
    times, failed = [], 0
    clients = asyncio.Queue()
    for _ in range(16):
        clients.put_nowait(Client(address, seconds=60))
    began = time.monotonic()

    async def one(due):
        nonlocal failed
        client = await clients.get()
        try:
            answer = await client.call("GET", path)
            failed += answer.status != 200
        except Lost:
            failed += 1
        finally:
            clients.put_nowait(client)
        times.append(time.monotonic() - due)

    tasks = []
    for number in range(int(seconds * rate)):
        due = began + number / rate
        await asyncio.sleep(max(0, due - time.monotonic()))
        tasks.append(asyncio.create_task(one(due)))
    await asyncio.gather(*tasks)
    while not clients.empty():
        clients.get_nowait().close()
    return times, failed


def p99(times):
    return percentile(times, 0.99)
