"""The cache of exported models keeps within its limit: what was unused for longest goes, and never what is in use."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from graftmt.errors import ConfigError
from graftmt.interop.model_cache import CHECKSUMS, ModelCache, cache_limit, is_whole

SIZE = 10_000


def writer(made: list[str], key: str) -> object:
    def write(place: Path) -> None:
        made.append(key)
        (place / "model.bin").write_bytes(key.encode() * SIZE)

    return write


def use(cache: ModelCache, made: list[str], key: str) -> None:
    with cache.model(key, writer(made, key)) as folder:  # type: ignore[arg-type]
        assert (folder / "model.bin").read_bytes() == key.encode() * SIZE


def keys(cache: ModelCache) -> set[str]:
    return {path.name for path in cache.folder.iterdir()}


def test_what_was_unused_for_longest_makes_room(tmp_path: Path) -> None:
    cache, made = ModelCache(tmp_path / "cache" / "kind", int(3.5 * SIZE)), list[str]()
    for moment, key in enumerate("abc"):
        use(cache, made, key)
        os.utime(cache.folder / key / CHECKSUMS, (moment, moment))
    use(cache, made, "a")  # used again, so that b is now the one unused for longest
    use(cache, made, "d")
    assert keys(cache) == {"a", "c", "d"} and made == ["a", "b", "c", "d"]
    use(cache, made, "b")
    assert keys(cache) == {"a", "b", "d"} and made[-1] == "b"


def test_one_model_may_be_larger_than_the_limit(tmp_path: Path) -> None:
    cache, made = ModelCache(tmp_path / "kind", 0), list[str]()
    for key in "aab":
        use(cache, made, key)
    assert keys(cache) == {"b"} and made == ["a", "b"]


def test_what_is_damaged_is_made_again_and_other_folders_stay(tmp_path: Path) -> None:
    cache, made = ModelCache(tmp_path / "kind", 0), list[str]()
    (cache.folder / "somebody-else").mkdir(parents=True)
    use(cache, made, "a")
    (cache.folder / "a" / "model.bin").write_bytes(b"x")
    assert not is_whole(cache.folder / "a")
    use(cache, made, "a")
    assert made == ["a", "a"] and keys(cache) == {"a", "somebody-else"}


def test_two_that_need_one_model_make_it_once(tmp_path: Path) -> None:
    cache, made = ModelCache(tmp_path / "kind", 10 * SIZE), list[str]()
    threads = [threading.Thread(target=use, args=(cache, made, "a")) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert made == ["a"]


def test_the_limit_is_read_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRAFTMT_CACHE_GB", "0.5")
    assert cache_limit() == 500_000_000
    for wrong in ("five", "-1", "nan", "inf"):
        monkeypatch.setenv("GRAFTMT_CACHE_GB", wrong)
        with pytest.raises(ConfigError, match="GRAFTMT_CACHE_GB"):
            cache_limit()
    monkeypatch.delenv("GRAFTMT_CACHE_GB")
    assert cache_limit() == 20_000_000_000
