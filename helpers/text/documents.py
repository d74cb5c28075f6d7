"""Many texts as one stream of ids, so that windows can be cut from it anywhere."""

from collections.abc import Iterable

from helpers.text.bpe import BPETokenizer

END = "<|endoftext|>"


def encode_documents(
    tokenizer: BPETokenizer, documents: Iterable[str], separator: str = END
) -> list[int]:
    """The ids of several texts, one after the other, with the separator's id before each.

    The separator tells a model that what came before has nothing to do with what follows; and
    asked to continue it alone, the model begins a new text. Texts are encoded as they are: one that
    spells the separator gets its letters. Raises ValueError if the separator is no special token of
    the tokenizer. Radford et al. 2019, in the code of GPT-2. Taught in chapter 12.
    """
    if separator not in tokenizer.special:
        raise ValueError(
            f"{separator!r} is no special token of this tokenizer, which has "
            f"{sorted(tokenizer.special)}: BPETokenizer.train(…, special=[{separator!r}])"
        )
    ids: list[int] = []
    for document in documents:
        ids.append(tokenizer.special[separator])
        ids += tokenizer.encode(document)
    return ids
