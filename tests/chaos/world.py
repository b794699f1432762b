"""What scenarios run in: a PostgreSQL that syncs to disk and servers on it, started and ended here."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "bench"))

from servers import Api, Failed, Postgres, free_port, wait_for  # noqa: E402

__all__ = ["Failed", "Instance", "Postgres", "ROOT", "World", "free_port", "wait_for"]


class Instance(Api):
    """A server with its health and metrics on free ports, whose log can be read."""

    def __init__(self, postgres, database, binary, arguments=(), name="a", url=None, prefix=(), env=()):
        self.health, self.metrics = free_port(), free_port()
        ports = ["--health-host", "127.0.0.1", "--health-port", str(self.health),
                 "--metrics-host", "127.0.0.1", "--metrics-port", str(self.metrics)]
        super().__init__(postgres, database, binary, [*ports, *arguments])
        self.name, self.port = name, free_port()
        self.prefix = list(prefix)
        self.env.update(env)
        self.env.setdefault("HYPERFLEET_HEALTH_SHUTDOWN_DELAY", "1s")
        if url:
            self.url = ["--database-url", url]
        self.log = postgres.folder / f"{database}-{name}.log"

    def serve(self):
        self.base = f"http://127.0.0.1:{self.port}"
        command = [*self.prefix, self.binary, "serve", *self.url, "--server-jwt-enabled=false", "--log-level", "warn",
                   "--server-host", "127.0.0.1", "--server-port", str(self.port), *self.arguments]
        with open(self.log, "ab") as out:
            self.process = subprocess.Popen(command, env=self.env, stdout=out, stderr=out, preexec_fn=os.setpgrp)
        wait_for("hyperfleet-api", self._serves, self.process, self.log)

    def _serves(self):
        try:
            return self.call("GET", "/api/hyperfleet/v1/clusters?size=1")[0] == 200
        except OSError:
            return False

    @property
    def address(self):
        return "127.0.0.1", self.port

    def kill(self):
        """As by the kernel out of memory: nothing is finished."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def mebibytes(self):
        """Memory in use."""
        for line in Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) / 1024
        raise Failed("no VmRSS")

    def panics(self):
        """Lines of the log that tell of a panic."""
        text = self.log.read_text(errors="replace")
        return [line for line in text.splitlines() if "panic" in line.lower()]


class World:
    """A PostgreSQL with one migrated database, and what runs on it."""

    def __init__(self, binary):
        self.binary, self.postgres, self.instances = binary, Postgres(), []
        self.database = "chaos"

    def __enter__(self):
        self.postgres.start()
        self.postgres.psql("postgres", sql=f"CREATE DATABASE {self.database}")
        url = ["--database-url", self.postgres.url(self.database)]
        migrated = subprocess.run([self.binary, "migrate", *url], capture_output=True, text=True)
        if migrated.returncode:
            raise Failed(f"hyperfleet-api migrate failed:\n{migrated.stderr}{migrated.stdout}")
        return self

    def __exit__(self, *_):
        for instance in self.instances:
            instance.stop()
        self.postgres.stop()

    def serve(self, name="a", arguments=(), **options):
        """Starts another server."""
        instance = Instance(self.postgres, self.database, self.binary, arguments, name, **options)
        self.instances.append(instance)
        instance.serve()
        return instance

    async def restart(self, instance):
        """Serves again, without blocking the others."""
        await asyncio.to_thread(instance.serve)


def percentile(times, share):
    """A value that this share of the times does not exceed, in milliseconds."""
    ordered = sorted(times)
    return 1000 * ordered[min(len(ordered) - 1, int(share * len(ordered)))]
