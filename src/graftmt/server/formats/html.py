"""HTML by its text nodes: tags, attributes, comments, scripts and styles stay; `translate="no"` is respected. Layer 6."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from graftmt.server.refusals import bad_request

LEFT_ALONE = frozenset(
    ["script", "style", "code", "pre", "kbd", "samp", "var", "textarea", "template", "noscript", "svg", "math"]
)
TRANSLATED_ATTRIBUTES = ("alt", "title", "placeholder", "aria-label")
_WHOLE = re.compile(r"\s*(?:<\?xml[^>]*>\s*)?(?:<!--.*?-->\s*)*<(?:!doctype|html)\b", re.IGNORECASE | re.DOTALL)
_CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
_ROOT = "graftmt-root"


@dataclass(frozen=True)
class Place:
    """Where a text stands: the element, and "text", "tail" or the attribute's name."""

    element: Any
    field: str

    def get(self) -> str:
        value = getattr(self.element, self.field) if self.field in ("text", "tail") else self.element.get(self.field)
        return value or ""

    def put(self, text: str) -> None:
        if self.field in ("text", "tail"):
            setattr(self.element, self.field, text)
        else:
            self.element.set(self.field, text)


@dataclass(frozen=True)
class Html:
    root: Any
    whole: bool
    places: tuple[Place, ...]
    blocks: tuple[str, ...]

    def rebuild(self, translations: Sequence[str]) -> str:
        from lxml import html

        for place, translation in zip(self.places, translations, strict=True):
            place.put(translation)
        doctype = self.root.getroottree().docinfo.doctype if self.whole else ""
        text = str(html.tostring(self.root, encoding="unicode", with_tail=False))
        if not self.whole:
            return text.removeprefix(f"<{_ROOT}>").removesuffix(f"</{_ROOT}>")
        return f"{doctype}\n{text}" if doctype else text


class HtmlFormat:
    name = "html"
    endings = (".html", ".htm", ".xhtml")
    media_type = "text/html; charset=utf-8"

    def parse(self, content: str) -> Html:
        from lxml import etree, html

        whole = bool(_WHOLE.match(content))
        clean = _CONTROLS.sub("", content)
        if _ROOT in clean:
            raise bad_request(f"this HTML has an element {_ROOT}, which is reserved.")
        try:
            parser = html.HTMLParser(encoding="utf-8", huge_tree=False, recover=True)
            text = re.sub(r"^\s*<\?xml[^>]*>\s*", "", clean) if whole else f"<{_ROOT}>{clean}</{_ROOT}>"
            tree = etree.fromstring(text.encode(), parser)
        except (etree.LxmlError, ValueError) as error:
            raise bad_request(f"this is not HTML that can be read: {str(error)[:100]}.") from None
        if any(entry.level_name == "FATAL" for entry in parser.error_log):
            raise bad_request("this HTML is nested too deeply, or damaged; send it as format text.")
        root = tree if whole or tree is None else tree.find(f".//{_ROOT}")
        if root is None:
            raise bad_request("this is not HTML that can be read; send it as format text.")
        places = tuple(_places(root))
        return Html(root, whole, places, tuple(place.get() for place in places))


def _places(root: Any) -> Iterator[Place]:
    """Texts in the order of the document, without recursion: a document may be nested deeply."""
    stack: list[tuple[Any, str]] = [(root, "element")]
    while stack:
        element, what = stack.pop()
        if what == "tail":
            if (element.tail or "").strip():
                yield Place(element, "tail")
            continue
        if not isinstance(element.tag, str) or element.tag.lower() in LEFT_ALONE or _is_left(element):
            continue
        yield from (Place(element, name) for name in TRANSLATED_ATTRIBUTES if (element.get(name) or "").strip())
        if (element.text or "").strip():
            yield Place(element, "text")
        for child in reversed(element):
            stack += [(child, "tail"), (child, "element")]


def _is_left(element: Any) -> bool:
    return element.get("translate") == "no" or "notranslate" in (element.get("class") or "").split()
