"""Validation while training says what an evaluation afterwards says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from graftmt.assessment.direction_lines import evaluate_directions
from graftmt.data import Corpus, Direction, tokenize_corpus
from graftmt.decoding import SearchOptions
from graftmt.errors import DataError
from graftmt.training.journal import read_log
from graftmt.training.optimization import smoothed_loss
from graftmt.training.validation import Validator
from graftmt.translator import Translator


def test_the_best_validation_is_what_the_finished_base_scores(toy_run: Path, toy_corpus: Path) -> None:
    best = json.loads((toy_run / "checkpoints" / "stage1-best" / "best.json").read_text(encoding="utf-8"))
    logged = [e for e in read_log(toy_run / "log.jsonl") if e["event"] == "validation" and e["step"] == best["step"]]
    assert {name: logged[0][name] for name in ("loss", "bleu", "chrf")} == {n: best[n] for n in ("loss", "bleu", "chrf")}

    translator = Translator(toy_run / "base")
    directions = [Direction("en", "xa"), Direction("xb", "en")]
    found = evaluate_directions(
        translator, Corpus.open(toy_corpus, "valid"), directions, lines=10, options=SearchOptions(beam=1, batch_tokens=100)
    )
    for evaluation in found:
        scores = best["directions"][str(evaluation.direction)]
        assert scores["chrf"] == pytest.approx(evaluation.scores.chrf)
        assert scores["bleu"] == pytest.approx(evaluation.scores.bleu)


def test_the_validation_loss_is_the_mean_over_target_tokens(toy_run: Path, toy_corpus: Path) -> None:
    best = json.loads((toy_run / "checkpoints" / "stage1-best" / "best.json").read_text(encoding="utf-8"))
    base = Translator(toy_run / "base").base
    tokenizer, end = base.tokenizer, base.tokenizer.vocabulary.end_id
    texts = Corpus.open(toy_corpus, "valid").texts(["en", "xa"], 10)
    total, tokens = 0.0, 0
    for source, target in zip(texts["en"], texts["xa"], strict=True):
        ids = tokenizer.encode(target)
        encoder = torch.tensor([[*tokenizer.source_prefix("en", "xa"), *tokenizer.encode(source), end]])
        decoder, labels = torch.tensor([[*tokenizer.decoder_prefix("xa"), *ids]]), torch.tensor([[*ids, end]])
        with torch.inference_mode():
            total += float(smoothed_loss(base.model, encoder, decoder, labels, 0.1))
        tokens += len(ids) + 1
    assert best["directions"]["en-xa"]["loss"] == pytest.approx(total / tokens, rel=1e-4)


def test_without_translating_there_is_the_loss_alone(tmp_path: Path, one_stage, train) -> None:
    config = one_stage(tmp_path / "run", "validation.translate=false", "stages.0.steps=8")
    train(config)
    event = next(event for event in read_log(config.run / "log.jsonl") if event["event"] == "validation")
    assert "loss" in event
    assert not {"bleu", "chrf"} & event.keys()


def test_a_line_that_is_too_long_leaves_the_batches_of_the_others_as_they_are(
    tmp_path: Path, toy_run: Path, toy_corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = Translator(toy_run / "base").base
    batches: list[int] = []

    def counting(model: Any, source: torch.Tensor, *arguments: Any) -> torch.Tensor:
        batches.append(len(source))
        return smoothed_loss(model, source, *arguments)

    monkeypatch.setattr("graftmt.training.validation.smoothed_loss", counting)
    for name, extra in (("plain", []), ("long", [1000])):
        corpus = tmp_path / name
        corpus.mkdir()
        for language in ("en", "xa"):
            lines = (toy_corpus / f"valid.{language}.txt").read_text(encoding="utf-8").splitlines()[:10]
            lines += [" ".join(lines[:1] * times) for times in extra]
            (corpus / f"valid.{language}.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
        found = Corpus.open(corpus, "valid")
        tokenized = tokenize_corpus(found, base.tokenizer, tmp_path / "cache")
        directions = [Direction("en", "xa")]
        validator = Validator.open(found, tokenized, base.tokenizer, directions, lines=99, max_length=256)
        validator.validate(base.model, smoothing=0.1, precision="fp32", translate=False)
    assert batches == [10, 10]


def test_validation_lines_that_are_all_too_long_are_an_error(tmp_path: Path, one_stage, train, toy_corpus: Path) -> None:
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    for path in toy_corpus.iterdir():
        lines = path.read_text(encoding="utf-8").splitlines()
        text = [" ".join([line] * 10) for line in lines] if path.name.startswith("valid") else lines
        (corpus / path.name).write_text("\n".join(text) + "\n", encoding="utf-8")
    config = one_stage(tmp_path / "run", f"data.corpus={corpus}", "data.max_length=30")
    with pytest.raises(DataError, match=r"every .*line of en-xa .*more than"):
        train(config)
