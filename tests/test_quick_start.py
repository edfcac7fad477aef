"""The pause of garbage collection while a command starts."""

from __future__ import annotations

import gc

import pytest

from cfner.cli.quick_start import quick_start


def test_collection_is_paused_and_goes_on_even_after_an_error() -> None:
    try:
        with pytest.raises(ValueError, match="inside"), quick_start():
            assert not gc.isenabled()
            raise ValueError("inside")
        assert gc.isenabled() and gc.get_freeze_count() > 0
    finally:
        gc.unfreeze()


def test_a_program_that_collects_nothing_keeps_it_so() -> None:
    gc.disable()
    try:
        with quick_start():
            assert not gc.isenabled()
        assert not gc.isenabled()
    finally:
        gc.enable()
