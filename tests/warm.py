"""Programs in children of one process that has imported the libraries already, instead of cold interpreters.

``python()`` is a program to be started in the place of ``sys.executable``: it takes the same words
(``-c CODE``, ``-m MODULE``, a file), hands its standard streams, folder and environment to the warm process,
which forks, and ends as the child ended. What is sent to it as a signal reaches the child, and when it is
killed the child is killed too. What the child starts through its own ``sys.executable`` is as warm.

The warm process imports and never computes: a fork after torch has computed may hang. What is read once, at
the start of an interpreter, is refused if it is not what the warm process was started with; a test of such
things, or of the start itself, needs ``sys.executable``.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import gc
import importlib
import json
import os
import pkgutil
import runpy
import selectors
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import traceback
import types
from pathlib import Path
from typing import Any, NoReturn

from warm_client import SIGNALS, end_with

_KEPT = "CFNER_WARM_PYTHON"
_READ_ONCE = ("PYTHON", "LD_", "TRANSFORMERS_")
# what the commands import late: the first child would pay for it, and each after it again
_LATE = (
    "accelerate.commands.launch",
    "onnxscript",
    "torch.distributed.run",
    "torch.onnx",
    "torch.optim",
    "torch.utils.data",
    "transformers.models.auto.modeling_auto",
    "transformers.models.auto.tokenization_auto",
    "transformers.models.bert.modeling_bert",
    "uvicorn.lifespan.on",
    "uvicorn.protocols.http.h11_impl",
)
# these need more than this project, or take as long to import as all others
_UNWANTED = ("cfner.__main__", "cfner.interop.spacy_component", "cfner.benchmark.speed_peers")


def python() -> str:
    """The program. The first call starts the warm process, which lives as long as the caller."""
    return os.environ.get(_KEPT) or _start()


def command() -> str:
    """The same, as ``cfner``."""
    return str(Path(python()).with_name("cfner"))


@functools.cache
def _start() -> str:
    folder = Path(tempfile.mkdtemp(prefix="warm"))
    here, program = Path(__file__).parent, folder / "python"
    client = (
        f"import sys; sys.path.insert(0, {str(here)!r}); from warm_client import main; main({str(folder)!r})"
    )
    program.write_text(f"#!{sys.executable} -IS\n{client}\n")
    (folder / "cfner").write_text(f'#!/bin/sh\nexec {program} -m cfner "$@"\n')
    for script in (program, folder / "cfner"):
        script.chmod(0o755)
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", _KEPT: str(program)}
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(
            [sys.executable, __file__, str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            env=environment,
            start_new_session=True,
        )
    assert process.stdout is not None and process.stdout.readline() == b"listening\n"
    os.environ[_KEPT] = str(program)  # also for the workers that the tests are given to
    atexit.register(_stop, process, folder)
    return str(program)


def _stop(process: subprocess.Popen[bytes], folder: Path) -> None:
    assert process.stdin is not None
    process.stdin.close()
    process.wait(30)
    shutil.rmtree(folder)


# -- the warm process ---------------------------------------------------------------------------------------


def _import_everything() -> None:
    import cfner

    for module in pkgutil.walk_packages(cfner.__path__, "cfner."):
        if module.name not in _UNWANTED:
            importlib.import_module(module.name)
    for name in _LATE:
        with contextlib.suppress(ImportError):  # an extra that is not installed
            importlib.import_module(name)
    threads = Path("/proc/self/task")
    assert not threads.is_dir() or len(list(threads.iterdir())) == 1, "an import has started a thread"


def _serve(folder: Path) -> dict[str, Any]:
    """Fork a child per request; returns in the children only, with what each is to do."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(folder / "socket"))
    listener.listen(100)
    print("listening", flush=True)
    _import_everything()
    gc.collect()
    gc.freeze()
    wakes, woken = socket.socketpair()
    for end in (wakes, woken):
        end.setblocking(False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(woken.fileno())
    waiting = selectors.DefaultSelector()
    for readable in (listener, wakes, 0):
        waiting.register(readable, selectors.EVENT_READ)
    children: dict[int, socket.socket] = {}
    while True:
        for key, _ in waiting.select():
            if key.fileobj is listener:
                caller, _ = listener.accept()
                request, streams = _read(caller)
                pid = os.fork()
                if not pid:
                    signal.set_wakeup_fd(-1)
                    waiting.close()
                    for other in (listener, wakes, woken, caller, *children.values()):
                        other.close()
                    for number, stream in enumerate(streams):
                        os.dup2(stream, number)
                        os.close(stream)
                    return request
                for stream in streams:
                    os.close(stream)
                children[pid] = caller
                caller.sendall(b"%d\n" % pid)
                waiting.register(caller, selectors.EVENT_READ, pid)
            elif key.fileobj is wakes:
                wakes.recv(4096)
                _tell_of_ends(children, waiting)
            elif key.fileobj == 0:  # whoever started this is gone
                for pid in children:
                    os.kill(pid, signal.SIGKILL)
                sys.exit()
            elif key.data in children and not children[key.data].recv(1):  # the caller was killed
                os.kill(key.data, signal.SIGKILL)
                waiting.unregister(key.fileobj)


def _read(caller: socket.socket) -> tuple[dict[str, Any], list[int]]:
    begin, streams, _, _ = socket.recv_fds(caller, 4096, 3)
    parts = [begin]
    while not parts[-1].endswith(b"\n"):
        parts.append(caller.recv(65536))
    return json.loads(b"".join(parts)), streams


def _tell_of_ends(children: dict[int, socket.socket], waiting: selectors.BaseSelector) -> None:
    while children:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if not pid:
            return
        caller = children.pop(pid)
        with contextlib.suppress(KeyError):
            waiting.unregister(caller)
        with contextlib.suppress(BrokenPipeError), caller:
            caller.sendall(b"%d\n" % os.waitstatus_to_exitcode(status))


# -- a child ------------------------------------------------------------------------------------------------


def _become(words: list[str], folder: str, environment: dict[str, str]) -> None:
    """As an interpreter does that is started with these words, in this folder and environment."""
    os.setsid()
    sys.stdin = open(0, closefd=False)  # noqa: SIM115 - new ones: they know what kind of file they are
    sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", errors="backslashreplace", buffering=1, closefd=False)  # noqa: SIM115
    for number in (signal.SIGCHLD, *SIGNALS):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.chdir(folder)
    before = dict(os.environ)
    changed = {name for name in before.keys() | environment if before.get(name) != environment.get(name)}
    refused = sorted(name for name in changed if name.startswith(_READ_ONCE))
    if refused:
        sys.exit(
            f"{', '.join(refused)}: read at the start of an interpreter, which is over. Use sys.executable."
        )
    os.environ.clear()
    os.environ.update(environment)
    sys.executable = environment.get(_KEPT, before[_KEPT])
    if any(name.startswith("HF_") for name in changed):
        from huggingface_hub import constants

        importlib.reload(constants)  # the hub's client looks them up there at each call
    if "OMP_NUM_THREADS" in changed:
        import torch

        torch.set_num_threads(int(environment.get("OMP_NUM_THREADS", os.cpu_count() or 1)))
    if words[0] == "-u":
        words = words[1:]
        sys.stdout.reconfigure(write_through=True)
    flag, *rest = words
    sys.path[0] = "" if flag == "-c" else folder if flag == "-m" else str(Path(flag).parent.resolve())
    sys.argv = [flag, *rest[1:]] if flag in ("-c", "-m") else words
    sys.modules["__main__"] = types.ModuleType("__main__")
    if flag == "-c":
        exec(compile(rest[0], "<string>", "exec"), vars(sys.modules["__main__"]))
    elif flag == "-m":
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    else:
        runpy.run_path(flag, run_name="__main__")


def _child(request: dict[str, Any]) -> NoReturn:
    """Ends as an interpreter does, except that it does not take the libraries apart, which takes a second."""
    code = 1
    try:
        _become(**request)
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
    except KeyboardInterrupt:
        traceback.print_exc()
        code = -signal.SIGINT
    except BaseException:
        traceback.print_exc()
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    end_with(code)


if __name__ == "__main__":
    _child(_serve(Path(sys.argv[1])))
