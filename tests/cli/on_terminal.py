"""Runs a command whose standard error is a terminal, and prints what it wrote there as one line, escapes spelled out."""
import os
import pty
import subprocess
import sys


def main() -> int:
    terminal, end = pty.openpty()
    run = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=end)
    os.close(end)
    written = b""
    while True:
        try:
            part = os.read(terminal, 4096)
        except OSError:  # the other side is closed
            break
        if not part:
            break
        written += part
    print(ascii(written.decode(errors="replace")))
    return run.wait()


if __name__ == "__main__":
    sys.exit(main())
