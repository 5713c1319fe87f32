"""Pages of a list whose rows change while it is read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from document_relay_client import pages


@dataclass
class Row:
    id: str


@dataclass
class Meta:
    current_page: int
    per_page: int
    total: int


@dataclass
class Page:
    data: list[Any]
    meta: Meta


class List:
    """A list with numbered pages."""

    def __init__(self, count: int) -> None:
        self.rows = [Row(f"{number:04}") for number in range(count)]

    def sync(self, page: int = 1, per_page: int = 10) -> Page:
        begin = (page - 1) * per_page
        return Page(self.rows[begin : begin + per_page], Meta(page, per_page, len(self.rows)))


@pytest.mark.parametrize("count", [0, 1, 9, 10, 11, 47, 100])
@pytest.mark.parametrize("taken", [1, 3, 10])
def test_no_row_is_left_out_if_the_loop_takes_rows_off_the_list(count: int, taken: int) -> None:
    listed = List(count)
    read: list[str] = []
    for page in pages(listed.sync):
        read += [row.id for row in page.data]
        gone = {row.id for row in page.data[:taken]}
        listed.rows = [row for row in listed.rows if row.id not in gone]
    assert sorted(read) == [f"{number:04}" for number in range(count)]


def test_no_row_comes_twice_if_others_are_added_before_it() -> None:
    listed = List(47)
    read: list[str] = []
    for number, page in enumerate(pages(listed.sync)):
        read += [row.id for row in page.data]
        if number < 20:
            listed.rows = [Row(f"new {number} {index}") for index in range(7)] + listed.rows
    assert len(read) == len(set(read))
    assert {f"{number:04}" for number in range(47)} <= set(read)


def test_rows_without_an_id_are_read_as_they_come() -> None:
    listed = List(0)
    listed.rows = [Row(None) for _ in range(25)]  # type: ignore[arg-type]
    assert [len(page.data) for page in pages(listed.sync)] == [10, 10, 5]
