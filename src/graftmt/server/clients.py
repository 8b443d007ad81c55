"""Who asks: an API key or an address, with its limits. Layer 6."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass

from fastapi import Request

from graftmt.server.fields import Fields
from graftmt.server.keys import Keys
from graftmt.server.rates import Rates
from graftmt.server.refusals import Refused, bad_request

KEY = "key "


@dataclass(frozen=True)
class Client:
    """Who is counted, and how much it may ask for in a minute; 0 is no limit."""

    name: str
    rate: int
    characters: int

    @property
    def owner(self) -> str:
        """Whose jobs these are: those of a key; without keys, of whoever knows a job's id."""
        return self.name if self.name.startswith(KEY) else ""


class Clients:
    """Tells clients apart and holds them to their limits."""

    def __init__(self, keys: Keys | None, rate: int, characters: int) -> None:
        self.keys, self.rate, self.characters = keys, rate, characters
        self._rates = Rates()

    def admit(self, request: Request, fields: Fields | None = None) -> Client:
        """Checks the key where there are keys, and counts one request."""
        address = Client("address " + address_of(request), self.rate, self.characters)
        client = address
        if self.keys is not None:
            key = given_key(request, fields)
            if not key:
                self._rates.spend(address.name, "requests", 1, self.rate)
                raise bad_request("an API key is needed here; ask whoever runs this server for one.")
            found = self.keys.find(key)
            if found is None:
                self._rates.spend(address.name, "requests", 1, self.rate or 60)  # guesses are slowed down in any case
                raise Refused(403, "this API key is not valid.")
            client = Client(KEY + found.name, found.rate, found.characters)
        self._rates.spend(client.name, "requests", 1, client.rate)
        return client

    def count_characters(self, client: Client, characters: int) -> None:
        self._rates.spend(client.name, "characters", characters, client.characters)


def given_key(request: Request, fields: Fields | None) -> str:
    """From the field api_key, the header X-API-Key, or a bearer token."""
    values = {} if fields is None else fields.values
    own = values.get("api_key") or values.get("apiKey")  # the npm client libretranslate spells it so
    if isinstance(own, str) and own:
        return own
    bearer = request.headers.get("authorization", "")
    return request.headers.get("x-api-key", "") or (bearer[7:].strip() if bearer.lower().startswith("bearer ") else "")


def address_of(request: Request) -> str:
    """An IPv4 address, or the network of an IPv6 one, of which a client has as many as it likes."""
    host = request.client.host if request.client is not None else "unknown"
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host[:60]
    if address.version == 6:
        return str(ipaddress.ip_network((host.partition("%")[0], 64), strict=False))
    return host
