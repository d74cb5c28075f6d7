"""Let a model that `train.py` has trained write.

    python sample.py runs/input
    python sample.py runs/input --prompt "ROMEO:" --samples 3 --temperature 0.7 --top_p 0.9
    python sample.py data/checkpoints/gptmini --prompt "The moon"

The folder of a run holds its best model; any folder of a model will do.
"""

import sys
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from pathlib import Path

import torch

from helpers.formats.checkpoints import load_checkpoint
from helpers.sampling import stream


def main() -> None:
    parser = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="of a run, or of a model")
    parser.add_argument("--prompt", help="what each text begins with")
    parser.add_argument("--samples", type=int, default=1, help="how many texts")
    parser.add_argument("--tokens", type=int, default=500, help="how long they are")
    parser.add_argument("--temperature", type=float, default=0.8, help="0: always the likeliest")
    parser.add_argument("--top_p", type=float, default=0.95)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--device", default="cpu", help="a small model is fastest there")
    given = parser.parse_args()

    try:
        write(given)
    except (OSError, RuntimeError, ValueError) as error:
        sys.exit(f"sample.py: {error}")


def write(given: Namespace) -> None:
    best = given.folder / "best"  # in the folder of a run: the model with the lowest loss
    saved = load_checkpoint(best if best.exists() else given.folder)
    if saved.tokenizer is None:
        raise ValueError(f"{given.folder} holds a model without its tokenizer")
    model, tokenizer = saved.model.to(given.device), saved.tokenizer
    prompt = tokenizer.encode(given.prompt or getattr(tokenizer, "symbols", "\n")[0])
    generator = torch.Generator().manual_seed(given.seed) if given.seed is not None else None
    end = getattr(tokenizer, "special", {}).values()  # of a document
    for number in range(given.samples):
        print("" if number == 0 else "\n" + "-" * 40)
        written, ids = "", list(prompt)
        settings = dict(temperature=given.temperature, top_p=given.top_p, stop=end)
        for new in stream(model, [prompt], given.tokens, generator=generator, **settings):
            ids.append(int(new))
            text = tokenizer.decode(ids)
            if not text.endswith("\ufffd"):  # a part of a character
                print(text[len(written) :], end="", flush=True)
                written = text
    print()


if __name__ == "__main__":
    main()
