"""What `foreign_base.py` takes along: text under NLLB-200's codes, and a tokenizer of transformers' own NLLB class.

    python benchmarks/foreign_text.py --corpus CORPUS -o runs/foreign

CORPUS is a folder of train.LANG and test.LANG files (`docs-l10n`, or any corpus with these languages). Files are copied under
NLLB's names of the languages, so that a machine without the network needs no library for them. The SentencePiece model is
learned from the text of the base's languages alone, without our casing and with SentencePiece's own normalisation. It is a BPE
model: transformers 5 makes a BPE tokenizer of whatever an NLLB folder has, so a unigram model cannot be had with this class.
(Tokenizers over unigram models, M2M-100's and mBART-50's, are compared in the tests.) Takes some minutes on one CPU core.
"""

from __future__ import annotations

import argparse
import io
import json
import random
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import sentencepiece

from graftmt.data import Corpus

BASE_LANGUAGES = {
    "en": "eng_Latn",
    "ar": "arb_Arab",
    "he": "heb_Hebr",
    "ru": "rus_Cyrl",
    "ko": "kor_Hang",
    "it": "ita_Latn",
    "ja": "jpn_Jpan",
    "zh_cn": "zho_Hans",
    "es": "spa_Latn",
    "fr": "fra_Latn",
    "pt_br": "por_Latn",
    "nl": "nld_Latn",
    "tr": "tur_Latn",
    "ro": "ron_Latn",
    "pl": "pol_Latn",
    "bg": "bul_Cyrl",
    "vi": "vie_Latn",
    "de": "deu_Latn",
    "fa": "pes_Arab",
    "hu": "hun_Latn",
}
NEW_LANGUAGES = {"el": "ell_Grek", "uk": "ukr_Cyrl"}
"""Added by packs; the model and its vocabulary never see them."""
SPLITS = ("train", "valid", "test")
SPECIALS = ("<s>", "<pad>", "</s>", "<unk>")


def main() -> None:
    arguments = parse_arguments()
    folder = arguments.output
    copy_text(arguments.corpus, folder / "corpus")
    tokenizer = make_tokenizer(folder / "corpus", folder / "tokenizer", arguments.pieces, arguments.lines)
    print(f"{folder}: {sum(file.stat().st_size for file in folder.rglob('*') if file.is_file()) / 2**20:.1f} MiB")
    print(json.dumps({"rows": len(tokenizer), "languages": list(BASE_LANGUAGES.values())}))


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--corpus", type=Path, default=Path("corpus"), help="its folder (default: %(default)s)")
    parser.add_argument("-o", "--output", type=Path, default=Path("runs/foreign"), help="default: %(default)s")
    parser.add_argument("--pieces", type=int, default=32_000, help="of the SentencePiece model (default: %(default)s)")
    parser.add_argument("--lines", type=int, default=15_000, help="of each language to learn it from (default: %(default)s)")
    return parser.parse_args()


def copy_text(corpus: Path, folder: Path) -> None:
    """The files of the languages that are needed, under other names; those of languages that the corpus lacks are left out."""
    folder.mkdir(parents=True, exist_ok=True)
    for split in SPLITS:
        files = Corpus.open(corpus, split).files
        for name, code in {**BASE_LANGUAGES, **NEW_LANGUAGES}.items():
            if name in files:
                suffix = files[name].name.removeprefix(f"{split}.{name}")
                shutil.copyfile(files[name], folder / f"{split}.{code}{suffix}")


def languages_of(corpus: Path) -> tuple[str, ...]:
    """Those of the base that a copied corpus has."""
    files = Corpus.open(corpus, "train").files
    return tuple(code for code in BASE_LANGUAGES.values() if code in files)


def make_tokenizer(corpus: Path, folder: Path, pieces: int, lines: int) -> Any:
    """An NllbTokenizer over a SentencePiece model of this text, with the codes of the base's languages alone."""
    from tokenizers import AddedToken
    from transformers import NllbTokenizer
    from transformers.tokenization_utils_sentencepiece import SentencePieceExtractor

    languages = languages_of(corpus)
    model = learn_pieces(sample(corpus, languages, lines), pieces)
    folder.mkdir(parents=True, exist_ok=True)
    stored = folder / "sentencepiece.bpe.model"
    stored.write_bytes(model)
    loaded = sentencepiece.SentencePieceProcessor(model_proto=model)
    tokens = [*SPECIALS, *(loaded.id_to_piece(row) for row in range(3, loaded.get_piece_size()))]
    vocabulary = {token: row for row, token in enumerate(tokens)}
    merges = [
        merge
        for merge in SentencePieceExtractor(str(stored)).extract(True)[2]
        if all(part in vocabulary for part in (*merge, "".join(merge)))
    ]
    stored.unlink()  # what transformers 5 saves is the tokenizer.json alone
    tokenizer = NllbTokenizer(
        vocab=vocabulary,
        merges=merges,
        _spm_precompiled_charsmap=character_rules(model),
        extra_special_tokens=[AddedToken(code, special=True) for code in languages],
        src_lang=languages[0],
    )
    tokenizer.save_pretrained(folder)
    return tokenizer


def sample(corpus: Path, languages: Sequence[str], lines: int) -> Iterator[str]:
    """So many lines of each language, at random, in a random order."""
    chance = random.Random(1)
    chosen: list[str] = []
    for language in languages:
        text = [line for line in Corpus.open(corpus, "train", [language]).lines(language) if line]
        chosen += chance.sample(text, min(lines, len(text)))
    chance.shuffle(chosen)
    return iter(chosen)


def learn_pieces(lines: Iterator[str], pieces: int) -> bytes:
    written = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=lines,
        model_writer=written,
        vocab_size=pieces,
        model_type="bpe",
        character_coverage=0.9998,
        max_sentence_length=8000,
        hard_vocab_limit=False,
        minloglevel=1,
        num_threads=1,
    )
    return written.getvalue()


def character_rules(model: bytes) -> bytes:
    from sentencepiece import sentencepiece_model_pb2

    return bytes(sentencepiece_model_pb2.ModelProto.FromString(model).normalizer_spec.precompiled_charsmap)


if __name__ == "__main__":
    main()
