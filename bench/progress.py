"""How far a long piece of work has come, on standard error."""

import sys
import time

# Seconds between two lines where nobody watches a terminal.
LINE_SECONDS = 10
BAR_WIDTH = 30


class Progress:
    """Percent, rate and time left: a bar that is written over on a terminal, else plain lines."""

    def __init__(self, what, total, out=sys.stderr):
        self.what, self.total, self.out = what, total, out
        self.is_terminal = out.isatty()
        self.start = self.said = time.monotonic()
        self._write(0)

    def update(self, done):
        now = time.monotonic()
        is_due = now - self.said >= (0.2 if self.is_terminal else LINE_SECONDS)
        if is_due or done >= self.total:
            self.said = now
            self._write(done)

    def _write(self, done):
        seconds = time.monotonic() - self.start
        rate = done / seconds if done else 0
        text = f"{self.what}: {done / self.total:4.0%}"
        if rate and done < self.total:
            text += f", {rate:,.0f} rows/s, {clock((self.total - done) / rate)} left"
        elif rate:
            text += f", {rate:,.0f} rows/s, {clock(seconds)} in all"
        if self.is_terminal:
            bar = "#" * (BAR_WIDTH * done // self.total)
            # Back to the start of the line, and away with what stood there.
            self.out.write(f"\r\x1b[K[{bar:<{BAR_WIDTH}}] {text}" + ("\n" if done >= self.total else ""))
        else:
            self.out.write(text + "\n")
        self.out.flush()


def clock(seconds):
    """Minutes and seconds."""
    minutes, seconds = divmod(round(seconds), 60)
    return f"{minutes}:{seconds:02}"
