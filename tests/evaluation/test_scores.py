"""Scores are sacreBLEU's own, say how they were made, and are rows of one table, which is asked for parts and means."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

import pytest
import sacrebleu
import sentencepiece

from graftmt.errors import ConfigError, DataError, GraftError
from graftmt.evaluation import scores as scoring
from graftmt.evaluation.scores import Score, Scores, default_tokenizer, joined, score_bleu, score_chrf, score_direction

HYPOTHESES = ["The cat sat on the mat .", "He does not know what he wants.", ""]
REFERENCES = ["The cat sat on a mat.", "He does not know what she wants!", "Nothing was translated here."]
CHINESE = ["我们今天去北京看朋友。", "他不知道自己想要什么。"]
JAPANESE = ["私たちは今日東京へ行きます。", "彼は何が欲しいのか分かりません。"]


def test_a_corpus_scores_100_against_itself() -> None:
    scores = score_direction(REFERENCES, REFERENCES, source="en", target="fr")
    assert scores.bleu == 100
    assert scores.chrf == 100
    assert scores.known("lines") == [len(REFERENCES)]
    assert scores.directions == ["en-fr"]


def test_scores_are_those_of_sacrebleu_called_directly() -> None:
    scores = score_direction(HYPOTHESES, REFERENCES, source="fr", target="en")
    assert scores.bleu == pytest.approx(sacrebleu.corpus_bleu(HYPOTHESES, [REFERENCES]).score)
    assert scores.chrf == pytest.approx(sacrebleu.corpus_chrf(HYPOTHESES, [REFERENCES]).score)
    assert 0 < scores.bleu < 100
    assert 0 < scores.chrf < 100


@pytest.mark.parametrize("tokenize", ["13a", "none", "zh", "char", "intl"])
def test_the_tokeniser_is_passed_on_and_stands_in_the_signature(tokenize: str) -> None:
    scores = score_direction(HYPOTHESES, REFERENCES, source="fr", target="en", tokenize=tokenize)
    assert scores.bleu == pytest.approx(sacrebleu.corpus_bleu(HYPOTHESES, [REFERENCES], tokenize=tokenize).score)
    assert f"tok:{tokenize}|" in scores.signatures("bleu")[0]
    assert f"version:{sacrebleu.__version__}" in scores.signatures("bleu")[0]
    assert f"version:{sacrebleu.__version__}" in scores.signatures("chrf")[0]


@pytest.mark.parametrize("target", ["zh", "zh-TW", "zh_CN", "zho_Hans", "ZH"])
def test_chinese_is_tokenised_as_chinese_and_says_so(target: str) -> None:
    scores = score_direction(CHINESE, CHINESE, source="en", target=target)
    assert scores.bleu == 100
    assert "tok:zh|" in scores.signatures("bleu")[0]


def test_a_code_that_only_begins_like_chinese_is_not_chinese() -> None:
    assert default_tokenizer("zha") == "13a"


@pytest.mark.parametrize(("mecab", "expected"), [(True, "ja-mecab"), (False, "char")])
def test_japanese_takes_mecab_where_it_is_installed(monkeypatch: pytest.MonkeyPatch, mecab: bool, expected: str) -> None:
    monkeypatch.setattr(scoring, "_installed", lambda module: mecab)
    assert default_tokenizer("ja") == expected


def test_japanese_can_be_scored_and_says_how() -> None:
    scores = score_direction(JAPANESE, JAPANESE, source="en", target="ja")
    assert scores.bleu == 100
    assert f"tok:{default_tokenizer('ja')}" in scores.signatures("bleu")[0]


def test_lines_that_do_not_pair_up_are_refused_with_their_counts() -> None:
    with pytest.raises(DataError, match=r"en-fr.* 2 hypotheses .* 3 references"):
        score_direction(HYPOTHESES[:2], REFERENCES, source="en", target="fr")
    with pytest.raises(DataError, match=r"1 hypotheses .* 3 references"):
        score_bleu(HYPOTHESES[:1], REFERENCES)
    with pytest.raises(DataError, match=r"1 hypotheses .* 3 references"):
        score_chrf(HYPOTHESES[:1], REFERENCES)


def test_nothing_to_score_is_refused() -> None:
    with pytest.raises(DataError, match="0 hypotheses"):
        score_direction([], [], source="en", target="fr")


def test_an_unknown_tokeniser_is_refused_with_the_nearest() -> None:
    with pytest.raises(ConfigError, match="did you mean 'flores200'"):
        score_bleu(HYPOTHESES, REFERENCES, tokenize="flores20")


def test_a_tokeniser_that_cannot_work_here_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    def unavailable(tokenize: str) -> None:
        raise RuntimeError("requires extra dependencies")

    unavailable.TOKENIZERS = ["13a", "ko-mecab"]  # type: ignore[attr-defined]
    monkeypatch.setattr(scoring, "BLEU", unavailable)
    with pytest.raises(GraftError, match=r"'ko-mecab' .*requires extra dependencies"):
        score_bleu(HYPOTHESES, REFERENCES, tokenize="ko-mecab")


def test_the_folder_needs_no_torch() -> None:
    folder = Path(scoring.__file__).parent
    assert not [path.name for path in folder.glob("*.py") if "import torch" in path.read_text(encoding="utf-8")]


@pytest.fixture(scope="module")
def pieces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A SentencePiece model of its own, small."""
    path = tmp_path_factory.mktemp("pieces") / "mine:1.model"
    with path.open("wb") as file:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter([*REFERENCES, *HYPOTHESES[:2]] * 5),
            model_writer=file,
            vocab_size=45,
            hard_vocab_limit=False,
            minloglevel=2,
        )
    return path


def test_a_local_sentencepiece_model_scores_as_the_same_one_does_in_sacrebleu(
    pieces: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scores = score_direction(HYPOTHESES, REFERENCES, source="fr", target="en", tokenize=f"spm:{pieces}")
    # sacreBLEU takes its FLORES model from here once it has downloaded it.
    (tmp_path / "models").mkdir()
    shutil.copy(pieces, tmp_path / "models" / "sacrebleu_tokenizer_spm.model")
    monkeypatch.setattr("sacrebleu.tokenizers.tokenizer_spm.SACREBLEU_DIR", str(tmp_path))
    peer = sacrebleu.metrics.BLEU(tokenize="flores101")
    assert scores.bleu == peer.corpus_score(HYPOTHESES, [REFERENCES]).score
    assert scores.bleu != score_bleu(HYPOTHESES, REFERENCES).value
    digest = hashlib.sha256(pieces.read_bytes()).hexdigest()[:12]
    # sacreBLEU's signature in all but the tokeniser, which says that it is not sacreBLEU's.
    signature = str(peer.get_signature()).replace("tok:flores101", f"tok:spm[mine_1.model,sha256={digest}]")
    assert scores.signatures("bleu")[0] == signature
    assert all(part.count(":") == 1 for part in signature.split("|"))


def test_a_sentencepiece_model_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"spm:.*nowhere\.model: .*No such file"):
        score_bleu(HYPOTHESES, REFERENCES, tokenize=f"spm:{tmp_path / 'nowhere.model'}")
    (tmp_path / "text.model").write_text("this is text", encoding="utf-8")
    with pytest.raises(ConfigError, match="not a SentencePiece model"):
        score_bleu(HYPOTHESES, REFERENCES, tokenize=f"spm:{tmp_path / 'text.model'}")


def test_text_that_is_meant_to_be_tokenised_is_not_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    tokenised = ["It works ."] * 120
    score_bleu(tokenised, tokenised, tokenize="none")
    assert not caplog.records
    score_bleu(tokenised, tokenised)
    assert "tokenized period" in caplog.text


def rows(direction: str, **values: float | None) -> Scores:
    source, target = direction.split("-")
    return Scores(Score(metric=name, value=value, source=source, target=target) for name, value in values.items())


TABLE = joined(
    [
        rows("el-en", bleu=30.0, chrf=60.0, off_target=None, lines=5).labelled(set="test", job="a"),
        rows("el-fr", bleu=20.0, chrf=50.0, off_target=0.5, lines=4).labelled(set="test", job="a"),
        rows("el-en", bleu=10.0, chrf=40.0, lines=9).labelled(set="valid", job="a"),
    ]
)


def test_parts_of_the_table() -> None:
    assert TABLE.sets == ["test", "valid"]
    assert TABLE.directions == ["el-en", "el-fr"]
    assert TABLE.select(set="valid").chrf == 40.0
    assert TABLE.select(set="test", directions=["el-fr"]).bleu == 20.0
    assert joined(TABLE.by_pair().values()).select(directions=["el-en"]) == TABLE.select(directions=["el-en"])


def test_means_are_of_what_is_known() -> None:
    test = TABLE.select(set="test")
    assert test.averages() == {"bleu": 25.0, "chrf": 55.0, "directions": 2, "off_target": 0.5}
    assert TABLE.select(set="valid").averages() == {"bleu": 10.0, "chrf": 40.0, "directions": 1}
    assert test.share("off_target") == 0.5
    assert Scores().share("chrf") is None


def test_figures_for_a_file_are_rounded_where_that_is_asked_for() -> None:
    found = rows("el-en", chrf=12.3456, lines=3.0, off_target=None).figures({"chrf": 1, "off_target": 2})
    assert found == {"chrf": pytest.approx(12.3), "lines": 3, "off_target": None}
    assert isinstance(found["lines"], int)
