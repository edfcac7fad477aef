"""Pages of files that stand beside docs/, where GitHub looks for them; and the pages of the methods."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, InclusionLevel

ROOT_FILES = {
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
}
METHODS = "methods/*.md"
ICONS = "src/cfner/serving/static"  # the site has the icon of the served page
# a page that `cfner bench report` wrote beside its Markdown: both would have the same name
REPORT, ITS_PLACE = "results/short-steps/report.html", "results/short-steps/report-page.html"


def on_config(config: Any) -> Any:
    """A method that was added has its page in the navigation without being listed there."""
    names = sorted(path.stem for path in Path(config.docs_dir, "methods").glob("*.md"))
    pages = [{name: f"methods/{name}.md"} for name in names if name != "README"]
    missing = {page for name, page in ROOT_FILES.items() if not _beside(config, name).is_file()}
    config.nav = _arranged(config.nav, pages, missing)
    return config


def _arranged(nav: Any, pages: list[dict[str, str]], missing: set[str]) -> Any:
    if isinstance(nav, dict):
        return {title: _arranged(inside, pages, missing) for title, inside in nav.items()}
    if isinstance(nav, list):
        entries = [new for old in nav for new in (pages if old == METHODS else [old])]
        return [_arranged(entry, pages, missing) for entry in entries if not _names(entry, missing)]
    return nav


def _names(entry: Any, missing: set[str]) -> bool:
    return isinstance(entry, dict) and any(
        page in missing for page in entry.values() if isinstance(page, str)
    )


def on_files(files: Any, config: Any) -> Any:
    for name, page in ROOT_FILES.items():
        if (path := _beside(config, name)).is_file():
            text = re.sub(r"\]\(docs/", "](", path.read_text(encoding="utf-8"))
            files.append(File.generated(config, page, content=text))
    files.append(
        File("icon.svg", str(_beside(config, ICONS)), config.site_dir, False, dest_uri="assets/icon.svg")
    )
    report = File(REPORT, config.docs_dir, config.site_dir, False, dest_uri=ITS_PLACE)
    report.inclusion = InclusionLevel.NOT_IN_NAV
    files.append(report)
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """On GitHub a link to such a file leads out of docs/; here it leads to its page."""
    up = "../" * page.file.src_uri.count("/")
    for name, there in ROOT_FILES.items():
        markdown = re.sub(rf"\]\((?:\.\./)*{re.escape(name)}(#[^)]*)?\)", rf"]({up}{there}\1)", markdown)
    return markdown


def _beside(config: Any, name: str) -> Path:
    return Path(config.config_file_path).parent / name
