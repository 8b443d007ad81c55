"""The same application as replicas on Ray Serve, on this machine or on a cluster. Layer 5."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from graftmt.errors import ConfigError
from graftmt.server.serve_options import ServeOptions

NAME = "graftmt"


def serve_on_ray(options: ServeOptions, say: Callable[[str], None], *, blocking: bool = True) -> None:
    """Starts `options.ray` replicas behind Ray's proxy; each loads base and packs and watches the folders itself."""
    # Ray kills a proxy that is not ready after 5 seconds, which a busy machine needs for its imports; and waits 60 for one.
    os.environ.setdefault("RAY_SERVE_PROXY_READY_CHECK_TIMEOUT_S", "55")
    try:
        import ray
        from ray import serve
    except ImportError:
        raise ConfigError("--ray needs Ray Serve: pip install 'ray[serve]'.") from None
    if not ray.is_initialized():
        ray.init(log_to_driver=False, include_dashboard=False)
    # What a request may take, and a little more: the replica's own answer is the better one.
    http: dict[str, Any] = {"host": options.host, "port": options.port, "request_timeout_s": options.timeout + 10}
    serve.start(http_options=http)
    deployment: Any = serve.deployment(
        serve.ingress(builder(options))(),
        name=NAME,
        num_replicas=options.ray,
        max_ongoing_requests=min(options.connections, 1000),
        graceful_shutdown_timeout_s=options.grace,
        ray_actor_options={"num_cpus": 1},
    )
    stop: Callable[[], None] = serve.shutdown
    say(f"{options.ray} replicas on Ray Serve at http://{options.host}:{options.port}/ (Ctrl-C stops)")
    try:
        serve.run(deployment.bind(), name=NAME, route_prefix="/", blocking=blocking)
    finally:
        if blocking:
            stop()


def builder(options: ServeOptions) -> Callable[[], Any]:
    """What each replica calls to make its application."""
    own = replace(options, ray=0)

    def build() -> Any:
        from graftmt.server.application import make_app, make_world

        return make_app(make_world(own))

    return build
