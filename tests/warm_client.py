"""What is started in the place of an interpreter: see warm.py. It imports little, for it must be quick."""

from __future__ import annotations

import json
import os
import signal
import socket
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing takes longer to import than all else here
    from typing import NoReturn

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)


def main(folder: str) -> None:
    with socket.socket(socket.AF_UNIX) as door:
        door.connect(f"{folder}/socket")
        early: list[int] = []
        for number in SIGNALS:
            signal.signal(number, lambda number, _: early.append(number))
        request = {"words": sys.argv[1:], "folder": os.getcwd(), "environment": dict(os.environ)}  # noqa: PTH109
        socket.send_fds(door, [b"{"], [0, 1, 2])
        door.sendall(json.dumps(request).encode()[1:] + b"\n")
        answers = door.makefile("r")
        pid = int(answers.readline())
        for number in SIGNALS:
            signal.signal(number, lambda number, _: os.kill(pid, number))
        for number in early:
            os.kill(pid, number)
        nothing = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):  # they are the child's alone now
            os.dup2(nothing, stream)
        code = int(answers.readline())
    end_with(code)


def end_with(code: int) -> NoReturn:
    """At once; with a negative number by that signal."""
    if code < 0:
        if -code != signal.SIGKILL:
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)
