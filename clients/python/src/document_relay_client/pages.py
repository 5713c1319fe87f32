"""Lists, page by page."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, ParamSpec, TypeVar, cast

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
    numbers = _numbers_of(page)
    if numbers is None:
        return None
    number, per_page, total = numbers
    return {"page": number + 1} if number * per_page < total else None


_REMEMBERED_MAX = 10_000
"""Rows that are remembered. Those that come again are near each other."""


class _Memory:
    """Remembers which rows have been read."""

    def __init__(self) -> None:
        self._ids: dict[str, None] = {}
        self.is_complete = True
        """False if a row has no id: what is read again could not be told from what is new."""

    def unread(self, rows: list[Any]) -> list[Any]:
        """Returns the rows that have not been read before."""
        new = []
        for row in rows:
            row_id = getattr(row, "id", None)
            if not isinstance(row_id, str):
                self.is_complete = False
                new.append(row)
                continue
            if row_id not in self._ids:
                new.append(row)
            self._ids.pop(row_id, None)
            self._ids[row_id] = None
        for row_id in list(self._ids)[: max(0, len(self._ids) - _REMEMBERED_MAX)]:
            del self._ids[row_id]
        return new


def _numbers_of(page: object) -> tuple[int, int, int] | None:
    meta = getattr(page, "meta", None)
    number, per_page, total = (getattr(meta, name, None) for name in ("current_page", "per_page", "total"))
    if isinstance(number, int) and isinstance(per_page, int) and isinstance(total, int):
        return number, per_page, total
    return None


def _moved_to(page: object, total_before: int | None) -> int | None:
    """Returns the page to read again, if rows that have left the list have moved others to pages that were read."""
    numbers = _numbers_of(page)
    if numbers is None or total_before is None:
        return None
    number, per_page, total = numbers
    if total >= total_before or number == 1:
        return None
    return max(1, number - -(-(total_before - total) // per_page))


def pages(operation: Callable[P, T | Error | None], *args: P.args, **kwargs: P.kwargs) -> Iterator[T]:
    """Reads a list page by page, whether its pages have numbers or a cursor.

    If rows leave the list while it is read, because the loop changes them for example, no other row is left out: what
    has moved to an earlier page is read there. A row that comes again, because others have been added before it, is
    left out.

    :param operation: The ``sync`` function of a list, followed by its arguments:
        ``pages(list_documents.sync, client=relay, status=DocumentStatus.FAILED)``.
    :raises RelayError:
    """
    query: dict[str, Any] = dict(kwargs)
    memory = _Memory()
    total: int | None = None
    is_first = True
    while True:
        page = unwrap(operation(*args, **query))
        moved = _moved_to(page, total) if memory.is_complete else None
        numbers = _numbers_of(page)
        total = None if numbers is None else numbers[2]
        if moved is not None:
            query = {**query, "page": moved}
            continue
        following = _next_of(page, query)
        rows = memory.unread(getattr(page, "data", []))
        if hasattr(page, "data"):
            cast(Any, page).data = rows
        if is_first or rows:
            yield page
        is_first = False
        if following is None:
            return
        query = {**query, **following}
