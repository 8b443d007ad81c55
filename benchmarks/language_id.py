"""How well language-ID filtering finds wrong-language lines: a corpus, with 10 % of lines from its other languages.

    python benchmarks/language_id.py [CORPUS] [--split train] [--lines 3000] [--trusted-split valid] [--json]

Without CORPUS it makes the demo's own, in seven languages: dates, units and lists of names rather than sentences, which shows
that the filters work and how fast they are; how well they do is for real text to say.

Aims, per language: 95 % or more of the wrong lines dropped, 3 % or less of the good ones. Three filters: the detector choosing
among the corpus's languages (the default of `graftmt prepare clean`), among all it knows (--open-set), and n-gram classifiers
trained on another split (--trusted). Lines of any length take part; those too short to be judged are kept, good or wrong.
"Hardest": the share dropped where all wrong lines are in the one language that is hardest to tell from the right one.

    python benchmarks/language_id.py [CORPUS] --two-languages [--lines 3000] [--json]

A corpus of two languages for each language of CORPUS: English and it, with 10 % of its lines in the other languages and in
English. Sentences (five English words or more) and short phrases (four or fewer) of CORPUS, and phrases from CLDR. "Before" is
the detector alone among all it knows, "after" what `graftmt prepare clean` does. A good line is kept if both its texts are;
the rules copies, scripts and language_id apply.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from graftmt import __version__
from graftmt.data import Corpus
from graftmt.demo.phrase_corpus import BASE_LANGUAGES, NEW_LANGUAGES, build_corpus, write_corpus
from graftmt.prepare.cleaning import CleaningConfig, clean_chunk, examine
from graftmt.prepare.language_id import DETECTOR_MARGIN, FEWEST_LETTERS_OF_A_LINE, NGRAM_MARGIN, LanguageFilter
from graftmt.prepare.source import Source

AIMS = {"wrong_dropped": 0.95, "good_dropped": 0.03}
WRONG_SHARE = 0.1
HARDEST_LINES = 300
"""Of each other language, to find the hardest one."""
NOTE_ON_DOCS = (
    "docs-l10n was itself partly filtered with py3langid (lines of 32 characters or more, in its Latin-script languages, "
    "Arabic and Persian): shares of good lines dropped are lower than on raw text, for the detector above all. The margins "
    "were chosen on docs-l10n's training lines; its test and test-help splits played no part."
)


NOTE_ON_DEMO = "The demo's text, made from CLDR: dates, units and names, many too short to judge. Sentences are in a CORPUS."


def main() -> None:
    arguments = parse_arguments()
    if arguments.two_languages:
        made = two_language_report(arguments)
        print(json.dumps(made, ensure_ascii=False, indent=2) if arguments.json else two_language_table(made))
        return
    with TemporaryDirectory(prefix="graftmt-language-id-") as temporary:
        report = make_report(arguments, arguments.corpus or write_demo_corpus(Path(temporary), arguments))
    print(json.dumps(report, ensure_ascii=False, indent=2) if arguments.json else table(report))


def write_demo_corpus(folder: Path, arguments: argparse.Namespace) -> Path:
    write_corpus(folder, (*BASE_LANGUAGES, *NEW_LANGUAGES), train_lines=max(3000, arguments.lines), seed=arguments.seed)
    return folder


def make_report(arguments: argparse.Namespace, folder: Path) -> dict[str, Any]:
    corpus = Corpus.open(folder, arguments.split)
    texts = {name: [line for line in corpus.lines(name) if line] for name in corpus.languages}
    mixed = {name: mix(name, texts, arguments.lines, arguments.seed) for name in texts}
    filters = make_filters(folder, arguments.trusted_split, list(texts))
    return {
        "benchmark": "language_id",
        "corpus": str(arguments.corpus or "the demo's"),
        "split": arguments.split,
        "seed": arguments.seed,
        "margins": {"detector": DETECTOR_MARGIN, "n-grams": NGRAM_MARGIN},
        "fewest_letters": FEWEST_LETTERS_OF_A_LINE,
        "aims": AIMS,
        "note": NOTE_ON_DOCS if arguments.corpus else NOTE_ON_DEMO,
        "versions": {"graftmt": __version__, "py3langid": version("py3langid")},
        "filters": {name: measure(language_filter, mixed, texts) for name, language_filter in filters.items()},
    }


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    corpus_help = "a line-aligned corpus folder in several languages (default: the demo's, made here)"
    parser.add_argument("corpus", type=Path, nargs="?", help=corpus_help)
    parser.add_argument("--split", default="train", help="whose lines are filtered (default: %(default)s)")
    parser.add_argument("--lines", type=int, default=3000, help="good lines a language, at most (default: %(default)s)")
    parser.add_argument("--trusted-split", default="", help="train n-gram classifiers on this split too (default: do not)")
    parser.add_argument("--seed", type=int, default=1, help="of the mixing (default: %(default)s)")
    parser.add_argument("--two-languages", action="store_true", help="corpora of English and one other language instead")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    arguments = parser.parse_args()
    if arguments.split == arguments.trusted_split:
        parser.error("--trusted-split must be another split than --split: a classifier is not tested on what it learnt from")
    return arguments


def mix(language: str, texts: dict[str, list[str]], most: int, seed: int) -> list[tuple[str, str]]:
    """(language it is in, text): good lines spread evenly over the text, and so many wrong ones that they are 10 % of all."""
    chance = random.Random(f"{seed} {language}")
    own = texts[language]
    count = min(most, len(own))
    good = [(language, own[index * len(own) // count]) for index in range(count)]
    others = [name for name in texts if name != language]
    wrong = [others[index % len(others)] for index in range(round(count * WRONG_SHARE / (1 - WRONG_SHARE)))]
    return [*good, *((name, chance.choice(texts[name])) for name in wrong)]


def make_filters(folder: Path, trusted_split: str, languages: Sequence[str]) -> dict[str, LanguageFilter]:
    filters = {
        "closed set": LanguageFilter.make(languages),
        "open set": LanguageFilter.make(languages, open_set=True),
    }
    if trusted_split:
        trusted = Corpus.open(folder, trusted_split, languages)
        texts = {name: [line for line in trusted.lines(name) if line] for name in languages}
        filters["n-grams"] = LanguageFilter.make(languages, trusted=texts)
    return filters


def measure(
    language_filter: LanguageFilter, mixed: dict[str, list[tuple[str, str]]], texts: dict[str, list[str]]
) -> dict[str, Any]:
    """Shares dropped per language, which language's lines slip through most, and what good lines are taken for."""
    rows = {}
    started = time.process_time()
    for language, lines in mixed.items():
        verdicts = [(origin, language_filter.other_language(text, language)) for origin, text in lines]
        good = [found for origin, found in verdicts if origin == language]
        wrong = [(origin, found) for origin, found in verdicts if origin != language]
        rows[language] = {
            "good": len(good),
            "wrong": len(wrong),
            "wrong_dropped": sum(bool(found) for _, found in wrong) / len(wrong),
            "good_dropped": sum(map(bool, good)) / len(good),
            "slipped_through": dict(Counter(origin for origin, found in wrong if not found).most_common(3)),
            "taken_for": dict(Counter(filter(None, good)).most_common(3)),
        }
    seconds = time.process_time() - started
    samples = {name: [lines[k * len(lines) // HARDEST_LINES] for k in range(HARDEST_LINES)] for name, lines in texts.items()}
    for language, row in rows.items():
        dropped = {
            origin: sum(bool(language_filter.other_language(text, language)) for text in sample) / HARDEST_LINES
            for origin, sample in samples.items()
            if origin != language
        }
        hardest = min(dropped, key=lambda origin: dropped[origin])
        row["hardest"] = {"language": hardest, "wrong_dropped": dropped[hardest]}
    reached = [
        name
        for name, row in rows.items()
        if row["wrong_dropped"] >= AIMS["wrong_dropped"] and row["good_dropped"] <= AIMS["good_dropped"]
    ]
    return {
        "languages": rows,
        "aims_reached": len(reached),
        "aims_missed": [name for name in rows if name not in reached],
        "lines_per_second": sum(map(len, mixed.values())) / max(seconds, 1e-9),
    }


Pair = tuple[str, str]
"""English, and the text in another language."""
CLDR_CODES = {"zh_cn": "zh", "pt_br": "pt_BR", "no": "nb"}
KINDS = ("sentences", "short phrases", "CLDR phrases")
SHORT = 4
"""English words of a short phrase, at most."""


def two_language_report(arguments: argparse.Namespace) -> dict[str, Any]:
    texts = two_language_texts(arguments)
    kinds: dict[str, Any] = {}
    for kind, pairs in texts.items():
        rows = {language: measure_pair(language, pairs, arguments) for language in pairs}
        kinds[kind] = {"languages": rows, "aims_reached": {when: reached(rows, when) for when in ("before", "after")}}
    return {
        "benchmark": "language_id, two languages",
        "corpus": str(arguments.corpus or ""),
        "split": arguments.split,
        "lines": arguments.lines,
        "seed": arguments.seed,
        "aims": {"good_kept": 1 - AIMS["good_dropped"], "wrong_dropped": AIMS["wrong_dropped"]},
        "versions": {"graftmt": __version__, "py3langid": version("py3langid")},
        "kinds": kinds,
    }


def two_language_texts(arguments: argparse.Namespace) -> dict[str, dict[str, list[Pair]]]:
    """kind → language → its lines with English."""
    found: dict[str, dict[str, list[Pair]]] = {kind: {} for kind in KINDS}
    languages = ["fr", "de", "es", "ru", "el", "uk"]
    if arguments.corpus:
        corpus = Corpus.open(arguments.corpus, arguments.split)
        english = list(corpus.lines("en"))
        languages = [language for language in corpus.languages if language != "en"]
        for language in languages:
            pairs = [(one, other) for one, other in zip(english, corpus.lines(language), strict=True) if one and other]
            found["sentences"][language] = [pair for pair in pairs if len(pair[0].split()) > SHORT]
            found["short phrases"][language] = [pair for pair in pairs if len(pair[0].split()) <= SHORT]
    for language in languages:
        code = CLDR_CODES.get(language, language)
        made = build_corpus(("en", code), train_lines=arguments.lines, valid_lines=0, test_lines=0, seed=arguments.seed)[
            "train"
        ]
        found["CLDR phrases"][language] = list(zip(made["en"], made[code], strict=True))
    return {kind: pairs for kind, pairs in found.items() if pairs}


def measure_pair(language: str, pairs: dict[str, list[Pair]], arguments: argparse.Namespace) -> dict[str, Any]:
    lines = mixed_pairs(language, pairs, arguments)
    source = Source(f"en and {language}", ("en", language), lambda: iter([pair for _, pair in lines]))
    config = CleaningConfig().with_rules(["copies", "scripts", "language_id"])
    alone = replace(examine(source, replace(config, language_id=False)), filter=LanguageFilter.make(("en", language)))
    row: dict[str, Any] = {"good": sum(origin == language for origin, _ in lines)}
    row["wrong"] = len(lines) - row["good"]
    for when in ("before", "after"):
        started = time.process_time()
        state = alone if when == "before" else examine(source, config)
        cleaned, _ = clean_chunk([pair for _, pair in lines], config, state)
        good = [all(texts) for (origin, _), texts in zip(lines, cleaned, strict=True) if origin == language]
        wrong = [not texts[1] for (origin, _), texts in zip(lines, cleaned, strict=True) if origin != language]
        row[when] = {
            "good_kept": sum(good) / len(good),
            "wrong_dropped": sum(wrong) / len(wrong),
            "seconds": round(time.process_time() - started, 2),
        }
    return row


def mixed_pairs(language: str, pairs: dict[str, list[Pair]], arguments: argparse.Namespace) -> list[tuple[str, Pair]]:
    """Good lines, and 10 % with a text in another language that the right one does not have too."""
    chance = random.Random(f"{arguments.seed} {language}")
    own = pairs[language]
    count = min(arguments.lines, len(own))
    lines = [(language, own[index * len(own) // count]) for index in range(count)]
    right = {text for _, text in own}
    others = [*(name for name in pairs if name != language), "en"]
    wrong = round(count * WRONG_SHARE / (1 - WRONG_SHARE))
    while len(lines) < count + wrong:
        origin = others[len(lines) % len(others)]
        english, text = chance.choice(pairs[language if origin == "en" else origin])
        text = english if origin == "en" else text
        if text not in right and any(map(str.isalpha, text)):
            lines.append((origin, (chance.choice(own)[0], text)))
    chance.shuffle(lines)
    return lines


def reached(rows: dict[str, Any], when: str) -> int:
    least_kept, least_dropped = 1 - AIMS["good_dropped"], AIMS["wrong_dropped"]
    return sum(row[when]["good_kept"] >= least_kept and row[when]["wrong_dropped"] >= least_dropped for row in rows.values())


def two_language_table(report: dict[str, Any]) -> str:
    lines = [f"{report['corpus'] or 'no corpus'}, {report['split']}: English and one language, 10 % of its lines in others", ""]
    for kind, measured in report["kinds"].items():
        rows = measured["languages"]
        lines.append(f"{kind:<15}{'good kept':>22}{'wrong dropped':>22}{'seconds':>16}")
        lines.append(f"{'':<15}" + f"{'before':>12}{'after':>10}" * 2 + f"{'before':>9}{'after':>7}")
        for language, row in rows.items():
            shares = [f"{row[when][key]:.1%}" for key in ("good_kept", "wrong_dropped") for when in ("before", "after")]
            seconds = f"{row['before']['seconds']:>9.1f}{row['after']['seconds']:>7.1f}"
            lines.append(f"{language:<15}{shares[0]:>12}{shares[1]:>10}{shares[2]:>12}{shares[3]:>10}{seconds}")
        got = measured["aims_reached"]
        lines += [f"aims reached: {got['before']} of {len(rows)} before, {got['after']} after", ""]
    return "\n".join(lines)


def table(report: dict[str, Any]) -> str:
    filters = report["filters"]
    lines = [f"{report['corpus']}, {report['split']}: 10 % of the lines from other languages; shares dropped", ""]
    lines.append(f"{'':<8} {'good':>6} {'wrong':>6}" + "".join(f"   {name:^32} " for name in filters))
    lines.append(f"{'':<8} {'lines':>6} {'lines':>6}" + "".join(f"   {'wrong':>8}{'good':>8}{'hardest':>16} " for _ in filters))
    for language, first in next(iter(filters.values()))["languages"].items():
        cells = ""
        for measured in filters.values():
            row = measured["languages"][language]
            hardest = f"{row['hardest']['language']} {row['hardest']['wrong_dropped']:.1%}"
            mark = "*" if language in measured["aims_missed"] else " "
            cells += f"   {row['wrong_dropped']:>8.2%}{row['good_dropped']:>8.2%}{hardest:>16}{mark}"
        lines.append(f"{language:<8} {first['good']:>6,} {first['wrong']:>6,}{cells}")
    lines += ["", *(worst(name, measured) for name, measured in filters.items()), ""]
    lines.append("*: an aim is missed: 95 % or more of the wrong lines, 3 % or fewer of the good ones")
    lines.append("hardest: of wrong lines that are all in the language hardest to tell from this one")
    return "\n".join([*lines, report["note"]])


def worst(name: str, measured: dict[str, Any]) -> str:
    rows = measured["languages"]
    slipped = min(rows, key=lambda language: rows[language]["wrong_dropped"])
    lost = max(rows, key=lambda language: rows[language]["good_dropped"])
    missed = f" (missed: {', '.join(measured['aims_missed'])})" if measured["aims_missed"] else ""
    return (
        f"{name}: aims reached for {measured['aims_reached']} of {len(rows)} languages{missed}; "
        f"worst: {slipped} {rows[slipped]['wrong_dropped']:.2%} of wrong lines "
        f"(kept: {listed(rows[slipped]['slipped_through'])}), "
        f"{lost} {rows[lost]['good_dropped']:.2%} of good ones (taken for: {listed(rows[lost]['taken_for'])}); "
        f"{measured['lines_per_second']:,.0f} lines/s of processor time"
    )


def listed(counts: dict[str, int]) -> str:
    return ", ".join(f"{language} {count}" for language, count in counts.items()) or "none"


if __name__ == "__main__":
    main()
