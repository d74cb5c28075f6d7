"""The exercises on fine-tuning: other right answers, and mistakes that no declaration names."""

import itertools
import re

import torch
import torch.nn.functional as F
from torch import nn

from exercises import fine_tuning as check
from tests.answers import accepted, refused

# --- 19.1 -----------------------------------------------------------------------------------------


def mask_by_slices(ids, header, end):
    mask = [False] * len(ids)
    i = 0
    while i < len(ids):
        if ids[i : i + len(header)] != header:
            i += 1
            continue
        i += len(header)
        while i < len(ids):
            mask[i] = True
            i += 1
            if ids[i - 1] == end:
                break
    return mask


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


def mask_by_counting(ids, header, end):
    n = len(header)
    starts = [int(i >= n and ids[i - n : i] == header) for i in range(len(ids))]
    last_start = itertools.accumulate((i if s else -1 for i, s in enumerate(starts)), max)
    ends = [i for i, token in enumerate(ids) if token == end]
    return [s >= 0 and not any(s <= e < i for e in ends) for i, s in enumerate(last_start)]


# --- 19.2 -----------------------------------------------------------------------------------------


def lora_by_module(x, W, A, B, alpha):
    return F.linear(x, W) + F.linear(F.linear(x, A), B) * (alpha / len(A))


def lora_by_merging(x, W, A, B, alpha):
    return torch.einsum("oi,...i->...o", W + B @ A * alpha / B.shape[1], x)


def lora_in_a_loop(x, W, A, B, alpha):
    out = x @ W.T
    for a, b in zip(A, B.T, strict=True):  # one rank after the other
        out = out + alpha / A.size(0) * (x * a).sum(-1, keepdim=True) * b
    return out


def lora_not_transposed(x, W, A, B, alpha):
    return x @ W + alpha / A.shape[0] * x @ A @ B


def lora_detached(x, W, A, B, alpha):
    with torch.no_grad():
        return x @ W.T + alpha / A.shape[0] * x @ A.T @ B.T


# --- 19.3 -----------------------------------------------------------------------------------------


def merge_by_einsum(W, A, B, alpha):
    r, n_in = A.shape
    n_out, _ = B.shape
    return W + torch.einsum("or,ri->oi", B, A).mul(alpha / r), r * (n_in + n_out)


def merge_by_outer_products(W, A, B, alpha):
    merged = W.clone()
    for i in range(len(A)):
        merged += alpha / len(A) * torch.outer(B[:, i], A[i])
    return [merged, sum(p.numel() for p in (A, B))]


def merge_by_module(W, A, B, alpha):
    """What the layer gives for each unit vector is a column."""
    eye = torch.eye(W.shape[1])
    columns = lora_by_module(eye, W, A, B, alpha)
    return columns.T, sum(nn.Parameter(p).numel() for p in [A, B])


def merged_in_place(W, A, B, alpha):
    W += alpha / A.shape[0] * B @ A
    return W, A.numel() + B.numel()


# --- 19.4 -----------------------------------------------------------------------------------------

START, END = "<|im_start|>", "<|im_end|>"


def fits_by_pattern(prompt):
    text = r"(?:(?!<\|im_start\|>|<\|im_end\|>)(?:.|\n))+"

    def message(role):
        return rf"<\|im_start\|>{role}\n{text}<\|im_end\|>\n"

    both = f"(?:{message('user')}{message('assistant')})*"
    form = f"(?:{message('system')})?{both}{message('user')}<\\|im_start\\|>assistant\n"
    return re.fullmatch(form, prompt) is not None


def fits_by_writing_again(prompt):
    parts = prompt.split(START)
    messages = [part.split("\n", 1) for part in parts[1:-1] if "\n" in part]
    roles = [role for role, _ in messages]
    texts = [rest.removesuffix(END + "\n") for _, rest in messages]
    again = "".join(f"{START}{r}\n{t}{END}\n" for r, t in zip(roles, texts, strict=True))
    turns = roles[1:] if roles and roles[0] == "system" else roles
    good = all(texts) and not any(END in t for t in texts)
    in_turn = turns[::2] == ["user"] * (len(turns) // 2 + 1)
    in_turn = in_turn and turns[1::2] == ["assistant"] * (len(turns) // 2)
    return bool(good and in_turn and again + f"{START}assistant\n" == prompt)


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


def stripped(prompt):
    return fits_by_pattern(prompt.strip() + "\n")


def any_case(prompt):
    return fits_by_pattern(prompt.lower())


def one_message_only(prompt):
    return prompt.count("<|im_start|>") == 2 and fits_by_pattern(prompt)


# --- 19.5 -----------------------------------------------------------------------------------------


def losses_in_loops(logits, ids, mask):
    found = []
    for row, tokens, learned in zip(logits, ids, mask, strict=True):
        total, n = row.sum() * 0, 0
        for t in range(1, len(tokens)):
            if learned[t]:
                total = total - row[t - 1].log_softmax(0)[tokens[t]]
                n += 1
        found.append(total / max(n, 1))
    return torch.stack(found)


def losses_by_gather(logits, ids, mask):
    log_probs = logits.log_softmax(-1)[:, :-1].gather(-1, ids[:, 1:, None]).squeeze(-1)
    weights = mask[:, 1:].float()
    return -torch.einsum("bt,bt->b", log_probs, weights / weights.sum(1, True).clamp(min=1))


def losses_by_ignore_index(logits, ids, mask):
    targets = ids.masked_fill(~mask, -100)[:, 1:]
    rows = [
        F.cross_entropy(x[:-1], y, ignore_index=-100, reduction="sum") / max(1, int((y >= 0).sum()))
        for x, y in zip(logits, targets, strict=True)
    ]
    return torch.stack(rows)


test_other_right_answers_are_right = accepted(
    (check.dialogue_mask, mask_by_slices),
    (check.dialogue_mask, mask_by_search),
    (check.dialogue_mask, mask_by_counting),
    (check.lora_forward, lora_by_module),
    (check.lora_forward, lora_by_merging),
    (check.lora_forward, lora_in_a_loop),
    (check.merge_and_count, merge_by_einsum),
    (check.merge_and_count, merge_by_outer_products),
    (check.merge_and_count, merge_by_module),
    (check.fits_template, fits_by_pattern),
    (check.fits_template, fits_by_writing_again),
    (check.fits_template, fits_by_reading),
    (check.dialogue_losses, losses_in_loops),
    (check.dialogue_losses, losses_by_gather),
    (check.dialogue_losses, losses_by_ignore_index),
)


test_wrong_answers_are_told_what_is_wrong = refused(
    (check.lora_forward, lora_not_transposed, "x @ W.T"),
    (check.lora_forward, lora_detached, "no gradient comes back"),
    (check.merge_and_count, merged_in_place, "changed its input in place"),
    (check.fits_template, stripped, "strip"),
    (check.fits_template, any_case, "capital"),
    (check.fits_template, one_message_only, "more than one turn"),
)
