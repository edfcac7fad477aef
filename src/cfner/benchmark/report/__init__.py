"""The report of a folder of benchmark runs: Markdown, LaTeX, one HTML page, and pictures."""

from __future__ import annotations

from pathlib import Path

from cfner.files.atomic import write_text_atomic, writing

PICTURES = "pictures"
_WRITTEN = ".written"  # in the folder of pictures: their names, to recognise those of an earlier report


def write_report(runs: Path) -> list[Path]:
    """Write ``report.html``, ``.md`` and ``.tex``, ``tables.tex`` and ``pictures/*.svg`` into the folder.

    Works while the grid is only partly finished, and lists what is missing. The same runs give the same
    bytes. Returns what was written. Pictures of an earlier report that are not in this one are removed; other
    files stay.
    """
    from cfner.benchmark.report.as_html import html
    from cfner.benchmark.report.as_latex import latex, latex_tables
    from cfner.benchmark.report.as_markdown import markdown
    from cfner.benchmark.report.contents import document
    from cfner.benchmark.report.reading import read_runs

    made = document(read_runs(runs))
    files = {
        runs / "report.md": markdown(made, PICTURES),
        runs / "report.tex": latex(made),
        runs / "tables.tex": latex_tables(made),
        runs / "report.html": html(made),
        **{runs / PICTURES / f"{picture.name}.svg": picture.svg.file() for picture in made.pictures},
    }
    with writing(runs):
        (runs / PICTURES).mkdir(exist_ok=True)
        for path, content in files.items():
            write_text_atomic(path, content)
        _drop_earlier(runs / PICTURES, {picture.name for picture in made.pictures})
    return list(files)


def _drop_earlier(pictures: Path, names: set[str]) -> None:
    """Remove pictures that an earlier report listed and this one does not have; then list this one's."""
    written = pictures / _WRITTEN
    earlier = set(written.read_text("utf-8", "replace").splitlines()) if written.is_file() else set()
    for picture in pictures.glob("*.svg"):  # never a path from the list itself: it could lead elsewhere
        if picture.stem in earlier - names:
            picture.unlink()
    write_text_atomic(written, "".join(f"{name}\n" for name in sorted(names)))
