"""The files of the page: what is served, as what, and under which tag (siblings 15.3).

`make page` builds them from `page/`; they are part of the package. They are read at the first request, so that a stack
whose page nobody opens pays nothing for it.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

STATIC = Path(__file__).parent / "static"

TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
}
"""What may be served, by ending; nothing else of the folder is."""

SHELL = "/index.html"
SETTINGS = "{{settings}}"
"""Where the shell names what the page must know from the start."""

_IMPORT_MAP = re.compile(r'<script type="importmap">(.*?)</script>', re.DOTALL)


class NoPage(Exception):
    """The files of the page are not there."""

    def __init__(self) -> None:
        super().__init__(
            "the files of the page are missing from this installation; in a source tree build them: make page"
        )


@dataclass(frozen=True, slots=True)
class Asset:
    """One file as it is served."""

    body: bytes
    type: str
    tag: str


class Assets:
    """The files by path, and the policy under which a browser runs them."""

    def __init__(self, settings: Mapping[str, Any], root: Path = STATIC) -> None:
        shell = root / SHELL[1:]
        if not shell.is_file():
            raise NoPage
        self._files = {
            f"/{path.relative_to(root).as_posix()}": _asset(path.read_bytes(), TYPES[path.suffix])
            for path in root.rglob("*")
            if path.is_file() and path.suffix in TYPES
        }
        text = shell.read_text(encoding="utf-8")
        self._files[SHELL] = _asset(text.replace(SETTINGS, _embedded(settings)).encode(), TYPES[".html"])
        self._inline = _IMPORT_MAP.findall(text)

    def policy(self, host: str) -> str:
        """Under which policy a browser runs the page that it reached at this host."""
        return content_policy(self._inline, host)

    def find(self, path: str) -> Asset | None:
        """The file of a path; the root is the shell."""
        return self._files.get(SHELL if path == "/" else path)


def content_policy(inline: list[str], host: str) -> str:
    """A Content-Security-Policy that loads from this origin alone; of inline scripts only these texts run.

    The host is named for the bus: not every browser counts a WebSocket of the same host as of the same origin.
    """
    digests = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in inline]
    scripts = " ".join(["'self'", *(f"'sha256-{digest}'" for digest in digests)])
    return "; ".join(
        (
            "default-src 'none'",
            f"script-src {scripts}",
            "style-src 'self'",
            "img-src 'self' data:",
            f"connect-src 'self' ws://{host} wss://{host}",
            "base-uri 'none'",
            "form-action 'none'",
            "frame-ancestors 'none'",
        )
    )


def _asset(body: bytes, type: str) -> Asset:
    return Asset(body, type, f'"{hashlib.sha256(body).hexdigest()[:32]}"')


def _embedded(settings: Mapping[str, Any]) -> str:
    """JSON that may stand inside a script element: nothing in it can end the element."""
    return json.dumps(settings, ensure_ascii=True).replace("<", "\\u003c").replace(">", "\\u003e")
