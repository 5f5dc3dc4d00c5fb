"""Progress of a long run: a bar on a terminal, a line for each finished row elsewhere."""

import sys
import time

from comparison.report import progress

WIDTH = 24


class Bar:
    def __init__(self, total):
        self.total, self.done, self.begin = total, 0, time.monotonic()

    @property
    def seconds(self):
        return time.monotonic() - self.begin

    @property
    def elapsed(self):
        return f"{int(self.seconds) // 60}:{int(self.seconds) % 60:02d}"

    def show(self, text):
        filled = WIDTH * self.done // max(1, self.total)
        progress(f"[{'#' * filled}{'·' * (WIDTH - filled)}] {self.done}/{self.total} {self.elapsed} {text}"[:118])

    def finish_row(self, text):
        self.done += 1
        progress()
        print(f"{self.done:3}/{self.total} {self.elapsed} {text}", file=sys.stderr, flush=True)
