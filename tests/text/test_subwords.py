from __future__ import annotations

import io
import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest
import sentencepiece
from hypothesis import given
from hypothesis import strategies as st
from patience import PATIENCE

from graftmt.errors import DataError
from graftmt.text import Subwords, normalise
from graftmt.text import subwords as subwords_module
from graftmt.text.pretokenization import lowercase
from graftmt.text.subwords import BYTES, MARKERS, UNKNOWN

# Text that meets the tiny models' alphabets, markers, bytes and boundaries more often than st.text() does.
WORDS = ["The", "fox", "HTML", "iP", "été", "ß", "ẞ", "İ", "ǅ", "Ж", "ж", "Ѣ", "食", "ー", "👩", "١", "7", "⁇"]
SYMBOLS = ["▁", "<U>", "<T>", "<E>", "<0x41>", "</s>", "<unk>"]
CHARACTERS = [" ", "\t", "\u0301", "\u200d", "\0", "\x01", "\u2585", "\ufffd"]
LIKELY = st.lists(st.sampled_from(WORDS + SYMBOLS + CHARACTERS)).map("".join)
ANY = st.text() | LIKELY

NAMED = [
    "İstanbul",
    "ß STRASSE Straße GROẞ STRAßE",
    "Cafe\u0301 CAFE\u0301 e\u0301",
    "👩‍👩‍👧 👍🏽 🇫🇷",
    "الثعلب البني ١٢٣ میخواهم می\u200cخواهم",
    "שָׁלוֹם עולם",
    "<U> <T>x <E> <lang:fr> ▁ ▁▁a▁ <0x41> </s> <s> <pad> <unk>",
    "ǅ ǆ Ǆ ǅabc",
    "ΟΔΥΣΣΕΎΣ Οδυσσέας ς Σ",
    "HTMLParser iPhone McDonald's I URLs aB Ab AB",
    "K k K \x00 \x01 \x7f \ufeff \u2585 \U0010ffff",
]


@given(text=ANY)
def test_lossless_with_byte_fallback(with_bytes: Subwords, text: str) -> None:
    pieces = with_bytes.encode(text)
    assert with_bytes.decode(pieces) == normalise(text)
    assert set(pieces) <= {*with_bytes.pieces, *MARKERS}


@pytest.mark.parametrize("text", NAMED)
def test_named_texts_are_lossless(with_bytes: Subwords, text: str) -> None:
    assert with_bytes.decode(with_bytes.encode(text)) == text


@given(text=ANY)
def test_without_bytes_exactly_the_unknown_characters_are_lost(plain: Subwords, text: str) -> None:
    expected = "".join(c if c == " " or lowercase(c) in plain.alphabet else "⁇" for c in normalise(text))
    pieces = plain.encode(text)
    assert plain.decode(pieces) == expected
    unknown = sum(c != " " and lowercase(c) not in plain.alphabet for c in normalise(text))
    assert pieces.count(UNKNOWN) == unknown


def test_pieces_of_named_words(plain: Subwords) -> None:
    assert plain.encode("") == plain.encode(" \n\u3000") == []
    assert plain.encode("▁") == ["▁", "▁", "<E>"]
    assert plain.encode("I") == ["▁i", "<U>"] or plain.encode("I") == ["▁", "i", "<U>"]
    assert plain.encode("HTML")[-1] == "<U>"
    assert plain.encode("The") == ["▁the", "<T>"]
    assert plain.encode("Œ") == ["▁", "<unk>"]
    assert plain.encode("ŒŒ") == ["▁", "<unk>", "<unk>"]


def test_bytes_carry_the_lowercase_character_and_its_marker(with_bytes: Subwords) -> None:
    assert with_bytes.encode("Œ") == ["▁", "<0xC5>", "<0x93>", "<U>"]
    assert with_bytes.encode("œ") == ["▁", "<0xC5>", "<0x93>"]


def test_lone_surrogates_become_replacement_characters(with_bytes: Subwords) -> None:
    assert with_bytes.decode(with_bytes.encode("a\ud800b")) == "a\ufffdb" == normalise("a\ud800b")


def test_whitespace_is_normalised() -> None:
    assert normalise("  a\t\u3000b\n") == "a b"


@pytest.mark.parametrize(
    ("pieces", "text"),
    [
        (["<U>", "<E>", "▁a"], "a"),
        (["▁a", "<E>", "<U>"], "A"),
        (["▁a", "<T>", "<U>", "<T>"], "A"),
        (["▁", "<E>", "▁", "a"], "▁ a"),
        (["<unk>", "<U>", "b"], "⁇b"),
        (["▁", "<0xC3>", "▁b"], "\ufffd b"),
        (["<0xC3>", "<0xA9>", "<T>", "<0x62>"], "Éb"),
        (["<0x61>", "<0x62>", "<U>"], "aB"),
        (["<0xC3>", "<U>", "<0xA9>"], "\ufffd\ufffd"),
        (["a", "▁b"], "a b"),
        (["▁", "▁b"], " b"),
        ([], ""),
    ],
)
def test_decode_tolerates_what_a_model_may_write(plain: Subwords, pieces: list[str], text: str) -> None:
    assert plain.decode(pieces) == text


@given(data=st.data())
def test_decode_accepts_any_sequence(with_bytes: Subwords, data: st.DataObject) -> None:
    anything = st.sampled_from([*with_bytes.pieces, *MARKERS * 20, *BYTES, UNKNOWN])
    text = with_bytes.decode(data.draw(st.lists(anything)))
    text.encode("utf-8")


def test_caches_change_nothing(plain: Subwords, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [*NAMED, "The fox " * 3]
    expected = [plain.encode(text) for text in texts]
    assert [plain.encode(text) for text in texts] == expected
    monkeypatch.setattr(subwords_module, "CACHE_ENTRIES", 2)
    small = Subwords(plain.model_bytes)
    assert [small.encode(text) for text in texts] == expected
    assert len(small._word_cache) <= 2 and len(small._segment_cache) <= 2


def test_a_result_may_be_changed_by_its_owner(plain: Subwords) -> None:
    first = plain.encode("fox")
    first.append("changed")
    assert plain.encode("fox") == first[:-1]


def test_very_long_words(with_bytes: Subwords) -> None:
    word = "aБ1" * 20_000 + "x" * 100_000
    assert with_bytes.decode(with_bytes.encode(word)) == word


def test_saved_is_loaded_and_pickled(plain: Subwords, tmp_path: Path) -> None:
    plain.save(tmp_path / "model.spm")
    for copy in (Subwords.load(tmp_path / "model.spm"), pickle.loads(pickle.dumps(plain))):
        assert copy.model_bytes == plain.model_bytes
        assert copy.encode("The fox") == plain.encode("The fox")


def test_files_that_are_not_models(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="check the path"):
        Subwords.load(tmp_path / "none.spm")
    (tmp_path / "bad.spm").write_bytes(b"not a model")
    with pytest.raises(DataError, match=r"bad\.spm"):
        Subwords.load(tmp_path / "bad.spm")
    (tmp_path / "empty.spm").write_bytes(b"")
    with pytest.raises(DataError, match=r"empty\.spm"):
        Subwords.load(tmp_path / "empty.spm")


@pytest.mark.parametrize(
    ("options", "reason"),
    [({}, "special pieces"), ({"bos_id": -1, "eos_id": -1}, "changes text")],
)
def test_models_that_change_text_are_refused(options: dict[str, int], reason: str) -> None:
    model = io.BytesIO()
    lines = iter(["hello world, hello all the words of the world"] * 20)
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=lines, model_writer=model, vocab_size=30, model_type="bpe", minloglevel=2, **options
    )
    with pytest.raises(DataError, match=reason):
        Subwords(model.getvalue())


MUTATIONS = """
import random, sys
from pathlib import Path
from graftmt.errors import GraftError
from graftmt.text import Subwords, Tokenizer

model = Path(sys.argv[1]).read_bytes()
random.seed(1)
values = [0, 1, 0x7F, 0x80, 0xFF]
changes = [(place, value) for place in range(len(model)) for value in (*values, model[place] ^ 1, model[place] ^ 0x20)]
random.shuffle(changes)
counts = {"refused": 0, "loaded": 0}
for place, value in changes[:2500]:
    changed = bytearray(model)
    changed[place] = value
    if random.random() < 0.2:
        del changed[place : place + random.randrange(1, 40)]
    elif random.random() < 0.2:
        changed[place:place] = random.randbytes(random.randrange(1, 20))
    try:
        Tokenizer(Subwords(bytes(changed)), ("en",))
    except GraftError:
        counts["refused"] += 1
    else:
        counts["loaded"] += 1
print(counts["refused"], counts["loaded"])
"""


def test_whatever_changes_in_a_model_there_is_an_error_for_people_or_none(with_bytes: Subwords, tmp_path: Path) -> None:
    """In a process of its own, which SentencePiece could end."""
    with_bytes.save(tmp_path / "subwords.model")
    environment = {**os.environ, "PYTHONPATH": str(Path(subwords_module.__file__).parents[2])}
    command = [sys.executable, "-c", MUTATIONS, str(tmp_path / "subwords.model")]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr[-2000:]
    refused, loaded = map(int, done.stdout.split())
    assert refused + loaded == 2500 and refused > 200


def test_a_model_is_a_file_of_some_megabytes_at_most(tmp_path: Path) -> None:
    (tmp_path / "large.spm").write_bytes(b"")
    os.truncate(tmp_path / "large.spm", subwords_module.LARGEST_MODEL + 1)
    os.mkfifo(tmp_path / "pipe.spm")
    for name in ("large.spm", "pipe.spm"):
        with pytest.raises(DataError, match=name):
            Subwords.load(tmp_path / name)
