"""The report of a folder of benchmark runs: Markdown, LaTeX, one HTML page, and pictures."""

from __future__ import annotations

from pathlib import Path

from cfner.errors import ConfigError

PICTURES = "pictures"


def write_report(runs: Path) -> list[Path]:
    """Write ``report.md``, ``report.tex``, ``report.html`` and ``pictures/*.svg`` into the folder.

    Works while the grid is only partly finished, and says what is missing. The same runs give the same
    bytes. Returns what was written; pictures of an earlier report that are not in this one are removed.
    """
    from cfner.benchmark.report.as_html import html
    from cfner.benchmark.report.as_latex import latex
    from cfner.benchmark.report.as_markdown import markdown
    from cfner.benchmark.report.compose import document
    from cfner.benchmark.report.reading import read_runs

    made = document(read_runs(runs))
    files = {
        runs / "report.md": markdown(made, PICTURES),
        runs / "report.tex": latex(made),
        runs / "report.html": html(made),
        **{runs / PICTURES / f"{picture.name}.svg": picture.svg.file() for picture in made.pictures},
    }
    try:
        (runs / PICTURES).mkdir(exist_ok=True)
        for old in (runs / PICTURES).glob("*.svg"):
            if old not in files:
                old.unlink()
        for path, content in files.items():
            path.write_text(content, encoding="utf-8")
    except OSError as error:
        raise ConfigError(
            f"The report cannot be written ({error.strerror}).", where=str(runs), remedy="Make it writable."
        ) from error
    return list(files)
