"""Clients of watches in a process of their own, and the load that they watch."""

import json
import multiprocessing
import select
import signal
import socket
import threading
import time
from array import array
from urllib.parse import urlsplit

from servers import Failed

BASE = "/api/hyperfleet/v1"
BEGIN_SECONDS_MAX = 60
# Watches that begin at a time.
OPENING_MAX = 32
# Connections of the load: each sends one change at a time.
SENDERS = 16
POSITION, BOOKMARK = b'"position":"', b'"type":"BOOKMARK"}'


class Clients:
    """A process with a connection for each watcher, which notes when it has read which event."""

    def __init__(self, base, paths):
        self.count = len(paths)
        self.pipe, theirs = multiprocessing.Pipe()
        self.process = multiprocessing.Process(target=_clients, args=(theirs, base, paths))
        self.process.start()
        theirs.close()

    @property
    def pid(self):
        return self.process.pid

    def begin(self):
        """Waits until every watch has begun."""
        if not self.pipe.poll(BEGIN_SECONDS_MAX):
            raise Failed(f"{self.count} watches did not begin in {BEGIN_SECONDS_MAX} s")
        begun = self.pipe.recv()
        if begun != self.count:
            raise Failed(f"watches did not begin: {begun}")

    def end(self):
        """Position and time of every event."""
        self.pipe.send("end")
        positions, times = self.pipe.recv()
        if isinstance(positions, str):
            raise Failed(positions)
        return list(zip(array("q", positions), array("d", times)))

    def stop(self):
        self.process.terminate()
        self.process.join()


def _clients(pipe, base, paths):
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    try:
        pipe.send(_watch(pipe, base, paths))
    except (OSError, EOFError, ValueError) as error:
        pipe.send((f"a watch failed: {error!r}", None))


def _watch(pipe, base, paths):
    """Connects all, and reads until the pipe says that it is enough."""
    reader = _Reader(base)
    poll, unopened = reader.poll, list(reversed(paths))
    poll.register(pipe.fileno(), select.EPOLLIN)
    is_begun = False
    while True:
        while unopened and len(reader.waiting) < OPENING_MAX:
            reader.open(unopened.pop())
        if not unopened and not reader.waiting and not is_begun:
            is_begun = True
            pipe.send(len(paths))
        for place, _ in poll.poll():
            if place == pipe.fileno():
                pipe.recv()
                return reader.positions.tobytes(), reader.times.tobytes()
            reader.read(place)


class _Reader:
    """The connections, and the events that were read."""

    def __init__(self, base):
        self.address = urlsplit(base).hostname, urlsplit(base).port
        self.poll = select.epoll()
        self.connections, self.rests = {}, {}
        # Those that were sent nothing yet.
        self.waiting = set()
        self.positions, self.times = array("q"), array("d")

    def open(self, path):
        connection = socket.create_connection(self.address)
        request = f"GET {BASE}{path}watch=true HTTP/1.1\r\nHost: bench\r\nAccept: application/x-ndjson\r\n\r\n"
        connection.sendall(request.encode())
        connection.setblocking(False)
        place = connection.fileno()
        self.connections[place], self.rests[place] = connection, b""
        self.waiting.add(place)
        self.poll.register(place, select.EPOLLIN)

    def read(self, place):
        data = self.connections[place].recv(1 << 18)
        now = time.time()
        data, is_over = self.rests[place] + data, not data
        # Chunks begin and end between lines, so that what frames them is never within one.
        *lines, self.rests[place] = data.split(b"\n")
        if is_over or lines and lines[0].startswith(b"HTTP/1.1 ") and b" 200 " not in lines[0]:
            raise ValueError(f"the service ended a watch: {data[-600:]!r}")
        for line in lines:
            at = line.rfind(POSITION)
            if at < 0:
                if b'"type":"ERROR"' in line:
                    raise ValueError(f"the service ended a watch: {line[:600]!r}")
            elif line.endswith(BOOKMARK):
                self.waiting.discard(place)
            else:
                begin = line.index(b"-", at) + 1
                self.positions.append(int(line[begin:line.index(b'"', begin)]))
                self.times.append(now)


class Load:
    """Changes at a steady rate."""

    def __init__(self, base, pools, rate):
        self.address = urlsplit(base).hostname, urlsplit(base).port
        self.pools, self.rate = pools, rate
        self.done = self.errors = 0

    def run(self, seconds):
        """Sends the changes, each when it is due or as soon as a connection is free, in a process of its own."""
        ours, theirs = multiprocessing.Pipe()
        process = multiprocessing.Process(target=self._run, args=(theirs, seconds))
        process.start()
        theirs.close()
        try:
            self.done, self.errors, self.seconds = ours.recv()
        except EOFError:
            raise Failed("the load broke off") from None
        finally:
            process.terminate()
            process.join()

    def _run(self, pipe, seconds):
        count, begin = int(seconds * self.rate), time.monotonic()
        results = [[0, 0] for _ in range(SENDERS)]
        threads = [threading.Thread(target=self._send, args=(begin, number, count, results[number]))
                   for number in range(SENDERS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        done, errors = (sum(column) for column in zip(*results))
        pipe.send((done, errors, time.monotonic() - begin))

    def _send(self, begin, first, count, result):
        """Every so-manieth change. No two senders change one node pool at a time: a sender has pools of its own."""
        connection = socket.create_connection(self.address)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        pools = self.pools[first::SENDERS]
        for turn, number in enumerate(range(first, count, SENDERS)):
            time.sleep(max(0, begin + number / self.rate - time.monotonic()))
            # All clusters in turn.
            path, labels = pools[turn % len(pools)]
            body = json.dumps({"labels": {**labels, "n": f"{time.time_ns()}"}}).encode()
            head = (f"PATCH {BASE}{path} HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\n"
                    f"Content-Length: {len(body)}\r\n\r\n")
            connection.sendall(head.encode() + body)
            is_done = _status(connection) == 200
            result[0 if is_done else 1] += 1
        connection.close()


def _status(connection):
    """Reads one answer with a length."""
    data = b""
    while b"\r\n\r\n" not in data:
        data += _received(connection)
    head, _, body = data.partition(b"\r\n\r\n")
    length = next(int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:"))
    while len(body) < length:
        body += _received(connection)
    return int(head.split(b" ", 2)[1])


def _received(connection):
    data = connection.recv(1 << 16)
    if not data:
        raise Failed("the service ended a connection of the load")
    return data
