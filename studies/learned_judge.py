"""A policy trained against a learned judge raises the judge's score while its answers get worse.

The task is in `_addition.py`. The judge is a reward model: a copy of the imitator with one number
in place of the logits, read at the last token of a completion. It is trained on about 2,000
preference pairs of the imitator's own completions, with the Bradley–Terry loss (150 steps of 128
pairs, AdamW at 0.001). Then the imitator is trained by policy gradient with the judge's score as
the reward: AdamW at 0.001, a group baseline, and a KL penalty β that differs between the arms.

Measured every 10 steps, for example `carry 20`: the accuracy on 200 held-out problems whose units
carry and on 200 without a carry (`no carry`), 2 completions each; over the same completions, the
judge's mean score (`score`; Bradley–Terry fixes only differences) and the `KL` to the imitator.
`in order`: the fraction of pairs, of held-out problems, whose right completion the judge scores
higher.

At all three seeds the judge is right on 0.93 to 0.95 of those pairs. At β 0 its score rises from
each measurement to the next, while both accuracies fall to at most 0.01 by step 40; at step 10, the
accuracy with a carry is above the start at two seeds, at one of them by 0.02 only. At β 0.2 it ends
at 0.07 to 0.13, below the 0.29 to 0.32 of the start. At β 1 it ends at 0.47 to 0.57, and without a
carry at 0.92 to 0.96 (0.99 to 1.00 at the start).

Seed 0 also keeps what it answers to six held-out problems along the way, with its curves, in
results/learned_judge/, which `recorded()` reads; for this it was run at two more
penalties, with `run("β 0.5", 0, steps=80)` and `run("β 2", 0, steps=80)`.
"""

import copy
import json
from functools import cache
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from helpers.formats.files import json_object, write_whole
from helpers.gpt import GPT
from helpers.rewards import completion_log_probs, completion_mask, kl_penalty
from studies import FOLDER, Study
from studies._addition import (
    END,
    PROMPT,
    TOKENIZER,
    N,
    Problem,
    carries,
    draw,
    imitator,
    is_right,
    problems,
    train_policy,
)
from studies.preferences import preference_pairs

RECORDS = FOLDER / "results" / "learned_judge"
EVERY = 10  # steps from one measurement to the next
PENALTIES = {f"β {beta:g}": beta for beta in (0.0, 0.2, 0.5, 1.0, 2.0)}


def score(judge: GPT, ids: Tensor) -> Tensor:
    """The judge's score of each completion, read at its last token: ids (B, 10) → (B,)."""
    last = PROMPT + completion_mask(ids[:, PROMPT:], END).sum(1) - 1
    return judge(ids)[torch.arange(len(ids)), last, 0]


@cache
def trained_judge(seed: int) -> tuple[GPT, dict[str, float]]:
    """The reward model, and how well it orders pairs that it was not trained on."""
    train, held_out = problems(seed)
    model = imitator(seed)
    right, wrong, _, _ = preference_pairs(model, train[:2200], seed)
    torch.manual_seed(seed)
    judge = copy.deepcopy(model)
    judge.lm_head = nn.Linear(judge.config.n_embd, 1, bias=False)
    nn.init.zeros_(judge.lm_head.weight)
    optimizer = torch.optim.AdamW(judge.parameters(), 0.001, betas=(0.9, 0.95), weight_decay=0.0)
    for _ in range(150):
        rows = torch.randint(len(right), (128,))
        loss = -F.logsigmoid(score(judge, right[rows]) - score(judge, wrong[rows])).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    held_right, held_wrong, _, _ = preference_pairs(model, held_out[:400], seed)
    with torch.no_grad():
        in_order = score(judge, held_right) > score(judge, held_wrong)
    return judge, {"pairs": float(len(right)), "in order": in_order.float().mean().item()}


@torch.no_grad()
def measures(model: GPT, reference: GPT, judge: GPT, held_out: list[Problem]) -> dict[str, float]:
    with_carry = [pair for pair in held_out if carries(pair)][:200]
    without = [pair for pair in held_out if not carries(pair)][:200]
    ids, mask, repeated = draw(model, with_carry + without, samples=2, seed=1000)
    right = is_right(ids, repeated)
    log_probs = completion_log_probs(model, ids, N)
    return {
        "carry": right[: 2 * len(with_carry)].mean().item(),
        "no carry": right[2 * len(with_carry) :].mean().item(),
        "score": score(judge, ids).mean().item(),
        "KL": kl_penalty(log_probs, completion_log_probs(reference, ids, N), mask).item(),
    }


def run(arm: str, seed: int, *, steps: int) -> dict[str, float]:
    judge, found = trained_judge(seed)
    train, held_out = problems(seed)
    model = imitator(seed)
    reference = copy.deepcopy(model)
    shown = [pair for pair in held_out if carries(pair)][:3]
    shown += [pair for pair in held_out if not carries(pair)][:3]
    curves: dict[str, list[float]] = {}
    said: list[list[list[str]]] = []  # [measurement][problem][completion]

    @torch.no_grad()
    def reward(ids: Tensor, pairs: list[Problem]) -> Tensor:
        return score(judge, ids)

    def watch(step: int) -> None:
        if step % EVERY == 0:
            for name, value in measures(model, reference, judge, held_out).items():
                curves.setdefault(name, []).append(value)
            said.append(completions(model, shown))

    settings: dict[str, Any] = {"steps": steps, "rate": 0.001, "beta": PENALTIES[arm]}
    train_policy(model, reference, train, seed, reward=reward, watch=watch, **settings)
    measured = range(0, steps + 1, EVERY)
    if seed == 0:
        write_whole(
            RECORDS / f"beta-{PENALTIES[arm]:g}.json",
            _text(
                {
                    "beta": PENALTIES[arm],
                    "steps": list(measured),
                    "problems": [[f"{a}+{b}=", f"{a + b}."] for a, b in shown],
                    **{name: [round(v, 4) for v in values] for name, values in curves.items()},
                },
                said,
            ),
        )
    by_step = {
        f"{name} {step}": value
        for name, values in curves.items()
        for step, value in zip(measured, values, strict=True)
    }
    return found | by_step


study = Study(arms=["β 0", "β 0.2", "β 1"], settings={"steps": 80})


# --- what seed 0 answered along the way -----------------------------------------------------------


@torch.no_grad()
def completions(model: GPT, pairs: list[Problem]) -> list[list[str]]:
    """Eight sampled completions of each problem, the end token too."""
    ids, mask, _ = draw(model, pairs, samples=8, seed=1000)
    rows = zip(ids[:, PROMPT:], mask, strict=True)
    texts = [TOKENIZER.decode(row[kept].tolist()) for row, kept in rows]
    return [texts[i : i + 8] for i in range(0, len(texts), 8)]


def _text(record: dict[str, Any], said: list[list[list[str]]]) -> bytes:
    """JSON with one line a measure, and one for the completions at each step."""
    lines = [f'"{name}": {json.dumps(value)}' for name, value in record.items()]
    steps = ",\n  ".join(json.dumps(texts) for texts in said)
    return ("{" + ",\n ".join([*lines, f'"completions": [\n  {steps}\n ]']) + "}\n").encode()


def recorded() -> dict[str, Any]:
    """Seed 0 at each β, for `RewardsExplorer(**recorded())`: {"problems", "steps", "runs"}."""
    runs = [
        json_object((RECORDS / f"beta-{beta:g}.json").read_bytes()) for beta in PENALTIES.values()
    ]
    shared = {name: runs[0][name] for name in ("problems", "steps")}
    assert all(one[name] == shared[name] for one in runs for name in shared)
    runs = [{k: v for k, v in one.items() if k not in shared} for one in runs]
    return {**shared, "runs": runs}
