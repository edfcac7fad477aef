"""The pages in docs/methods are what the registry says, and say all of it."""

from __future__ import annotations

from pathlib import Path

import pytest

import cfner.methods  # noqa: F401 - registers them
from cfner.methods.registry import method_class, method_names
from cfner.pages.method_pages import method_pages, write_pages

DOCS = Path(__file__).parent.parent / "docs"
NAMES = [name for name in method_names() if method_class(name).__module__.startswith("cfner.")]


def test_committed_pages_are_up_to_date() -> None:
    committed = {path.name: path.read_text(encoding="utf-8") for path in (DOCS / "methods").glob("*.md")}
    assert committed == method_pages(), "run: python -m cfner.pages.method_pages docs/methods"


@pytest.mark.parametrize("name", NAMES)
def test_a_page_names_every_loss_parameter_and_part(name: str) -> None:
    text, kind = method_pages()[f"{name}.md"], method_class(name)
    assert "```math" in text and kind.good_for in text
    for parameter, field in kind.Parameters.model_fields.items():
        assert f"`{parameter}`" in text
        assert (field.description or "?") in text
    for part in kind.parts:
        assert f"`{part}`" in text and kind.parts[part] in text


def test_writing_removes_pages_of_methods_that_are_gone_and_nothing_else(tmp_path: Path) -> None:
    write_pages(tmp_path)
    gone = tmp_path / "gone.md"
    gone.write_text((tmp_path / "cfner.md").read_text(encoding="utf-8"), encoding="utf-8")
    (tmp_path / "mine.md").write_text("# Mine\n", encoding="utf-8")
    write_pages(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {*method_pages(), "mine.md"}
