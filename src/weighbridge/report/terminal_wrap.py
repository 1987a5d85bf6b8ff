"""Where Rich breaks lines: at spaces and line ends, and not at the no-break space that holds a number together."""

import re

_WORD = re.compile(r"[ \t\r\n]*[^ \t\r\n]+[ \t\r\n]*")


def keep_no_break_spaces() -> None:
    """From here on Rich's own rule, for which a no-break space is a space, is this one."""
    from rich import _wrap

    _wrap.re_word = _WORD
