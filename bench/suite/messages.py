"""What stands in a report where there is no time: messages of engines, and why one was not asked."""

import re

from comparison.engines import ROOT

LEFT_OUT = "left out of quick runs"
NO_MODULE = "not a torch module"
NOT_ASKED = (LEFT_OUT, NO_MODULE)
CLOCK = re.compile(r"\[\d\d:\d\d:\d\d\] (:\d+: )?")  # as MNN's logger puts before its messages


def shortened(message):
    """One line of a message, without what differs between machines and runs: paths and times of day."""
    line = " ".join(str(message).split()).split(" Stack backtrace:")[0].replace(str(ROOT) + "/", "")
    line = CLOCK.sub("", line)
    return line if len(line) <= 160 else line[:157] + "…"
