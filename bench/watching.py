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
    address = urlsplit(base).hostname, urlsplit(base).port
    poll = select.epoll()
    poll.register(pipe.fileno(), select.EPOLLIN)
    connections, rests, waiting = {}, {}, set()
    for path in paths:
        connection = socket.create_connection(address)
        request = f"GET {BASE}{path}watch=true HTTP/1.1\r\nHost: bench\r\nAccept: application/x-ndjson\r\n\r\n"
        connection.sendall(request.encode())
        connection.setblocking(False)
        place = connection.fileno()
        connections[place], rests[place] = connection, b""
        waiting.add(place)
        poll.register(place, select.EPOLLIN)
    positions, times = array("q"), array("d")
    if not paths:
        pipe.send(0)
    while True:
        for place, _ in poll.poll():
            if place == pipe.fileno():
                pipe.recv()
                return positions.tobytes(), times.tobytes()
            data = connections[place].recv(1 << 18)
            now = time.time()
            if not data:
                raise ValueError(f"the service ended a watch: {rests[place][-300:]!r}")
            # Chunks begin and end between lines, so that what frames them is never within one.
            *lines, rests[place] = (rests[place] + data).split(b"\n")
            for line in lines:
                at = line.rfind(POSITION)
                if at < 0:
                    if b" 503 " in line or b'"type":"ERROR"' in line:
                        raise ValueError(line[:300])
                elif line.endswith(BOOKMARK):
                    if place in waiting:
                        waiting.remove(place)
                        if not waiting:
                            pipe.send(len(paths))
                else:
                    begin = line.index(b"-", at) + 1
                    positions.append(int(line[begin:line.index(b'"', begin)]))
                    times.append(now)


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
