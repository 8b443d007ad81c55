"""Experiments run: every kind of job, resumable at any point, nothing done twice, the base unchanged, failures recorded."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from patience import until

from graftmt.base import Base, read_base_document
from graftmt.experiments import evaluating, store
from graftmt.experiments.addresses import Addresses
from graftmt.experiments.base_stages import curve_of
from graftmt.experiments.jobs import base_job
from graftmt.experiments.profiles import load_profile
from graftmt.experiments.set_scores import score_in_hops
from graftmt.packs import load_pack


@pytest.mark.slow
def test_rows_of_three_tables_from_a_base_to_compositions_and_a_pivot(run, results, same_scores, tmp_path: Path) -> None:
    asked = ("--tables", "2,3,4", "--rows", "7+31,14+31,21,22", "evaluation.off_target=true", "packs.validation.translate=true")
    outcome = run(tmp_path, *asked)
    assert (outcome["failed"], outcome["left"], outcome["stopped"]) == ({}, [], None)
    found = results(tmp_path)
    assert set(found) == set(outcome["done"])
    position = {key: number for number, key in enumerate(outcome["done"])}
    assert position["model-4"] == 0, "the base first"
    for key, result in found.items():
        assert result["job"] == key
        assert result["base"]["id"] == 4
        assert result["base"]["fingerprint"] == found["model-4"]["fingerprint"]
        assert result["base"]["scores"]["test"]["averages"].keys() == {"→EN", "←EN", "/EN"}
        if result["kind"] == "composition" or result["kind"] == "pivot":
            source, target = result["languages"]
            for number, language in ((result["source"], source), (result["target"], target)):
                assert position[f"model-{number}-{language}-seed1"] < position[key], "packs before what they are combined to"
    assert set(found["model-4"]["seconds"]) == {"evaluation"}, "it was given"
    greek = found["model-7-el-seed1"]
    assert set(greek["seconds"]) == {"training", "augmentation", "evaluation"}
    assert (greek["recipe"], greek["steps"], greek["data"], greek["profile"]) == ("embed", 3, "el-en", "demo")
    assert greek["verified"] == {"base_unchanged": True, "base_scores_identical": True}
    assert set(greek["scores"]["test"]["directions"]) == {"el-en", "el-fr", "el-ru"}
    assert set(greek["scores"]["test"]["averages"]) == {"X→EN", "X→/EN"}
    entry = greek["scores"]["test"]["directions"]["el-en"]
    assert entry["lines"] == 4
    assert entry["off_target"] is None or 0 <= entry["off_target"] <= 1
    assert entry["tokenize"] == "13a"
    assert "tok:13a" in greek["scores"]["test"]["signatures"]["bleu"]["13a"]
    assert [point["step"] for point in greek["curve"]][-1] == 3
    assert {"el-en", "el-fr"} <= set(greek["curve"][0])
    assert set(found["model-31-uk-seed1"]["scores"]["test"]["averages"]) == {"EN→X", "/EN→X"}
    assert found["model-22-el+uk-seed1"]["languages"] == ["el", "uk"]
    assert found["model-21-el-seed1"]["data"] == "el-en + 100 lines per lang (BT)"
    assert set(found["compose-14+31-el-uk-seed1"]["scores"]["test"]["directions"]) == {"el-uk"}
    assert found["pivot-14+31-uk-el-seed1"]["kind"] == "pivot"
    packs = [found[key]["fingerprint"] for key in ("model-14-el-seed1", "model-31-uk-seed1")]
    assert found["compose-14+31-el-uk-seed1"]["fingerprint"] == "+".join(packs)
    (kept,) = (tmp_path / "translations" / greek["name"]).glob("test.*.el-en.txt")
    assert len(kept.read_text(encoding="utf-8").splitlines()) == 4
    assert not list((tmp_path / "work").glob("*/*")), "unfinished work of finished jobs"
    # Again: nothing is done.
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "results").iterdir()}
    again = run(tmp_path, *asked)
    assert again["done"] == []
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "results").iterdir()} == before
    # Without anything to go on from, too: results are kept for good.
    for name in ("runs", "text", "work"):
        shutil.rmtree(tmp_path / name, ignore_errors=True)
    assert run(tmp_path, *asked)["done"] == []


@pytest.mark.slow
def test_the_last_checkpoint_is_scored_next_to_the_best_one(run, results, tmp_path: Path) -> None:
    # A rate at which nothing is learned after the first update: the best weights are not the last ones.
    worse = "packs.source={steps: 4, batch_tokens: 200, learning_rate: 20, warmup: 0}"
    sets = ("evaluation.sets.last={split: test, lines: 4, checkpoint: last}", "packs.validations=4", worse)
    asked = ("--tables", "2,4", "--rows", "7,7+31", *sets)
    run(tmp_path, *asked)
    found = results(tmp_path)
    greek = found["model-7-el-seed1"]
    assert set(greek["scores"]) == {"test", "last"}
    assert set(found["compose-7+31-el-uk-seed1"]["scores"]) == {"test"} == set(found["model-4"]["scores"])
    best, last = (load_pack(tmp_path / "runs" / greek["name"] / name) for name in ("pack", "pack-last"))
    assert best.fingerprint == greek["fingerprint"] != last.fingerprint
    assert last.card["checkpoint"] == "last" and "checkpoint" not in best.card
    assert run(tmp_path, *asked)["done"] == []
    # Where it was not stored, that is said, and nothing is scored in its place.
    shutil.rmtree(tmp_path / "runs" / greek["name"] / "pack-last")
    outcome = run(tmp_path, *asked, "evaluation.beam=2", code=1)
    assert "pack-last" in outcome["failed"]["model-7-el-seed1"]


def test_a_last_checkpoint_that_is_the_best_one_is_not_translated_again(
    run, results, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    translated: list[tuple[str, str]] = []

    def noted(profile: Any, name: str, corpus: Any, *others: Any, work: Path, **more: Any) -> Any:
        translated.append((name, work.parent.parent.name.partition(".")[0]))
        return score(profile, name, corpus, *others, work=work, **more)

    score = evaluating.score
    monkeypatch.setattr(evaluating, "score", noted)
    asked = ("--tables", "2", "--rows", "7", "packs.validations=1")  # validated at the end alone, which then is the best
    sets = ("evaluation.sets.last={split: test, lines: 4, checkpoint: last}", "evaluation.sets.more={split: test, lines: 3}")
    run(tmp_path, *asked, *sets)
    greek = results(tmp_path)["model-7-el-seed1"]
    assert greek["scores"]["last"]["directions"] == greek["scores"]["test"]["directions"]
    assert greek["scores"]["last"]["settings"]["checkpoint"] == "last"
    assert sorted(name for name, job in translated if job == "model-7-el-seed1") == ["more", "test"]
    kept = tmp_path / "translations" / greek["name"]
    (best,), (last,) = (list(kept.glob(f"{name}.*.el-fr.txt")) for name in ("test", "last"))
    assert best.read_bytes() == last.read_bytes()
    # Other lines than those of the best one's set: scored by themselves.
    translated.clear()
    run(tmp_path, *asked, "evaluation.sets.last={split: test, lines: 2, checkpoint: last}")
    assert [name for name, job in translated if job == "model-7-el-seed1"] == ["last"]


def test_directions_between_initial_languages_can_have_fewer_lines(run, results, tmp_path: Path) -> None:
    run(tmp_path, "--tables", "2", "--rows", "7", "evaluation.sets.test.between_lines=2")
    found = results(tmp_path)
    lines = {name: entry["lines"] for name, entry in found["model-4"]["scores"]["test"]["directions"].items()}
    assert lines == {"en-fr": 4, "en-ru": 4, "fr-en": 4, "ru-en": 4, "fr-ru": 2, "ru-fr": 2}
    assert {entry["lines"] for entry in found["model-7-el-seed1"]["scores"]["test"]["directions"].values()} == {4}
    (kept,) = (tmp_path / "translations" / "lines").glob("test.*.fr.txt")
    assert len(kept.read_text(encoding="utf-8").splitlines()) == 4


def wait_until(process: subprocess.Popen[bytes], there: Callable[[], bool]) -> None:
    def look() -> bool:
        assert process.poll() is None, process.communicate()[1].decode()
        return there()

    until(look)


@pytest.mark.slow
def test_killed_in_the_middle_it_goes_on_to_the_same_scores(
    run, arguments, results, same_scores, start_graftmt, tmp_path: Path
) -> None:
    asked = ("--tables", "4", "--rows", "7+31", "--quiet")
    left_alone, killed = tmp_path / "left-alone", tmp_path / "killed"
    run(left_alone, *asked)
    moments = [
        lambda: any((killed / "runs").glob("model-7-el-seed1.*/log.jsonl")),  # in training
        lambda: any((killed / "results").glob("model-31-uk-seed1.*.json")),  # among compositions
    ]
    seen: dict[str, int] = {}
    for moment in moments:
        process = start_graftmt(*arguments(killed, *asked))
        wait_until(process, moment)
        process.kill()
        process.communicate()
        assert process.returncode == -signal.SIGKILL
        for path in (killed / "results").glob("*.json"):
            assert seen.setdefault(path.name, path.stat().st_mtime_ns) == path.stat().st_mtime_ns, f"{path.name} was made twice"
    outcome = run(killed, *asked)
    assert outcome["left"] == []
    assert not {f"{results(killed)[key]['name']}.json" for key in outcome["done"]} & set(seen)
    same_scores(results(left_alone), results(killed))
    assert not list((killed / "results").glob(".*"))


def test_the_time_given_stops_it_and_the_same_command_goes_on(run, results, tmp_path: Path) -> None:
    asked = ("--tables", "2", "--rows", "7,8")
    outcome = run(tmp_path, *asked, "--minutes", "0")
    assert outcome["stopped"] == "the time given with --minutes is over"
    assert outcome["done"] == []
    assert outcome["left"] == ["model-4", "model-7-el-seed1", "model-8-el-seed1"]
    outcome = run(tmp_path, *asked, "--minutes", "60")
    assert (outcome["stopped"], outcome["left"]) == (None, [])


@pytest.mark.slow
def test_a_job_that_fails_is_recorded_and_the_others_go_on(run, results, tmp_path: Path) -> None:
    broken = 'changes={"7": ["recipe=embed + enc-layer-9"]}'
    outcome = run(tmp_path, "--tables", "4", "--rows", "7+31,14+31", "--languages", "el,uk", broken, code=1)
    found = results(tmp_path)
    assert "layer 9" in found["model-7-el-seed1"]["failed"]
    assert "it needs model-7-el-seed1, which failed" in found["compose-7+31-el-uk-seed1"]["failed"]
    assert "failed" not in found["compose-14+31-el-uk-seed1"]
    assert set(outcome["failed"]) == {key for key, result in found.items() if result.get("failed")} == set(outcome["left"])
    # Put right, only what failed is done.
    outcome = run(tmp_path, "--tables", "4", "--rows", "7+31,14+31", "--languages", "el,uk")
    assert set(outcome["done"]) == {
        "model-7-el-seed1",
        "model-7-uk-seed1",
        "compose-7+31-el-uk-seed1",
        "compose-7+31-uk-el-seed1",
    }


@pytest.mark.slow
def test_on_a_base_trained_again_results_are_kept_and_packs_are_not_mixed(
    run, graftmt, arguments, graft_base, results, tmp_path: Path
) -> None:
    run(tmp_path, "--tables", "2", "--rows", "7", "--languages", "el,uk")
    before = results(tmp_path, named=True)
    other = graft_base("post")
    command = [
        part.replace(f"4={graft_base()}", f"4={other}") for part in arguments(tmp_path, "--tables", "4", "--rows", "7+31")
    ]
    result = graftmt(*command, "--json", "--quiet")
    assert result.code == 0, result.stderr
    new, everything = Base.load(other).fingerprint, results(tmp_path, named=True)
    found = {one["job"]: one for one in everything.values() if one["base"]["fingerprint"] == new}
    assert {name: one for name, one in everything.items() if one not in found.values()} == before
    packs = [found[key]["fingerprint"] for key in ("model-7-el-seed1", "model-31-uk-seed1")]
    assert found["compose-7+31-el-uk-seed1"]["fingerprint"] == "+".join(packs)


def test_one_more_test_set_is_scored_without_training_again(run, results, tmp_path: Path) -> None:
    run(tmp_path, "--tables", "2", "--rows", "7")
    before = results(tmp_path)["model-7-el-seed1"]
    outcome = run(tmp_path, "--tables", "2", "--rows", "7", "evaluation.sets.valid={split: valid, lines: 3}")
    assert outcome["done"] == ["model-4", "model-7-el-seed1"]
    after = results(tmp_path)["model-7-el-seed1"]
    assert set(after["scores"]) == set(after["base"]["scores"]) == {"test", "valid"}
    assert (after["name"], after["scores"]["test"]) == (before["name"], before["scores"]["test"])
    assert run(tmp_path, "--tables", "2", "--rows", "7")["done"] == [], "they are there"


def test_a_test_set_with_other_lines_is_another_one(run, results, tmp_path: Path) -> None:
    asked = ("--tables", "2", "--rows", "7")
    few, more = "evaluation.sets.test.lines=3", "evaluation.sets.test.lines=4"
    run(tmp_path, *asked, few)
    base = results(tmp_path)["model-4"]["name"]
    ((name, before),) = results(tmp_path, named=True)[base]["scores"].items()
    assert run(tmp_path, *asked, more)["done"] == ["model-4", "model-7-el-seed1"]
    scores = results(tmp_path, named=True)[base]["scores"]
    assert scores[name] == before and [one["settings"]["lines"] for one in scores.values()] == [3, 4]
    assert run(tmp_path, *asked, few)["done"] == run(tmp_path, *asked, more)["done"] == []


@pytest.mark.slow
def test_two_bilingual_models_are_not_scored_twice_on_a_test_set(
    run, results, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    scored: list[str] = []

    def noted(profile: Any, name: str, *given: Any) -> Any:
        scored.append(name)
        return score_in_hops(profile, name, *given)

    monkeypatch.setattr(evaluating, "score_in_hops", noted)
    asked = ("--tables", "4", "--rows", "1", "--languages", "el,uk")
    run(tmp_path, *asked)
    before = results(tmp_path)["pivot-1-el-uk-seed1"]
    assert scored == ["test", "test"], "el-uk and uk-el"
    run(tmp_path, *asked, "evaluation.sets.valid={split: valid, lines: 3}")
    assert scored == ["test", "test", "valid", "valid"]
    after = results(tmp_path)["pivot-1-el-uk-seed1"]
    assert after["scores"]["test"] == before["scores"]["test"]
    assert after["seconds"]["evaluation"] >= before["seconds"]["evaluation"], "then and now"


@pytest.mark.slow
def test_figures_by_updates_and_by_size(run, results, tmp_path: Path) -> None:
    outcome = run(tmp_path, "--figures", "3,4", "--rows", "1,7", "sizes=[20, 50, 5000]")
    assert outcome["left"] == []
    assert set(outcome["skipped"]) == {
        "size-1-el-en-5000-seed1",
        "size-1-en-el-5000-seed1",
        "size-7-el-5000-seed1",
    }
    found = results(tmp_path)
    assert found["size-7-el-20-seed1"]["kind"] == "size"
    assert found["size-7-el-20-seed1"]["lines"] == 20
    assert found["size-1-en-el-50-seed1"]["languages"] == ["en", "el"]
    assert found["model-1-el-en-seed1"]["base"] is None
    small, large = (
        set(next((tmp_path / "text" / "sizes").glob(f"el-en-{size}-seed1.*/train.el.txt")).read_text("utf-8").splitlines())
        for size in (20, 50)
    )
    assert small < large


@pytest.mark.slow
def test_seeds_and_the_same_seed_again(run, results, tmp_path: Path) -> None:
    run(tmp_path / "a", "--tables", "2", "--rows", "7", "--seeds", "2,1")
    run(tmp_path / "b", "--tables", "2", "--rows", "7", "--seeds", "2")
    first, second = results(tmp_path / "a"), results(tmp_path / "b")
    assert first["model-7-el-seed1"]["fingerprint"] != first["model-7-el-seed2"]["fingerprint"]
    assert first["model-7-el-seed2"]["fingerprint"] == second["model-7-el-seed2"]["fingerprint"]


def test_codes_that_are_not_learned_are_models_of_their_own(run, results, tmp_path: Path) -> None:
    run(tmp_path, "--tables", "25", "--rows", "24", "--languages", "uk", "proxies={uk: ru}")
    recipes = {key: result["recipe"] for key, result in results(tmp_path).items() if key != "model-4"}
    assert recipes == {
        "model-24-uk-code-none-seed1": "embed + code:none",
        "model-24-uk-code-fixed-en-seed1": "embed + code:fixed:en",
        "model-24-uk-code-proxy-seed1": "embed + code:proxy:ru",
    }


@pytest.mark.slow
def test_the_demo_needs_nothing_but_its_name(graftmt, quick: list[str], results, tmp_path: Path) -> None:
    pytest.importorskip("babel")
    from graftmt.demo.phrase_corpus import BASE_LANGUAGES, NEW_LANGUAGES, write_corpus

    # As it makes it itself, but for the size.
    languages = (*BASE_LANGUAGES, *NEW_LANGUAGES)
    write_corpus(tmp_path / "corpus", languages, train_lines=200, valid_lines=10, test_lines=10)
    changes = [change for change in quick if not change.startswith("packs.subwords")]
    asked = ["--tables", "2", "--rows", "7", "-o", str(tmp_path), "packs.subwords.merges=300", "evaluation.max_length=80"]
    result = graftmt("experiment", "run", "demo", *changes, *asked, "--quiet")
    assert result.code == 0, result.stderr
    found = results(tmp_path)
    assert found["model-7-el-seed1"]["verified"] == {"base_unchanged": True, "base_scores_identical": True}
    assert found["model-4"]["scores"]["test"]["averages"]["→EN"]["chrf"] > 80, "the shipped base is a good one"


TED = [
    "initial=[en, fr, ru]",
    "new=[el, uk]",
    "others=[fr, ru]",
    "packs.watch=[fr]",
    "bilingual.partners=[fr]",
    "bilingual.initial=false",
]


@pytest.mark.slow
def test_the_ted_experiments_on_a_release(graftmt, quick: list[str], ted_release: Path, results, tmp_path: Path) -> None:
    corpus, output = tmp_path / "corpus", tmp_path / "out"
    assert graftmt("prepare", "ted", str(ted_release), "-o", str(corpus), "--quiet").code == 0
    limits = [f"evaluation.sets.{name}.lines=3" for name in ("test", "valid")]
    command = (
        *("experiment", "run", "ted", "--corpus", str(corpus), "-o", str(output), "--json", "--quiet", *quick, *TED, *limits),
        *("--tables", "1,2,9,18", "--rows", "1,3,4,5,7,16,17,20,57,60"),
    )
    result = graftmt(*command)
    assert result.code == 0, result.stderr
    outcome = json.loads(result.stdout)
    assert outcome["left"] == []
    found = results(output)
    assert set(found["model-4"]["scores"]) == {"test", "valid"}
    assert found["model-4"]["steps"] == 8
    assert found["model-3"]["steps"] == 4
    assert found["model-3"]["fingerprint"] != found["model-4"]["fingerprint"]
    assert read_base_document(output / "bases" / found["model-3"]["name"])["languages"] == ["en", "fr", "ru"]
    assert "tok:none" in found["model-7-el-seed1"]["scores"]["test"]["signatures"]["bleu"]["none"]
    assert found["model-7-el-on3-seed1"]["base"]["id"] == 3
    assert found["model-16-el-seed1"]["data"] == "el-* (multi-aligned)"
    assert found["model-17-el-seed1"]["seconds"]["augmentation"] > 0
    assert found["model-60-el-seed1"]["trains"] == "substitute"
    assert {"X→EN", "X→/EN", "EN→X", "/EN→X", "→EN", "←EN", "/EN"} == set(
        found["model-5-el-seed1"]["scores"]["test"]["averages"]
    )
    assert found["pivot-57-el-seed1"]["kind"] == "pivot"
    assert found["model-1-el-fr-seed1"]["data"] == "el-fr"
    # The teacher is (3), as the profile says.
    (path,) = (output / "text" / "augmented").glob("el-1000-bt-seed1.*/corpus.json")
    made = json.loads(path.read_text("utf-8"))
    assert made["augmentation"]["teacher"]["fingerprint"] == found["model-3"]["fingerprint"]
    # Results name their bases, so that they are found also where the bases are gone.
    for folder in ("bases", "runs", "text"):
        shutil.rmtree(output / folder)
    again = json.loads(graftmt(*command).stdout)
    assert (again["done"], again["left"]) == ([], [])


@pytest.mark.slow
def test_the_post_norm_experiments_in_small(graftmt, quick: list[str], graft_corpus: Path, results, tmp_path: Path) -> None:
    sizes = {"size": "tiny", "model_dim": 16, "ffn_dim": 24, "heads": 2, "encoder_layers": 3, "decoder_layers": 3}
    stages = {"steps": 4, "batch_tokens": 400}  # norm, learning rate, warm-up and schedule stay those of the profile
    changes = [
        *(one for one in quick if not one.startswith(("base.model", "base.stages", "changes"))),
        *(f"base.model.{name}={value}" for name, value in sizes.items()),
        *(f"base.stages.{number}.{name}={value}" for number in (0, 1) for name, value in stages.items()),
        *(f"{kind}.compile=false" for kind in ("base", "packs")),
        *("initial=[en, fr, ru]", "new=[el, uk]", "others=[fr, ru]", "packs.watch=[fr]", "proxies={}"),
        *("packs.base_dtype=fp32", "base.store_dtype=fp32"),
        "base.validation.directions=[fr-en]",
        *(
            f"evaluation.sets.{name}.{lines}=3"
            for name in ("test", "valid", "test-last")
            for lines in ("lines", "between_lines")
        ),
    ]
    asked = ("--tables", "2,101", "--languages", "el", "--rows", "7,14,12,20,106")
    command = ("experiment", "run", "docs-post-norm", "--corpus", str(graft_corpus), "-o", str(tmp_path), "--json", "--quiet")
    result = graftmt(*command, *asked, *changes)
    assert result.code == 0, result.stderr
    assert (json.loads(result.stdout)["left"], json.loads(result.stdout)["failed"]) == ([], {})
    found = results(tmp_path)
    assert set(found) == {"model-4", *(f"model-{number}-el-seed1" for number in (7, 14, 12, 20, 106))}
    base = found["model-4"]
    assert base["settings"]["model"]["norm"] == "post"
    assert Base.load(tmp_path / "bases" / base["name"]).model.config.norm == "post"
    wanted = {"steps": 4, "learning_rate": 0.0005, "warmup": 4000, "schedule": "inverse-sqrt", "packed": True}
    assert all(stage | wanted == stage for stage in base["settings"]["stages"])
    for key in set(found) - {"model-4"}:
        assert found[key]["base"]["fingerprint"] == base["fingerprint"]
        assert found[key]["verified"] == {"base_unchanged": True, "base_scores_identical": True}
        assert set(found[key]["scores"]) == {"test", "valid", "test-last"}


def test_a_base_is_trained_as_its_settings_say_by_itself_or_on_the_way_to_another(
    graftmt, quick: list[str], graft_corpus: Path, graft_base, results, tmp_path: Path
) -> None:
    limits = [f"evaluation.sets.{name}.lines=3" for name in ("test", "valid")]
    found = {}
    for name, given in (("alone", ["--base", f"4={graft_base()}"]), ("on the way", [])):
        output = tmp_path / name
        command = ["experiment", "run", "ted", "--corpus", str(graft_corpus), "-o", str(output), *quick, *TED, *limits]
        result = graftmt(*command, *given, "--tables", "1", "--rows", "3", "--quiet", "changes.4=[stages.0.steps=3]")
        assert result.code == 0, result.stderr
        found[name] = results(output)["model-3"]
        trained = read_base_document(output / "bases" / found[name]["name"])["card"]["config"]["stages"]
        assert [stage["steps"] for stage in trained] == [3]
        assert found[name]["settings"]["stages"] == trained
        assert found[name]["steps"] == 3
    assert found["alone"]["fingerprint"] == found["on the way"]["fingerprint"]
    assert found["alone"]["name"] == found["on the way"]["name"]


@pytest.mark.slow
def test_the_paracrawl_experiments_on_releases(
    graftmt, quick: list[str], paracrawl_releases: Path, results, tmp_path: Path
) -> None:
    pytest.importorskip("duckdb")
    names = ("pairs", "un-raw", "un", "aligned", "nfkc", "corpus", "flores-raw", "flores")
    pairs, words, united, aligned, nfkc, corpus, unsegmented, flores = (tmp_path / name for name in names)
    steps = [
        ["paracrawl", str(paracrawl_releases / "paracrawl"), "-o", str(pairs)],
        ["unpc", str(paracrawl_releases / "unpc"), "-o", str(words)],
        ["segment", str(words), "-o", str(united)],
        ["align", f"fr={pairs / 'en-fr'}", f"de={pairs / 'en-de'}", f"ar={united}", f"zh={united}", "-o", str(aligned)],
        ["clean", str(aligned), "-o", str(nfkc), "--rules", "normalisation", "--normalise", "NFKC"],
        ["split", str(nfkc), "-o", str(corpus), "--valid", "6", "--test", "6"],
        ["flores", str(paracrawl_releases / "flores"), "-o", str(unsegmented), "--short-codes"],
        ["segment", str(unsegmented), "-o", str(flores)],
    ]
    for step in steps:
        result = graftmt("prepare", *step)
        assert result.code == 0, (step, result.stderr)
    output = tmp_path / "out"
    changes = [
        "initial=[en, fr, de]",
        "new=[ar, zh]",
        "others=[fr, de]",
        "packs.watch=[fr]",
        f"corpus.unfiltered={corpus}",
        f"evaluation.sets.flores-devtest={{corpus: {flores}, split: test, lines: 3, tokenize: 13a}}",
        f"evaluation.sets.ted2020-valid={{corpus: {corpus}, split: valid, lines: 3}}",
        "changes.39=[model.encoder_layers=2]",
    ]
    result = graftmt(
        *("experiment", "run", "paracrawl", "--corpus", str(corpus), "-o", str(output), "--json", "--quiet", *quick, *changes),
        *("--tables", "5,6,7", "--rows", "39,40,41,42,45,49+54,50,55"),
    )
    assert result.code == 0, result.stderr
    assert json.loads(result.stdout)["left"] == []
    found = results(output)
    assert set(found["model-42"]["scores"]) == {"flores-devtest", "ted2020-valid"}
    assert found["model-39"]["parameters"] != found["model-40"]["parameters"]
    assert found["pivot-41"]["model"] == 41
    assert found["pivot-50-ar+zh-seed1"]["base"]["id"] == 42
    assert found["model-55-ar-seed1"]["data"] == "ar-en, without language ID"
    assert set(found["pivot-45-ar-zh-seed1"]["scores"]["flores-devtest"]["directions"]) == {"ar-zh"}
    assert found["model-49-zh-seed1"]["data"] == "zh-en + 20k lines per lang (BT)"
    # Models read words of Chinese; scores are of text as people write it.
    assert all(" " in line for line in (corpus / "train.zh.txt").read_text("utf-8").splitlines() if len(line) > 20)
    (kept,) = (output / "translations" / "lines").glob("flores-devtest*.zh.txt")
    assert " " not in kept.read_text("utf-8")
    assert found["compose-49+54-ar-zh-seed1"]["base"]["fingerprint"] == found["model-42"]["fingerprint"]


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (["run", "dcos", "--tables", "2"], "did you mean 'docs'?"),
        (["run", "docs"], "say what to run: --tables 2,3,4"),
        (["run", "docs", "--tables", "6"], "table 6 is of the ParaCrawl models"),
        (["run", "docs", "--tables", "99"], "table 99 is not among those with scores of models"),
        (["run", "docs", "--tables", "two"], "'two' is no number"),
        (["run", "docs", "--tables", "2", "--rows", "31"], "no row of what was asked for is of this model; its rows are 1, 5"),
        (["run", "docs", "--tables", "2", "--rows", "seven"], "expected the number of a model, such as 7"),
        (["run", "docs", "--tables", "2", "--languages", "fr"], "not a new language of profile 'docs'"),
        (["run", "docs", "--tables", "2", "--base", "runs/x"], "such as 4=runs/docs/base"),
        (["run", "docs", "--tables", "2", "--base", "4=nowhere"], "there is no base in nowhere"),
        (["run", "ted", "--tables", "2", "--corpus", "nowhere"], "graftmt prepare ted"),
        (["run", "docs", "--tables", "2", "packs.source.stepz=3"], "did you mean 'steps'?"),
        (["run", "docs", "--tables", "2", "others=[en]"], "expected initial languages other than en"),
        (["list", "nothing"], "there is no profile 'nothing'"),
    ],
)
def test_what_cannot_be_meant_is_said(graftmt, command: list[str], message: str) -> None:
    result = graftmt("experiment", *command)
    assert result.code == 1
    assert message in " ".join(result.stderr.split())


@pytest.mark.parametrize("command", ["run", "list"])
def test_a_profile_that_is_missing_is_asked_for_by_name(graftmt, command: str) -> None:
    result = graftmt("experiment", command)
    assert result.code == 1
    assert "say which profile: docs, ted, paracrawl, demo, or the path of a YAML file" in result.stderr


def test_a_report_without_a_profile_names_those_that_there_are(graftmt) -> None:
    assert "a profile (docs, ted, paracrawl, demo)" in graftmt("experiment", "report").stderr


def test_a_file_is_no_folder_for_results(graftmt, tmp_path: Path) -> None:
    (tmp_path / "f").touch()
    result = graftmt("experiment", "run", "demo", "--tables", "2", "--rows", "7", "-o", str(tmp_path / "f"))
    assert result.code == 1
    assert f"{tmp_path / 'f'} is a file" in result.stderr


def test_minutes_that_rows_have_in_common_are_said_to_be(graftmt, tmp_path: Path) -> None:
    sentence = "A row's minutes are with all that it still needs"
    listed = ("experiment", "list", "demo", "-o", str(tmp_path), "--tables", "2")
    assert sentence in graftmt(*listed, "--rows", "7,8").stdout
    assert sentence not in graftmt(*listed, "--rows", "7").stdout


@pytest.mark.slow
def test_list_and_dry_run_say_what_is_done_and_what_is_missing(
    run, graftmt, arguments, quick, toy, results, tmp_path: Path
) -> None:
    run(tmp_path, "--tables", "2", "--rows", "7")
    given = arguments(tmp_path)[3:7]
    here = ("-o", str(tmp_path), *given, *quick, *toy, "--json")
    listed = graftmt("experiment", "list", "demo", "--tables", "2", "--rows", "7,8,2", *here)
    assert listed.code == 1, "model 2 is not in Table 2"
    listed = graftmt("experiment", "list", "demo", "--tables", "1,2", "--rows", "7,8,2", *here)
    rows = {row["number"]: row for row in json.loads(listed.stdout)["rows"]}
    assert (rows["7"]["done"], rows["7"]["missing"], rows["7"]["minutes"]) == (["model-7-el-seed1"], [], 0)
    assert rows["8"]["missing"] == ["model-8-el-seed1"]
    took = sum(results(tmp_path)["model-7-el-seed1"]["seconds"].values())
    assert rows["8"]["minutes"] == pytest.approx(took / 60), "as long as the one that was done"
    assert rows["2"]["not_here"] == "figures of others, which nothing here trains"
    shown = graftmt("experiment", "list", "demo", "-o", str(tmp_path))
    assert "Table 4" in shown.stdout
    assert "Figure 3" in shown.stdout
    dry = graftmt(*arguments(tmp_path, "--tables", "2", "--rows", "7,8", "--dry-run", "--json"))
    assert [(job["job"], job["done"]) for job in json.loads(dry.stdout)["jobs"]] == [
        ("model-4", True),
        ("model-7-el-seed1", True),
        ("model-8-el-seed1", False),
    ]
    assert not list((tmp_path / "results").glob("model-8-*"))


@pytest.mark.slow
def test_a_list_reads_each_result_once(
    run, graftmt, arguments, quick, toy, results, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked = ("--tables", "2,3", "--rows", "7,8,30")
    run(tmp_path, *asked)
    read: list[str] = []
    read_json = store.read_json

    def noted(path: Path, what: str) -> dict[str, Any]:
        read.append(path.stem)
        return read_json(path, what)

    monkeypatch.setattr(store, "read_json", noted)
    given = arguments(tmp_path)[3:7]
    listed = graftmt("experiment", "list", "demo", "-o", str(tmp_path), *given, *quick, *toy, *asked, "--json")
    assert all(job["done"] for job in json.loads(listed.stdout)["jobs"])
    assert sorted(read) == sorted(results(tmp_path, named=True))


def test_a_result_that_was_replaced_is_read_again(graft_corpus: Path, tmp_path: Path) -> None:
    addresses, job = Addresses(load_profile("demo"), tmp_path, graft_corpus), base_job(4)
    kept = store.Store(addresses)
    assert kept.read(job) is None
    for fingerprint in ("a", "b"):
        store.Store(addresses).write(job, {"fingerprint": fingerprint, "scores": {}})
        assert kept.read(job) == {"fingerprint": fingerprint, "scores": {}}
    assert json.loads((tmp_path / "results" / f"{addresses.name(job)}.a.json").read_text())["fingerprint"] == "a"
    kept.path(job).unlink()
    assert kept.read(job) is None


def test_a_run_without_a_log_has_no_curve(tmp_path: Path) -> None:
    assert curve_of(tmp_path) == []
