"""The augmented corpus: what is in it, that nothing which stops its making changes it, and that packs train on it."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from graftmt.augmentation import augmenting as run_module
from graftmt.augmentation.assembly import DROPPED
from graftmt.augmentation.augment_options import AugmentOptions
from graftmt.augmentation.augmenting import augment, augment_training
from graftmt.augmentation.chunks import Translated
from graftmt.base import Base
from graftmt.data import Corpus
from graftmt.errors import DataError, GraftError, LanguageError
from graftmt.files import atomic_folder
from graftmt.progress import heard_by
from graftmt.training import Stopped

KNOWN = ("en", "fr", "ru")


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def read(folder: Path, split: str = "train") -> dict[str, list[str]]:
    corpus = Corpus.open(folder, split)
    return corpus.texts(corpus.languages)


@pytest.fixture
def options(demo_base: Path, corpus: Path, tmp_path: Path) -> AugmentOptions:
    """60 translated lines for each language, in chunks of 16."""
    return AugmentOptions(
        new=("el",),
        base=demo_base,
        train=(str(corpus),),
        languages=("fr", "ru"),
        spec="60-bt",
        output=tmp_path / "out",
        chunk_lines=16,
        device="cpu",
    )


def quietly(options: AugmentOptions, **more: Any) -> Any:
    return augment(options, **more)


# What is in it


def test_translated_lines_stand_beside_the_text_they_are_of(options: AugmentOptions, corpus: Path) -> None:
    result = quietly(options)
    texts, before = read(options.output), read(corpus)
    assert set(texts) == {"el", *KNOWN}
    assert texts["el"] == before["el"] and texts["en"] == before["en"]
    for language in ("fr", "ru"):
        counts = result.report["languages"][language]
        assert counts["chosen"] == 60
        assert sum(map(bool, texts[language])) == counts["lines"] == result.report["pairs"][f"el-{language}"]
        assert 57 <= counts["lines"] == 60 - sum(counts[reason] for reason in DROPPED)
        right = sum(text == other for text, other in zip(texts[language], before[language], strict=True) if text)
        assert right > 45  # a teacher worth the name
    assert all(read(options.output, split) == read(corpus, split) for split in ("valid", "test"))
    assert not options.work.exists()


@pytest.mark.parametrize("split", ["valid", "test"])
def test_another_split_of_unequal_lengths_is_named_before_anything_is_translated(
    options: AugmentOptions, corpus: Path, tmp_path: Path, split: str
) -> None:
    copy = Path(shutil.copytree(corpus, tmp_path / "copy"))
    path = copy / f"{split}.fr.txt"
    path.write_text("".join(path.read_text(encoding="utf-8").splitlines(keepends=True)[:-1]), encoding="utf-8")
    with pytest.raises(DataError, match=rf"{split}\.fr\.txt"):
        quietly(replace(options, train=(str(copy),)))
    assert not options.output.exists() and not options.work.exists()


def test_the_folder_says_how_it_was_made(options: AugmentOptions) -> None:
    quietly(options)
    document = json.loads((options.output / "corpus.json").read_text(encoding="utf-8"))
    made = document["augmentation"]
    base = json.loads((options.base / "base.json").read_text(encoding="utf-8"))
    assert made["teacher"]["fingerprint"] == base["fingerprint"]
    assert (made["spec"], made["seed"], made["beam"], made["languages"]) == ("60-bt", 1, 1, ["fr", "ru"])
    assert made["report"]["languages"]["fr"].keys() >= {"chosen", "copies", "duplicates", "lines"}
    assert made["report"]["repeated"] == 10
    assert document["lines"] == {"train": 240, "valid": 20, "test": 20}


def test_real_lines_are_those_of_the_corpus(options: AugmentOptions, corpus: Path) -> None:
    result = quietly(replace(options, spec="60", languages=("ru",)))
    texts, before = read(options.output), read(corpus)
    assert set(texts) == {"el", "en", "ru"}
    assert sum(map(bool, texts["ru"])) == 60 == result.report["pairs"]["el-ru"]
    assert all(text in ("", other) for text, other in zip(texts["ru"], before["ru"], strict=True))
    assert "teacher" not in json.loads((options.output / "corpus.json").read_text(encoding="utf-8"))["augmentation"]


def test_multi_aligned_is_the_whole_corpus(options: AugmentOptions, corpus: Path) -> None:
    quietly(replace(options, spec="multi-aligned"))
    assert read(options.output) == read(corpus)


def test_multi_aligned_back_translated_has_as_many_lines_as_are_real_and_different(
    options: AugmentOptions, corpus: Path
) -> None:
    result = quietly(replace(options, spec="multi-aligned-bt", languages=("fr",)))
    different = len(set(read(corpus)["en"]))
    assert {counts["chosen"] for counts in result.report["languages"].values()} == {different}


def test_copies_and_duplicates_are_counted_and_dropped_or_kept(
    options: AugmentOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Copying(run_module.BackTranslator):
        def __call__(self, chunks: Any) -> Any:
            return [self.copied(chunk) for chunk in chunks]

        def copied(self, chunk: Any) -> Translated:
            texts = tuple(source if n % 4 == 0 else "same" for n, source in enumerate(chunk.texts))
            copies = tuple(line for n, line in enumerate(chunk.lines) if n % 4 == 0)
            return Translated(chunk.language, chunk.number, chunk.lines, texts, copies=copies)

    monkeypatch.setattr(run_module, "BackTranslator", Copying)
    cases = {(False, False): 1, (True, False): 16, (False, True): 45, (True, True): 60}
    for number, ((copies, duplicates), lines) in enumerate(cases.items()):
        output = options.output / str(number)
        result = quietly(replace(options, output=output, keep_copies=copies, keep_duplicates=duplicates))
        counts = result.report["languages"]["fr"]
        assert (counts["copies"], counts["duplicates"], counts["lines"]) == (15, 44, lines)
        assert sum(map(bool, read(output)["fr"])) == lines


@pytest.mark.slow
def test_another_teacher_and_files_by_name(options: AugmentOptions, other_teacher: Path, corpus: Path) -> None:
    quietly(options)
    files = tuple(f"{language}={corpus / f'train.{language}.txt'}" for language in ("el", "en"))
    other = replace(options, train=files, teacher=other_teacher, output=options.output / "post")
    quietly(other)
    assert {path.name.split(".")[0] for path in other.output.iterdir()} == {"corpus", "train"}
    assert read(other.output)["el"] == read(options.output)["el"]
    assert read(other.output)["fr"] != read(options.output)["fr"]
    cyrillic = [text for text in read(other.output)["fr"] if any("а" <= letter <= "я" for letter in text)]
    assert len(cyrillic) > 50


def test_files_that_tell_their_language_and_folders_with_an_equals_sign(
    options: AugmentOptions, corpus: Path, tmp_path: Path
) -> None:
    options = replace(options, spec="8")
    quietly(options)
    folder = shutil.copytree(corpus, tmp_path / "size=1k")
    in_folder = replace(options, train=(str(folder),), output=tmp_path / "a")
    files = tuple(str(folder / f"train.{language}.txt") for language in ("el", "en", "fr", "ru"))
    by_file = replace(options, train=files, output=tmp_path / "b")
    for other in (in_folder, by_file):
        quietly(other)
        assert read(other.output) == read(options.output)
    assert (in_folder.output / "test.el.txt").is_file()


def test_a_corpus_of_segmented_text_says_so_too(options: AugmentOptions, corpus: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(corpus, tmp_path / "words")
    (folder / "corpus.json").write_text(json.dumps({"segmented": ["fr", "zh"]}), encoding="utf-8")
    quietly(replace(options, spec="8", train=(str(folder),)))
    assert json.loads((options.output / "corpus.json").read_text(encoding="utf-8"))["segmented"] == ["fr"]


# Being stopped


@pytest.mark.slow
def test_stopped_at_any_write_and_started_again_the_result_is_the_same(
    options: AugmentOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every moment at which a file or a folder takes its name, in turn, is the last one of a process."""
    resident = Base.load(options.base)
    quietly(replace(options, output=options.output / "whole"), resident=resident)
    expected = contents(options.output / "whole")

    class Killed(BaseException):
        pass

    stops = 0
    again = replace(options, output=options.output / "stopped")
    while True:
        writes = 0

        last = 1 + stops % 3  # none, one or two get through

        def replace_or_die(old: Any, new: Any, last: int = last, real: Callable[..., None] = os.replace) -> None:
            nonlocal writes
            writes += 1
            if writes == last:
                raise Killed
            real(old, new)

        with monkeypatch.context() as patch:
            patch.setattr(os, "replace", replace_or_die)
            try:
                result = quietly(again, resident=resident)
                break
            except Killed:
                stops += 1
    assert stops >= 8  # as many as there are chunks
    assert contents(again.output) == expected
    assert result.translated <= 32  # of 120: the rest was not done twice
    assert {path.name for path in again.output.parent.iterdir()} == {"whole", "stopped"}


def run_and_kill(start: Callable[..., Any], arguments: list[str], work: Path, chance: random.Random, seconds: float) -> bool:
    """Kills the process at a random moment after its first chunk of its own; False where it was faster."""
    before = len(list(work.glob("*-*.json")))
    process = start("augment", *arguments)
    while process.poll() is None and len(list(work.glob("*-*.json"))) <= before:
        time.sleep(0.005)
    time.sleep(chance.uniform(0, seconds))
    process.send_signal(signal.SIGKILL)
    process.communicate()
    return int(process.returncode) == -signal.SIGKILL


@pytest.mark.slow
def test_killed_and_started_again_nothing_is_lost_or_duplicated(
    options: AugmentOptions, start_graftmt: Callable[..., Any]
) -> None:
    whole, killed = options.output / "whole", options.output / "killed"
    quietly(replace(options, output=whole, chunk_lines=2))
    arguments = ["el", "-b", str(options.base), "--train", options.train[0], "--spec", "60-bt", "-q", "--device", "cpu"]
    arguments += ["--chunk", "2", "--languages", "fr,ru", "-o", str(killed)]
    chance = random.Random(1)
    assert run_and_kill(start_graftmt, arguments, killed.with_name("killed.work"), chance, 0.1)
    done = contents(killed.with_name("killed.work"))
    result = quietly(replace(options, output=killed, chunk_lines=2))
    chunks = sum(name.startswith(("fr-", "ru-")) for name in done)
    assert 0 < chunks < 60
    assert result.translated == 120 - 2 * chunks
    assert contents(killed) == contents(whole)


@pytest.fixture(scope="module")
def demo_corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from graftmt.demo.phrase_corpus import write_corpus

    folder = tmp_path_factory.mktemp("demo") / "corpus"
    write_corpus(folder, ("en", "el"), train_lines=3000, valid_lines=50, test_lines=50)
    return folder


@pytest.mark.slow
def test_a_thousand_demo_lines_killed_again_and_again_here_and_on_ray(
    demo_base: Path, demo_corpus: Path, start_graftmt: Callable[..., Any], tmp_path: Path
) -> None:
    options = AugmentOptions(
        new=("el",),
        base=demo_base,
        train=(str(demo_corpus),),
        spec="1k-bt",
        output=tmp_path / "whole",
        device="cpu",
    )
    started = time.monotonic()
    result = quietly(options)
    moment = (time.monotonic() - started) / 8  # so that several kills fit in, however fast the machine is
    expected = contents(tmp_path / "whole")
    assert all(counts["lines"] >= 980 for counts in result.report["languages"].values())
    arguments = ["el", "-b", str(demo_base), "--train", str(demo_corpus), "--spec", "1k-bt", "-q", "--device", "cpu"]
    chance = random.Random(2)
    killed = tmp_path / "killed"
    kills = 0
    while kills < 12 and run_and_kill(
        start_graftmt, [*arguments, "-o", str(killed)], killed.with_name("killed.work"), chance, moment
    ):
        kills += 1
    assert kills >= 3
    again = quietly(replace(options, output=killed))
    assert contents(killed) == expected
    assert again.translated < 4000
    on_ray = tmp_path / "ray"
    ray_arguments = [*arguments, "--engine", "ray", "--workers", "2", "-o", str(on_ray)]
    assert run_and_kill(start_graftmt, ray_arguments, on_ray.with_name("ray.work"), chance, moment)
    again = quietly(replace(options, output=on_ray, engine="ray", workers=2))
    assert 0 < again.translated < 4000
    assert contents(on_ray) == expected
    assert {path.name for path in tmp_path.iterdir()} == {"whole", "killed", "ray"}


# Being asked again


@pytest.mark.slow
def test_the_time_given_ends_it_after_a_chunk_and_the_same_call_goes_on(options: AugmentOptions, tmp_path: Path) -> None:
    counts = []
    while not options.output.exists():
        with suppress(Stopped):
            quietly(replace(options, minutes=0))
        counts.append(len(list(options.work.glob("*-*.json"))))
    assert counts == [*range(1, len(counts)), 0]
    assert len(counts) > 3
    quietly(replace(options, output=tmp_path / "whole"))
    assert read(tmp_path / "whole") == read(options.output)


def test_a_result_that_is_there_is_not_made_again(options: AugmentOptions) -> None:
    first = quietly(options)
    second = quietly(options)
    assert (second.made_before, second.translated) == (True, 0)
    assert second.report == first.report


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"beam": 2}, "beam was 1, is 2"),
        ({"seed": 2}, "seed was 1, is 2"),
        ({"spec": "9-bt"}, "spec was 8-bt, is 9-bt"),
        ({"languages": ("fr",)}, "languages was fr, ru, is fr"),
        ({"keep_copies": True}, "keep_copies was False, is True"),
    ],
)
def test_another_result_is_not_overwritten_unless_asked(options: AugmentOptions, changes: dict[str, Any], said: str) -> None:
    options = replace(options, spec="8-bt")
    quietly(options)
    before = contents(options.output)
    with pytest.raises(GraftError, match=f"made otherwise: {said}.*--fresh"):
        quietly(replace(options, **changes))
    assert contents(options.output) == before
    quietly(replace(options, **changes, fresh=True))
    assert contents(options.output) != before
    assert not options.work.exists()


@pytest.mark.slow
def test_unfinished_work_notices_another_text_or_teacher(
    options: AugmentOptions,
    other_teacher: Path,
    corpus: Path,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    copy = shutil.copytree(corpus, tmp_path / "corpus")
    options = replace(options, train=(str(copy),))
    with monkeypatch.context() as patch:
        patch.setattr(run_module, "write_augmented", lambda *arguments: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            quietly(options)
    assert options.work.is_dir()
    with pytest.raises(GraftError, match="unfinished work that was begun otherwise: teacher fingerprint was"):
        quietly(replace(options, teacher=other_teacher))
    lines = (copy / "train.en.txt").read_text(encoding="utf-8").splitlines()
    (copy / "train.en.txt").write_text("\n".join(["3 days ago", *lines[1:]]) + "\n", encoding="utf-8")
    with pytest.raises(GraftError, match=r"train\.en has changed"):
        quietly(options)
    result = quietly(replace(options, fresh=True))
    assert result.translated == 120


def test_a_folder_of_something_else_is_left_alone(options: AugmentOptions, corpus: Path) -> None:
    with pytest.raises(GraftError, match="not a corpus"):
        quietly(replace(options, output=corpus, fresh=True))
    assert not corpus.with_name(f"{corpus.name}.work").exists()


def test_a_result_with_something_else_in_it_is_not_replaced(options: AugmentOptions) -> None:
    options = replace(options, spec="8")
    quietly(options)
    with pytest.raises(GraftError, match="holds what is to be read"):
        quietly(replace(options, train=(str(options.output),), fresh=True))
    (options.output / "notes.md").write_text("mine", encoding="utf-8")
    with pytest.raises(GraftError, match=r"other things in it \(notes\.md\)"):
        quietly(replace(options, fresh=True))
    assert (options.output / "notes.md").read_text(encoding="utf-8") == "mine"


def test_what_another_writes_beside_it_stays(options: AugmentOptions) -> None:
    """In `.out.v2.k3jd8_xa.tmp`: half of a corpus called out.v2."""
    with atomic_folder(options.output.with_name("out.v2")) as other:
        (other / "train.en.txt").write_text("half", encoding="utf-8")
        quietly(replace(options, spec="8"))
        assert (other / "train.en.txt").read_text(encoding="utf-8") == "half"


def test_two_processes_do_not_spoil_each_others_work(options: AugmentOptions) -> None:
    from graftmt.folders import exclusive

    with exclusive(options.work, "the work"), pytest.raises(GraftError, match="in use by another process"):
        quietly(options)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"new": ("fr",)}, "fr is already one of the base's languages"),
        ({"new": ("kab",)}, "has no train text for language 'kab'"),
        ({"languages": ("fr", "rru")}, "'rru' is not one of the base's languages; did you mean 'ru'"),
        ({"languages": ("en",)}, "'en' is the pivot"),
        ({"pivot": "de", "languages": None}, "--pivot: 'de' is not among the base's languages"),
        ({"train": ("el=x",)}, "there is no file x; check the path. Expected a folder, or LANG=FILE"),
        ({"train": (f"zz={__file__}",)}, "'zz' is neither to be added nor one of the base's languages"),
        ({"train": (f"en={__file__}",)}, "no train file is in el, the language to add"),
    ],
)
def test_what_cannot_be_is_refused(options: AugmentOptions, changes: dict[str, Any], message: str) -> None:
    with pytest.raises((LanguageError, DataError), match=message):
        quietly(replace(options, **changes))
    assert not options.output.exists() and not options.work.exists()


# Training on it


@pytest.mark.slow
@pytest.mark.parametrize("side", ["source", "target"])
def test_a_pack_trains_on_it(options: AugmentOptions, tmp_path: Path, side: Any) -> None:
    from graftmt.adding.add_options import AddOptions
    from graftmt.api import add_with

    options = replace(options, spec="20-bt", languages=("fr", "ru"))
    quietly(options)
    asked = AddOptions(
        languages=("el",),
        base=options.base,
        train=(str(options.output),),
        side=side,
        partners=("all",),
        run=tmp_path / "run",
        steps=2,
        merges=20,
        device="cpu",
        test_lines=2,
        beam=1,
        overrides=("threads=1", "tensorboard=false"),
    )
    (result,) = add_with(asked)
    assert set(result.corpus.partners) == set(KNOWN)
    assert result.verdict is not None
    pairs = {f"el-{name}" if side == "source" else f"{name}-el" for name in KNOWN}
    assert {name for name, entry in result.verdict.scores.items() if not entry["zero_shot"]} == pairs


def test_add_augments_what_it_trains_on(options: AugmentOptions, corpus: Path) -> None:
    train = Corpus.open(corpus, "train", ["el", "en"])
    said: list[str] = []
    with heard_by(said.append):
        made = augment_training(
            train,
            spec="10 lines per lang (BT)",
            new=["el"],
            base=options.base,
            folder=options.output,
            resident=Base.load(options.base),
            device="cpu",
        )
    assert made.languages == ("el", "en", "de", "es", "fr", "ru")
    assert list(made.lines("el")) == list(train.lines("el"))
    assert any("10 lines per lang (BT): 240 lines in" in line for line in said)
