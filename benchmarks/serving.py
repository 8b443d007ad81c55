"""Load on a server: many clients in mixed directions, batched against unbatched, each answer compared with the offline one.

    python benchmarks/serving.py --json serving.json             # 64 clients, 60 s each way, and the ratio
    python benchmarks/serving.py --minutes 60 --clients 8        # mixed requests, packs that come and go: memory and open files
    python benchmarks/serving.py --ray --json serving-ray.json   # two replicas on Ray, against one process without it

Starts `graftmt serve` with the demo's base, as it is and with --batch-tokens 1 or --ray, or talks to --url. Clients and
server share the machine: requests are made before the load begins, sent over plain sockets, and answers are looked at after it.
"""

from __future__ import annotations

import argparse
import asyncio
import html
import json
import os
import random
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from graftmt.server.application import places_of
from graftmt.server.serve_options import ServeOptions
from graftmt.translation_requests import Request
from graftmt.translator import Translator

LINES = {
    "en": "{n} days ago|in {n} weeks: Rome and Athens|{n} kilometers per hour|French and Greek, page {n}|Monday, {n} years ago",
    "fr": "il y a {n} jours|dans {n} semaines|{n} kilomètres par heure|Athènes et Rome {n}",
    "de": "vor {n} Tagen|in {n} Wochen|{n} Kilometer pro Stunde",
    "ru": "{n} дня назад|через {n} недель|{n} километров в час",
    "el": "πριν από {n} ημέρες|σε {n} εβδομάδες|{n} χιλιόμετρα ανά ώρα|Ρώμη και Αθήνα {n}",
}
TARGETS = ("en", "fr", "de", "es", "ru", "uk")
SCORE_TOLERANCE = 1e-4
PATIENCE = 120
KINDS = ("json", "json", "json", "form", "html", "list", "v1", "stream", "detect", "packs", "routes", "metrics")
"""What the clients of a long load send; plain requests come more often."""
PACK_SECONDS = 20.0
"""A pack comes or goes this often in a long load."""
WARM_UP, LEVEL = 10, 1.05
"""Minutes until memory has its level, and by how much it may be above that at the end."""

Line = tuple[str, str, str]
"""Text, source, target."""


@dataclass(frozen=True)
class Case:
    """One request as it goes over the wire, and the lines whose translations its answer has."""

    kind: str
    content: bytes
    lines: tuple[Line, ...] = ()


@dataclass
class Tally:
    """What came back, looked at later."""

    seconds: list[float] = field(default_factory=list)
    bodies: list[tuple[Case, bytes]] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)


def drawn_lines(count: int) -> list[Line]:
    """Lines with their directions, drawn once, so that the offline answers can be made before."""
    chance = random.Random(1)
    found = []
    for _ in range(count):
        source = chance.choice(list(LINES))
        target = chance.choice([code for code in TARGETS if code != source])
        line = chance.choice(LINES[source].split("|")).format(n=chance.randrange(2, 60))
        found.append((line, source, target))
    return found


def case_of(kind: str, lines: Sequence[Line]) -> Case:
    """`list` sends all the lines, which share a direction; the others the first."""
    text, source, target = lines[0]
    direction = {"source": source, "target": target}
    if kind in ("packs", "routes", "metrics"):
        path = "/metrics" if kind == "metrics" else f"/v1/{kind}"
        return Case(kind, f"GET {path} HTTP/1.1\r\nHost: a\r\n\r\n".encode())
    sent: dict[str, Any] = {"q": text, **direction}
    path, lines = "/translate", lines[:1] if kind != "list" else lines
    if kind == "html":
        sent |= {"q": f"<p>{html.escape(text)}</p>", "format": "html"}
    elif kind == "list":
        sent["q"] = [line for line, _, _ in lines]
    elif kind == "v1":
        path, sent["alternatives"] = "/v1/translate", 2
    elif kind == "stream":
        path = "/v1/translate/stream"
    elif kind == "detect":
        path, sent, lines = "/detect", {"q": text}, ()
    body, form = json.dumps(sent).encode(), "application/json"
    if kind == "form":
        body, form = urllib.parse.urlencode(sent).encode(), "application/x-www-form-urlencoded"
    head = f"POST {path} HTTP/1.1\r\nHost: a\r\nContent-Type: {form}\r\nContent-Length: {len(body)}\r\n\r\n"
    return Case(kind, head.encode() + body, tuple(lines))


def texts_of(case: Case, body: bytes) -> list[str]:
    """The translations in an answer."""
    if case.kind == "stream":
        return ["".join(part.get("text", "") for part in map(json.loads, body.splitlines()))]
    answer = json.loads(body)
    if case.kind == "v1":
        return [answer["texts"][0]["translations"][0]["text"]]
    found = answer["translatedText"]
    if case.kind == "html":
        return [html.unescape(found.removeprefix("<p>").removesuffix("</p>"))]
    return list(found) if case.kind == "list" else [found]


def offline_answers(wanted: list[Line]) -> tuple[Translator, dict[Line, tuple[str, float]]]:
    base, packs = places_of(ServeOptions(demo=True))
    translator = Translator(base, sorted(packs[0].iterdir()))
    unique = sorted(set(wanted))
    found = translator.translate_requests([Request(*each) for each in unique])
    return translator, {each: (ways[0].text, ways[0].score) for each, ways in zip(unique, found, strict=True)}


@contextmanager
def server(*arguments: str, log: Path) -> Iterator[tuple[str, int]]:
    """A `graftmt serve` of its own; its address and process."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "graftmt", "serve", "--port", str(port), "--log", str(log), "--quiet", *arguments]
    process = subprocess.Popen(command)
    url = f"http://127.0.0.1:{port}"
    try:
        for _ in range(1200):
            try:
                urllib.request.urlopen(url + "/ready", timeout=10).close()
                break
            except OSError:
                time.sleep(0.1)
        yield url, process.pid
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(PATIENCE)


# Clients


async def answer_of(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    """Status and body of the next answer."""
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    status, body = int(head[9:12]), b""
    _, found, rest = head.partition(b"content-length: ")
    if found:
        return status, await reader.readexactly(int(rest.partition(b"\r\n")[0]))
    while size := int(await reader.readuntil(b"\r\n"), 16):
        body += (await reader.readexactly(size + 2))[:-2]
    await reader.readexactly(2)
    return status, body


async def client(number: int, url: str, cases: Sequence[Case], until: float, tally: Tally) -> None:
    """Sends one request after the other over one connection until the time is up; makes another where it breaks."""
    place = urllib.parse.urlsplit(url)
    chance = random.Random(number)
    while time.monotonic() < until:
        try:
            reader, writer = await asyncio.open_connection(place.hostname, place.port)
            while time.monotonic() < until:
                case, started = chance.choice(cases), time.monotonic()
                writer.write(case.content)
                status, body = await asyncio.wait_for(answer_of(reader), PATIENCE)
                tally.seconds.append(time.monotonic() - started)
                if status == 200:
                    tally.bodies.append((case, body))
                else:
                    tally.errors.append(f"{case.kind} {status}: {body[:100].decode(errors='replace')}")
            writer.close()
        except (OSError, EOFError, ValueError, TimeoutError) as error:
            tally.errors.append(f"{type(error).__name__}: {error}")
            await asyncio.sleep(0.1)


def load(url: str, cases: Sequence[Case], clients: int, seconds: float) -> Tally:
    tally = Tally()

    async def all_clients() -> None:
        until = time.monotonic() + seconds
        await asyncio.gather(*(client(number, url, cases, until, tally) for number in range(clients)))

    asyncio.run(all_clients())
    return tally


# Figures


def check(tally: Tally, translator: Translator, right: dict[Line, tuple[str, float]]) -> dict[str, int]:
    """Answers that differ from the offline one, and those that are wrong: no n-best entry within the tolerance either."""
    other: Counter[tuple[Line, str]] = Counter()
    for case, body in tally.bodies:
        if case.lines:
            texts = texts_of(case, body)
            assert len(texts) == len(case.lines)
            other.update((line, text) for line, text in zip(case.lines, texts, strict=True) if text != right[line][0])
    wrong = 0
    for (line, text), count in other.items():
        ways = translator.translate([line[0]], source=line[1], target=line[2], n_best=5)[0]
        if not any(way.text == text and abs(way.score - right[line][1]) < SCORE_TOLERANCE for way in ways):
            wrong += count
    return {"ties": other.total() - wrong, "wrong": wrong}


def figures(tally: Tally, seconds: float) -> dict[str, Any]:
    ordered = sorted(tally.seconds)

    def percentile(share: float) -> float:
        return round(1000 * ordered[min(len(ordered) - 1, int(share * len(ordered)))], 1) if ordered else 0.0

    return {
        "answers": len(ordered),
        "errors": len(tally.errors),
        "per_second": round(len(ordered) / seconds, 1),
        "p50_ms": percentile(0.5),
        "p99_ms": percentile(0.99),
    }


def process_facts(pid: int) -> dict[str, Any]:
    status = Path(f"/proc/{pid}/status").read_text()
    resident = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS"))
    return {"resident_mb": round(resident / 1024, 1), "open_files": len(os.listdir(f"/proc/{pid}/fd"))}


def batch_counts(url: str) -> dict[str, float]:
    """Lines and batches so far, by the server's own metrics."""
    with urllib.request.urlopen(url + "/metrics", timeout=PATIENCE) as answer:
        lines = answer.read().decode().splitlines()
    found = dict(line.rsplit(" ", 1) for line in lines)
    return {part: float(found[f"graftmt_batch_lines_{part}"]) for part in ("sum", "count")}


def processor_seconds(pid: int | str) -> float:
    """Of a process, user and system: what its work costs, whatever else the machine does."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Bench:
    """One run of this benchmark: what is asked for, what is right, and what was found."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.lines = drawn_lines(600)
        self.translator, self.right = offline_answers(self.lines)
        self.results: dict[str, Any] = {"clients": options.clients}
        self.log = Path(tempfile.gettempdir()) / f"graftmt-serving-{os.getpid()}.log"

    def measure(self, name: str, url: str, pid: int | None = None, *, replicas: int = 1) -> None:
        """One way of serving under load. Of several replicas each counts its own batches, so that these are not known."""
        options, cases = self.options, [case_of("json", [line]) for line in self.lines]
        load(url, cases, min(options.clients, 8), min(5.0, options.seconds))  # compositions are made
        counts, own = batch_counts(url) if replicas == 1 else {}, processor_seconds("self")
        used = 0.0 if pid is None else processor_seconds(pid)
        tally = load(url, cases, options.clients, options.seconds)
        spent = {"clients_processor_seconds": round(processor_seconds("self") - own, 1)}
        if pid is not None:
            used = max(0.01, processor_seconds(pid) - used)
            spent |= {"processor_seconds": round(used, 1), "per_processor_second": round(len(tally.seconds) / used, 1)}
        if counts:
            after = batch_counts(url)
            lines, batches = (after[part] - counts[part] for part in ("sum", "count"))
            spent |= {"mean_batch": round(lines / max(1.0, batches), 1)}
        self.results[name] = figures(tally, options.seconds) | check(tally, self.translator, self.right) | spent
        print(name, self.results[name], tally.errors[:3], flush=True)

    def compare(self) -> None:
        """Batched against unbatched."""
        self.results["seconds"] = self.options.seconds
        for name, extra in (("batched", ()), ("unbatched", ("--batch-tokens", "1"))):
            with server("--demo", *extra, log=self.log) as (url, pid):
                self.measure(name, url, pid)
                self.results[name] |= process_facts(pid)
        self._ratio()

    def on_ray(self) -> None:
        """Two replicas on Ray against one process."""
        self.results["seconds"] = self.options.seconds
        with server("--demo", log=self.log) as (url, pid):
            self.measure("one process", url, pid)
        started = time.monotonic()
        with server("--demo", "--ray", "--replicas", "2", log=self.log) as (url, _):
            self.results["start_seconds"] = round(time.monotonic() - started, 1)
            self.measure("two replicas on Ray", url, replicas=2)
        one, two = (self.results[name]["per_second"] for name in ("one process", "two replicas on Ray"))
        self.results["ratio"] = round(two / max(0.1, one), 2)
        print("two replicas on Ray / one process:", self.results["ratio"])

    def _ratio(self) -> None:
        for ratio, figure in (("ratio", "per_second"), ("ratio_by_processor_time", "per_processor_second")):
            one, other = (self.results[name][figure] for name in ("batched", "unbatched"))
            self.results[ratio] = round(one / max(0.1, other), 2)
        print("batched / unbatched:", self.results["ratio"], "by processor time:", self.results["ratio_by_processor_time"])

    def soak(self) -> None:
        """Mixed requests for long, while packs come and go; memory and open files each minute."""
        base, (demo,) = places_of(ServeOptions(demo=True))
        with tempfile.TemporaryDirectory() as folder:
            packs = Path(folder) / "packs"
            shutil.copytree(demo, packs)
            with server("--base", str(base), "--packs", str(packs), log=self.log) as (url, pid):
                asyncio.run(self._minutes(url, pid, packs))
        minutes = self.results["minutes"]
        self.results["verdict"] = verdict(minutes)
        self.results["kinds"] = dict(sorted(self._kinds.items()))
        print("verdict:", self.results["verdict"])

    async def _minutes(self, url: str, pid: int, packs: Path) -> None:
        chance = random.Random(2)
        by_direction: dict[tuple[str, str], list[Line]] = {}
        for line in self.lines:
            by_direction.setdefault(line[1:], []).append(line)
        cases = [
            case_of(chance.choice(KINDS), chance.sample(group, min(8, len(group))))
            for group in by_direction.values()
            for _ in group
        ]
        self.results["minutes"], self._kinds = [], Counter[str]()
        coming = asyncio.create_task(come_and_go(packs))
        for minute in range(1, round(self.options.minutes) + 1):
            tally, until = Tally(), time.monotonic() + self.options.seconds
            await asyncio.gather(*(client(number, url, cases, until, tally) for number in range(self.options.clients)))
            self._kinds.update(case.kind for case, _ in tally.bodies)
            checked = await asyncio.to_thread(check, tally, self.translator, self.right)
            entry = {"minute": minute} | figures(tally, self.options.seconds) | checked | process_facts(pid)
            self.results["minutes"].append(entry)
            print(entry, tally.errors[:3], flush=True)
            self.write()
        coming.cancel()
        with suppress(asyncio.CancelledError):
            await coming

    def write(self) -> None:
        if self.options.json:
            self.options.json.write_text(json.dumps(self.results, indent=2) + "\n")


async def come_and_go(packs: Path) -> None:
    """A second Greek pack, equal to the first and taken before it, comes and goes; between them a damaged one."""
    second, damaged = packs / "el-other.graftpack", packs / "bad.graftpack"
    while True:
        shutil.copy(packs / "el-source.graftpack", second)
        await asyncio.sleep(PACK_SECONDS)
        second.unlink()
        damaged.write_bytes(os.urandom(5000))
        await asyncio.sleep(PACK_SECONDS)
        damaged.unlink()
        await asyncio.sleep(PACK_SECONDS)


def verdict(minutes: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Whether memory and descriptors at the end are where they were once the server was warm."""
    warm = min(WARM_UP, len(minutes) // 3)
    span = max(1, (len(minutes) - warm) // 4)
    early, late = minutes[warm : warm + span], minutes[-span:]
    memory = [statistics.median(entry["resident_mb"] for entry in part) for part in (early, late)]
    files = [max(entry["open_files"] for entry in part) for part in (early, late)]
    return {
        "memory": "level" if memory[1] <= LEVEL * memory[0] else "grows",
        "memory_mb": memory,
        "descriptors": "level" if files[1] <= files[0] else "grow",
        "open_files": files,
        "answers": sum(entry["answers"] for entry in minutes),
        "errors": sum(entry["errors"] for entry in minutes),
        "wrong": sum(entry["wrong"] for entry in minutes),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])  # type: ignore[union-attr]
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=60.0, help="of each way of serving")
    parser.add_argument("--minutes", type=float, default=0.0, help="mixed load on one server for so long instead")
    parser.add_argument("--url", help="a server that runs already, in place of our own")
    parser.add_argument("--ray", action="store_true", help="two replicas on Ray instead")
    parser.add_argument("--json", type=Path, help="write the figures there")
    options = parser.parse_args()
    bench = Bench(options)
    if options.url:
        bench.measure("server", options.url)
    elif options.minutes:
        bench.soak()
    elif options.ray:
        bench.on_ray()
    else:
        bench.compare()
    bench.log.unlink(missing_ok=True)
    bench.write()


if __name__ == "__main__":
    main()
