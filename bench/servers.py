"""A PostgreSQL that syncs to disk, and release servers on it: started here, ended here."""

import json
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import urllib.request
from pathlib import Path

import processes

ROOT = Path(__file__).resolve().parent.parent

# What a real server keeps: every commit is on disk before it is answered. The rest is a small
# production server's usual tuning, so that no checkpoint falls into a measurement of seconds.
POSTGRES_SETTINGS = {
    "fsync": "on",
    "synchronous_commit": "on",
    "full_page_writes": "on",
    "shared_buffers": "256MB",
    "max_wal_size": "8GB",
    "checkpoint_timeout": "30min",
    "max_connections": "200",
    "listen_addresses": "",
}


# What the programs that are started here would take settings from.
FOREIGN = ("HYPERFLEET_", "DATABASE_URL", "RUST_LOG", "OTEL_", "PG")


def environment():
    """The caller's environment without settings for the service or for PostgreSQL."""
    return {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}


class Failed(Exception):
    """Something went wrong that the user must read about."""


def wait_for(what, is_done, process, log, seconds=60):
    """Waits until `is_done()`, as long as `process` lives."""
    deadline = time.monotonic() + seconds
    while not is_done():
        if process.poll() is not None or time.monotonic() > deadline:
            raise Failed(f"{what} did not start:\n{log.read_text(errors='replace')[-2000:]}")
        time.sleep(0.05)


class Postgres:
    """A PostgreSQL of its own in a temporary folder, on a Unix socket only."""

    def __init__(self, **settings):
        self.settings = POSTGRES_SETTINGS | settings
        found = subprocess.run([ROOT / "scripts/find-postgres"], capture_output=True, text=True)
        if found.returncode:
            raise Failed(found.stderr.strip())
        self.bin = Path(found.stdout.strip())
        if not (self.bin / "pgbench").exists():
            raise Failed(f"{self.bin} holds no pgbench: install a whole PostgreSQL (apt-get install postgresql)")
        self.folder = Path(tempfile.mkdtemp(prefix="hyperfleet-bench."))
        self.process = None
        self.log = self.folder / "log"
        # A PostgreSQL without its additional modules cannot count statements.
        self.counts_statements = any((self.bin.parent / "lib").rglob("pg_stat_statements.so"))
        if self.counts_statements:
            self.settings.setdefault("shared_preload_libraries", "pg_stat_statements")

    def start(self):
        user = self._user_to_become()
        if user:
            os.chown(self.folder, user.pw_uid, user.pw_gid)
        become = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []} if user else {}
        options = {"cwd": self.folder, "preexec_fn": os.setpgrp, "env": environment(), **become}
        initdb = [self.bin / "initdb", "-D", "data", "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C"]
        made = subprocess.run(initdb, capture_output=True, text=True, **options)
        if made.returncode:
            raise Failed(f"initdb failed:\n{made.stderr}")
        self.options = options
        self.resume()

    def resume(self):
        """Starts the server on the data that is there."""
        command = [self.bin / "postgres", "-D", "data", "-k", self.folder]
        for name, value in self.settings.items():
            command += ["-c", f"{name}={value}"]
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, **self.options)
        pid_file = self.folder / "data/postmaster.pid"
        is_ready = lambda: pid_file.exists() and pid_file.read_text().rstrip().endswith("ready")
        wait_for("PostgreSQL", is_ready, self.process, self.log)

    def halt(self):
        """Stops the server as an administrator in a hurry does; its data stays."""
        self.process.send_signal(signal.SIGINT)
        self.process.wait()

    def freeze(self):
        """Stops every one of its processes where it is; gives how many that are."""
        return processes.freeze(self.process.pid)

    def thaw(self):
        processes.thaw(self.process.pid)

    def is_frozen(self):
        """Whether none of its processes runs."""
        return set(processes.family(self.process.pid).values()) <= {processes.STOPPED, processes.ENDED}

    def session(self, database):
        """A connection that is kept: statements go to its `stdin`."""
        command = [self.bin / "psql", "-X", "-q", "-h", self.folder, "-U", "postgres", "-d", database]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        return subprocess.Popen(command, stdin=subprocess.PIPE, text=True, env=environment(), **quiet)

    def take_all_connections(self):
        """Connects until no more connections are to be had; gives what holds them."""
        holders = []
        while True:
            holders.append(self.session("postgres"))
            time.sleep(0.01)
            if any(holder.poll() is not None for holder in holders):
                return holders

    @staticmethod
    def _user_to_become():
        """PostgreSQL refuses to run as root."""
        if os.geteuid() != 0:
            return None
        try:
            return pwd.getpwnam("postgres")
        except KeyError:
            return pwd.getpwnam("nobody")

    def stop(self):
        if self.process:
            self.process.send_signal(signal.SIGQUIT)
            # Who is frozen does not end.
            self.thaw()
            self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def url(self, database):
        return f"postgres://postgres@localhost/{database}?host={str(self.folder).replace('/', '%2F')}"

    def psql(self, database, *arguments, sql=None):
        """What psql prints, unaligned and without headers."""
        command = [self.bin / "psql", "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1",
                   "-h", self.folder, "-U", "postgres", "-d", database, *arguments]
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
