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


def begin(output: Path, place: str = "results/model-4.json") -> None:
    """Something that was made from the text."""
    (output / place).parent.mkdir(parents=True)
    (output / place).write_text("{}", encoding="utf-8")


def noted_in(output: Path) -> dict[str, str]:
    return json.loads((output / "text.json").read_text(encoding="utf-8"))["files"]


def test_the_same_text_may_be_given_again_and_more_of_it(corpus: Path, tmp_path: Path) -> None:
    profile, output = load_profile("docs"), tmp_path / "output"
    check_text(profile, corpus, output)
    begin(output)
    noted = noted_in(output)
    assert set(noted) == {f"{split}.{language}" for split in ("train", "valid", "test") for language in ("en", "fr", "el")}
    check_text(profile, corpus, output)
    (corpus / "test.tlh.txt").write_text("no language of the profile\n", encoding="utf-8")
    (corpus / "train.uk.txt").write_text("ще одна\n" * 30, encoding="utf-8")
    check_text(profile, corpus, output)
    assert set(noted_in(output)) == {*noted, "train.uk"}
    (corpus / "train.uk.txt").rename(corpus / "train.uk")
    check_text(profile, corpus, output)
    assert set(noted_in(output)) == {*noted, "train.uk"}, "what results are of is not forgotten"


@pytest.mark.parametrize("changed", ["test.en", "train.el", "valid.fr"])
def test_another_text_is_refused_by_name(corpus: Path, tmp_path: Path, changed: str) -> None:
    profile, output = load_profile("docs"), tmp_path / "output"
    check_text(profile, corpus, output)
    begin(output)
    before = (output / "text.json").read_bytes()
    with (corpus / f"{changed}.txt").open("a", encoding="utf-8") as handle:
        handle.write("one line more\n")
    with pytest.raises(ConfigError, match=rf"of another text.*: {changed} differs\. Give the corpus of then"):
        check_text(profile, corpus, output)
    assert (output / "text.json").read_bytes() == before


def test_a_folder_in_which_nothing_was_made_belongs_to_no_text(corpus: Path, tmp_path: Path) -> None:
    profile, output = load_profile("docs"), tmp_path / "output"
    check_text(profile, corpus, output)
    before = noted_in(output)
    for empty in ("results", "runs/base-4", "locks", "logs"):
        (output / empty).mkdir(parents=True)
    (output / "locks" / "model-4.lock").write_text("", encoding="utf-8")
    (corpus / "train.el.txt").write_text("ένα\n" * 30, encoding="utf-8")
    (corpus / "train.fr.txt").unlink()
    check_text(profile, corpus, output)
    after = noted_in(output)
    assert after.keys() == before.keys() - {"train.fr"}
    assert {name for name in after if after[name] != before[name]} == {"train.el"}


@pytest.mark.parametrize(
    "made",
    [
        "results/model-4.json",
        "translations/model-4/test.el-en.txt",
        "bases/4/base.json",
        "text/subwords/el.json",
        "runs/base-4/config.yaml",
        "work/model-4/0/test/test.el-en.txt",
    ],
)
def test_whatever_was_made_is_of_one_text(corpus: Path, tmp_path: Path, made: str) -> None:
    profile, output = load_profile("docs"), tmp_path / "output"
    check_text(profile, corpus, output)
    begin(output, made)
    (corpus / "train.el.txt").write_text("ένα\n" * 30, encoding="utf-8")
    with pytest.raises(ConfigError, match=r"of another text.*: train\.el differs"):
        check_text(profile, corpus, output)


def test_a_process_that_has_only_begun_has_chosen_the_text(corpus: Path, tmp_path: Path) -> None:
    profile, output = load_profile("docs"), tmp_path / "output"
    check_text(profile, corpus, output)
    (corpus / "train.el.txt").write_text("ένα\n" * 30, encoding="utf-8")
    with (
        Claims(output / "locks", print).take("model-4"),
        pytest.raises(ConfigError, match=r"of another text.*: train\.el differs"),
    ):
        check_text(profile, corpus, output)
    check_text(profile, corpus, output)


@pytest.mark.parametrize("section", ["base", "bilingual", "retrain", "substitute", "packs"])
def test_the_text_of_every_validation_counts(corpus: Path, tmp_path: Path, section: str) -> None:
    profile, output = load_profile("docs", [f"{section}.validation.split=other"]), tmp_path / "output"
    check_text(profile, corpus, output)
    begin(output)
    assert {"valid.el", "other.el"} <= noted_in(output).keys()
    (corpus / "other.el.txt").write_text("ένα\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"other\.el differs"):
        check_text(profile, corpus, output)


def test_a_test_set_s_own_folder_counts_too(corpus: Path, tmp_path: Path) -> None:
    profile, output, own = load_profile("docs"), tmp_path / "output", tmp_path / "own"
    own.mkdir()
    (own / "test.en.txt").write_text("here\n", encoding="utf-8")
    sets = {"test": replace(profile.evaluation.sets["test"], corpus=own)}
    profile = replace(profile, evaluation=replace(profile.evaluation, sets=sets))
    check_text(profile, corpus, output)
    begin(output)
    assert "test: test.en" in noted_in(output)
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
