"""What a model says of itself: objects that print as text and that notebooks draw."""
from __future__ import annotations

import html
import json as _json
import os
from typing import Any


class Report:
    """A text, with the same as data in `json` where there is some."""

    def __init__(self, text: str, json: str | None = None) -> None:
        self.text = text
        self._json = json

    @property
    def json(self) -> Any:
        return None if self._json is None else _json.loads(self._json)

    def __str__(self) -> str:
        return self.text

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(self.text)}</pre>"


class Explanation(Report):
    """What is known of a model's shapes before it runs, and what it compiles to."""

    def __init__(self, text: str, json: str, make_page: Any) -> None:
        super().__init__(text, json)
        self._make_page = make_page

    @property
    def page(self) -> str:
        """A self-contained HTML page with the graph."""
        return self._make_page()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the page."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.page)

    def _repr_html_(self) -> str:
        frame = 'style="width:100%;height:600px;border:0"'
        return f'<iframe srcdoc="{html.escape(self.page, quote=True)}" {frame}></iframe>'


class Plan(Report):
    """What a run needs of memory at some sizes."""

    def __init__(self, text: str, json: str, svg: str) -> None:
        super().__init__(text, json)
        self.svg = svg

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the picture of the arena over time, as SVG."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.svg)

    def _repr_html_(self) -> str:
        return self.svg + super()._repr_html_()


class Profile(Report):
    """What each kernel of a run took."""

    def __init__(self, text: str, trace: str) -> None:
        super().__init__(text, trace)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes trace events, as Chrome's viewer and Perfetto read them."""
        assert self._json is not None
        with open(path, "w", encoding="utf-8") as file:
            file.write(self._json)
