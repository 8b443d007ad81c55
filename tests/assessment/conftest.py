"""Evaluations of the toy base: `assessed(tmp_path / "scores", "en-xa", …)`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from graftmt.assessment.assess import Assessment, AssessOptions, assess
from graftmt.assessment.score_report import document
from graftmt.data import Corpus, select_directions
from graftmt.decoding import SearchOptions
from graftmt.documents import write_json
from graftmt.translator import Translator


@pytest.fixture(scope="session")
def toy_translator(toy_base: Path) -> Translator:
    return Translator(toy_base)


@pytest.fixture
def assessed(toy_translator: Translator, toy_corpus: Path) -> Callable[..., Assessment]:
    """With a folder, its report.json is written too. `corpus`, and any of AssessOptions' fields, may be given."""

    def run(output: Path | None, directions: str = "multi-parallel", *, beam: int = 1, **options: Any) -> Assessment:
        corpus = Corpus.open(options.pop("corpus", toy_corpus), "test")
        translator = options.pop("translator", toy_translator)
        chosen = select_directions(directions, [name for name in translator.languages if name in corpus.languages])
        search = SearchOptions(beam=beam, batch_tokens=options.pop("batch_tokens", 4096))
        settings = {"lines": 6, "off_target": False, **options}
        found = assess(translator, corpus, AssessOptions(directions=tuple(chosen), search=search, output=output, **settings))
        if output is not None:
            write_json(output / "report.json", document(found))
        return found

    return run
