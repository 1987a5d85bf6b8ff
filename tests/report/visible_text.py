"""What is to be read of a page, in lines as a review can read them."""

import json
from html.parser import HTMLParser

BLOCKS = {"p", "h1", "h2", "h3", "h4", "li", "tr", "nav", "figcaption", "summary", "caption", "pre", "figure"}
BEFORE = {"h1": "# ", "h2": "## ", "h3": "### ", "h4": "#### ", "li": "- ", "summary": "> "}
APART = {"th": " | ", "td": " | ", "br": " / ", "span": " ", "a": " ", "strong": " "}
UNREAD = {"script", "style", "svg"}


class VisibleText(HTMLParser):
    """The lines of a page, and what each of its charts says beside its marks: of each group, the first trial.

    Without the part ``reading`` and what waits for the script, which are the same on every page, unless asked for.
    """

    def __init__(self, page: str, *, reading: bool = False) -> None:
        super().__init__(convert_charrefs=True)
        self._reading, self._first_trial = reading, False
        self.lines: list[str] = [""]
        self._unread: list[str] = []
        self._charts: dict[str, str] = {}
        self._chart = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if given.get("class") == "group":
            self._first_trial = True
        if self._unread or tag in UNREAD or self._left_out(given):
            if not self._unread or tag == self._unread[-1]:
                self._unread.append(tag)
            self._chart = given.get("id") or "" if given.get("type") == "application/json" else ""
            return
        if tag in BLOCKS:
            self.lines.append(BEFORE.get(tag, ""))
        elif tag in APART:
            self.lines[-1] += APART[tag]
        if tag == "p" and "banner" in (given.get("class") or ""):
            self.lines[-1] += f"[{given['class']}] "
        if "data-spec" in given:
            self.lines += [f"[chart: {given['aria-label']}; {given['data-spec']}]"]
        if given.get("title"):
            self.lines[-1] += f"[{given['title']}] "

    def _left_out(self, given: dict[str, str | None]) -> bool:
        if given.get("class") == "trial":
            first, self._first_trial = self._first_trial, False
            return not first
        if given.get("class") == "permalink":
            return True
        return (given.get("id") == "reading" or "hidden" in given) and not self._reading

    def handle_endtag(self, tag: str) -> None:
        if self._unread and tag == self._unread[-1]:
            self._unread.pop()
        elif not self._unread and tag in BLOCKS:
            self.lines.append("")

    def handle_data(self, data: str) -> None:
        if not self._unread:
            self.lines[-1] += data
        elif self._chart:
            self._charts[self._chart] = self._charts.get(self._chart, "") + data

    def text(self) -> str:
        """Return the lines that hold something; no-break spaces are spaces."""
        charts = {name: ", ".join(titles(json.loads(text))) for name, text in self._charts.items()}
        lines = [" ".join(line.replace("\u00a0", " ").split()) for line in self.lines]
        for at, line in enumerate(lines):
            if line.startswith("[chart: "):
                about, _, name = line[:-1].rpartition("; ")
                lines[at] = f"{about}; {charts.get(name, '')}]"
        return "".join(f"{line}\n" for line in lines if line.strip("-#>| "))


def titles(value: object) -> list[str]:
    """Every title in a chart's definition: of axes and of what a pointer shows, each once."""
    found: list[str] = []
    if isinstance(value, dict):
        found = [value["title"]] if isinstance(value.get("title"), str) else []
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return list(dict.fromkeys([*found, *(title for each in items for title in titles(each))]))
