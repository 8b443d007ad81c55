"""The commands of `graftmt prepare` that read a format: find its files, read them, write a corpus folder, say what came out."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from graftmt.cli.declared import AsJson, Quiet, finite, numbers
from graftmt.cli.output import json_text
from graftmt.cli.prepare_files import _show, convert, find, parse_codes, paths_of, write_splits
from graftmt.errors import ConfigError

Inputs = Annotated[
    list[str],
    typer.Argument(
        help="Files, folders or archives, compressed or not; archive.zip!*.en selects members, valid=FILE says the split",
        show_default=False,
    ),
]
Output = Annotated[Path, typer.Option("--output", "-o", help="Corpus folder to write; replaces an earlier corpus")]
Languages = Annotated[str | None, typer.Option("--languages", "-l", help="Languages to read: en,fr=fra_Latn (default: all)")]
Columns = Annotated[
    str | None,
    typer.Option("--columns", "-c", help="Columns by name or number: en=source,fr=target or en=1,fr=2"),
]
Field = Annotated[str, typer.Option("--field", help="Field with a text per language, without --columns")]
MaxRatio = Annotated[
    float,
    typer.Option(
        "--max-ratio",
        min=1,
        callback=finite,
        help="Refuse files that unfold to over N times their size",
    ),
]
MaxSize = Annotated[str, typer.Option("--max-size", help="Refuse files and archives that unfold to more")]

RATIO, SIZE = 200.0, "200GB"


def read_ted(
    inputs: Inputs,
    output: Output,
    languages: Languages = None,
    max_ratio: MaxRatio = RATIO,
    max_size: MaxSize = SIZE,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Read the TED talks corpus as neulab released it: the folder with
    all_talks_train.tsv, _dev and _test, or ted_talks.tar.gz. The text stays
    tokenised, as in the paper; escapes (&quot;) are undone. NULL means that
    there is no translation. zh-cn and pt-br become zh_cn and pt_br.

    Example:
      graftmt prepare ted ted_talks.tar.gz -o corpus/ted --languages en,fr,el

    More: docs/corpora.md
    """
    from graftmt.prepare.readers import ted

    files = find(inputs, ted.is_ted_file, "files named all_talks_train.tsv and so on", max_ratio, max_size)
    write_splits("ted", ted.read_ted(files, parse_codes(languages)), paths_of(files), output, as_json)


def read_moses(
    inputs: Inputs,
    output: Output,
    languages: Languages = None,
    max_ratio: MaxRatio = RATIO,
    max_size: MaxSize = SIZE,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Read line-aligned files, one per language: NAME.en-fr.en and NAME.en-fr.fr
    as in OPUS's zips, or corpus.en and corpus.fr. Files whose names differ in
    the language alone belong together, and must have equally many lines. For
    other names write LANGUAGE=FILE.

    Examples:
      graftmt prepare moses en-fr.txt.zip -o corpus/books
      graftmt prepare moses en=english.txt kab=kabyle.txt.gz -o corpus/kab

    More: docs/corpora.md
    """
    from graftmt.prepare.readers import moses

    files = find(inputs, moses.is_moses_file, "files that end in a language's code, such as corpus.en", max_ratio, max_size)
    write_splits("moses", moses.read_moses(files, parse_codes(languages)), paths_of(files), output, as_json)


def read_tsv(
    inputs: Inputs,
    output: Output,
    columns: Columns = None,
    delimiter: Annotated[str | None, typer.Option("--delimiter", help="Separator (default: tab, or comma for .csv)")] = None,
    header: Annotated[
        bool | None,
        typer.Option("--header/--no-header", help="The first line names the columns (default: if --columns does)"),
    ] = None,
    skip_bad_rows: Annotated[
        bool, typer.Option("--skip-bad-rows", help="Leave out rows with too few or too many columns, and count them")
    ] = False,
    max_ratio: MaxRatio = RATIO,
    max_size: MaxSize = SIZE,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Read tables with a column per language: tab-separated, where quotation
    marks are text, or .csv, where they are quotes. Without --columns, the
    first line has the languages' codes.

    Examples:
      graftmt prepare tsv train.tsv.gz valid=held-out.csv -o corpus/kab
      graftmt prepare tsv pairs.txt -o corpus/pairs --columns en=1,fr=2

    More: docs/corpora.md
    """
    from graftmt.prepare.readers import delimited as tables

    files = find(inputs, tables.is_table, "files that end in .tsv or .csv", max_ratio, max_size)
    delimiter = {"\\t": "\t", "tab": "\t"}.get(delimiter or "", delimiter)
    splits = tables.read_tables(files, parse_codes(columns), delimiter=delimiter, header=header, skip_bad_rows=skip_bad_rows)
    write_splits("tsv", splits, paths_of(files), output, as_json)


def read_tmx(
    inputs: Inputs,
    output: Output,
    languages: Languages = None,
    fold_regions: Annotated[bool, typer.Option("--fold-regions", help="Read en-US and en-GB as en")] = False,
    max_ratio: MaxRatio = RATIO,
    max_size: MaxSize = SIZE,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Read TMX translation memories. Inline codes are removed, and the text
    between them is kept. Entities are refused, and external DTDs are not
    loaded. Language codes are compared in lower case. Without --languages, a
    file is read twice: first to find its languages.

    Example:
      graftmt prepare tmx memory.tmx.gz -o corpus/memory --fold-regions

    More: docs/corpora.md
    """
    from graftmt.prepare.readers import tmx

    files = find(inputs, tmx.is_tmx, "files that end in .tmx", max_ratio, max_size)
    splits = tmx.read_tmx(files, parse_codes(languages), fold_regions=fold_regions)
    write_splits("tmx", splits, paths_of(files), output, as_json)


def read_jsonl(
    inputs: Inputs,
    output: Output,
    languages: Languages = None,
    columns: Columns = None,
    field: Field = "translation",
    max_ratio: MaxRatio = RATIO,
    max_size: MaxSize = SIZE,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Read JSON Lines: {"translation": {"en": "…", "fr": "…"}} as on the Hugging
    Face Hub, or flat keys with --columns.

    Examples:
      graftmt prepare jsonl data/ -o corpus/opus100
      graftmt prepare jsonl train.jsonl -o corpus/flat --columns en=source,fr=t

    More: docs/corpora.md
    """
    from graftmt.prepare.readers import jsonl

    files = find(inputs, jsonl.is_jsonl, "files that end in .jsonl", max_ratio, max_size)
    splits = jsonl.read_jsonl(files, parse_codes(languages), columns=parse_codes(columns), field=field)
    write_splits("jsonl", splits, paths_of(files), output, as_json)


def read_parquet(
    inputs: Inputs,
    output: Output,
    languages: Languages = None,
    columns: Columns = None,
    field: Field = "translation",
    max_ratio: MaxRatio = RATIO,
    max_size: MaxSize = SIZE,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Read Parquet: a struct column with a text per language, as on the Hugging
    Face Hub, or flat columns with --columns. Files named train-…,
    validation-… and test-… become these splits. Needs: pip install
    'graftmt[prepare]'

    Example:
      graftmt prepare parquet opus_books/en-fr/ -o corpus/books

    More: docs/corpora.md
    """
    from graftmt.prepare.readers import parquet

    files = find(inputs, parquet.is_parquet, "files that end in .parquet", max_ratio, max_size)
    splits = parquet.read_parquet(files, parse_codes(languages), columns=parse_codes(columns), field=field)
    write_splits("parquet", splits, paths_of(files), output, as_json)


def read_po(
    inputs: Inputs,
    output: Output,
    languages: Languages = None,
    source_language: Annotated[str, typer.Option("--source-language", "-s", help="Language of the messages")] = "en",
    max_ratio: MaxRatio = RATIO,
    max_size: MaxSize = SIZE,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Read gettext catalogues, .po or .mo, of one program or many: a line per
    message, joined over the languages. Fuzzy, obsolete and untranslated
    entries are left out. Of plural forms, the singular is paired with the
    first and the plural with the last. The language of a catalogue is given
    as fr=FILE, or found in its folder (fr/LC_MESSAGES), header or name.

    Examples:
      graftmt prepare po po/ -o corpus/program
      graftmt prepare po fr=messages-fr.po kab=messages-kab.po -o corpus/p

    More: docs/corpora.md
    """
    from graftmt.prepare.readers import gettext

    files = find(inputs, gettext.is_catalogue, "files that end in .po or .mo", max_ratio, max_size)
    splits = gettext.read_gettext(files, parse_codes(languages), source_language=source_language)
    write_splits("po", splits, paths_of(files), output, as_json)


def read_flores(
    inputs: Inputs,
    output: Output,
    languages: Languages = None,
    short_codes: Annotated[
        bool,
        typer.Option("--short-codes", help="Call fra_Latn fr and so on, except where two would be alike"),
    ] = False,
    max_ratio: MaxRatio = RATIO,
    max_size: MaxSize = SIZE,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Read FLORES or a folder like it: dev/eng_Latn.dev becomes the valid split,
    devtest/eng_Latn.devtest the test split.

    Examples:
      graftmt prepare flores flores200_dataset.tar.gz -o corpus/flores
      graftmt prepare flores flores200_dataset -o corpus/flores --short-codes

    More: docs/corpora.md
    """
    from graftmt.prepare.readers import flores

    files = find(inputs, flores.is_flores_file, "files such as dev/eng_Latn.dev", max_ratio, max_size)
    splits = flores.read_flores(files, parse_codes(languages), short_codes=short_codes)
    write_splits("flores", splits, paths_of(files), output, as_json)


def read_paracrawl(
    inputs: Inputs,
    output: Output,
    languages: Languages = None,
    columns: Annotated[
        str, typer.Option("--columns", "-c", help="Text columns of tab-separated files: 3,4 for JParaCrawl 3")
    ] = "1,2",
    max_ratio: MaxRatio = RATIO,
    max_size: MaxSize = SIZE,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Read a folder of bilingual files, ParaCrawl's or others', each into its own
    corpus: OUTPUT/en-fr, OUTPUT/en-de, … Files are recognised by their names:
    en-fr.txt.gz (tab-separated), en-fr.tmx.gz, NAME.en-fr.en and
    NAME.en-fr.fr (also in zips). `graftmt prepare align` then makes one
    multi-parallel corpus, as the paper does.

    Example:
      graftmt prepare paracrawl downloads/ -o corpora/pairs --languages en,fr

    More: docs/corpora.md
    """
    from graftmt.prepare.readers import paracrawl

    places = numbers(columns, "--columns")
    if len(places) != 2 or not all(places):
        raise ConfigError(f"--columns is {columns!r}; expected two numbers from 1, such as 1,2.")
    files = find(inputs, paracrawl.is_pair_file, "files that name a pair, such as en-fr.txt.gz", max_ratio, max_size)
    pairs = paracrawl.read_paracrawl(files, parse_codes(languages), columns=(places[0], places[1]))
    reports = {pair: convert("paracrawl", {"train": source}, paths_of(files), output / pair) for pair, source in pairs.items()}
    if as_json:
        print(json_text({"corpora": {str(output / pair): report for pair, report in reports.items()}}, indent=2))
        return
    _show(str(output), {pair: report["train"] for pair, report in reports.items()}, "pair")


def read_unpc(
    inputs: Inputs,
    output: Output,
    languages: Languages = None,
    max_ratio: MaxRatio = RATIO,
    max_size: MaxSize = SIZE,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Read the UN Parallel Corpus: UNv1.0.ar-en.ar and .en, unpacked or as
    downloaded in UNv1.0.ar-en.tar.gz.00, .01, … All pairs, or those of
    --languages, become one training text; devset and testset become valid and
    test. Filter it next with `graftmt prepare clean`: unfiltered, it cost the
    paper 10 BLEU.

    Example:
      graftmt prepare unpc UNv1.0/ -o corpus/unpc --languages en,ar

    More: docs/corpora.md
    """
    from graftmt.prepare.readers import unpc

    files = find(inputs, unpc.is_unpc_file, "files such as UNv1.0.ar-en.ar", max_ratio, max_size)
    write_splits("unpc", unpc.read_unpc(files, parse_codes(languages)), paths_of(files), output, as_json)


COMMANDS: dict[str, Callable[..., None]] = {
    "ted": read_ted,
    "moses": read_moses,
    "tsv": read_tsv,
    "tmx": read_tmx,
    "jsonl": read_jsonl,
    "parquet": read_parquet,
    "po": read_po,
    "flores": read_flores,
    "paracrawl": read_paracrawl,
    "unpc": read_unpc,
}
