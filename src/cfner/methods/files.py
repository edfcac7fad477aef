"""Methods in the user's own files, and the hash of their source."""

from __future__ import annotations

import hashlib
import importlib.util
import inspect
import sys
from pathlib import Path
from typing import Final

from cfner.errors import ConfigError
from cfner.methods.method import Method
from cfner.methods.registry import all_or_nothing, method_class, registered_in, unregister

_SOURCE: Final = "__cfner_source__"  # what a module was made of


def load_file(path: str | Path) -> list[str]:
    """Run a file that registers methods and return their names. Only ever a file that the user named.

    It runs once, and again when the file has changed: a notebook session outlives a command.
    """
    file = Path(path).resolve()
    name = f"cfner_method_{hashlib.sha256(str(file).encode()).hexdigest()[:12]}"
    found = importlib.util.spec_from_file_location(name, file)
    if found is None or not file.is_file():
        raise ConfigError("This is not a Python file.", where=str(path), remedy="Name a .py file.")
    source = file.read_bytes()
    if getattr(sys.modules.get(name), _SOURCE, None) != source:
        module = importlib.util.module_from_spec(found)
        setattr(module, _SOURCE, source)
        sys.modules[name] = module  # pydantic resolves annotations there
        try:
            with all_or_nothing():
                unregister(registered_in(name))
                # not by its loader: that takes a change within a second for none
                exec(compile(source, str(file), "exec"), module.__dict__)  # noqa: S102 - the user's own file
        except Exception as error:
            del sys.modules[name]
            if isinstance(error, ConfigError):
                error.where = error.where or str(path)
                raise
            raise ConfigError(
                f"The method file raised an error: {type(error).__name__}: {error}.",
                where=str(path),
                remedy="'cfner bench add-method NAME' writes a working example.",
            ) from error
    registered = registered_in(name)
    if not registered:
        raise ConfigError(
            "The file registers no method.",
            where=str(path),
            remedy="Put @register above its class; 'cfner bench add-method NAME' writes an example.",
        )
    return registered


def source_hash(name: str) -> str | None:
    """The hash of the source files of a third-party method; None for cfner's own methods."""
    package = __name__.partition(".")[0]
    outside = [kind for kind in method_class(name).__mro__ if kind.__module__.partition(".")[0] != package]
    files = [inspect.getsourcefile(kind) for kind in outside if issubclass(kind, Method)]
    if not files:
        return None
    if None in files:
        raise ConfigError(f"The method '{name}' has no source file.", remedy="Define it in a file.")
    contents = b"".join(Path(file).read_bytes() for file in dict.fromkeys(files) if file is not None)
    return hashlib.sha256(contents).hexdigest()
