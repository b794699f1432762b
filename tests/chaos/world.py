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

import processes  # noqa: E402
from servers import Api, Failed, Postgres, create_database, environment, free_port, wait_for  # noqa: E402

__all__ = ["Failed", "ROOT", "World", "processes"]


# A process that exceeds this memory ends, before the machine does.
DATA_BYTES_MAX = 2 << 30


def _apart():
    """A server's own group, and the end of its memory."""
    os.setpgrp()
    resource.setrlimit(resource.RLIMIT_DATA, (DATA_BYTES_MAX, DATA_BYTES_MAX))


class Instance(Api):
    """A server with its health and metrics on free ports, whose log can be read."""

    def __init__(self, postgres, database, binary, name="a", url=None, env=(), issuer=None):
        super().__init__(postgres, database, binary, [])
        self.name, self.port = name, free_port()
        self.env.update(env)
        self.env.setdefault("HYPERFLEET_HEALTH_SHUTDOWN_DELAY", "1s")
        if url:
            self.url = ["--database-url", url]
        self.issuer = issuer
        if issuer:
            self.env["HYPERFLEET_CONFIG"] = str(issuer.settings)
        self.log = postgres.folder / f"{database}-{name}.log"

    def serve(self):
        self.base = f"http://127.0.0.1:{self.port}"
        # Others' ports come and go: free ones for each start.
        command = [self.binary, "serve", *self.url, f"--server-jwt-enabled={'true' if self.issuer else 'false'}",
                   "--log-level", "warn", "--server-host", "127.0.0.1", "--server-port", str(self.port),
                   "--health-host", "127.0.0.1", "--health-port", str(free_port()),
                   "--metrics-host", "127.0.0.1", "--metrics-port", str(free_port())]
        with open(self.log, "ab") as out:
            self.process = subprocess.Popen(command, env=self.env, stdout=out, stderr=out, preexec_fn=_apart)
        wait_for("hyperfleet-api", self._serves, self.process, self.log)

    def _serves(self):
        headers = {"Authorization": f"Bearer {self.issuer.token}"} if self.issuer else {}
        try:
            return self.call("GET", "/api/hyperfleet/v1/clusters?size=1", headers=headers)[0] == 200
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
        return self._status("VmRSS")

    def mebibytes_peak(self):
        """The most memory in use since the last `forget_peak`."""
        return self._status("VmHWM")

    def forget_peak(self):
        """The peak starts again from the current use (proc(5), `clear_refs`)."""
        Path(f"/proc/{self.process.pid}/clear_refs").write_text("5")

    def _status(self, name):
        for line in Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith(name + ":"):
                return int(line.split()[1]) / 1024
        # Nobody has asked it to.
        self.process.wait()
        raise Failed(f"the service ended by itself (exit code {self.process.returncode}); with -6 it may have wanted "
                     f"more than {DATA_BYTES_MAX >> 30} GiB of memory: the end of {self.name}.log says why")

    def panics(self):
        """Lines of the log that tell of a panic."""
        text = self.log.read_text(errors="replace")
        return [line for line in text.splitlines() if "panic" in line.lower()]


class Issuer:
    """An issuer: a key, the settings of a service that takes its tokens, a token (docs/guides/authentication.md)."""

    def __init__(self, folder, binary):
        keys, self.settings = folder / "tokens", folder / "jwt.yaml"
        command = [binary, "dev-token", "--folder", keys]
        made = subprocess.run(command, env=environment(), capture_output=True, text=True)
        if made.returncode:
            raise Failed(f"hyperfleet-api dev-token failed:\n{made.stderr}")
        self.token = made.stdout.strip()
        self.settings.write_text(
            "{server: {jwt: {enabled: true, configs: [{issuer_url: 'http://localhost/dev-token', "
            f"jwk_cert_file: '{keys}/jwks.json'}}]}}}}}}")


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

    def issuer(self):
        return Issuer(self.postgres.folder, self.binary)

    def copy_logs(self, folder):
        """Copies the logs of all processes, for finding a fault."""
        for instance in self.instances:
            if instance.log.exists():
                shutil.copyfile(instance.log, folder / f"{instance.name}.log")
        if self.postgres.log.exists():
            shutil.copyfile(self.postgres.log, folder / "postgresql.log")
