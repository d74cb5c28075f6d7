"""The exercises on fine-tuning: other right answers, and mistakes that no declaration names."""

import re

import torch
import torch.nn.functional as F
from torch import nn

from exercises import fine_tuning as check
from tests.answers import accepted, refused


def mask_by_search(ids, header, end):
    text = "".join(map(chr, ids))
    learned = re.compile(
        f"(?<={re.escape(''.join(map(chr, header)))})[^{re.escape(chr(end))}]*{chr(end)}?",
        re.DOTALL,
    )
    mask = torch.zeros(len(ids), dtype=torch.bool)
    for found in learned.finditer(text):
        mask[found.start() : found.end()] = True
    return mask


def lora_by_module(x, W, A, B, alpha):
    return F.linear(x, W) + F.linear(F.linear(x, A), B) * (alpha / len(A))


def lora_in_a_loop(x, W, A, B, alpha):
    out = x @ W.T
    for a, b in zip(A, B.T, strict=True):  # one rank after the other
        out = out + alpha / A.size(0) * (x * a).sum(-1, keepdim=True) * b
    return out


def lora_not_transposed(x, W, A, B, alpha):
    return x @ W + alpha / A.shape[0] * x @ A @ B


def merge_by_module(W, A, B, alpha):
    """What the layer gives for each unit vector is a column."""
    eye = torch.eye(W.shape[1])
    columns = lora_by_module(eye, W, A, B, alpha)
    return columns.T, sum(nn.Parameter(p).numel() for p in [A, B])


START, END = "<|im_start|>", "<|im_end|>"


def fits_by_reading(prompt):
    expected, left = ["system", "user"], prompt
    answered = True
    while True:
        if left == f"{START}assistant\n":
            return not answered
        role = next((r for r in expected if left.startswith(f"{START}{r}\n")), None)
        end = left.find(END)
        begin = len(f"{START}{role}\n")
        if role is None or end <= begin or START in left[begin:end]:
            return False
        left = left[end + len(END) :]
        if not left.startswith("\n"):
            return False
        left = left[1:]
        answered = role != "user"
        expected = ["assistant"] if role == "user" else ["user"]


def any_case(prompt):
    return check.fits_template.right(prompt.lower())


def one_message_only(prompt):
    return prompt.count("<|im_start|>") == 2 and check.fits_template.right(prompt)


def losses_by_ignore_index(logits, ids, mask):
    targets = ids.masked_fill(~mask, -100)[:, 1:]
    rows = [
        F.cross_entropy(x[:-1], y, ignore_index=-100, reduction="sum") / max(1, int((y >= 0).sum()))
        for x, y in zip(logits, targets, strict=True)
    ]
    return torch.stack(rows)


test_other_right_answers_are_right = accepted(
    (check.dialogue_mask, mask_by_search),
    (check.lora_forward, lora_in_a_loop),
    (check.merge_and_count, merge_by_module),
    (check.fits_template, fits_by_reading),
    (check.dialogue_losses, losses_by_ignore_index),
)


test_wrong_answers_are_told_what_is_wrong = refused(
    (check.lora_forward, lora_not_transposed, "x @ W.T"),
    (check.fits_template, any_case, "capital"),
    (check.fits_template, one_message_only, "more than one turn"),
)
