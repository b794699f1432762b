"""What scenarios run in: a PostgreSQL that syncs to disk and servers on it, started and ended here."""

import asyncio
import os
import resource
import shutil
import signal
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "bench"))

from servers import Api, Failed, Postgres, create_database, free_port, wait_for  # noqa: E402

__all__ = ["Failed", "ROOT", "World"]


# A process that exceeds this memory ends, before the machine does.
DATA_BYTES_MAX = 2 << 30


def _apart():
    """A server's own group, and the end of its memory."""
    os.setpgrp()
    resource.setrlimit(resource.RLIMIT_DATA, (DATA_BYTES_MAX, DATA_BYTES_MAX))


class Instance(Api):
    """A server with its health and metrics on free ports, whose log can be read."""

    def __init__(self, postgres, database, binary, name="a", env=()):
        super().__init__(postgres, database, binary, [])
        self.name, self.port = name, free_port()
        self.env.update(env)
        self.env.setdefault("HYPERFLEET_HEALTH_SHUTDOWN_DELAY", "1s")
        self.log = postgres.folder / f"{database}-{name}.log"

    def serve(self):
        self.base = f"http://127.0.0.1:{self.port}"
        # Others' ports come and go: free ones for each start.
        command = [self.binary, "serve", *self.url, "--server-jwt-enabled=false",
                   "--log-level", "warn", "--server-host", "127.0.0.1", "--server-port", str(self.port),
                   "--health-host", "127.0.0.1", "--health-port", str(free_port()),
                   "--metrics-host", "127.0.0.1", "--metrics-port", str(free_port())]
        with open(self.log, "ab") as out:
            self.process = subprocess.Popen(command, env=self.env, stdout=out, stderr=out, preexec_fn=_apart)
        wait_for("hyperfleet-api", self._answers, self.process, self.log)

    @property
    def address(self):
        return "127.0.0.1", self.port

    def kill(self):
        """As by the kernel out of memory: nothing is finished."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def panics(self):
        """Lines of the log that tell of a panic."""
        text = self.log.read_text(errors="replace")
        return [line for line in text.splitlines() if "panic" in line.lower()]


class World:
    """A PostgreSQL with one migrated database, and what runs on it."""

    database = "chaos"

    def __init__(self, binary):
        self.binary, self.postgres, self.instances = binary, Postgres(), []

    def __enter__(self):
        try:
            self.postgres.start()
            create_database(self.postgres, self.database, self.binary)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for instance in self.instances:
            instance.stop()
        self.postgres.stop()

    def serve(self, name="a", **options):
        """Starts another server."""
        instance = Instance(self.postgres, self.database, self.binary, name, **options)
        self.instances.append(instance)
        instance.serve()
        return instance

    async def restart(self, instance):
        """Serves again, without blocking the others."""
        await asyncio.to_thread(instance.serve)

    def copy_logs(self, folder):
        """Copies the logs of all processes, for finding a fault."""
        for instance in self.instances:
            if instance.log.exists():
                shutil.copyfile(instance.log, folder / f"{instance.name}.log")
        if self.postgres.log.exists():
            shutil.copyfile(self.postgres.log, folder / "postgresql.log")
