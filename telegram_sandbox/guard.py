"""Who may use the page and the control API: this machine, and no web page of somebody else's.

A page elsewhere that points its own name at 127.0.0.1 is known by its Host header, one that sends forms by its Origin.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from aiohttp import web

LOCAL = frozenset({"127.0.0.1", "localhost", "[::1]"})

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; connect-src 'self';"
        " base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}


def refuses(request: web.BaseRequest, hosts: frozenset[str]) -> str | None:
    """One line that says why; None: welcome."""
    host = request.headers.get("Host", "")
    name = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() else host
    if name.lower() not in hosts:
        return f"this page is for {', '.join(sorted(hosts))}, and was asked for as {host[:80]!r}"
    return foreign(request)


def foreign(request: web.BaseRequest) -> str | None:
    """A browser tells where a request comes from; programs tell nothing."""
    origin = request.headers.get("Origin")
    if origin is not None and urlsplit(origin).netloc != request.headers.get("Host", ""):
        return "a web page of another origin may not use the sandbox"
    if request.method != "GET" and request.headers.get("Sec-Fetch-Site", "same-origin") not in ("same-origin", "none"):
        return "a web page of another origin may not use the sandbox"
    return None
