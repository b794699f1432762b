"""A PostgreSQL that syncs to disk, and release servers on it: started here, ended here."""

import json
import os
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.request
from pathlib import Path
from urllib.parse import quote, unquote

ROOT = Path(__file__).resolve().parent.parent
DEVKIT = ROOT / "scripts/devkit"

# What a real server keeps: every commit is on disk before it is answered. The rest is a small
# production server's usual tuning, so that no checkpoint falls into a measurement of seconds.
POSTGRES_SETTINGS = {
    "fsync": "on",
    "synchronous_commit": "on",
    "full_page_writes": "on",
    "shared_buffers": "256MB",
    "max_wal_size": "8GB",
    "checkpoint_timeout": "30min",
}


# What the programs that are started here would take settings from.
FOREIGN = ("HYPERFLEET_", "DATABASE_URL", "RUST_LOG", "OTEL_", "PG")


def environment():
    """The caller's environment without settings for the service or for PostgreSQL."""
    return {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}


class Failed(Exception):
    """Something went wrong that the user must read about."""


def _devkit(*arguments):
    """What scripts/devkit prints."""
    done = subprocess.run([DEVKIT, *arguments], capture_output=True, text=True)
    if done.returncode:
        raise Failed(done.stderr.strip())
    return done.stdout.strip()


def wait_for(what, is_done, process, log, seconds=60):
    """Waits until `is_done()`, as long as `process` lives."""
    deadline = time.monotonic() + seconds
    while not is_done():
        if process.poll() is not None or time.monotonic() > deadline:
            raise Failed(f"{what} did not start:\n{log.read_text(errors='replace')[-2000:]}")
        time.sleep(0.05)


class Postgres:
    """A PostgreSQL of its own, by scripts/devkit, which removes it when this process ends; and a folder for what is around it."""

    def __init__(self, **settings):
        self.settings = POSTGRES_SETTINGS | settings
        self.bin = Path(_devkit("find", "postgres"))
        if not (self.bin / "pgbench").exists():
            raise Failed(f"{self.bin} holds no pgbench: install a whole PostgreSQL (apt-get install postgresql)")
        self.folder = Path(tempfile.mkdtemp(prefix="hyperfleet-bench."))
        self.owner = None
        # A PostgreSQL without its additional modules cannot count statements.
        self.counts_statements = any((self.bin.parent / "lib").rglob("pg_stat_statements.so"))
        if self.counts_statements:
            self.settings.setdefault("shared_preload_libraries", "pg_stat_statements")

    def start(self):
        settings = [f"{name}={value}" for name, value in self.settings.items()]
        # It ends with its input, however this process ends.
        command = [DEVKIT, "postgres", *settings, "sh", "-c", 'echo "$DATABASE_URL"; exec cat']
        self.owner = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, process_group=0)
        address = self.owner.stdout.readline().strip()
        if not address:
            raise Failed("PostgreSQL did not start")
        self.socket = Path(unquote(address.partition("?host=")[2]))
        self.log = self.socket / "log"
        self.pid = int((self.socket / "data/postmaster.pid").read_text().splitlines()[0])

    def stop(self):
        if self.owner:
            self.owner.stdin.close()
            self.owner.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def url(self, database):
        return f"postgres://postgres@localhost/{database}?host={quote(str(self.socket), safe='')}"

    def psql(self, database, *arguments, sql=None):
        """What psql prints, unaligned and without headers."""
        command = [self.bin / "psql", "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1",
                   "-h", self.socket, "-U", "postgres", "-d", database, *arguments]
        done = subprocess.run(command, input=sql, capture_output=True, text=True, env=environment())
        if done.returncode:
            raise Failed(f"psql failed:\n{done.stderr}")
        return done.stdout.strip()

    def version(self):
        return self.psql("postgres", sql="SHOW server_version").split()[0]


class Api:
    """A release server on one database."""

    def __init__(self, postgres, database, binary, arguments):
        self.postgres, self.database = postgres, database
        self.binary, self.arguments = binary, arguments
        self.process = None
        self.base = None

        self.env = environment()
        self.url = ["--database-url", postgres.url(database)]
        # Several at a time, each of which ends at once.
        settings = postgres.folder / "hyperfleet.yaml"
        settings.write_text("{health: {port: 0, shutdown_delay: 0s}, metrics: {port: 0}}")
        self.env["HYPERFLEET_CONFIG"] = str(settings)

    def start(self):
        """Serves a new database."""
        create_database(self.postgres, self.database, self.binary)
        self.serve()

    def serve(self):
        """Serves a database that is there; several servers may."""
        port = free_port()
        self.base = f"http://127.0.0.1:{port}"
        log = self.postgres.folder / f"{self.database}.log"
        command = [self.binary, "serve", *self.url, "--server-jwt-enabled=false", "--log-level", "warn",
                   "--server-host", "127.0.0.1", "--server-port", str(port), *self.arguments]
        with open(log, "ab") as out:
            self.process = subprocess.Popen(command, env=self.env, stdout=out, stderr=out, preexec_fn=os.setpgrp)
        wait_for("hyperfleet-api", self._answers, self.process, log)

    def _answers(self):
        try:
            return self.call("GET", "/api/hyperfleet/v1/resources?size=1")[0] == 200
        except OSError:
            return False

    def stop(self):
        if self.process:
            self.process.terminate()
            try:
                self.process.wait(timeout=30)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()

    def call(self, method, path, body=None, headers=()):
        """One request: status and decoded body."""
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json", **dict(headers)}
        request = urllib.request.Request(self.base + path, data, headers, method=method)
        with urllib.request.urlopen(request, timeout=10) as answer:
            text = answer.read()
            return answer.status, json.loads(text) if text else None


def create_database(postgres, database, binary):
    """Makes a database with the schema that the program needs."""
    postgres.psql("postgres", sql=f"CREATE DATABASE {database}")
    command = [binary, "migrate", "--database-url", postgres.url(database)]
    migrated = subprocess.run(command, env=environment(), capture_output=True, text=True)
    if migrated.returncode:
        raise Failed(f"hyperfleet-api migrate failed:\n{migrated.stderr}{migrated.stdout}")


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]
