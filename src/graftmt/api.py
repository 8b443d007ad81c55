"""What `from graftmt import add, train, evaluate` gives: the commands as functions, with the same options and defaults.

Layer 8, below the command line, which calls the same functions.
"""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import nullcontext
from dataclasses import fields, replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

from graftmt.adding.add_options import AddOptions
from graftmt.assessment.evaluate_options import EvaluateOptions
from graftmt.configuration import from_mapping
from graftmt.errors import ConfigError, DataError, LanguageError, nearest
from graftmt.options import items
from graftmt.progress import heard_by

if TYPE_CHECKING:
    from graftmt.adding.result import AddResult
    from graftmt.assessment.assess import Assessment
    from graftmt.base import Base
    from graftmt.data import Corpus, Direction
    from graftmt.packs import Pack, Recipe, Side
    from graftmt.training.journal import OnStep
    from graftmt.translator import Translator

Say = Callable[[str], None]


@overload
def add(base: Base | str | Path, language: str, pairs: Any = None, *, side: Side, **options: Any) -> Pack: ...
@overload
def add(
    base: Base | str | Path, language: str, pairs: Any = None, *, side: Literal["both"] | None = None, **options: Any
) -> tuple[Pack, ...]: ...
def add(
    base: Base | str | Path,
    language: str,
    pairs: Any = None,
    *,
    partner: str | Sequence[str] | None = None,
    side: Literal["source", "target", "both"] | None = None,
    recipe: Recipe | str | int | None = None,
    train: str | Path | tuple[str, ...] | list[str] | None = None,
    on_step: OnStep | None = None,
    say: Say | None = None,
    **options: Any,
) -> Pack | tuple[Pack, ...]:
    """Trains a pack for a new language, as `graftmt add` does, and returns it; for both sides, two of them.

    The text is `pairs` of lines, (new, partner), or anything with a column for each language (a dict, a pandas DataFrame, a
    datasets.Dataset, or its rows as dicts), or `train`: a corpus folder, or LANG=FILE for each language. Other `options` are
    the fields of `AddOptions`: steps, output, run, …. `on_step` hears each line of the training log; `say` what the command
    would print.
    """
    from graftmt.pairs import stored_pairs

    if (pairs is None) == (train is None):
        raise ConfigError(
            "add needs the text once: as pairs, or as train= with a corpus folder or LANG=FILE for each language."
        )
    languages, asked_for = _names(language, "language"), options.pop("partners", None) if partner is None else partner
    partners = None if asked_for is None else _names(asked_for, "partner")
    resident, options = _resident(base, options)
    if pairs is not None:
        text, partners = stored_pairs(pairs, languages, partners, resident.languages)
        given: tuple[str, ...] = tuple(f"{name}={path}" for name, path in text.items())
    else:
        assert train is not None
        given = (str(train),) if isinstance(train, str | Path) else tuple(map(str, train))
    asked = from_mapping(
        AddOptions,
        {
            "languages": languages,
            "base": resident.folder or Path("base"),
            "train": given,
            "side": side,
            "recipe": None if recipe is None else str(recipe),
            "partners": partners,
            **options,
        },
    )
    with heard_by(say) if say else nullcontext():
        packs = [result.pack for result in add_with(asked, resident, on_step=on_step)]
    if asked.dry_run:
        raise ConfigError("add returns a pack, and a dry run makes none; use `graftmt add --dry-run`.")
    made = tuple(pack for pack in packs if pack is not None)
    return made if len(made) > 1 else made[0]


def _resident(base: Base | str | Path, options: Mapping[str, Any]) -> tuple[Base, dict[str, Any]]:
    """The base, loaded, and the options of `add` with device and precision as the command line spells them."""
    from graftmt.base import Base
    from graftmt.devices import choose_device, device_name, dtype_name

    spelling = {"device": device_name, "base_precision": dtype_name}
    spelt = {key: spelling[key](value) if key in spelling else value for key, value in options.items()}
    if isinstance(base, Base):
        return base, {"device": str(base.model.device), **spelt}
    device = choose_device(spelt.get("device", "auto"))
    return Base.load(base, device=device, dtype=spelt.get("base_precision", "fp32")), spelt


def _names(value: Any, what: str) -> tuple[str, ...]:
    """Languages in a text with commas, or in a list."""
    texts = [value] if isinstance(value, str) else value
    is_list = isinstance(texts, Sequence | Set) and all(isinstance(text, str) for text in texts)
    if not is_list or not (names := tuple(items(*texts))):
        raise ConfigError(f"{what} is {reprlib.repr(value)}; expected a language such as 'en', or a list of them.")
    return names


def add_with(options: AddOptions, base: Base | None = None, *, on_step: OnStep | None = None) -> Iterator[AddResult]:
    """The packs that these options ask for, one side after the other; numbers in the recipe are models of the paper or ours."""
    from graftmt.adding.add import add_languages
    from graftmt.adding.plan import choose_sides, requests_of, with_codes
    from graftmt.base import Base
    from graftmt.devices import choose_device
    from graftmt.experiments.numbered import numbered_recipe

    if base is None:
        base = Base.load(options.base, device=choose_device(options.device), dtype=options.base_precision)
    options = with_codes(options, base)
    recipes: dict[Side, tuple[Recipe, str | None]] = {}
    if options.recipe is not None:
        for side in choose_sides(options):
            if (found := numbered_recipe(options.recipe, side)) is not None:
                recipes[side] = found
    requests = requests_of(options, base, recipes)  # both are checked before hours are spent on the first
    return add_languages(requests, base, on_step=on_step)


def train(
    config: Mapping[str, Any] | str | Path,
    *overrides: str,
    fresh: bool = False,
    minutes: float | None = None,
    on_step: OnStep | None = None,
    say: Say | None = None,
) -> Base:
    """Trains a base, as `graftmt train` does, from a YAML file or a mapping of the same keys; returns it, loaded.

    `overrides` are texts such as "run=runs/mine" and "stages.0.steps=500".
    """
    from graftmt.base import Base
    from graftmt.configuration import apply_overrides, load_yaml, to_mapping
    from graftmt.training import TrainConfig, train_base

    values = dict(config) if isinstance(config, Mapping) else load_yaml(Path(config))
    resolved = from_mapping(TrainConfig, apply_overrides(to_mapping(values), overrides))
    with heard_by(say) if say else nullcontext():
        folder = train_base(resolved, minutes=minutes, fresh=fresh, on_step=on_step)
    return Base.load(folder)


def import_model(source: str | Path, output: str | Path, **options: Any) -> Base:
    """Makes a base of a foreign model, as `graftmt import` does: NLLB-200, M2M-100, OPUS-MT, mBART-50, FSMT, fairseq.

    `source` is an id of Hugging Face, a folder or a fairseq checkpoint; other `options` are the fields of `ImportOptions`:
    dtype, revision, name, licence, family, source_languages, target_languages.
    """
    from graftmt.interop.importing.base_import import import_base
    from graftmt.interop.importing.import_options import ImportOptions

    given = {**options, "source": str(source), "output": Path(output)}
    for key in ("source_languages", "target_languages"):
        if isinstance(given.get(key), str):
            given[key] = tuple(name.strip() for name in given[key].split(","))
    return import_base(from_mapping(ImportOptions, given)).base


def evaluate(
    translator: Translator | Base | str | Path,
    corpus: str | Path,
    directions: str | Iterable[str | tuple[str, str]] = "english-centric",
    *,
    packs: Mapping[str, Pack | str | Path] | Sequence[Pack | str | Path] | Pack | str | Path = (),
    split: str = "test",
    beam: int = 5,
    **options: Any,
) -> dict[str, Any]:
    """Scores directions such as "en-fr,fr-en", [("en", "fr")] or "multi-parallel", as `graftmt evaluate` does.

    `corpus` is a folder of line-aligned text, with files such as test.en.txt and test.fr.txt.
    Returns {"directions": {"en-fr": {"bleu": …, "chrf": …}, …}, "averages": {…}, …}. Other `options` are the fields of
    `EvaluateOptions`: lines, through, tokenize, batch_tokens, output, ….
    """
    from graftmt.assessment.score_report import document
    from graftmt.translator import Translator

    if not isinstance(corpus, str | PathLike):
        raise DataError(
            f"corpus is {reprlib.repr(corpus)} ({type(corpus).__name__}); evaluate reads a folder of line-aligned text, with "
            f"files such as {split}.en.txt and {split}.fr.txt. Write the lines into such files, and give the folder."
        )
    directions = _spelt(directions)
    device = options.pop("device", "cpu")  # of a base or a translator that is loaded, its own
    if not isinstance(translator, Translator):
        translator = Translator(translator, packs, device=device)
    device = str(translator.base.model.device)
    given = {"corpus": Path(corpus), "directions": directions, "split": split, "beam": beam, "device": device, **options}
    known = {field.name for field in fields(EvaluateOptions)} - {"base", "packs", "dtype", "engine"}
    if unknown := sorted(set(given) - known):
        raise ConfigError(f"evaluate has no option {unknown[0]!r}{nearest(unknown[0], known) or '.'}")
    return document(assess_with(EvaluateOptions(base=Path("base"), **given), translator))


def _spelt(directions: Any) -> str:
    """Directions as the command line has them: en-fr for ("en", "fr"), with commas between several."""
    from graftmt.data import Direction

    if isinstance(directions, str | Direction):
        return str(directions)
    found = []
    for item in directions if isinstance(directions, Iterable) else [directions]:
        pair = (item,) if isinstance(item, str) else tuple(item) if isinstance(item, Sequence) else ()
        if not pair or len(pair) > 2 or not all(isinstance(name, str) for name in pair):
            raise ConfigError(f'direction {reprlib.repr(item)}: expected two languages, "en-fr" or ("en", "fr").')
        found.append("-".join(pair))
    return ",".join(found)


def assess_with(options: EvaluateOptions, translator: Translator) -> Assessment:
    """The directions that these options ask for, translated and scored; `options.device` is chosen already."""
    from graftmt.assessment.assess import AssessOptions, assess
    from graftmt.data import Corpus
    from graftmt.decoding import search_of

    found = Corpus.open(options.corpus, options.split).known_as(translator.languages)
    pivot = pivot_of(translator, options.pivot)
    asked = AssessOptions(
        **{**options.scoring(), "pivot": pivot},
        directions=tuple(chosen_directions(translator, found, options.directions, pivot)),
        source_pack=options.source_pack,
        target_pack=options.target_pack,
        search=search_of(options),
    )
    if options.through is not None:
        asked = replace(asked, through=translator.code(options.through, "target"))
    return assess(translator, found, asked)


def pivot_of(translator: Translator, name: str) -> str:
    """The code of the language that averages are grouped by."""
    from graftmt.data.directions import find

    return find(name, translator.languages) or name


def chosen_directions(translator: Translator, corpus: Corpus, directions: str, pivot: str) -> list[Direction]:
    """The directions that were named, or those of a view that base and packs together can translate."""
    from graftmt.assessment.direction_lines import lacking_languages
    from graftmt.data import select_directions

    languages = [language for language in translator.languages if language in corpus.languages]
    if len(languages) < 2:
        raise LanguageError(
            f"{corpus.folder} has {corpus.split} text in {', '.join(corpus.languages)} and the base knows "
            f"{', '.join(translator.languages)}: {len(languages)} in common, where translation needs 2."
        )
    chosen = select_directions(directions, languages, pivot, lacking_languages(translator.languages, corpus))
    if not translator.packs or "," in directions:
        return chosen
    # A view means what can be translated: a source pack does not make its language a target.
    reads, writes = translator.source_languages, translator.target_languages
    return [d for d in chosen if d.source in reads and d.target in writes] or chosen
