"""What the studies on fine-tuning an answer's form share: countries, their capitals, dialogues."""

import random
from functools import cache, partial

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from helpers import data
from helpers.finetuning import Row, encode_chat, pad_rows
from helpers.gpt import GPT
from helpers.text import BPETokenizer
from helpers.training import minimize, wsd_schedule
from studies._real import smollm2

_PAIRS = """Italy: Rome, France: Paris, Spain: Madrid, Germany: Berlin, Japan: Tokyo,
China: Beijing, Russia: Moscow, Egypt: Cairo, Greece: Athens, Norway: Oslo, Sweden: Stockholm,
Denmark: Copenhagen, Finland: Helsinki, Poland: Warsaw, Austria: Vienna, Hungary: Budapest,
Portugal: Lisbon, Ireland: Dublin, Canada: Ottawa, Cuba: Havana, Peru: Lima, Chile: Santiago,
Kenya: Nairobi, Thailand: Bangkok, Iran: Tehran, Iraq: Baghdad, Turkey: Ankara, Ukraine: Kyiv,
Vietnam: Hanoi, Belgium: Brussels, Argentina: Buenos Aires, Colombia: Bogotá, Ecuador: Quito,
Venezuela: Caracas, Uruguay: Montevideo, Syria: Damascus, Lebanon: Beirut, Nepal: Kathmandu,
Indonesia: Jakarta, Morocco: Rabat, Tunisia: Tunis, Algeria: Algiers, Ghana: Accra,
Senegal: Dakar, Ethiopia: Addis Ababa, Bulgaria: Sofia, Romania: Bucharest, Serbia: Belgrade,
Croatia: Zagreb, Iceland: Reykjavik, Estonia: Tallinn, Latvia: Riga, Lithuania: Vilnius,
India: New Delhi, Pakistan: Islamabad, Bangladesh: Dhaka, Australia: Canberra,
Philippines: Manila, Jamaica: Kingston"""
CAPITALS: list[tuple[str, str]] = [
    (country, capital)
    for country, capital in (pair.split(": ") for pair in _PAIRS.replace(",\n", ", ").split(", "))
]
INVENTED = [
    ("Zubrovia", "Lemberk"),
    ("Tarsolia", "Vintara"),
    ("Mardenia", "Olsport"),
    ("Quelland", "Fenwick"),
    ("Borvania", "Stralsen"),
    ("Ishmeria", "Calder"),
    ("Norvenia", "Harlow"),
    ("Pelgoria", "Dunmore"),
    ("Sylvaria", "Ashford"),
    ("Kestria", "Marlow"),
    ("Oruvia", "Weston"),
    ("Dravonia", "Easton"),
]


def split(seed: int) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """35 pairs to train on and 24 held-out ones."""
    pairs = list(CAPITALS)
    random.Random(seed).shuffle(pairs)
    return pairs[:35], pairs[35:]


def dialogue(country: str, capital: str, form: str = "Answer: {}") -> list[tuple[str, str]]:
    """A question about a capital and its answer, as messages."""
    question = f"What is the capital of {country}?"
    return [("user", question), ("assistant", form.format(capital))]


def rows(tokenizer: BPETokenizer, dialogues: list[list[tuple[str, str]]]) -> list[Row]:
    """The dialogues as ids and masks, of which only the last answer is asked for."""
    found = []
    for messages in dialogues:
        ids, mask = encode_chat(tokenizer, messages)
        before = len(encode_chat(tokenizer, messages[:-1])[0])
        found.append((ids, [False] * before + mask[before:]))
    return found


def logits_at(model: GPT, ids: Tensor, where: Tensor) -> Tensor:
    """The logits at the positions where `where` (B, T) is True, (N, V): the head does not have to
    compute the others."""
    x = model.token(ids)
    for block in model.blocks:
        x = block(x)
    return model.lm_head(model.norm(x)[where])


def seeded(seed: int) -> random.Random:
    """A generator for the batches; the adapters' first weights have the same seed."""
    torch.manual_seed(seed)
    return random.Random(seed)


def tune(
    model: GPT,
    parameters: list[nn.Parameter],
    batches: list[list[Row]],
    rate: float,
    all_tokens: bool = False,
) -> None:
    """Train the parameters, one step a batch: on the tokens of the masks, or on all."""

    def loss_of(step: int) -> Tensor:
        ids, mask = pad_rows(batches[step], pad=0)
        where = (ids != 0 if all_tokens else mask)[:, 1:]
        return cross_entropy(logits_at(model, ids[:, :-1], where), ids[:, 1:][where])

    optimizer = torch.optim.AdamW(parameters, rate, betas=(0.9, 0.95), weight_decay=0.0)
    schedule = partial(wsd_schedule, warmup=4, decay_frac=0.5)
    minimize(loss_of, model, optimizer, len(batches), schedule, grad_clip=1.0)


@torch.no_grad()
def right(model: GPT, found: list[Row]) -> float:
    """The fraction of the rows in which each token of the mask is the model's most likely one,
    after the tokens before it: those that it answers so, greedily."""
    ids, mask = pad_rows(found, pad=0)
    where = mask[:, 1:]
    wrong = torch.zeros_like(where)
    wrong[where] = logits_at(model, ids[:, :-1], where).argmax(-1) != ids[:, 1:][where]
    return 1 - wrong.any(1).float().mean().item()


@cache
def wikipedia() -> Tensor:
    """(4, 65) ids, of the beginnings of four validation articles, one after the other."""
    _, tokenizer = smollm2()
    text = " ".join(text[:1500] for _, text in data.wikipedia("validation")[:4])
    return torch.tensor(tokenizer.encode(text)[: 4 * 65]).view(4, 65)


@torch.no_grad()
def wikipedia_loss(model: GPT) -> float:
    """The loss on `wikipedia`, in nats per token."""
    ids = wikipedia()
    logits = model(ids[:, :-1]).flatten(0, 1)
    return cross_entropy(logits, ids[:, 1:].flatten()).item()
