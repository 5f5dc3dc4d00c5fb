"""How the seconds of a run are spread: over the rows that are left by weight, and within a row over what is left to time."""

import time


class Budget:
    """`seconds` for the whole run, or None for as long as it takes. What a row does not use, later ones have."""

    def __init__(self, seconds, weights):
        self.end = None if seconds is None else time.monotonic() + seconds
        self.weights = list(weights)

    @property
    def left(self):
        return None if self.end is None else self.end - time.monotonic()

    def next_row(self):
        """The end of the next row, as time.monotonic() tells it; None if there is no end."""
        weight, total = self.weights[0], sum(self.weights)
        self.weights = self.weights[1:]
        return None if self.end is None else time.monotonic() + max(0.0, self.left) * weight / total


def seconds_each(end, most, count):
    """Seconds for each of `count` things until then, at most `most`; never nothing, so that each is timed once."""
    if end is None:
        return most
    return max(0.005, min(most, (end - time.monotonic()) / max(1, count)))
