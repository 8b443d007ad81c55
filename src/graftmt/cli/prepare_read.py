"""The commands of `graftmt prepare` that read a format: find its files, read them, write a corpus folder, say what came out."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from graftmt.cli.common import AsJson, Quiet, finite, json_text, numbers
from graftmt.cli.prepare_files import _show, convert, find, parse_codes, paths_of, write_splits
from graftmt.errors import ConfigError

if TYPE_CHECKING:
    pass

Inputs = Annotated[
    list[str],
    typer.Argument(
        help="Files, folders or archives (.zip, .tar, .tar.gz, …); files may be .gz, .xz or .zst. archive.zip!member names a "
        "member, archive.zip!*.en all that match. SPLIT=PATH says which split a file is, where its name does not: valid=b.tsv.",
        show_default=False,
    ),
]
Output = Annotated[Path, typer.Option("--output", "-o", help="The corpus folder to write; one that is there is replaced.")]
Languages = Annotated[
    str | None,
    typer.Option(
        "--languages",
        "-l",
        help="The languages to take, all unless given: en,fr,pt_br. NAME=CODE where the files call one otherwise: fr=fra_Latn.",
    ),
]
Columns = Annotated[
    str | None,
    typer.Option(
        "--columns", "-c", help="Where each language is, by name or by number from 1: en=source,fr=target or en=1,fr=2."
    ),
]
Field = Annotated[str, typer.Option("--field", help="The field with a text per language, where columns are not named.")]
MaxRatio = Annotated[
    float,
    typer.Option(
        "--max-ratio",
        min=1,
        callback=finite,
        help="A file that unfolds to more than so many times its size is refused as a bomb.",
    ),
]
MaxSize = Annotated[str, typer.Option("--max-size", help="So is a file or an archive that unfolds to more than this.")]

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
    """Read the TED talks corpus as neulab released it: all_talks_train.tsv, all_talks_dev.tsv and all_talks_test.tsv.

    The folder that holds them, or ted_talks.tar.gz as downloaded. Escapes (&quot;) are undone, cells with NULL are missing
    translations, the text stays tokenised, as in the paper. zh-cn and pt-br become zh_cn and pt_br.

    Example: graftmt prepare ted ted_talks.tar.gz -o corpus/ted --languages en,fr,de,el
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
    """Read line-aligned files, one per language: NAME.en-fr.en and NAME.en-fr.fr as in OPUS's zips, or corpus.en, corpus.fr.

    Files named alike but for the language belong together and must have equally many lines; several such groups come one
    after the other. For files with other names write LANGUAGE=FILE.

    Example: graftmt prepare moses en-fr.txt.zip -o corpus/books
    Example: graftmt prepare moses en=english.txt kab=kabyle.txt.gz -o corpus/kab
    """
    from graftmt.prepare.readers import moses

    files = find(inputs, moses.is_moses_file, "files that end in a language's code, such as corpus.en", max_ratio, max_size)
    write_splits("moses", moses.read_moses(files, parse_codes(languages)), paths_of(files), output, as_json)


def read_tsv(
    inputs: Inputs,
    output: Output,
    columns: Columns = None,
    delimiter: Annotated[
        str | None, typer.Option("--delimiter", help="A tab for .tsv and others, a comma for .csv, or this.")
    ] = None,
    header: Annotated[
        bool | None,
        typer.Option("--header/--no-header", help="Whether the first line names the columns; if columns go by name."),
    ] = None,
    max_ratio: MaxRatio = RATIO,
    max_size: MaxSize = SIZE,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Read tables, a column per language: tab-separated (quotation marks are text) or .csv (they are quotes).

    Without --columns the first line is taken for the languages' codes, and each column for a language.

    Example: graftmt prepare tsv train.tsv.gz valid=held-out.csv -o corpus/kab --columns en=english,kab=kabyle
    Example: graftmt prepare tsv pairs.txt -o corpus/pairs --columns en=1,fr=2
    """
    from graftmt.prepare.readers import delimited as tables

    files = find(inputs, tables.is_table, "files that end in .tsv or .csv", max_ratio, max_size)
    tab = {"\\t": "\t", "tab": "\t"}
    delimiter = tab.get(delimiter, delimiter) if delimiter else None
    splits = tables.read_tables(files, parse_codes(columns), delimiter=delimiter, header=header)
    write_splits("tsv", splits, paths_of(files), output, as_json)


def read_tmx(
    inputs: Inputs,
    output: Output,
    languages: Languages = None,
    fold_regions: Annotated[bool, typer.Option("--fold-regions", help="Take en-US and en-GB for en.")] = False,
    max_ratio: MaxRatio = RATIO,
    max_size: MaxSize = SIZE,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Read TMX translation memories. Inline codes are left out, the text between them is kept.

    Entities are refused; an external DTD that a file names is not loaded.

    Language codes are compared in lower case. Unless languages are named, a file is read twice: first to see which it has.

    Example: graftmt prepare tmx memory.tmx.gz -o corpus/memory --languages en,fr --fold-regions
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
    """Read JSON Lines: {"translation": {"en": "…", "fr": "…"}} as on the Hugging Face hub, or flat keys with --columns.

    Example: graftmt prepare jsonl data/ -o corpus/opus100
    Example: graftmt prepare jsonl train.jsonl -o corpus/flat --columns en=source,fr=target
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
    """Read Parquet: a struct column with a text per language, as on the Hugging Face hub, or flat ones with --columns.

    Files named train-…, validation-… and test-… become these splits. Needs the packages of the extra `prepare`.

    Example: graftmt prepare parquet opus_books/en-fr/ -o corpus/books --languages en,fr
    """
    from graftmt.prepare.readers import parquet

    files = find(inputs, parquet.is_parquet, "files that end in .parquet", max_ratio, max_size)
    splits = parquet.read_parquet(files, parse_codes(languages), columns=parse_codes(columns), field=field)
    write_splits("parquet", splits, paths_of(files), output, as_json)


def read_po(
    inputs: Inputs,
    output: Output,
    languages: Languages = None,
    source_language: Annotated[str, typer.Option("--source-language", "-s", help="The language of the messages.")] = "en",
    max_ratio: MaxRatio = RATIO,
    max_size: MaxSize = SIZE,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Read gettext catalogues, .po or .mo, of one program or many: a line per message, joined over the languages.

    Fuzzy, obsolete and untranslated entries are left out. Of plural forms the singular goes with the first and the plural with
    the last. A catalogue is in the language that stands before = (fr=FILE), or that its folder (fr/LC_MESSAGES), its header or
    its name tells.

    Example: graftmt prepare po po/ -o corpus/program
    Example: graftmt prepare po fr=messages-fr.po kab=messages-kab.po -o corpus/program
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
        typer.Option("--short-codes", help="Call fra_Latn fr, and so on; zho_Hans and zho_Hant, both zh, stay as they are."),
    ] = False,
    max_ratio: MaxRatio = RATIO,
    max_size: MaxSize = SIZE,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Read FLORES or a folder like it: dev/eng_Latn.dev becomes the valid split, devtest/eng_Latn.devtest the test split.

    Example: graftmt prepare flores flores200_dataset.tar.gz -o corpus/flores --languages en=eng_Latn,zh=zho_Hans
    Example: graftmt prepare flores flores200_dataset -o corpus/flores --languages en,fr,ar=arb_Arab --short-codes
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
        str, typer.Option("--columns", "-c", help="The two columns with text in tab-separated files: 3,4 for JParaCrawl 3.")
    ] = "1,2",
    max_ratio: MaxRatio = RATIO,
    max_size: MaxSize = SIZE,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Read a folder of bilingual files, ParaCrawl's or others', each into a bilingual corpus: OUTPUT/en-fr, OUTPUT/en-de, …

    Files are known by their names: en-fr.txt.gz (tab-separated), en-fr.tmx.gz, NAME.en-fr.en and NAME.en-fr.fr (also in zips).
    `graftmt prepare align` makes one multi-parallel corpus of the result, through English, as the paper does.

    Example: graftmt prepare paracrawl downloads/ -o corpora/paracrawl --languages en,fr,de,it
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
    """Read the UN Parallel Corpus: UNv1.0.ar-en.ar and .en, unpacked or as downloaded, in UNv1.0.ar-en.tar.gz.00, .01, …

    All the pairs there, or those of --languages, become one training text; devset and testset the valid and test splits.
    Filter it by language ID next: unfiltered, it cost the paper 10 BLEU (graftmt prepare clean).

    Example: graftmt prepare unpc UNv1.0/ -o corpus/unpc --languages en,ar
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
