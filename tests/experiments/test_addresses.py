"""Jobs are addressed by what decides them: other settings, text or bases make other jobs, and nothing is in the way."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from graftmt.data import Corpus
from graftmt.errors import ConfigError
from graftmt.experiments import addresses, job_settings
from graftmt.experiments.addresses import Addresses, digest, short_hash
from graftmt.experiments.evaluating import Evaluator
from graftmt.experiments.job_locks import JobLocks
from graftmt.experiments.job_settings import Places, deciding, retrain_mapping, training_settings
from graftmt.experiments.jobs import Job, base_job
from graftmt.experiments.material import shared_subwords
from graftmt.experiments.profiles import load_profile
from graftmt.experiments.workshop import Workshop
from graftmt.progress import heard_by
from graftmt.text import Subwords
from graftmt.training import Stopped, SubwordConfig

GREEK = Job(kind="model", model=7, languages=("el",))
COMPOSED = Job(kind="composition", source=7, target=31, languages=("el", "uk"))


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    folder = tmp_path / "corpus"
    folder.mkdir()
    for split in ("train", "valid", "test", "other"):
        for language in ("en", "fr", "el", "uk", "tlh"):
            (folder / f"{split}.{language}.txt").write_text(f"{split} {language}\n" * 30, encoding="utf-8")
    return folder


# What a name depends on


@pytest.mark.parametrize(
    ("change", "job", "others"),
    [
        ("packs.source.steps=9", GREEK, True),
        ("packs.base_dtype=fp32", GREEK, True),
        ("packs.target.steps=9", GREEK, False),
        ("packs.target.steps=9", COMPOSED, True),
        ("changes.7=[stages.0.learning_rate=0.1]", GREEK, True),
        ("augmentation.beam=3", GREEK, False),
        ("augmentation.beam=3", replace(GREEK, model=21), True),
        ("evaluation.beam=3", GREEK, False),
        ("device=cpu", GREEK, False),
        ("threads=3", GREEK, False),
        ("base.stages.0.steps=9", base_job(3), True),
        ("base.stages.1.dropout=0.3", base_job(3), False),
        ("base.stages.1.dropout=0.3", base_job(4), True),
        ("bilingual.stages.0.steps=9", Job(kind="model", model=1, languages=("el", "en")), True),
    ],
)
def test_settings_that_decide_a_model_are_in_its_name(
    corpus: Path, graft_base, tmp_path: Path, change: str, job: Job, others: bool
) -> None:
    given = {} if job.model in (3, 4) else {4: graft_base()}
    first, second = (Addresses(load_profile("docs", changes), tmp_path, corpus, given).name(job) for changes in ([], [change]))
    assert first is not None and first.startswith(f"{job.key}.")
    assert (first != second) == others


def test_text_and_base_are_in_a_name(corpus: Path, graft_base, tmp_path: Path) -> None:
    profile = load_profile("docs-quick")

    def names() -> list[str | None]:
        found = Addresses(profile, tmp_path, corpus, {4: graft_base()})
        return [found.name(GREEK), found.name(replace(GREEK, languages=("uk",))), *found.sets]

    before = names()
    assert names() == before and len(before) == 3
    (corpus / "train.tlh.txt").write_text("no language of the profile\n", encoding="utf-8")
    (corpus / "other.el.txt").write_text("no split of the profile\n", encoding="utf-8")
    assert names() == before
    (corpus / "train.el.txt").write_text("ένα\n" * 30, encoding="utf-8")
    assert [one == other for one, other in zip(names(), before, strict=True)] == [False, True, True]
    before = names()
    (corpus / "test.el.txt").write_text("ένα\n" * 30, encoding="utf-8")
    assert [one == other for one, other in zip(names(), before, strict=True)] == [True, True, False]
    other = Addresses(profile, tmp_path, corpus, {4: graft_base("post")})
    assert other.name(GREEK) not in names()
    assert Addresses(profile, tmp_path, corpus).name(GREEK) is None, "on a base that is not there"
    assert Addresses(profile, tmp_path, corpus).name(base_job(4)) is not None


@pytest.mark.parametrize("section", ["base", "packs"])
def test_the_text_of_validation_counts(corpus: Path, graft_base, tmp_path: Path, section: str) -> None:
    profile = load_profile("docs", [f"{section}.validation.split=other"])
    job, given = (base_job(4), {}) if section == "base" else (GREEK, {4: graft_base()})
    before = Addresses(profile, tmp_path, corpus, given).name(job)
    (corpus / "other.fr.txt").write_text("ένα\n", encoding="utf-8")
    assert Addresses(profile, tmp_path, corpus, given).name(job) != before


def test_a_test_set_s_own_folder_counts(corpus: Path, tmp_path: Path) -> None:
    profile, own = load_profile("docs"), tmp_path / "own"
    own.mkdir()
    profile = replace(
        profile,
        evaluation=replace(profile.evaluation, sets={"test": replace(profile.evaluation.sets["test"], corpus=own)}),
    )
    names = []
    for text in ("here", "there"):
        (own / "test.en.txt").write_text(f"{text}\n", encoding="utf-8")
        names += Addresses(profile, tmp_path, corpus).sets
    assert names[0] != names[1]


def test_how_a_set_is_translated_and_scored_is_in_its_name(corpus: Path, tmp_path: Path) -> None:
    changes = [[], ["evaluation.beam=3"], ["evaluation.sets.test.tokenize=char"], ["evaluation.sets.test.lines=7"]]
    changes += [["evaluation.sets.test.between_lines=3"], ["evaluation.sets.test.checkpoint=last"]]
    found = [name for change in changes for name in Addresses(load_profile("docs-quick", change), tmp_path, corpus).sets]
    assert len(set(found)) == 6
    assert list(Addresses(load_profile("docs-quick", ["evaluation.batch_tokens=9"]), tmp_path, corpus).sets) == found[:1]


def test_jobs_keep_their_names() -> None:
    """Results are found by them. A new option of a training belongs into `ADDED_LATER`, or all are run again."""
    proxy = replace(GREEK, model=24, plus="code:proxy")
    jobs = [GREEK, base_job(4), *(replace(GREEK, model=number) for number in (31, 106)), proxy]
    found = {job.key: short_hash(training_settings(load_profile("docs"), job)) for job in jobs}
    assert found == {
        "model-7-el-seed1": "14ead819",
        "model-4": "5216c1d2",
        "model-31-el-seed1": "afa1ac79",
        "model-106-el-seed1": "a58600ca",
        "model-24-el-code-proxy-seed1": "c67b3072",
    }


def test_the_last_checkpoint_is_of_packs_alone(corpus: Path, graft_base, tmp_path: Path) -> None:
    found = Addresses(load_profile("docs"), tmp_path, corpus, {4: graft_base()})
    together = Job(kind="composition", source=7, target=31, languages=("el", "uk"))
    assert {*found.sets_of(GREEK).values()} == {"test", "valid", "test-last"}
    for job in (base_job(4), together, Job(kind="model", model=1, languages=("el", "en"))):
        assert {*found.sets_of(job).values()} == {"test", "valid"}


def test_an_option_that_is_added_later_changes_no_name_as_long_as_it_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    before = training_settings(load_profile("docs"), GREEK)
    assert {"precision", "stages", "seed", "recipe"} <= before.keys() and "device" not in before
    monkeypatch.setattr(job_settings, "ADDED_LATER", {"precision": before["precision"], "stages.warmup": 0})
    found = training_settings(load_profile("docs"), GREEK)
    assert "precision" not in found and found["stages"] == before["stages"]
    assert deciding({"precision": "fp64"}) == {"precision": "fp64"}


def test_large_files_are_looked_at_in_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(addresses, "PIECE", 16)
    monkeypatch.setattr(addresses, "WHOLE", 64)
    content = bytearray(range(200))

    def digest_of(name: str, text: bytes) -> str:
        (tmp_path / name).write_bytes(text)
        return digest(tmp_path / name)

    first = digest_of("first", content)
    assert digest_of("same", content) == first
    for place in (0, 199):
        assert digest_of(f"{place}", content[:place] + b"\xff" + content[place + 1 :]) != first
    assert digest_of("longer", content + b"\x00") != first


# In runs


@pytest.fixture
def stop_in_training(graftmt, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Gives a command whose first training is stopped after its first update."""

    def go(*command: str) -> None:
        with monkeypatch.context() as patch:
            patch.setattr(Workshop, "check_time", lambda self: None)
            patch.setattr(Workshop, "minutes_left", lambda self: 0.0)
            result = graftmt(*command, "--json", "--quiet")
        assert json.loads(result.stdout)["stopped"], result.stderr

    return go


KINDS = {
    "pack": (("demo", "--tables", "2", "--rows", "7"), "packs.source.steps", "model-7-el-seed1"),
    "re-training": (("demo", "--tables", "2", "--rows", "5"), "retrain.stages.0.steps", "model-5-el-seed1"),
    "bilingual": (("demo", "--tables", "2", "--rows", "1"), "bilingual.stages.0.steps", "model-1-el-en-seed1"),
    "base": (("ted", "--tables", "1", "--rows", "3"), "base.stages.0.steps", "model-4"),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_stopped_run_is_not_in_the_way_of_other_settings_and_resumes_with_its_own(
    graftmt, arguments, quick, toy, results, stop_in_training, graft_corpus: Path, tmp_path: Path, kind: str
) -> None:
    (profile, *asked), key, job = KINDS[kind]
    command = arguments(tmp_path, *asked)
    if profile == "ted":
        changes = [*quick, *(one for one in toy if "sets" not in one), "new=[el, uk]", "bilingual.partners=[fr]"]
        limits = [f"evaluation.sets.{name}.lines=3" for name in ("test", "valid")]
        command = ["experiment", "run", "ted", "-c", str(graft_corpus), "-o", str(tmp_path), *changes, *limits, *asked]
    stop_in_training(*command)
    (run,) = tmp_path.glob(f"runs/{job}.*")
    begun = sorted(path.name for path in (run / "checkpoints").iterdir())
    other = graftmt(*command, f"{key}=5", "--json", "--quiet")
    assert (other.code, json.loads(other.stdout)["left"]) == (0, []), other.stderr
    assert len(list(tmp_path.glob(f"runs/{job}.*"))) == 2
    assert sorted(path.name for path in (run / "checkpoints").iterdir()) == begun
    before = results(tmp_path, named=True)
    resumed = graftmt(*command, "--json")
    assert (resumed.code, json.loads(resumed.stdout)["left"]) == (0, []), resumed.stderr
    assert "resuming at stage1-step00000001" in resumed.stderr
    after = results(tmp_path, named=True)
    assert {name: after[name] for name in before if "model-4" not in name} == {
        name: one for name, one in before.items() if "model-4" not in name
    }


@pytest.mark.slow
def test_results_of_several_settings_are_side_by_side_and_listed_apart(
    run, graftmt, arguments, quick, toy, results, tmp_path: Path
) -> None:
    asked = ("--tables", "2", "--rows", "7", "--seeds", "1,2")
    run(tmp_path, *asked)
    before = results(tmp_path, named=True)
    changed = "packs.source.steps=5"
    assert run(tmp_path, *asked, changed)["done"] == ["model-7-el-seed1", "model-7-el-seed2"]
    after = results(tmp_path, named=True)
    assert {name: after[name] for name in before} == before
    assert sorted(one["steps"] for one in after.values() if one["job"] != "model-4") == [3, 3, 5, 5]
    given = arguments(tmp_path)[3:7]
    listed = ("experiment", "list", "demo", "-o", str(tmp_path), *given, *quick, *toy, *asked)
    for change, done, others in ((changed, 2, 1), ("packs.source.steps=3", 2, 1), ("packs.source.steps=7", 0, 2)):
        document = json.loads(graftmt(*listed, change, "--json").stdout)
        (row,) = document["rows"]
        assert len(row["done"]) == done and len(row["missing"]) == 2 - done
        assert {job["others"] for job in document["jobs"] if job["job"] != "model-4"} == {others}
    assert "2 results of these jobs are of other settings, text or bases." in graftmt(*listed, changed).stdout
    dry = graftmt(*arguments(tmp_path, *asked), changed, "--dry-run").stdout
    assert dry.count("done") == 4 and "Everything is done." in dry
    # A report shows those of the settings given.
    report = ("experiment", "report", "demo", *quick, *toy, "-r", str(tmp_path), "-t", "2", "-f", "none", "--json")
    for change, steps in ((changed, 5), ("packs.source.steps=3", 3)):
        output = tmp_path / f"report-{steps}"
        document = json.loads(graftmt(*report, change, "-o", str(output)).stdout)
        assert {one["job"] for one in document["results"] if "job" in one} >= {"model-7-el-seed1", "model-7-el-seed2"}
        shown = {one["fingerprint"] for one in after.values() if one["steps"] == steps}
        kept = {path.stem for path in (output / "results").glob("model-7-*")} if (output / "results").is_dir() else set()
        text = (output / "README.md").read_text("utf-8")
        assert f"| {steps} |" in text and "Left out, as they are of other settings or another text: 2." in text
        assert shown and not kept, "the results are beside it"


@pytest.mark.slow
def test_a_result_of_the_first_format_gives_way_and_is_counted(
    run, graftmt, arguments, quick, toy, results, tmp_path: Path
) -> None:
    asked = ("--tables", "2", "--rows", "7,8")
    run(tmp_path, *asked)
    for key, document in results(tmp_path).items():
        name = document.pop("name")
        del document["format"]
        for one in document["scores"].values():
            del one["set"], one["settings"], one["text"]
        if key == "model-8-el-seed1":
            (tmp_path / "results" / f"{name}.json").unlink()
        document["steps"] = 77
        (tmp_path / "results" / f"{key}.json").write_text(json.dumps(document), encoding="utf-8")
    report = ("experiment", "report", "demo", *quick, *toy, "-r", str(tmp_path), "-t", "2", "-f", "none")
    assert graftmt(*report).code == 0
    page = (tmp_path / "report" / "README.md").read_text("utf-8")
    steps = {line.split(" | ")[0]: line.split(" | ")[-2] for line in page.splitlines() if line.startswith(("| 7 ", "| 8 "))}
    assert steps == {"| 7": "3", "| 8": "77"}, "the one that is of the first format alone is shown"
    listed = ("experiment", "list", "demo", "-o", str(tmp_path), *arguments(tmp_path)[3:7], *quick, *toy, *asked, "--json")
    jobs = {job["job"]: (job["done"], job["others"]) for job in json.loads(graftmt(*listed).stdout)["jobs"]}
    assert jobs == {"model-4": (True, 1), "model-7-el-seed1": (True, 1), "model-8-el-seed1": (False, 1)}


@pytest.mark.slow
def test_another_beam_is_scored_and_not_trained(run, results, graftmt, quick, toy, tmp_path: Path) -> None:
    asked = ("--tables", "2", "--rows", "7")
    run(tmp_path, *asked)
    (before,) = (one for one in results(tmp_path, named=True).values() if one["job"] != "model-4")
    made = sorted((tmp_path / "runs").iterdir())
    assert run(tmp_path, *asked, "evaluation.beam=2")["done"] == ["model-4", "model-7-el-seed1"]
    (after,) = (one for one in results(tmp_path, named=True).values() if one["job"] != "model-4")
    assert sorted((tmp_path / "runs").iterdir()) == made
    assert [one["settings"]["beam"] for one in after["scores"].values()] == [1, 2]
    assert before["scores"].items() <= after["scores"].items()
    assert run(tmp_path, *asked)["done"] == run(tmp_path, *asked, "evaluation.beam=2")["done"] == []
    report = ("experiment", "report", "demo", *quick, *toy, "-r", str(tmp_path), "-t", "2", "-f", "none", "--json")
    for beam, scores in zip((1, 2), after["scores"].values(), strict=True):
        document = json.loads(graftmt(*report, f"evaluation.beam={beam}").stdout)
        found = {one["direction"]: one["chrf"] for one in document["results"] if one.get("job") == "model-7-el-seed1"}
        assert found == {name: one["chrf"] for name, one in scores["directions"].items()}


@pytest.mark.slow
def test_another_text_makes_other_jobs_and_reports_show_one(
    run, graftmt, arguments, quick, toy, results, graft_corpus: Path, tmp_path: Path
) -> None:
    output, other = tmp_path / "output", tmp_path / "other"
    asked = ("--tables", "2", "--rows", "7")
    run(output, *asked)
    before = results(output, named=True)
    shutil.copytree(graft_corpus, other)
    for path in other.glob("test.*"):
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
        path.write_text("".join(lines[1:]), encoding="utf-8")
    assert run(output, *asked, "--corpus", str(other))["done"] == ["model-4", "model-7-el-seed1"]
    after = results(output, named=True)
    assert after.keys() == before.keys(), "the models are the same, the test set is another one"
    assert all(len(one["scores"]) == 2 for one in after.values())
    text = other / "train.el.txt"
    text.write_text(text.read_text("utf-8").replace("\n", " \n", 1), encoding="utf-8")
    assert run(output, *asked, "--corpus", str(other))["done"] == ["model-7-el-seed1"]
    assert len(results(output, named=True)) == 3
    assert run(output, *asked)["done"] == []
    report = ("experiment", "report", "demo", *quick, *toy, "-r", str(output), "-t", "2", "-f", "none", "--json")
    shown = [one for one in json.loads(graftmt(*report).stdout)["results"] if one.get("job") == "model-7-el-seed1"]
    assert len(shown) == 3, "directions of one model on one test set"


@pytest.mark.slow
def test_an_evaluation_that_was_stopped_is_no_obstacle_to_another_one(
    run, arguments, graftmt, results, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def stop(self: Any, *given: Any, **named: Any) -> None:
        raise Stopped("asked to", 0)

    asked = ("--tables", "1", "--rows", "4")
    with monkeypatch.context() as patch:
        patch.setattr(Evaluator, "_store", stop)
        assert json.loads(graftmt(*arguments(tmp_path, *asked), "--json", "--quiet").stdout)["stopped"] == "asked to"
    assert list((tmp_path / "work").glob("model-4.*"))
    assert run(tmp_path, *asked, "evaluation.beam=2")["done"] == ["model-4"]
    assert results(tmp_path)["model-4"]["scores"]["test"]["settings"]["beam"] == 2


@pytest.mark.slow
def test_a_damaged_run_says_how_to_start_over(graftmt, arguments, stop_in_training, tmp_path: Path) -> None:
    command = arguments(tmp_path, "--tables", "2", "--rows", "7")
    stop_in_training(*command)
    (run,) = tmp_path.glob("runs/model-7-el-seed1.*")
    for tensors in run.glob("checkpoints/stage1-step*/model.safetensors"):
        tensors.write_bytes(b"cut off")
    failed = json.loads(graftmt(*command, "--json", "--quiet").stdout)["failed"]
    assert f"delete {run} to have it start over" in failed["model-7-el-seed1"]
    shutil.rmtree(run)
    assert graftmt(*command, "--quiet").code == 0


def test_a_vocabulary_is_made_for_its_options(corpus: Path, tmp_path: Path) -> None:
    train, locks = Corpus.open(corpus, "train", ("el",)), JobLocks(tmp_path / "locks")
    (corpus / "train.el.txt").write_text("ένα δύο τρία τέσσερα πέντε έξι επτά οκτώ εννέα δέκα\n" * 40, encoding="utf-8")
    options = SubwordConfig(merges=20, min_character_count=1)
    sizes, said = [], []
    for changed in (options, replace(options, pieces=50), replace(options, merges=10), options):
        with heard_by(said.append):
            path = shared_subwords(train, changed, tmp_path / "text", locks, digest="0")
        sizes.append(len(Subwords.load(path).pieces))
    assert sizes[1] == 50 and sizes[0] == sizes[3] == sizes[2] + 10
    assert len(said) == 3, "the first one is there still"


def test_re_training_takes_its_vocabulary_from_its_base() -> None:
    job = Job(kind="model", model=5, languages=("el",))
    places = Places(run=Path("run"), corpus=Path("corpus"), base=Path("base"))
    with pytest.raises(ConfigError, match="subwords"):
        load_profile("docs", ["retrain.subwords.merges=777"])
    with pytest.raises(ConfigError, match="model"):
        load_profile("docs", ["substitute.model.size=big"])
    with pytest.raises(ConfigError, match=r"changes\.5: .*vocabulary"):
        retrain_mapping(load_profile("docs", ["changes={'5': [subwords.merges=777]}"]), job, places)
