"""Lists, page by page."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, ParamSpec, TypeVar

from .models.error import Error
from .relay_error import unwrap

P = ParamSpec("P")
T = TypeVar("T")


def _next_of(page: object, query: dict[str, Any]) -> dict[str, Any] | None:
    """Returns the query parameter that leads to the next page, if there is one."""
    meta = getattr(page, "meta", None)
    cursor = getattr(meta, "next_cursor", None)
    has_more = getattr(meta, "has_more", None)
    if has_more is not None:
        # Events always have a cursor, with which a reader goes on later.
        return {"after": cursor} if has_more else None
    if isinstance(cursor, str):
        return {"after" if isinstance(query.get("after"), str) else "before": cursor}
    number, per_page, total = (getattr(meta, name, None) for name in ("current_page", "per_page", "total"))
    if not isinstance(number, int) or not isinstance(per_page, int) or not isinstance(total, int):
        return None
    return {"page": number + 1} if number * per_page < total else None


def pages(operation: Callable[P, T | Error | None], *args: P.args, **kwargs: P.kwargs) -> Iterator[T]:
    """Reads a list page by page, whether its pages have numbers or a cursor.

    :param operation: The ``sync`` function of a list, followed by its arguments:
        ``pages(list_documents.sync, client=relay, status=DocumentStatus.FAILED)``.
    :raises RelayError:
    """
    query: dict[str, Any] = dict(kwargs)
    while True:
        page = unwrap(operation(*args, **query))
        yield page
        following = _next_of(page, query)
        if following is None:
            return
        query = {**query, **following}
