"""`graftmt prepare segment`: spaces between the words of Chinese text, or none again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from graftmt.cli.declared import AsJson, Quiet
from graftmt.cli.output import json_text, tell
from graftmt.options import items


def segment(
    corpus: Annotated[Path, typer.Argument(help="Corpus folder")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the segmented corpus")],
    languages: Annotated[
        str | None, typer.Option("--languages", "-l", help="Languages to segment (default: all Chinese ones)")
    ] = None,
    undo: Annotated[bool, typer.Option("--undo", help="Remove the spaces between Chinese characters again")] = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Separate the words of Chinese text with Jieba, as the paper does before
    its vocabulary is made. Every split is written; text in other languages
    does not change. `graftmt translate --desegment` removes the spaces from
    translations. Needs: pip install 'graftmt[chinese]'

    Examples:
      graftmt prepare segment corpora/unpc -o corpora/unpc-words
      graftmt prepare segment corpora/unpc-words -o corpora/unpc --undo

    More: docs/corpora.md
    """
    from graftmt.data.corpus import segmented
    from graftmt.errors import DataError, LanguageError, nearest
    from graftmt.prepare import segmentation
    from graftmt.prepare.output_folder import check_replaceable, corpus_source, open_splits
    from graftmt.prepare.source import counted, write_corpus

    found = list(open_splits(corpus).values())
    spoken = sorted({language for split in found for language in split.languages})
    chosen = items(languages) if languages else list(filter(segmentation.is_chinese, spoken))
    for code in chosen:
        if code not in spoken:
            raise LanguageError(f"{corpus} has no text in {code!r}{nearest(code, spoken) or '.'} It has {', '.join(spoken)}.")
    if not chosen:
        raise DataError(f"{corpus} has no Chinese text: {', '.join(spoken)}; name the languages to segment with --languages.")
    files = [item for split in found for item in split.files.items()]
    check_replaceable(output, [path for _, path in files])
    change = segmentation.desegmented if undo else segmentation.segmented
    splits = {}
    for split in found:
        here = [code for code in chosen if code in split.languages]
        source = corpus_source(split)
        splits[split.split] = counted(change(source, here) if here else source, split.split)
    before = segmented(files).get("segmented", [])
    marked = set(before) - set(chosen) if undo else {*before, *chosen}
    lines = write_corpus(output, splits, {"segmented": sorted(marked)})
    if as_json:
        print(json_text({"output": str(output), "lines": lines, "languages": chosen}))
        return
    for name, count in lines.items():
        tell(f"{output}/{name}.*.txt: {count:,} lines, {', '.join(chosen)} {'joined' if undo else 'in words'}")
