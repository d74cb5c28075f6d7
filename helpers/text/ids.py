"""What every tokenizer asks of the ids that it is to decode."""

from collections.abc import Sequence
from typing import Any


def checked_ids(ids: Sequence[int] | Any, vocab_size: int) -> list[int]:
    """A flat list, array or tensor of ids from 0 to vocab_size − 1, as a list.

    Raises ValueError for an id outside the vocabulary, TypeError for what is no id.
    """
    # Tensors and arrays become lists first: going through them one by one is slow.
    items = ids.tolist() if hasattr(ids, "tolist") else ids
    wanted = "decode wants a flat sequence of integer ids"
    if isinstance(items, (str, bytes)):
        raise TypeError(f"{wanted}, not the {type(items).__name__} {items!r:.40}")
    try:
        items = list(items)
    except TypeError:
        raise TypeError(f"{wanted}, not {items!r:.40}") from None
    # Checked by hand: Python would read the id -1 as the last symbol.
    for i, token in enumerate(items):
        if type(token) is not int and not hasattr(token, "__index__"):
            raise TypeError(f"{wanted}, but ids[{i}] is {token!r:.40}")
        if not 0 <= token < vocab_size:
            raise ValueError(
                f"ids[{i}] is {token}, but the ids of this tokenizer run from 0 to {vocab_size - 1}"
            )
    return items
