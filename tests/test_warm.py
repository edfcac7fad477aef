"""A child of the warm process is to the caller what an interpreter would be."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

import warm


def run(*words: str, **given: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([warm.python(), *words], capture_output=True, text=True, check=False, **given)  # type: ignore[call-overload, no-any-return]


def test_words_streams_folder_and_environment_are_the_callers(tmp_path: Path) -> None:
    code = "import os, sys; print(sys.argv, sys.stdin.read(), os.getcwd(), os.environ['GIVEN'], __name__)"
    done = run("-c", code, "a", input="said", cwd=tmp_path, env={**os.environ, "GIVEN": "1"})
    assert done.stdout == f"['-c', 'a'] said {tmp_path} 1 __main__\n"
    (tmp_path / "beside.py").write_text("name = 'beside'")
    (tmp_path / "script.py").write_text("import sys, beside; print(sys.argv[1:], beside.name)")
    assert run(str(tmp_path / "script.py"), "b").stdout == "['b'] beside\n"
    assert run("-m", "script", "c", cwd=tmp_path).stdout == "['c'] beside\n"


@pytest.mark.parametrize(
    ("code", "ends", "says"),
    [
        ("raise SystemExit", 0, ""),
        ("raise SystemExit(3)", 3, ""),
        ("raise SystemExit('why')", 1, "why\n"),
        ("1 / 0", 1, "ZeroDivisionError: division by zero\n"),
        ("import os; os.kill(os.getpid(), 9)", -signal.SIGKILL, ""),
        ("import os, signal; os.kill(os.getpid(), signal.SIGINT)", -signal.SIGINT, "KeyboardInterrupt\n"),
        ("import atexit, sys; atexit.register(print, 'end', file=sys.stderr)", 0, "end\n"),
    ],
)
def test_it_ends_as_an_interpreter_does(code: str, ends: int, says: str) -> None:
    done = run("-c", code)
    assert done.returncode == ends
    assert done.stderr.endswith(says) and (says or not done.stderr)


def test_torch_is_there_already_and_its_threads_are_as_asked_for() -> None:
    code = "import sys; print('torch' in sys.modules, sys.modules['torch'].get_num_threads())"
    for threads in "12":
        found = run("-c", code, env={**os.environ, "OMP_NUM_THREADS": threads})
        assert found.stdout == f"True {threads}\n"


def test_what_an_interpreter_reads_once_is_refused() -> None:
    done = run("-c", "", env={**os.environ, "PYTHONHASHSEED": "7"})
    assert done.returncode == 1 and done.stderr.startswith("PYTHONHASHSEED: ")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGINT])
def test_a_signal_reaches_the_child(number: signal.Signals) -> None:
    code = "import time; print('ready', flush=True); time.sleep(60)"
    child = subprocess.Popen([warm.python(), "-c", code], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert child.stdout is not None and child.stdout.readline() == b"ready\n"
    child.send_signal(number)
    assert child.stdout.read() == b""  # nobody holds the other end: the child is gone, too
    assert child.wait() == -number
    child.stdout.close()


def test_what_a_child_starts_is_as_warm() -> None:
    code = "import sys; print('torch' in sys.modules)"
    start = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {code!r}])"
    assert run("-c", start).stdout == "True\n"
