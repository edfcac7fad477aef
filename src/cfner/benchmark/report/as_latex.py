"""The report as a LaTeX document: its tables and sentences. (LaTeX cannot show SVG pictures.)"""

from __future__ import annotations

import re
import unicodedata

from cfner.benchmark.report.document import Block, Cell, Document, Heading, Paragraph, Picture, Table

_ROWS_ON_A_PAGE = 40
_PREAMBLE = r"""\documentclass{article}
\usepackage[a4paper,margin=2cm]{geometry}
\usepackage{booktabs}
\usepackage{graphicx}
\setlength{\parindent}{0pt}
\setlength{\parskip}{6pt}
\sloppy
"""
_SIGNS = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"{\ttfamily\char34}",
    "[": r"{[}",  # after a \\ it would begin an option
    "]": r"{]}",
    "*": r"{*}",
    "±": r"$\pm$",
    "−": r"$-$",
    "×": r"$\times$",
    "→": r"$\rightarrow$",
    "·": r"$\cdot$",
    "†": r"$\dagger$",
    "–": r"\textendash{}",
    "…": r"\ldots{}",
    "λ": r"$\lambda$",
    "δ": r"$\delta$",
    " ": " ",
}
_ACCENTS = {
    "\u0300": "`",
    "\u0301": "'",
    "\u0302": "^",
    "\u0303": "~",
    "\u0308": '"',
    "\u030a": "r",
    "\u030c": "v",
    "\u0327": "c",
}


def latex(document: Document) -> str:
    parts = [
        _PREAMBLE,
        rf"\title{{{tex(document.title)}}}\date{{}}",
        r"\begin{document}",
        r"\maketitle",
        *(_block(block) for block in document.blocks),
        r"\end{document}",
    ]
    return "\n".join(part for part in parts if part) + "\n"


def latex_tables(document: Document) -> str:
    """The tables alone, to be copied or \\\\input in a paper. A comment above each names it."""
    parts = ["% Needs \\usepackage{booktabs} and \\usepackage{graphicx}."]
    section, part = document.title, ""
    for block in document.blocks:
        if isinstance(block, Heading):
            section, part = (block.text, "") if block.level == 2 else (section, block.text)
        elif isinstance(block, Table):
            parts += ["", f"% {tex(section)}: {tex(part or 'scores')}", _table(block)]
    return "\n".join(parts) + "\n"


def tex(text: str) -> str:
    """Escaped text. Characters outside the usual fonts are shown as their code point."""
    written = "".join(_sign(sign) for sign in text)
    return re.sub(r"(?<=[-'`?!])(?=[-'`])", "{}", written)  # prevents ligatures, such as -- for a dash


def _sign(sign: str) -> str:
    if sign in _SIGNS:
        return _SIGNS[sign]
    if sign.isascii() and sign.isprintable():
        return sign
    plain = unicodedata.normalize("NFD", sign)
    if len(plain) == 2 and plain[0].isascii() and plain[0].isalpha() and plain[1] in _ACCENTS:
        letter = {"i": r"\i", "j": r"\j"}.get(plain[0], plain[0])
        return rf"{{\{_ACCENTS[plain[1]]}{{{letter}}}}}"
    return rf"\texttt{{U+{ord(sign):04X}}}"


def _block(block: Block) -> str:
    if isinstance(block, Heading):
        kind = {2: "section", 3: "subsection"}.get(block.level, "paragraph")
        return f"\\{kind}*{{{tex(block.text)}}}"
    if isinstance(block, Paragraph):
        loud = block.loud or block.alarm
        return (rf"\textbf{{{tex(block.text)}}}" if loud else tex(block.text)) + "\n"
    if isinstance(block, Picture):
        return rf"Picture: {tex(block.svg.title)} (\texttt{{{tex(block.name)}.svg}})." + "\n"
    return _table(block)


def _table(table: Table) -> str:
    """Scaled down to the width of the page if wider; split if longer."""
    columns = "l" * table.left + "r" * (len(table.head) - table.left)
    head = " & ".join(tex(name) for name in table.head) + r" \\"
    written = []
    for start in range(0, max(len(table.rows), 1), _ROWS_ON_A_PAGE):
        rows = [" & ".join(map(_cell, row)) + r" \\" for row in table.rows[start : start + _ROWS_ON_A_PAGE]]
        written += [
            r"\begin{center}\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%",
            rf"\begin{{tabular}}{{{columns}}}",
            r"\toprule",
            head,
            r"\midrule",
            *rows,
            r"\bottomrule",
            r"\end{tabular}}\end{center}",
        ]
    return "\n".join(written)


def _cell(cell: Cell) -> str:
    return rf"\textbf{{{tex(cell.text)}}}" if cell.bold else tex(cell.text)
