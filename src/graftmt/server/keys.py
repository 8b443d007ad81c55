"""API keys: a file of hashes, with a limit each; the keys themselves are shown once and stored nowhere. Layer 6."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from dataclasses import dataclass
from pathlib import Path

from graftmt.documents import read_json, write_json
from graftmt.errors import ConfigError
from graftmt.folders import make_folder

PREFIX = "gk_"
LONGEST_KEY = 200
WHAT = "the file of API keys"


@dataclass(frozen=True)
class ApiKey:
    """What is known of a key; 0 is no limit."""

    name: str
    hash: str
    rate: int = 0
    """Requests a minute."""
    characters: int = 0
    """Characters a minute."""


class Keys:
    """The keys of one file, read anew when the file changes: a key is revoked by deleting its entry."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._stamp = (-1, -1)
        self._keys: tuple[ApiKey, ...] = ()
        self._read()

    def find(self, key: str) -> ApiKey | None:
        """The entry of a key. Every entry is compared, each in constant time."""
        self._read()
        given = hash_of(key[:LONGEST_KEY])
        found = None
        for one in self._keys:
            if hmac.compare_digest(one.hash, given):
                found = one
        return found

    def _read(self) -> None:
        try:
            stat = self.path.stat()
        except OSError:
            if self._stamp == (-1, -1):
                raise ConfigError(
                    f"--keys: there is no file {self.path}; make one with `graftmt serve --keys {self.path} --new-key NAME`."
                ) from None
            return  # gone for a moment: the keys that were read stay
        stamp = stat.st_mtime_ns, stat.st_ino
        if stamp != self._stamp:
            self._keys = tuple(stored_keys(self.path))
            self._stamp = stamp


def stored_keys(path: Path) -> list[ApiKey]:
    document = read_json(path, WHAT)
    try:
        return [
            ApiKey(str(name), str(entry["sha256"]), int(entry.get("rate", 0)), int(entry.get("characters", 0)))
            for name, entry in document["keys"].items()
        ]
    except (KeyError, TypeError, ValueError, AttributeError):
        raise ConfigError(f'{WHAT}: {path} is damaged; expected {{"keys": {{NAME: {{"sha256": …}}}}}}.') from None


def new_key(path: Path, name: str, *, rate: int = 0, characters: int = 0) -> str:
    """Adds a key to the file, which is made if there is none; returns the key, which nothing else knows."""
    if not name.isprintable() or not 1 <= len(name) <= 60:
        raise ConfigError(f"the name of a key is {name!r}; expected 1 to 60 printable characters.")
    known = stored_keys(path) if path.exists() else []
    if any(one.name == name for one in known):
        raise ConfigError(f"{path} has a key {name!r} already; delete that entry first, or choose another name.")
    key = PREFIX + secrets.token_urlsafe(32)
    known.append(ApiKey(name, hash_of(key), rate, characters))
    entries = {one.name: {"sha256": one.hash, "rate": one.rate, "characters": one.characters} for one in known}
    make_folder(path.parent)
    write_json(path, {"kind": "api keys", "format": 1, "keys": entries})
    path.chmod(0o600)
    return key


def hash_of(key: str) -> str:
    """Keys are random and long, so that one fast hash is enough."""
    return hashlib.sha256(key.encode("utf-8", errors="replace")).hexdigest()
