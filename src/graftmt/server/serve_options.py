"""What `graftmt serve` can be asked for: declared once, for the command line and Python. Layer 6."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from graftmt.errors import ConfigError
from graftmt.options import option

SERVED, ADDRESS, LOAD, LIMITS, PEOPLE = "What to serve", "Address", "Batches and time", "Limits", "Keys, logs, jobs"
MACHINES = "Several machines"
REPLICAS = "1-4"


@dataclass(frozen=True, kw_only=True)
class ServeOptions:
    """All options of the server."""

    base: Path | None = option("--base", "-b", default=None, group=SERVED)
    """Folder of the base, such as runs/demo/base. Not needed with --demo."""
    packs: tuple[Path, ...] = option("--packs", "-p", default=(), commas=True, group=SERVED)
    """Packs, or folders of packs, with commas. Folders are watched: what is put there is served, what is removed is not."""
    demo: bool = option("--demo", default=False, group=SERVED)
    """Serve the demo's base and its two packs, which come with graftmt."""

    host: str = option("--host", default="127.0.0.1", group=ADDRESS)
    """Address to listen on. 0.0.0.0 is all of this machine's: use --keys then, or a proxy in front."""
    port: int = option("--port", default=5000, group=ADDRESS, least=0, most=65535)
    """Port to listen on; 0 chooses a free one."""
    cors: tuple[str, ...] = option("--cors", default=(), group=ADDRESS, commas=True)
    """Origins whose pages may call the API, such as https://example.org; * is all. Default: none."""

    device: str = option("--device", default="auto", group=LOAD)
    """cpu, cuda, or auto: a GPU where there is one."""
    dtype: str = option("--dtype", default="fp32", group=LOAD)
    """fp32, bf16, fp16, or on a CPU int8: the precision in which the model runs."""
    beam: int = option("--beam", default=5, group=LOAD, least=1, most=64)
    """Hypotheses kept at each step; 1 is greedy search, quicker and a little worse."""
    wait_ms: float = option("--wait-ms", default=5.0, group=LOAD, least=0, most=10_000)
    """Milliseconds that a request waits for others to share its batch, if nothing else is under way."""
    batch_tokens: int = option("--batch-tokens", default=0, group=LOAD, least=0)
    """Source tokens × beam in one batch; 0 chooses for the device, 1 turns batching off."""
    workers: int = option("--workers", default=1, group=LOAD, least=1, most=64)
    """Threads that translate, a batch each. On a CPU one is usually best: it uses all cores."""
    threads: int = option("--threads", default=0, group=LOAD, least=0, most=1024)
    """CPU threads for the arithmetic of a batch; with --ctranslate2, batches at a time. 0: as many as there are cores."""
    ctranslate2: tuple[str, ...] = option("--ctranslate2", default=(), group=LOAD, commas=True, metavar="DIRECTIONS")
    """Directions that CTranslate2 translates, such as el-uk,en-fr: faster on a CPU. Each pair of packs takes the memory of a
    whole model, which /v1/packs states."""
    queue: int = option("--queue", default=2000, group=LOAD, least=1)
    """Sentences that may wait. What comes on top is told to try again later (429)."""
    timeout: float = option("--timeout", default=120.0, group=LOAD, least=0.1, most=86_400)
    """Seconds after which a request is given up (503)."""
    grace: float = option("--grace", default=60.0, group=LOAD, least=0, most=86_400)
    """Seconds that accepted requests have to finish when the server is stopped."""
    drain: float = option("--drain", default=0.0, group=LOAD, least=0, most=86_400)
    """Seconds that requests are still taken after the signal to stop, while /ready says 503: time for a balancer to notice."""

    characters: int = option("--characters", default=50_000, group=LIMITS, least=1)
    """Most characters of one request; files as jobs may be larger."""
    texts: int = option("--texts", default=500, group=LIMITS, least=1)
    """Most texts in one request."""
    body_mb: float = option("--body-mb", default=2.0, group=LIMITS, least=0.01)
    """Largest body of a request, in MB."""
    file_mb: float = option("--file-mb", default=10.0, group=LIMITS, least=0.01)
    """Largest file to translate, in MB."""
    rate: int = option("--rate", default=0, group=LIMITS, least=0)
    """Requests a minute for each address; 0 is no limit. Keys have limits of their own."""
    rate_characters: int = option("--rate-characters", default=0, group=LIMITS, least=0)
    """Characters a minute for each address; 0 is no limit."""
    alternatives: int = option("--alternatives", default=10, group=LIMITS, least=0, most=63)
    """Most alternatives that a request may ask for."""
    header_seconds: float = option("--header-seconds", default=10.0, group=LIMITS, least=0.1, most=3_600)
    """Seconds that a client has to send the head of a request, and again for its body."""
    connections: int = option("--connections", default=1000, group=LIMITS, least=1)
    """Connections at the same time; more are told to come back (503)."""

    keys: Path | None = option("--keys", default=None, group=PEOPLE)
    """File of API keys, as `graftmt serve --new-key NAME` writes it; without one everybody may translate."""
    jobs: Path | None = option("--jobs", default=None, group=PEOPLE)
    """Folder for files to translate as jobs. Several servers may share it. Default: no jobs."""
    job_days: float = option("--job-days", default=7.0, group=PEOPLE, least=0.001, most=36_500)
    """Days after which a finished job is deleted."""
    log: Path | None = option("--log", default=None, group=PEOPLE)
    """File for the log, a JSON object a line; default: standard error. Users' text is never in it."""
    proxies: tuple[str, ...] = option("--proxies", default=(), group=PEOPLE, commas=True)
    """Addresses of proxies whose X-Forwarded-For is believed. Default: none."""

    ray: bool = option("--ray", default=False, group=MACHINES)
    """Serve with Ray: several replicas, on this machine or a cluster. Each loads base and packs from the same paths."""
    ray_address: str | None = option("--ray-address", default=None, group=MACHINES)
    """Of a Ray cluster that runs: auto or HOST:PORT. Default: $RAY_ADDRESS, or a new one on this machine."""
    replicas: str = option("--replicas", default="", group=MACHINES, metavar="N|N-M")
    """Replicas with --ray: 2, or 1-4 for as many as the load needs. Default: 1-4."""

    @property
    def replica_range(self) -> tuple[int, int]:
        """The fewest and the most replicas."""
        least, _, most = (self.replicas or REPLICAS).partition("-")
        return int(least), int(most or least)

    def __post_init__(self) -> None:
        object.__setattr__(self, "packs", tuple(map(Path, self.packs)))  # the command line has them as texts
        if "*" in self.proxies:
            raise ConfigError("--proxies *: any client could then claim any address; name your proxies.")
        if (self.replicas or self.ray_address) and not self.ray:
            raise ConfigError(f"{'--replicas' if self.replicas else '--ray-address'} is for a server on Ray: add --ray.")
        if not re.fullmatch(r"[0-9]{1,4}(-[0-9]{1,4})?", self.replicas or REPLICAS):
            raise ConfigError(f"--replicas {self.replicas}: expected a number such as 2, or a range such as 1-4.")
        if not 1 <= self.replica_range[0] <= self.replica_range[1]:
            raise ConfigError(f"--replicas {self.replicas}: at least 1 is needed, and the second number is the larger one.")
