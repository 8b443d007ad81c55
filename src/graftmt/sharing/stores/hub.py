"""A repository on the Hugging Face Hub, through huggingface_hub; files come over our own connections, with limits. Layer 5.

One commit is read: what is listed, and every file that is fetched, are of the same one.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from graftmt.documents import LARGEST_DOCUMENT
from graftmt.errors import ConfigError, GraftError
from graftmt.packs.archive import ARCHIVE
from graftmt.progress import Progress, SilentProgress, audience
from graftmt.sharing.checksums import Checksum
from graftmt.sharing.connections import PATIENCE, Patience, SharingError
from graftmt.sharing.hub_card import hub_card
from graftmt.sharing.index import INDEX, LARGEST_INDEX, Listing, parse_index
from graftmt.sharing.offers import DOCUMENTS, Offer, OfferedFile, check_path, facts_of
from graftmt.sharing.scanning import check_document, file_names
from graftmt.sharing.stores.store_protocol import Publication
from graftmt.sharing.transfer import copied, fetched

if TYPE_CHECKING:
    from huggingface_hub import HfApi

_ADDRESS = re.compile(r"hf:(?://)?(?P<repository>[\w.-]+/[\w.-]+?)(?:@(?P<revision>[^@]+))?")
MOST_DOCUMENTS = 500
"""Bases and packs that are looked at in one repository."""


class HubStore:
    """hf:OWNER/NAME, a model repository; after @ a branch, a tag or a commit."""

    form = "hf:OWNER/NAME[@REVISION] (the Hugging Face Hub)"

    def __init__(self, repository: str, revision: str | None = None, patience: Patience = PATIENCE) -> None:
        self.repository, self.revision, self.patience = repository, revision, patience
        self.address = f"hf:{repository}"
        self.commit = ""

    @staticmethod
    def knows(address: str) -> bool:
        return address.startswith("hf:")

    @classmethod
    def open(cls, address: str, revision: str | None) -> HubStore:
        found = _ADDRESS.fullmatch(address)
        if found is None:
            raise ConfigError(f"{address!r} is no repository of the Hub; expected hf:OWNER/NAME, such as hf:me/greek-packs.")
        if revision is not None and found["revision"] is not None:
            raise ConfigError(f"{address!r} has a revision, and --revision {revision} is another; give it once.")
        return cls(found["repository"], revision or found["revision"])

    @cached_property
    def api(self) -> HfApi:
        try:
            from huggingface_hub import HfApi
        except ImportError:
            raise GraftError("the Hugging Face Hub needs huggingface_hub: pip install 'graftmt[hub]'.") from None
        return HfApi(endpoint=os.environ.get("HF_ENDPOINT") or None, user_agent="graftmt")

    def listing(self, only: str | None = None) -> Listing:
        files = self._files()
        offers: list[Offer] = []
        for document, kind in (("pack.json", "pack"), ("base.json", "base")):
            found = [path for path in files if PurePosixPath(path).name == document]
            for path in found[:MOST_DOCUMENTS]:
                folder = str(PurePosixPath(path).parent)
                name = self.repository.partition("/")[2] if folder == "." else folder
                if only in (None, name) or len(found) == 1:
                    offers.append(self._offer(kind, name, folder, files))
        offers += self._archives(files)
        return Listing(tuple(sorted(offers, key=lambda offer: offer.name)), self.commit)

    def _files(self) -> dict[str, OfferedFile]:
        """The files at the commit by path, with sizes and checksums; others than ours may have any name, and are left out."""
        with self._errors():
            info = self._info(files_metadata=True)
        if not re.fullmatch(r"[0-9a-f]{40,64}", info.sha or ""):
            raise SharingError(f"{self.address}: the Hub did not say which commit this is.")
        self.commit = str(info.sha)
        found: dict[str, OfferedFile] = {}
        for one in info.siblings or ():
            try:
                check_path(one.rfilename)
                value = f"sha256:{one.lfs.sha256}" if one.lfs is not None else f"git-sha1:{one.blob_id}"
                checksum = Checksum.parse(value)
            except ValueError:
                continue
            if isinstance(one.size, int):
                found[one.rfilename] = OfferedFile(path=one.rfilename, size=one.size, checksum=checksum)
        return found

    def _info(self, *, files_metadata: bool = False) -> Any:
        seconds = self.patience.connect
        return self.api.model_info(self.repository, revision=self.revision, files_metadata=files_metadata, timeout=seconds)

    def _offer(self, kind: Any, name: str, folder: str, files: Mapping[str, OfferedFile]) -> Offer:
        """What one folder of the repository offers; its document is fetched for that."""

        def inside(file: str) -> str:
            return file if folder == "." else f"{folder}/{file}"

        file = files[inside(DOCUMENTS[kind][0])]
        where = f"{self.address}: {file.path}"
        document = check_document(kind, self._content(file, LARGEST_DOCUMENT, where), where)
        own = [files[inside(one)] for one in file_names(kind, document) if inside(one) in files]
        try:
            return Offer(name=name, files=tuple(own), **facts_of(kind, document))
        except ValueError as error:
            raise SharingError(f"{self.address} at {self.commit[:12]} cannot be used ({error}).") from None

    def _archives(self, files: Mapping[str, OfferedFile]) -> list[Offer]:
        """Packs that are single files: an index in the repository says what they are."""
        if INDEX not in files or not any(path.endswith(ARCHIVE) for path in files):
            return []
        where = f"{self.address}: {INDEX}"
        index = parse_index(self._content(files[INDEX], LARGEST_INDEX, where), where)
        return [offer for offer in index.offers if offer.is_archive and offer.files[0].path in files]

    def _content(self, file: OfferedFile, limit: int, where: str) -> bytes:
        if file.size > limit:
            raise SharingError(f"{where} has {file.size:,} bytes; expected at most {limit:,}.")
        with self.fetched(file, SilentProgress()) as path:
            return path.read_bytes()

    @contextmanager
    def fetched(self, file: OfferedFile, bar: Progress) -> Iterator[Path]:
        """From the Hub's own cache on this machine where it is there, else by download."""
        from huggingface_hub import hf_hub_url, try_to_load_from_cache
        from huggingface_hub.utils import build_hf_headers  # type: ignore[attr-defined]

        with self._errors():
            cached = try_to_load_from_cache(self.repository, file.path, revision=self.commit)
            url = hf_hub_url(self.repository, file.path, revision=self.commit, endpoint=self.api.endpoint)
            headers = build_hf_headers(user_agent="graftmt")
        if isinstance(cached, str) and os.path.getsize(cached) == file.size and file.checksum.fits(Path(cached)):
            with copied(Path(cached)) as copy:
                bar.update(file.size)
                yield copy
            return
        with fetched(url, file.size, file.checksum, headers, bar=bar, patience=self.patience) as path:
            yield path

    def destination(self, publication: Publication) -> str:
        name = publication.offer_name
        if name is not None:
            try:
                check_path(name)
            except ValueError as error:
                raise GraftError(f"the name cannot be used: {error}.") from None
            if name.endswith(ARCHIVE):
                raise GraftError(f"{name}: in a repository a pack is a folder, which can be looked at; leave {ARCHIVE} out.")
        return f"{self.address}{'' if name is None else '/' + name}"

    def put(self, publication: Publication) -> str:
        """One commit with all files; those of what was there before, and are not among them, go."""
        from huggingface_hub import CommitOperationAdd, CommitOperationDelete

        self.destination(publication)
        folder = "" if publication.offer_name is None else f"{publication.offer_name}/"
        card = DOCUMENTS[publication.offer.kind][2]
        contents: dict[str, Path | bytes] = dict(publication.files)
        contents[card] = hub_card(publication.offer, publication.files.get(card))
        operations: list[Any] = [
            CommitOperationAdd(path_in_repo=folder + name, path_or_fileobj=content) for name, content in contents.items()
        ]
        message = publication.message or f"{publication.offer.kind} {publication.offer.fingerprint[:16]}"
        with self._errors(), _bars(shown=audience().counts and sys.stderr.isatty()):
            self.api.create_repo(self.repository, private=publication.private, exist_ok=True, repo_type="model")
            there = set(self._replaced(folder)) - {folder + name for name in contents}
            operations += [CommitOperationDelete(path_in_repo=path) for path in sorted(there)]
            done = self.api.create_commit(self.repository, operations, commit_message=message, revision=self.revision)
        return str(done.oid)

    def _replaced(self, folder: str) -> Iterator[str]:
        """The files of the base or the pack that a commit takes the place of."""
        listed = self._info().siblings or ()
        names = {one.rfilename for one in listed}
        for document in ("pack.json", "base.json"):
            if folder + document in names:
                inside = (name for name in names if name.startswith(folder) and "/" not in name.removeprefix(folder))
                yield from filter(_is_ours, inside)

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """What huggingface_hub raises, as an error that says what to do."""
        from huggingface_hub import errors

        http_error: type[Exception] = errors.HfHubHTTPError.__mro__[1]  # of the HTTP library that this version of it uses
        try:
            yield
        except errors.GatedRepoError:
            raise SharingError(f"{self.address} asks for consent: open its page, agree, and log in (hf auth login).") from None
        except errors.RevisionNotFoundError:
            raise SharingError(f"{self.address} has no revision {self.revision!r}; look at its history.") from None
        except errors.RepositoryNotFoundError:
            raise SharingError(
                f"there is no repository {self.repository} on {self.api.endpoint}, or it is private: check the name, or log in "
                "(hf auth login)."
            ) from None
        except errors.LocalTokenNotFoundError:
            raise SharingError(f"{self.address}: the Hub has to know who you are. Log in first: hf auth login.") from None
        except errors.OfflineModeIsEnabled:
            raise SharingError("the Hub was not asked: HF_HUB_OFFLINE is set. Unset it.") from None
        except (errors.HFValidationError, http_error, OSError, ValueError, RuntimeError) as error:
            if isinstance(error, GraftError):
                raise
            if getattr(getattr(error, "response", None), "status_code", 0) in (401, 403):
                raise SharingError(
                    f"{self.address}: the Hub does not let you do that. Log in (hf auth login) with a token that may."
                ) from None
            reason = " ".join(str(error).split())[:300].rstrip(".") or type(error).__name__
            raise SharingError(f"{self.address}: the Hub could not be used ({reason}).") from None


@contextmanager
def _bars(*, shown: bool) -> Iterator[None]:
    """huggingface_hub draws progress bars of its own, also where standard error is a file."""
    from huggingface_hub.utils.tqdm import are_progress_bars_disabled, disable_progress_bars, enable_progress_bars

    before = are_progress_bars_disabled()
    if not shown:
        disable_progress_bars()
    try:
        yield
    finally:
        if not before:
            enable_progress_bars()


def _is_ours(path: str) -> bool:
    name = PurePosixPath(path).name
    return name != ".gitattributes" and not name.endswith(ARCHIVE) and name != INDEX
