"""``cfner data``: look at corpora, convert and split them, rename their types."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cfner.cli import options as o
from cfner.cli.settings import names
from cfner.cli.show import console, print_json, say, say_read, splits_table
from cfner.cli.spelling import Commands
from cfner.errors import ConfigError, CorpusError, nearest

if TYPE_CHECKING:
    from cfner.corpus.corpus import Corpus
    from cfner.corpus.sentence import Sentence
    from cfner.practice.check.findings import SplitFacts

app = typer.Typer(
    name="data",
    cls=Commands,
    help="Look at corpora, convert and split them, rename their types.",
    no_args_is_help=True,
)

TokenColumn = Annotated[str | None, o.Flag(help="Column or field of the words or the text.")]
SchemeOption = Annotated[
    str | None,
    o.Flag(help="Tag scheme of the input: IO, IOB1, BIO, BIOES or BILOU. Default: detected."),
]
Labels = Annotated[str | None, o.Flag(help="Names of integer tags, in order, comma-separated.")]
KeptTypes = Annotated[str | None, o.Flag(help="Keep the labels of these types only, comma-separated.")]
Overwrite = Annotated[bool, o.Flag("--overwrite", help="Replace files that exist.")]


@app.command()
def describe(
    path: o.Data,
    format: o.Format = None,
    tag_column: o.TagColumn = None,
    token_column: TokenColumn = None,
    scheme: SchemeOption = None,
    labels: Labels = None,
    every: o.Every = 1,
    json: o.Json = False,
) -> None:
    """Print sentences, tokens, mentions per type, scheme, repairs and overlaps."""
    from cfner.practice.check.findings import split_facts

    corpus = _read(path, scheme, locals())
    tell = _tell_json if json else _tell
    tell(corpus, split_facts(corpus))


@app.command()
def convert(
    source: Annotated[str, typer.Argument(metavar="IN", help="A file, a folder or a dataset.")],
    target: Annotated[Path, typer.Argument(metavar="OUT", help="A file; a folder if IN has several splits.")],
    to: Annotated[str | None, o.Flag(help="Format to write; by default what OUT's suffix says.")] = None,
    scheme: Annotated[str, o.Flag(help="Tag scheme to write.")] = "BIO",
    format: o.Format = None,
    tag_column: o.TagColumn = None,
    token_column: TokenColumn = None,
    from_scheme: SchemeOption = None,
    labels: Labels = None,
    types: KeptTypes = None,
    every: o.Every = 1,
    overwrite: Overwrite = False,
    json: o.Json = False,
) -> None:
    """Write a corpus, or a part of it, in another format or scheme."""
    corpus = _read(source, from_scheme, locals())
    if types is not None:
        corpus = corpus.only(names(types))
    _write(_files(corpus, source, target, to), corpus, locals())


@app.command()
def split(
    source: Annotated[str, typer.Argument(metavar="IN", help="A file, or a dataset with one split.")],
    target: Annotated[
        Path, typer.Argument(metavar="OUT_DIR", help="Folder for the train, dev and test files.")
    ],
    dev: Annotated[float, o.Flag(min=0, max=1, help="Share of the sentences for dev.")] = 0.1,
    test: Annotated[float, o.Flag(min=0, max=1, help="Share of the sentences for test.")] = 0.2,
    seed: Annotated[int, o.Flag(help="Seed of the division.")] = 0,
    to: Annotated[str | None, o.Flag(help="Format to write; jsonl for texts, else conll.")] = None,
    scheme: Annotated[str, o.Flag(help="Tag scheme to write.")] = "BIO",
    format: o.Format = None,
    tag_column: o.TagColumn = None,
    token_column: TokenColumn = None,
    from_scheme: SchemeOption = None,
    labels: Labels = None,
    overwrite: Overwrite = False,
    json: o.Json = False,
) -> None:
    """Divide one file into train, dev and test; equal sentences stay together."""
    corpus = _read(source, from_scheme, locals()).split(dev, test, seed)
    _write(_split_files(corpus, target, to), corpus, locals())


@app.command("rename-type")
def rename_type(
    source: Annotated[str, typer.Argument(metavar="IN", help="A file, a folder or a dataset.")],
    old: Annotated[str, typer.Argument(metavar="OLD", help="The type to rename; several comma-separated.")],
    new: Annotated[str, typer.Argument(metavar="NEW", help="Its new name; may be an existing type.")],
    out: Annotated[Path, o.Flag("--out", "-o", help="The file to write; a folder if IN has several splits.")],
    to: Annotated[str | None, o.Flag(help="Format to write; by default what OUT's suffix says.")] = None,
    scheme: Annotated[str, o.Flag(help="Tag scheme to write.")] = "BIO",
    format: o.Format = None,
    tag_column: o.TagColumn = None,
    token_column: TokenColumn = None,
    from_scheme: SchemeOption = None,
    labels: Labels = None,
    overwrite: Overwrite = False,
    json: o.Json = False,
) -> None:
    """Rename entity types of a corpus, for example to join several spellings of one type.

    IN is not changed. OUT gets its words and labels, but no other columns or fields.
    """
    corpus = _read(source, from_scheme, locals())
    known = corpus.types
    olds = [old] if old in known else names(old)  # a name may contain a comma
    for name in olds:
        if name not in known:
            raise ConfigError(f"The data has no type '{name}'.", where=source, remedy=nearest(name, known))
    if not new.strip() or new != new.strip():
        raise ConfigError(
            f"'{new}' cannot be the name of a type.", remedy="Give one without surrounding whitespace."
        )
    renamed = corpus.renamed(dict.fromkeys(olds, new))
    files = _files(renamed, source, out, to)
    _write(files, renamed, locals())


@app.command()
def sample(
    target: Annotated[
        Path, typer.Argument(metavar="OUT_DIR", help="Folder for the train, dev and test files.")
    ],
    size: Annotated[
        int,
        o.Flag(min=1, max=1_000_000, help="Training sentences; dev has a sixth, test a third of that."),
    ] = 600,
    types: KeptTypes = None,
    seed: Annotated[int, o.Flag(help="Seed of the generated sentences.")] = 0,
    to: Annotated[str, o.Flag(help="Format to write.")] = "conll",
    overwrite: Overwrite = False,
    json: o.Json = False,
) -> None:
    """Write a generated corpus to try things with: invented clinical notes with sixteen types."""
    from cfner.corpus.corpus import Corpus
    from cfner.synthetic.generate import TYPES, generate

    kept = TYPES if types is None else tuple(names(types))
    for name in kept:
        if name not in TYPES:
            raise ConfigError(f"The generated corpus has no type '{name}'.", remedy=nearest(name, TYPES))
    made = generate(train=size, dev=max(size // 6, 1), test=max(size // 3, 1), seed=seed)
    train, dev, test = (tuple(s.only(kept) for s in part) for part in (made.train, made.dev, made.test))
    corpus = Corpus("sample", train, dev, test)
    _write(_split_files(corpus, target, to), corpus, locals())


def _read(path: str, scheme: str | None, given: Mapping[str, Any]) -> Corpus:
    """``given``: the command's arguments."""
    from cfner.corpus.corpus import Corpus
    from cfner.corpus.tags import scheme_named

    return Corpus.read(
        path,
        scheme=None if scheme is None else scheme_named(scheme),
        labels=None if given["labels"] is None else names(given["labels"]),
        every=given.get("every", 1),
        **{name: given[name] for name in ("format", "tag_column", "token_column")},
    )


def _files(corpus: Corpus, source: str, target: Path, to: str | None) -> dict[Path, tuple[Sentence, ...]]:
    """One file, or one for each split if the source has several."""
    several = bool(corpus.dev or corpus.test) or Path(source).is_dir()
    return _split_files(corpus, target, to) if several else {target: corpus.train}


def _split_files(corpus: Corpus, folder: Path, to: str | None) -> dict[Path, tuple[Sentence, ...]]:
    """One file for each split that has sentences."""
    from cfner.corpus.formats import format_for_writing, writable_formats
    from cfner.corpus.split_files import SPLITS

    if any(folder.suffix in format.suffixes for format in writable_formats().values()):
        raise CorpusError(
            "This is the name of a file, but each split needs its own file.",
            where=str(folder),
            remedy="Name a folder.",
        )
    sentences = [sentence for split in SPLITS for sentence in corpus.split_named(split)]
    name = to or ("jsonl" if all(sentence.text is not None for sentence in sentences) else "conll")
    suffix = format_for_writing(folder, name).suffixes[0]
    return {
        folder / f"{split}{suffix}": corpus.split_named(split)
        for split in SPLITS
        if corpus.split_named(split)
    }


def _write(files: dict[Path, tuple[Sentence, ...]], corpus: Corpus, given: Mapping[str, Any]) -> None:
    """Write, and print what was written and what was repaired. ``given``: the command's arguments."""
    from cfner.corpus.tags import scheme_named
    from cfner.corpus.writers import write_files

    scheme = scheme_named(given.get("scheme", "BIO"))
    write_files(files, format=given["to"], scheme=scheme, overwrite=given["overwrite"])
    if given["json"]:
        written = [{"file": str(path), "sentences": len(sentences)} for path, sentences in files.items()]
        print_json({"written": written, "report": corpus.report.to_json()})
        return
    for path, sentences in files.items():
        say(f"{path}: {len(sentences):,} sentences", wrap=False)
    for kind, count in sorted(corpus.report.repairs.items()):
        say(f"while reading: {kind}: {count:,}, first at {corpus.report.places[kind][0]}", wrap=False)


def _tell_json(corpus: Corpus, splits: Mapping[str, SplitFacts]) -> None:
    counted = {
        name: {
            "sentences": facts.sentences,
            "tokens": facts.tokens,
            "mentions": sum(facts.mentions.values()),
            "mentions_per_type": facts.mentions,
        }
        for name, facts in splits.items()
    }
    about = {"name": corpus.name, "report": corpus.report.to_json(), "types": corpus.types}
    print_json({**about, "splits": counted, "overlaps": corpus.overlaps()})


def _tell(corpus: Corpus, splits: Mapping[str, SplitFacts]) -> None:
    screen, report = console(), corpus.report
    say_read(corpus.name, report, corpus.types)
    screen.print(
        f"{report.tokens_read:,} tokens read = {report.tokens_used:,} used "
        f"+ {report.tokens_reported:,} reported below"
    )
    screen.print(splits_table(splits, corpus.types, "tokens"))
    screen.print("Repaired or left out:" if report.repairs else "Nothing had to be repaired.")
    for kind, count in sorted(report.repairs.items()):
        # Not a table: places are not wrapped, so that they can be copied into an editor.
        say(f"  {kind}: {count:,}", wrap=False)
        more = count - len(report.places[kind])
        for place in [*report.places[kind], *([f"and {more:,} more"] if more else [])]:
            say(f"    {place}", wrap=False)
    overlaps = corpus.overlaps().items()
    shown = ", ".join(f"{name.replace('_', ' ')}: {count:,}" for name, count in overlaps if count)
    screen.print(f"Sentences that occur more than once: {shown or 'none'}.", soft_wrap=True)
