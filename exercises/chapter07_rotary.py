"""Checks of chapter 07 on rotary positions: turning, what is turned, and the two layouts."""

from typing import Any

import torch
from torch import Tensor

from exercises.check import call, checked, expect, expect_close, normal, same
from helpers.attention import attention, causal_mask
from helpers.positions import Rotary, half_split


def different(mistakes: dict[str, Tensor], want: Tensor) -> dict[str, Tensor]:
    """The mistakes that show on this input: with one pair or one head some are right by chance."""
    return {
        d: wrong for d, wrong in mistakes.items() if wrong.shape != want.shape
        or not same(wrong, want, 0.05)
    }  # fmt: skip


def _turn(x: Tensor, angles: Tensor) -> Tensor:
    """Pairs (i, i + hs/2) of x (..., T, hs), turned by angles (T, hs / 2)."""
    a, b = x.chunk(2, -1)
    return torch.cat((a * angles.cos() - b * angles.sin(), a * angles.sin() + b * angles.cos()), -1)


def _turn_neighbours(x: Tensor, angles: Tensor) -> Tensor:
    """Pairs (2i, 2i + 1) of x, turned."""
    a, b = x[..., 0::2], x[..., 1::2]
    pair = (a * angles.cos() - b * angles.sin(), a * angles.sin() + b * angles.cos())
    return torch.stack(pair, -1).flatten(-2)


def _rotate_mistakes(x: Tensor, base: float) -> dict[str, Tensor]:
    T, hs = x.shape[-2:]
    p, two_i = torch.arange(T)[:, None], torch.arange(0, hs, 2)
    theta = base ** (-two_i / hs)
    angles = p * theta
    a, b = x.chunk(2, -1)
    cos, sin = angles.cos(), angles.sin()
    heads = torch.arange(x.shape[0])[:, None, None] * theta if x.dim() > 2 else angles
    mistakes = {
        "You rotate neighbours, (0, 1), (2, 3), …: the interleaved layout. Here the pairs are "
        "(i, i + hs/2): use x.chunk(2, -1).": _turn_neighbours(x, angles),
        "You turn the right pairs, but write them out as neighbours. Join the halves again: all "
        "first numbers, then all second ones, with torch.cat.": (
            torch.stack(_turn(x, angles).chunk(2, -1), -1).flatten(-2)
        ),
        "The halves have changed places: a·cos − b·sin comes first, then a·sin + b·cos.": (
            _turn(x, angles).roll(hs // 2, -1)
        ),
        "You turn backwards. The first of a pair becomes a·cos − b·sin, the second "
        "a·sin + b·cos.": _turn(x, -angles),
        "Your positions begin at 1: the token at position 0 is not turned.": (
            _turn(x, angles + theta)
        ),
        "You *add* the angles to x. Rotary positions turn: each pair is rotated, and its length "
        "stays.": x + torch.cat((angles, angles), -1),
        "You *add* sines and cosines to x. Rotary positions turn each pair instead.": (
            x + torch.cat((sin, cos), -1)
        ),
        "You add sines and cosines as in the sinusoidal table. Rotary positions turn each pair "
        "instead.": x + torch.stack((sin, cos), -1).flatten(-2),
        "The exponent of the base is −2i / hs, you have −i / hs.": (
            _turn(x, p * base ** (-two_i / 2 / hs))
        ),
        "The exponent counts twice: torch.arange(0, hs, 2) is already 2i.": (
            _turn(x, p * base ** (-2 * two_i / hs))
        ),
        "The exponent of the base needs a minus sign: later pairs turn more slowly.": (
            _turn(x, p * base ** (two_i / hs))
        ),
        "Your frequencies do not depend on base: it is the second argument.": (
            _turn(x, p * 10_000.0 ** (-two_i / hs))
        ),
        "This is a mirror, not a rotation: one of the two sines needs a minus sign, the one in "
        "a·cos − b·sin.": torch.cat((a * cos + b * sin, a * sin - b * cos), -1),
        "Both sines have a plus sign: it is a·cos − b·sin and a·sin + b·cos.": (
            torch.cat((a * cos + b * sin, a * sin + b * cos), -1)
        ),
        "The second number of each pair uses the first one after it was turned: keep the old "
        "values.": torch.cat(
            (a * cos - b * sin, (a * cos - b * sin) * sin + b * cos), -1
        ),
        "You only multiply by the cosines: a rotation also exchanges something between the two "
        "numbers of a pair.": x * torch.cat((cos, cos), -1),
        "The positions run along the wrong dimension: time is the last but one.": _turn(x, heads),
    }  # fmt: skip
    return different(mistakes, _turn(x, angles))


@checked
def rotate(answer: Any) -> str:
    """rotate(x, base): x (..., T, hs) with each pair (i, i + hs/2) turned by its position."""
    for shape, base, seed in (((5, 6), 50.0, 81), ((3, 4, 8), 10_000.0, 82), ((1, 2), 10.0, 83)):
        x = normal(*shape, seed=seed)
        name = f"rotate(x, {base:g}) for x of shape {shape}"
        got = call(answer, x, base, name=name)
        theta = base ** (-torch.arange(0, shape[-1], 2) / shape[-1])
        want = _turn(x, torch.arange(shape[-2])[:, None] * theta)
        mistakes = _rotate_mistakes(x, base)
        unknown = isinstance(got, Tensor) and got.shape == x.shape and not same(got, want)
        if unknown and not any(same(got, wrong) for wrong in mistakes.values()):
            lengths = same(got.norm(dim=-1), x.norm(dim=-1), 1e-3)
            expect(lengths, "The lengths of the vectors have changed: a rotation keeps them.")
        expect_close(got, want, name, mistakes=mistakes)
    return "every pair turned, every length kept."


@checked
def rotary_attention(answer: Any) -> str:
    """rotary_attention(q, k, v): causal attention with rotary positions, (B, H, T, hs)."""
    for shape, seed in (((1, 2, 5, 4), 84), ((2, 1, 3, 6), 87)):
        q, k, v = (normal(*shape, seed=seed + i) for i in range(3))
        turn, mask, hs = Rotary(shape[-1]), causal_mask(shape[-2]), shape[-1]
        name = f"rotary_attention(q, k, v) for shape {shape}"
        got = call(answer, q, k, v, name=name)
        if isinstance(got, tuple) and len(got) == 2 and same(got[1].sum(-1), torch.ones(shape[:3])):
            got = got[0]  # (out, weights), as `attention` returns it: welcome
        mistakes = {
            "You rotate the values too. Then the output depends on where the tokens stand, not "
            "only on how far apart: rotate q and k only.": (
                attention(turn(q), turn(k), turn(v), mask)[0]
            ),
            "You rotate the queries only: the scores depend on distances only if the keys are "
            "rotated too.": attention(turn(q), k, v, mask)[0],
            "You rotate the keys only: the queries have to be rotated too.": (
                attention(q, turn(k), v, mask)[0]
            ),
            "Nothing is rotated: this is attention without positions.": attention(q, k, v, mask)[0],
            "You rotate the output: rotate the queries and keys before their dot product.": (
                turn(attention(q, k, v, mask)[0])
            ),
            "The mask is missing: every token hears the future.": attention(turn(q), turn(k), v)[0],
            "The scores are not divided by √hs.": (
                attention(turn(q), turn(k), v, mask, scale=1.0)[0]
            ),
            "You turn keys backwards: q and k turn the same way, by their own positions.": (
                attention(turn(q), _turn(k, -torch.arange(shape[-2])[:, None]
                          * 10_000.0 ** (-torch.arange(0, hs, 2) / hs)), v, mask)[0]
            ),
        }  # fmt: skip
        want = attention(turn(q), turn(k), v, mask)[0]
        expect_close(got, want, name, mistakes=mistakes)
    return "positions are in the scores, and only there."


@checked
def to_halves(answer: Any) -> str:
    """to_halves(weight, n_head): rows from interleaved pairs to two halves, in every head."""
    for H, hs, C, seed in ((1, 6, 5, 91), (3, 8, 4, 92), (2, 6, 12, 93)):
        weight = normal(H * hs, C, seed=seed)
        name = f"to_halves(weight, {H}) for weight of shape {tuple(weight.shape)}"
        got = call(answer, weight, H, name=name)
        back = weight.unflatten(0, (H, 2, -1)).transpose(1, 2).flatten(0, 2)
        mistakes = {
            "You return the rows as they were.": weight,
            "This is the way back, from two halves to interleaved pairs.": back,
            "You reorder all rows at once. Every head has its own pairs: split off the heads "
            "first.": half_split(weight, 1),
            "The second members of the pairs come first: move rows 0, 2, 4, … of each head to its "
            "front.": half_split(weight.unflatten(0, (-1, 2)).flip(1).flatten(0, 1), H),
            "You keep the pairs but reverse the order inside them.": (
                weight.unflatten(0, (-1, 2)).flip(1).flatten(0, 1)
            ),
            "You put all heads' first members together: the heads have to stay together.": (
                weight.unflatten(0, (H, -1, 2)).permute(2, 0, 1, 3).flatten(0, 2)
            ),
        }
        if C == H * hs:
            wrong = half_split(weight.T, H).T
            mistakes["You reorder columns. A row of the weight makes one feature: move rows."] = (
                wrong
            )
        want = half_split(weight, H)
        expect_close(got, want, name, mistakes=different(mistakes, want))
    return "a weight from one world now fits into the other."
