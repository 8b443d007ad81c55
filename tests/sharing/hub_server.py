"""A server that speaks as much of the Hugging Face Hub's API as uploads and downloads use: repositories, commits, LFS."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit

LARGE = 10_000
"""Bytes from which a file is stored by LFS."""


@dataclass
class Hub:
    """Repositories by name: commits, oldest first, each a mapping of paths to contents."""

    address: str = ""
    repositories: dict[str, list[tuple[str, dict[str, bytes]]]] = field(default_factory=dict)
    branches: dict[tuple[str, str], str] = field(default_factory=dict)
    large: dict[str, bytes] = field(default_factory=dict)
    private: set[str] = field(default_factory=set)
    messages: list[str] = field(default_factory=list)
    asked: list[tuple[str, str, dict[str, str]]] = field(default_factory=list)
    token: str | None = None
    """If there is one, everything needs it."""
    storage: str | None = None
    """Where large files are redirected to, as the Hub does."""

    def commit(self, repository: str, files: dict[str, bytes], branch: str = "main") -> str:
        commits = self.repositories.setdefault(repository, [])
        number = hashlib.sha1(f"{repository}{len(commits)}".encode()).hexdigest()
        commits.append((number, files))
        self.branches[repository, branch] = number
        return number

    def files(self, repository: str, revision: str = "main") -> dict[str, bytes] | None:
        wanted = self.branches.get((repository, revision), revision)
        return next((files for number, files in self.repositories[repository] if number == wanted), None)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    hub: Hub

    def log_message(self, *arguments: object) -> None:
        pass

    def handle_one_request(self) -> None:
        try:
            super().handle_one_request()
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def answer(self, value: Any, status: int = 200, **headers: str) -> None:
        content = value if isinstance(value, bytes) else json.dumps(value).encode()
        self.send_response(status)
        for name, text in headers.items():
            self.send_header(name.replace("_", "-"), text)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def body(self) -> bytes:
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def dispatch(self) -> None:
        path = unquote(urlsplit(self.path).path)
        self.hub.asked.append((self.command, path, dict(self.headers)))
        content = self.body()
        presigned = path.startswith("/storage/")
        if self.hub.token is not None and not presigned and self.headers.get("Authorization") != f"Bearer {self.hub.token}":
            self.answer({"error": "Invalid username or password."}, 401)
            return
        for method, pattern, respond in ROUTES:
            if method == self.command and (found := re.fullmatch(pattern, path)):
                respond(self, content, **found.groupdict())
                return
        self.answer({"error": f"no {path}"}, 404)

    do_GET = do_POST = do_PUT = do_HEAD = dispatch

    def missing(self) -> None:
        self.answer({"error": "Repository not found"}, 404, X_Error_Code="RepoNotFound")

    def create(self, content: bytes) -> None:
        asked = json.loads(content)
        name = f"{asked['organization']}/{asked['name']}" if asked.get("organization") else asked["name"]
        if name in self.hub.repositories:
            self.answer({"error": "exists", "url": f"{self.hub.address}/{name}"}, 409)
            return
        self.hub.commit(name, {".gitattributes": b"*.safetensors filter=lfs\n"})
        if asked.get("private") or asked.get("visibility") == "private":
            self.hub.private.add(name)
        self.answer({"url": f"{self.hub.address}/{name}", "id": name})

    def info(self, content: bytes, repository: str, revision: str = "main") -> None:
        if repository not in self.hub.repositories:
            return self.missing()
        files = self.hub.files(repository, revision)
        if files is None:
            return self.answer({"error": "Revision not found"}, 404, X_Error_Code="RevisionNotFound")
        siblings: list[dict[str, Any]] = []
        for path, stored in files.items():
            blob = hashlib.sha1(b"blob %d\0" % len(stored) + stored).hexdigest()
            entry = {"rfilename": path, "size": len(stored), "blobId": blob}
            if len(stored) >= LARGE:
                sha = hashlib.sha256(stored).hexdigest()
                entry["lfs"] = {"sha256": sha, "size": len(stored), "pointerSize": 130}
            siblings.append(entry)
        number = self.hub.branches.get((repository, revision), revision)
        private = repository in self.hub.private
        facts = {"private": private, "tags": [], "downloads": 0}
        return self.answer({"id": repository, "sha": number, "siblings": siblings, **facts})

    def preupload(self, content: bytes, repository: str, revision: str) -> None:
        files = json.loads(content)["files"]
        modes = ["lfs" if file["size"] >= LARGE else "regular" for file in files]
        found = zip(files, modes, strict=True)
        self.answer({"files": [{"path": f["path"], "uploadMode": mode, "shouldIgnore": False} for f, mode in found]})

    def batch(self, content: bytes, repository: str) -> None:
        objects = [
            {
                "oid": one["oid"],
                "size": one["size"],
                "authenticated": True,
                "actions": {"upload": {"href": f"{self.hub.address}/storage/{one['oid']}", "header": {}}},
            }
            for one in json.loads(content)["objects"]
        ]
        self.answer({"transfer": "basic", "objects": objects})

    def store(self, content: bytes, oid: str) -> None:
        if hashlib.sha256(content).hexdigest() != oid:
            self.answer({"error": "wrong content"}, 400)
            return
        self.hub.large[oid] = content
        self.answer({})

    def make_commit(self, content: bytes, repository: str, revision: str) -> None:
        files = dict(self.hub.files(repository, revision) or self.hub.files(repository) or {})
        for line in content.splitlines():
            entry = json.loads(line)
            key, value = entry["key"], entry["value"]
            if key == "header":
                self.hub.messages.append(value["summary"])
            elif key == "file":
                files[value["path"]] = base64.b64decode(value["content"])
            elif key == "lfsFile":
                files[value["path"]] = self.hub.large[value["oid"]]
            elif key == "deletedFile":
                del files[value["path"]]
        number = self.hub.commit(repository, files, revision)
        self.answer({"success": True, "commitOid": number, "commitUrl": f"{self.hub.address}/{repository}/commit/{number}"})

    def resolve(self, content: bytes, repository: str, revision: str, path: str) -> None:
        files = self.hub.files(repository, revision) if repository in self.hub.repositories else None
        if files is None or path not in files:
            return self.answer({"error": "Entry not found"}, 404, X_Error_Code="EntryNotFound")
        if self.hub.storage is not None and len(files[path]) >= LARGE:
            return self.answer(b"", 302, Location=f"{self.hub.storage}/{hashlib.sha256(files[path]).hexdigest()}")
        return self.answer(files[path], ETag='"x"', X_Repo_Commit=revision)

    def validate(self, content: bytes) -> None:
        text = json.loads(content)["content"]
        self.answer({"errors": [], "warnings": []} if text.startswith("---\n") else {"errors": [{"message": "no header"}]})


_NAME = r"(?P<repository>[\w.-]+/[\w.-]+)"
ROUTES = (
    ("POST", "/api/repos/create", Handler.create),
    ("POST", "/api/validate-yaml", Handler.validate),
    ("GET", f"/api/models/{_NAME}", Handler.info),
    ("GET", f"/api/models/{_NAME}/revision/(?P<revision>.+)", Handler.info),
    ("POST", f"/api/models/{_NAME}/preupload/(?P<revision>.+)", Handler.preupload),
    ("POST", f"/{_NAME}.git/info/lfs/objects/batch", Handler.batch),
    ("PUT", "/storage/(?P<oid>[0-9a-f]{64})", Handler.store),
    ("POST", f"/api/models/{_NAME}/commit/(?P<revision>.+)", Handler.make_commit),
    ("GET", f"/{_NAME}/resolve/(?P<revision>[^/]+)/(?P<path>.+)", Handler.resolve),
)


@contextmanager
def serve_hub() -> Iterator[Hub]:
    hub = Hub()
    with ThreadingHTTPServer(("127.0.0.1", 0), type("Own", (Handler,), {"hub": hub})) as server:
        hub.address = f"http://127.0.0.1:{server.server_address[1]}"
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        try:
            yield hub
        finally:
            server.shutdown()
