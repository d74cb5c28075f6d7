"""Text from outside, made fit to travel to a browser and to stand in a picture."""

import re


def sendable(text: str) -> str:
    """The text with � for each lone surrogate: no message to a browser can carry those.

    >>> sendable("a" + chr(0xD800)) == "a" + chr(0xFFFD)
    True
    """
    return re.sub("[\ud800-\udfff]", "\ufffd", text)


def short(text: str, longest: int) -> str:
    """At most `longest` characters, the last one an ellipsis if something is left out.

    >>> short("internationalisation", 8), short("cat", 8)
    ('interna…', 'cat')
    """
    return text if len(text) <= longest else text[: longest - 1] + "…"
