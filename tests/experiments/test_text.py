"""The results of one folder are of one text: another one is refused before anything is done."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from graftmt.data import Corpus
from graftmt.errors import ConfigError
from graftmt.experiments import text
from graftmt.experiments.claims import Claims
from graftmt.experiments.jobs import Job
from graftmt.experiments.material import shared_subwords
from graftmt.experiments.profiles import load_profile
from graftmt.experiments.settings import Places, retrain_mapping
from graftmt.experiments.text import check_text, digest
from graftmt.text import Subwords
from graftmt.training import SubwordConfig


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    folder = tmp_path / "corpus"
    folder.mkdir()
    for split in ("train", "valid", "test", "other"):
        for language in ("en", "fr", "el", "tlh"):
            (folder / f"{split}.{language}.txt").write_text(f"{split} {language}\n" * 30, encoding="utf-8")
    return folder


def test_the_same_text_may_be_given_again_and_more_of_it(corpus: Path, tmp_path: Path) -> None:
    profile, output = load_profile("docs"), tmp_path / "output"
    check_text(profile, corpus, output)
    noted = json.loads((output / "text.json").read_text(encoding="utf-8"))["files"]
    assert set(noted) == {f"{split}.{language}" for split in ("train", "valid", "test") for language in ("en", "fr", "el")}
    check_text(profile, corpus, output)
    (corpus / "test.tlh.txt").write_text("no language of the profile\n", encoding="utf-8")
    (corpus / "train.uk.txt").write_text("ще одна\n" * 30, encoding="utf-8")
    check_text(profile, corpus, output)
    assert set(json.loads((output / "text.json").read_text(encoding="utf-8"))["files"]) == {*noted, "train.uk"}


@pytest.mark.parametrize("changed", ["test.en", "train.el", "valid.fr"])
def test_another_text_is_refused_by_name(corpus: Path, tmp_path: Path, changed: str) -> None:
    profile, output = load_profile("docs"), tmp_path / "output"
    check_text(profile, corpus, output)
    before = (output / "text.json").read_bytes()
    with (corpus / f"{changed}.txt").open("a", encoding="utf-8") as handle:
        handle.write("one line more\n")
    with pytest.raises(ConfigError, match=rf"of another text.*: {changed} differs\. Give the corpus of then"):
        check_text(profile, corpus, output)
    assert (output / "text.json").read_bytes() == before


def test_a_test_set_s_own_folder_counts_too(corpus: Path, tmp_path: Path) -> None:
    profile, output, own = load_profile("docs"), tmp_path / "output", tmp_path / "own"
    own.mkdir()
    (own / "test.en.txt").write_text("here\n", encoding="utf-8")
    sets = {"test": replace(profile.evaluation.sets["test"], corpus=own)}
    profile = replace(profile, evaluation=replace(profile.evaluation, sets=sets))
    check_text(profile, corpus, output)
    assert "test: test.en" in json.loads((output / "text.json").read_text(encoding="utf-8"))["files"]
    (own / "test.en.txt").write_text("there\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"test: test\.en differs"):
        check_text(profile, corpus, output)


def test_large_files_are_looked_at_in_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text, "PIECE", 16)
    monkeypatch.setattr(text, "WHOLE", 64)
    path = tmp_path / "large"
    content = bytearray(range(200))
    path.write_bytes(content)
    first = digest(path)
    for place in (0, 199):
        path.write_bytes(content[:place] + b"\xff" + content[place + 1 :])
        assert digest(path) != first
    path.write_bytes(content + b"\x00")
    assert digest(path) != first
    path.write_bytes(content)
    assert digest(path) == first


def test_an_experiment_on_another_corpus_is_refused(run, graftmt, arguments, results, graft_corpus, tmp_path: Path) -> None:
    output, other = tmp_path / "output", tmp_path / "other"
    run(output, "--tables", "2", "--rows", "7")
    before = results(output)
    shutil.copytree(graft_corpus, other)
    for path in other.glob("test.*"):
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
        path.write_text("".join(lines[1:]), encoding="utf-8")
    refused = graftmt(*arguments(output, "--tables", "2", "--rows", "7,9"), "--corpus", str(other), "--quiet")
    assert refused.code == 1
    assert f"the results in {output} are of another text than that of {other}: test.el, test.en, test.fr and " in refused.stderr
    assert results(output) == before


def test_a_vocabulary_is_made_again_where_its_options_change(corpus: Path, tmp_path: Path) -> None:
    train, claims = Corpus.open(corpus, "train", ("el",)), Claims(tmp_path / "locks", print)
    (corpus / "train.el.txt").write_text("ένα δύο τρία τέσσερα πέντε έξι επτά οκτώ εννέα δέκα\n" * 40, encoding="utf-8")
    options = SubwordConfig(merges=20, min_character_count=1)
    sizes = []
    for changed in (options, replace(options, pieces=50), replace(options, merges=10), options):
        path = shared_subwords(train, changed, tmp_path / "text", claims, lambda text: None)
        sizes.append(len(Subwords.load(path).pieces))
    assert sizes[1] == 50 and sizes[0] == sizes[3] == sizes[2] + 10


def test_re_training_takes_its_vocabulary_from_its_base() -> None:
    job = Job(kind="model", model=5, languages=("el",))
    places = Places(run=Path("run"), corpus=Path("corpus"), base=Path("base"))
    with pytest.raises(ConfigError, match="subwords"):
        load_profile("docs", ["retrain.subwords.merges=777"])
    with pytest.raises(ConfigError, match="model"):
        load_profile("docs", ["substitute.model.size=big"])
    with pytest.raises(ConfigError, match=r"changes\.5: re-training makes its vocabulary as its base's was made"):
        retrain_mapping(load_profile("docs", ["changes={'5': [subwords.merges=777]}"]), job, places)
