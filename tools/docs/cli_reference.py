"""The reference of the command line: what `--help` of every command prints."""

import re
import subprocess


def help_of(selkie, *command):
    return subprocess.run([str(selkie), *command, "--help"], capture_output=True, text=True, check=True).stdout.rstrip()


def commands(text):
    """Names below `Subcommands:`."""
    listed = text.split("Subcommands:\n", 1)[1].split("\n\n", 1)[0]
    return re.findall(r"^  ([a-z]\S*)", listed, re.MULTILINE)


def page(selkie):
    top = help_of(selkie)
    parts = [
        "# Commands\n\nWhat `--help` prints. [The overview](../cli.md) says what commands have in common, and lists the keys"
        " of their JSON.",
        f"## selkie\n\n```text\n{top}\n```",
    ]
    for name in commands(top):
        parts.append(f"## selkie {name}\n\n```text\n{help_of(selkie, name)}\n```")
    return "\n\n".join(parts) + "\n"
