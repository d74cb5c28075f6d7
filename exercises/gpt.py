"""Exercise checks of chapter 09: the GPT and its training."""

from typing import Any

import torch
from torch import Tensor, nn

from exercises.check import (
    NotAttempted,
    NotYet,
    call,
    checked,
    expect,
    expect_close,
    normal,
)
from exercises.mistakes09 import (
    clip_mistakes,
    equalised_mistakes,
    mixed_mistakes,
    parameter_mistakes,
    surprise_mistakes,
    unfuse_mistakes,
)
from helpers.gpt import GPT, GPTConfig


@checked
def fast_parameters(answer: Any) -> str:
    """fast_parameters(V, L, C): how many numbers training can change in a fast_gpt."""
    for V, L, C in ((69, 4, 128), (11, 3, 6), (50, 1, 20), (7, 5, 16)):
        got = call(answer, V, L, C, name="fast_parameters")
        want = 2 * V * C + L * (12 * C**2 + 2 * C) + C
        what = f"fast_parameters({V}, {L}, {C})"
        expect_close(got, want, what, mistakes=parameter_mistakes(V, L, C), tolerance=1e-9)
    return "two tables, twelve C² a block, and the gains."


@checked
def surprises(answer: Any) -> str:
    """surprises(logits, ids): (B, T, V) and (B, T) to (B, T − 1), −ln p of each token."""
    for B, T, V, seed in ((2, 5, 7, 1), (3, 4, 11, 2), (1, 8, 3, 3)):
        logits = 2 * normal(B, T, V, seed=seed)
        ids = torch.randint(V, (B, T), generator=torch.Generator().manual_seed(seed))
        got = call(answer, logits, ids, name="surprises")
        want = -logits[:, :-1].log_softmax(-1).gather(-1, ids[:, 1:, None])[..., 0]
        what = f"surprises(logits, ids) for logits of shape {(B, T, V)}"
        expect_close(got, want, what, mistakes=surprise_mistakes(logits, ids))
    return "each token is judged by the row before it."


@checked
def clip(answer: Any) -> str:
    """clip(gradients, longest): all tensors together shortened to at most that length."""
    shapes = [(3, 4), (5,), (2, 1, 3)]
    for longest, size, seed in ((1.0, 1.0, 1), (0.5, 3.0, 5), (100.0, 1.0, 9), (2.0, 0.1, 13)):
        given = [size * normal(*shape, seed=seed + i) for i, shape in enumerate(shapes)]
        got = call(answer, given, longest, name="clip")
        flat = _flat(got, given)
        whole = torch.cat([g.flatten() for g in given])
        want = whole * min(1.0, longest / whole.norm().item())
        length = f"{whole.norm().item():.2f}"
        what = f"clip(gradients, {longest}) of gradients with the length {length}, all in a row"
        expect_close(flat, want, what, mistakes=clip_mistakes(given, longest))
    example = [torch.tensor([3.0]), torch.tensor([[4.0]])]
    got = _flat(call(answer, example, 1.0, name="clip"), example)
    expect_close(got, [0.6, 0.8], "clip([3, 4], 1.0)")
    return "one length for all, and the direction stays."


def _flat(got: Any, given: list[Tensor]) -> Tensor:
    """The tensors of the answer as one row, if they have the right shapes."""
    if not isinstance(got, (list, tuple)) or len(got) != len(given):
        raise NotYet(f"clip should give a list of {len(given)} tensors, as many as it got.")
    if any(g is ... for g in got):
        raise NotAttempted
    for g, wanted in zip(got, given, strict=True):
        if not isinstance(g, Tensor) or g.shape != wanted.shape:
            raise NotYet("each tensor that clip gives should have the shape of the one it got.")
    return torch.cat([g.detach().flatten() for g in got])


@checked
def decay_groups(answer: Any) -> str:
    """decay_groups(model): the names that decay and the names that do not."""
    gpt = GPT(GPTConfig(11, 5, 2, 2, 8))
    models: dict[str, nn.Module] = {
        "a GPT": gpt,
        "an untied GPT": GPT(GPTConfig(7, 3, 1, 1, 4, tied=False)),
    }
    models["nn.Linear"] = nn.Linear(2, 3)
    models["nn.LayerNorm"] = nn.LayerNorm(3)
    models["an nn.Embedding"] = nn.Embedding(4, 3)
    for what, model in models.items():
        got = call(answer, model, name="decay_groups")
        if not isinstance(got, (list, tuple)) or len(got) != 2:
            raise NotYet("decay_groups should give a pair: (names that decay, names that do not).")
        if not all(isinstance(group, (list, tuple)) for group in got):
            raise NotYet("each of the two groups should be a list of names.")
        _compare_groups([list(group) for group in got], model, what)
    return "matrices and tables decay; gains and biases keep what they have."


def _compare_groups(got: list[list[Any]], model: nn.Module, what: str) -> None:
    named = dict(model.named_parameters())
    wanted = [[n for n, p in named.items() if (p.dim() < 2) == late] for late in (False, True)]
    if got == wanted:
        return
    if any(not isinstance(name, str) for group in got for name in group):
        if any(name is ... for group in got for name in group):
            raise NotAttempted
        raise NotYet("the groups should hold the names of the parameters, not the tensors.")
    expect(got != wanted[::-1], "The groups are swapped: those that decay come first.")
    names = [name for group in got for name in group]
    if "head.weight" in names and "head.weight" not in named:
        raise NotYet(
            "The table of a tied model is in your groups twice, as token.weight and head.weight: "
            "it would decay twice. `model.named_parameters()` gives it once."
        )
    missing = [name for name in named if name not in names]
    expect(not missing, f"{what}: some parameters are in neither group, such as {missing[:1]}.")
    expect(len(names) == len(set(names)), f"{what}: a parameter is in your groups twice.")
    for name in got[0]:
        if name in named and named[name].dim() < 2:
            kind = "bias" if name.endswith("bias") else "gain of a norm"
            raise NotYet(f"{what}: {name}, a {kind}, is among those that decay. Vectors do not.")
    for name in got[1]:
        if name in named and named[name].dim() >= 2:
            raise NotYet(f"{what}: {name} is a matrix or a table and should decay.")
    raise NotYet(f"{what}: the right names, but not in the model's order.")


@checked
def equalised(answer: Any) -> str:
    """equalised(matrix): U Vᵀ of U Σ Vᵀ, for any shape."""
    for rows, columns, seed in ((4, 4, 1), (3, 6, 2), (7, 2, 3)):
        matrix = 3 * normal(rows, columns, seed=seed)
        U, _, Vt = torch.linalg.svd(matrix, full_matrices=False)
        what = f"equalised(matrix) for a matrix of shape {(rows, columns)}"
        got = call(answer, matrix, name="equalised")
        expect_close(got, U @ Vt, what, mistakes=equalised_mistakes(matrix), tolerance=1e-3)
    return "all singular values are 1, and the directions are kept."


@checked
def unfuse(answer: Any) -> str:
    """unfuse(c_attn): (C, 3C) to three (C, C), as nn.Linear wants them."""
    for C, seed in ((4, 1), (6, 2), (3, 3)):
        c_attn = normal(C, 3 * C, seed=seed)
        got = call(answer, c_attn, name="unfuse")
        if not isinstance(got, (list, tuple, Tensor)) or len(got) != 3:
            raise NotYet("unfuse should give three matrices: query, key, value.")
        for name, matrix in zip(("query", "key", "value"), got, strict=True):
            if not isinstance(matrix, Tensor) or matrix.shape != (C, C):
                size = tuple(matrix.shape) if isinstance(matrix, Tensor) else type(matrix).__name__
                raise NotYet(f"for C = {C} the {name} matrix should be {(C, C)}, not {size}.")
        want = torch.stack([part.T for part in c_attn.chunk(3, dim=1)])
        what = f"unfuse(c_attn) for C = {C}, the three matrices stacked"
        expect_close(torch.stack(list(got)), want, what, mistakes=unfuse_mistakes(c_attn))
    return "three matrices, each turned: GPT-2's weights fit."


@checked
def mixed_steps(answer: Any) -> str:
    """mixed_steps(rungs): the numbers of the rungs that change more than one setting."""
    classic: list[dict[str, Any]] = [
        {"heads": 0, "T": 8, "steps": 100},
        {"heads": 1, "T": 8, "steps": 500},
        {"heads": 4, "T": 8, "steps": 500},
        {"heads": 4, "T": 8, "steps": 500, "feed": True, "norm": True},
        {"heads": 4, "T": 8, "steps": 500, "feed": True, "norm": True, "dropout": None},
        {"heads": 4, "T": 256, "steps": 500, "feed": True, "norm": True},
        {"heads": 4, "T": 256, "steps": 500},
        {"heads": 4, "T": 256, "steps": 500},
    ]
    clean: list[dict[str, Any]] = [{"T": 8}, {"T": 8, "heads": 1}, {"T": 8, "heads": 4}]
    for rungs in (classic, clean, [*clean, {"T": 16, "heads": 1}], clean[:1]):
        got = call(answer, rungs, name="mixed_steps")
        if not isinstance(got, (list, tuple)) or any(type(i) is not int for i in got):
            raise NotYet("mixed_steps should give a list of whole numbers, such as [2].")
        want = [i for i in range(1, len(rungs)) if _changes(rungs[i - 1], rungs[i]) > 1]
        for diagnosis, wrong in mixed_mistakes(rungs, _changes).items():
            expect(list(got) == want or list(got) != wrong, diagnosis)
        expect(list(got) == want, f"for {rungs} it should be {want}, but is {list(got)}.")
    return "now you know which steps of a ladder say what brought the gain."


def _changes(a: dict[str, Any], b: dict[str, Any]) -> int:
    return sum(a.get(name, _changes) != b.get(name, _changes) for name in a.keys() | b.keys())
