#!/usr/bin/env python3
"""An adapter to start from: copy it, and put your work into `reconcile`. Needs Python 3.9 or newer, and nothing else.

    python3 adapter.py clusters nodepools        the kinds that it works on, by their plurals

API         URL of the service (http://127.0.0.1:8000)
NAME        the adapter's name, as in required_adapters (starter)
TOKEN_FILE  file with a token, if the service asks for one; it is read for each request
WORKERS     how many resources are worked on at the same time (8)
LEASE       lease of the API, for which copies of the adapter compete: its holder works (NAME); none: each copy works
"""
import heapq
import json
import os
import secrets
import signal
import socket
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from datetime import datetime, timezone

ROOT = "/api/hyperfleet/v1"
# With the path of the API or without.
API = (os.environ.get("API") or "http://127.0.0.1:8000").rstrip("/").removesuffix(ROOT)
NAME = os.environ.get("NAME") or "starter"
TOKEN_FILE = os.environ.get("TOKEN_FILE")
LEASE = os.environ.get("LEASE") or NAME
# How long the other copies wait for one that has crashed, and for how much of that time this copy may work after a renewal.
LEASE_SECONDS, HELD_SECONDS = 15, 12
WORK_SECONDS = 2
# How long a stop waits for work in progress.
GRACE_SECONDS = 10


class Refused(Exception):
    """The service has refused a request."""

    def __init__(self, error):
        self.status, problem = error.code, {}
        try:
            problem = json.loads(error.read())
        except ValueError:
            pass
        self.code = problem.get("code")
        super().__init__(f"{error.code}: {problem.get('detail', error.reason)}")


def reconcile(resource, begun):
    """Brings one step of the work on a resource about, and returns its conditions and when to call it again.

    It is called for every new generation, after failures, and every ten minutes: compare what is there with
    resource["spec"], and change only the difference. `begun` says whether an earlier call has reported on this generation.
    An exception is reported as Available=False and Health=False, and retried after 1 s, then at growing intervals.

    This one creates nothing: it fails if spec.demo.fail is true.
    """
    demo, is_deleted = resource["spec"].get("demo"), "deleted_time" in resource
    fails = isinstance(demo, dict) and demo.get("fail") is True
    if is_deleted:
        if not begun:
            return conditions(False, "Removing", "cleaning up", finalized=False), WORK_SECONDS
        if fails:
            return conditions(False, "DemoFailure", "spec.demo.fail is true", finalized=False, healthy=False), None
        return conditions(False, "Removed", "nothing is left", finalized=True), None
    if not begun:
        return conditions(False, "Working", "about to create everything"), WORK_SECONDS
    if fails:
        return conditions(False, "DemoFailure", "spec.demo.fail is true", healthy=False), None
    return conditions(True, "Done", "everything is there"), None


def conditions(available, reason, message, finalized=None, healthy=True):
    """The conditions of a report. Only Available decides whether the resource is reconciled, or Finalized when it is deleted."""
    found = {"Applied": finalized is None, "Available": available, "Health": healthy}
    if finalized is not None:
        found["Finalized"] = finalized
    return [{"type": kind, "status": str(status), "reason": reason, "message": message} for kind, status in found.items()]


class Queue:
    """Resources to work on: each when it is due, and never two workers on one."""

    def __init__(self):
        self.changed, self.heap, self.due, self.busy = threading.Condition(), [], {}, set()
        self.stopped = False

    def add(self, href, delay=0.0):
        """Makes a resource due; if it already is, the earlier time applies."""
        at = time.monotonic() + delay
        with self.changed:
            if at < self.due.get(href, float("inf")):
                self.due[href] = at
                heapq.heappush(self.heap, (at, href))
                self.changed.notify_all()

    def take(self):
        with self.changed:
            while True:
                at, href = self.heap[0] if self.heap and not self.stopped else (None, None)
                if href and self.due.get(href) != at:
                    heapq.heappop(self.heap)  # an earlier entry has replaced it
                elif href and href in self.busy:
                    heapq.heapreplace(self.heap, (at + 1, href))
                    self.due[href] = at + 1
                elif href and at <= time.monotonic():
                    heapq.heappop(self.heap)
                    del self.due[href]
                    self.busy.add(href)
                    return href
                else:
                    self.changed.wait(at - time.monotonic() if href else None)

    def done(self, href):
        with self.changed:
            self.busy.discard(href)
            self.changed.notify_all()

    def stop(self):
        """Begins no more work; returns whether all work in progress has ended in time."""
        with self.changed:
            self.stopped = True
            return self.changed.wait_for(lambda: not self.busy, GRACE_SECONDS)


class Lease:
    """Of several copies of this program, the holder of the lease works. A copy that loses it starts again."""

    def __init__(self):
        self.holder = f"{socket.gethostname()}-{secrets.token_hex(8)}"
        self.until, self.path = 0.0, f"{ROOT}/leases/{urllib.parse.quote(LEASE)}"

    def ask(self):
        """Acquires or renews the lease; returns whether this copy holds it."""
        asked = time.monotonic()
        try:
            body = {"holder": self.holder, "duration_seconds": LEASE_SECONDS}
            send("PUT", self.path, body, timeout=HELD_SECONDS / 3).close()
            self.until = asked + HELD_SECONDS
            return True
        except Refused as error:
            if error.status != 409:
                raise
            self.until = 0.0
            return False

    def acquire(self):
        said = None
        while True:
            try:
                if self.ask():
                    print(f"lease {LEASE} acquired", file=sys.stderr)
                    return
                problem = "another copy holds it"
            except Exception as error:
                problem = str(error)
            if problem != said:
                print(f"lease {LEASE}: {problem}: waiting", file=sys.stderr)
                said = problem
            time.sleep(2)

    def renew(self):
        while time.monotonic() < self.until:
            try:
                if not self.ask():
                    break
                time.sleep(LEASE_SECONDS / 3)
            except Exception as error:
                print(f"lease {LEASE}: {error}: renewing it again in 1 s", file=sys.stderr)
                time.sleep(max(0.0, min(1.0, self.until - time.monotonic())))

    def keep(self):
        """Renews the lease as long as possible, and then starts the program again, which ends all work in progress."""
        threading.Thread(target=self.renew, daemon=True).start()
        while time.monotonic() < self.until:
            time.sleep(min(0.1, max(0.0, self.until - time.monotonic())))
        print(f"lease {LEASE} lost: starting again", file=sys.stderr, flush=True)
        os.execv(sys.executable, [sys.executable] + sys.argv)

    def release(self):
        query = urllib.parse.urlencode({"holder": self.holder})
        try:
            send("DELETE", f"{self.path}?{query}", timeout=5).close()
        except Exception as error:
            print(f"lease {LEASE}: {error}: it will expire", file=sys.stderr)


def send(method, path, body=None, timeout=45):  # a watch shows something every 15 seconds
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(API + path, method=method, data=data, headers={"Content-Type": "application/json"})
    if TOKEN_FILE:
        with open(TOKEN_FILE) as file:
            request.add_header("Authorization", "Bearer " + file.read().strip())
    try:
        return urllib.request.urlopen(request, timeout=timeout)
    except urllib.error.HTTPError as error:
        raise Refused(error) from None


def call(method, path, body=None):
    """The answer; None if the resource is gone."""
    try:
        with send(method, path, body) as answer:
            return json.loads(answer.read() or "null")
    except Refused as error:
        # With the other code of 404 the path would be wrong.
        if error.status == 404 and error.code != "HYPERFLEET-NTF-000":
            return None
        raise


def work_on(href):
    """Reports on a resource; returns after how many seconds to call it again."""
    resource = call("GET", href)
    stored = resource and call("GET", href + "/statuses?size=100")
    if not stored:
        return None
    own = [report for report in stored["items"] if report["adapter"] == NAME]
    begun = bool(own) and own[0]["observed_generation"] == resource["generation"]
    try:
        failure, (found, again) = None, reconcile(resource, begun)
    except Exception as error:
        failure, again = error, None
        finalized = False if "deleted_time" in resource else None
        found = conditions(False, "Error", str(error), finalized, healthy=False)
    call("PUT", href + "/statuses", {
        "adapter": NAME, "observed_generation": resource["generation"], "conditions": found,
        "observed_time": datetime.now(timezone.utc).isoformat()})
    if failure:
        raise failure
    return again


def work(queue, failures):
    while True:
        href = queue.take()
        try:
            again = work_on(href)
            failures.pop(href, None)
            if again is not None:
                queue.add(href, again)
        except Exception as error:
            failures[href] = min(2 * failures.get(href, 0.5), 300)
            print(f"{href}: {error}: again in {failures[href]:.0f} s", file=sys.stderr)
            queue.add(href, failures[href])
        queue.done(href)


def events(plural, position):
    """The events of a watch: of everything first, or only those after a position."""
    query = {"watch": "true", "includeDeleted": "true", "fields": "href,generation"}
    query.update({"position": position} if position else {"initial": "true"})
    with send("GET", f"{ROOT}/{plural}?" + urllib.parse.urlencode(query)) as answer:
        for line in iter(lambda: answer.readline(1_000_000), b""):
            event = json.loads(line)
            if event["type"] == "ERROR":
                if event["object"].get("status") == 410:
                    raise LookupError("the position is too old")
                raise RuntimeError(event["object"]["detail"])
            yield event


def find(plural, queue, sweep_seconds=600):
    """Queues each resource of a kind when its generation changes, and all of them every ten minutes."""
    position, generations, pause, swept = None, {}, 1, 0.0
    while True:
        try:
            if time.monotonic() - swept > sweep_seconds:
                position, generations, swept = None, {}, time.monotonic()
            for event in events(plural, position):
                pause = 1
                resource = event.get("object", {})
                if event["type"] == "DELETED":
                    generations.pop(resource["href"], None)
                elif resource and generations.get(resource["href"]) != resource["generation"]:
                    generations[resource["href"]] = resource["generation"]
                    queue.add(resource["href"])
                position = event.get("position", position)
                if position and time.monotonic() - swept > sweep_seconds:
                    break
        except Exception as error:
            if isinstance(error, LookupError) or getattr(error, "status", None) == 410:
                position, generations = None, {}
            print(f"{plural}: {error}: watching again in {pause} s", file=sys.stderr)
            time.sleep(pause)
            pause = min(2 * pause, 30)


def main(plurals):
    workers = os.environ.get("WORKERS") or "8"
    if not plurals or not workers.isdigit() or int(workers) == 0:
        sys.exit(__doc__)
    print(f"{NAME}: working on {', '.join(plurals)} of {API}", file=sys.stderr)
    # By default Python ignores it as the first process of a container.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    try:
        lead(plurals, int(workers))
    except KeyboardInterrupt:
        pass


def lead(plurals, workers):
    """Works until the program is stopped, as soon as this copy holds the lease."""
    if LEASE == "none":
        run(plurals, workers, Queue())
        return
    lease, queue = Lease(), Queue()
    lease.acquire()
    threading.Thread(target=lease.keep, daemon=True).start()
    try:
        run(plurals, workers, queue)
    finally:
        if queue.stop():
            lease.release()


def run(plurals, workers, queue):
    failures = {}
    threads = [threading.Thread(target=find, args=(plural, queue), daemon=True) for plural in plurals]
    threads += [threading.Thread(target=work, args=(queue, failures), daemon=True)
                for _ in range(workers)]
    for thread in threads:
        thread.start()
    threads[0].join()


if __name__ == "__main__":
    main(sys.argv[1:])
