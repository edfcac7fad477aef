"""Which folders cfner may write in."""

from __future__ import annotations

from pathlib import Path

from cfner.files.owned import foreign_items, is_free


def test_a_folder_is_free_if_it_holds_nothing_of_the_users(tmp_path: Path) -> None:
    assert is_free(tmp_path) and is_free(tmp_path / "missing")
    for name in (".lock", ".run.json.123.partial", ".partial-abc", ".0003.partial-x1y2", ".tmpAbc123"):
        (tmp_path / name).touch()
    assert is_free(tmp_path)
    for name in ("notes.partial", ".hidden", "partial-abc", ".hf.partial-x1-replaced"):
        (tmp_path / name).touch()
        assert foreign_items(tmp_path) == [tmp_path / name] and not is_free(tmp_path)
        assert foreign_items(tmp_path, [name]) == []
        (tmp_path / name).unlink()
