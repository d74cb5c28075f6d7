"""The exercises on fine-tuning: three right answers to each, of unlike styles, and nine wrong ones.

They were written from the tasks, before the checks.
"""

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


def without_end(ids, header, end):
    return [
        m and token != end for m, token in zip(mask_by_slices(ids, header, end), ids, strict=True)
    ]


def moved_left(ids, header, end):
    return [*mask_by_slices(ids, header, end)[1:], False]


def moved_right(ids, header, end):
    return [False, *mask_by_slices(ids, header, end)[:-1]]


def first_answer_only(ids, header, end):
    mask, n = [False] * len(ids), len(header)
    for i in range(len(ids)):
        if ids[i : i + n] == header:
            last = ids.index(end, i) if end in ids[i:] else len(ids) - 1
            mask[i + n : last + 1] = [True] * (last + 1 - i - n)
            break
    return mask


def last_answer_only(ids, header, end):
    mask, n = [False] * len(ids), len(header)
    found = [i for i in range(len(ids)) if ids[i : i + n] == header]
    for i in found[-1:]:
        last = ids.index(end, i) if end in ids[i:] else len(ids) - 1
        mask[i + n : last + 1] = [True] * (last + 1 - i - n)
    return mask


def with_header(ids, header, end):
    mask, n = mask_by_slices(ids, header, end), len(header)
    for i in range(len(ids)):
        if ids[i : i + n] == header:
            mask[i : i + n] = [True] * n
    return mask


def rest_of_the_dialogue(ids, header, end):
    inside, mask = False, []
    for i in range(len(ids)):
        inside = inside or (i >= len(header) and ids[i - len(header) : i] == header)
        mask.append(inside)
    return mask


def with_line_break(ids, header, end):
    mask = mask_by_slices(ids, header, end)
    return [m or (i > 0 and mask[i - 1] and ids[i - 1] == end) for i, m in enumerate(mask)]


def by_role_alone(ids, header, end):
    """The role without the special token before it."""
    return mask_by_slices(ids, header[1:], end)


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


def lora_unscaled(x, W, A, B, alpha):
    return x @ W.T + x @ A.T @ B.T


def lora_times_alpha(x, W, A, B, alpha):
    return x @ W.T + alpha * x @ A.T @ B.T


def lora_upside_down(x, W, A, B, alpha):
    return x @ W.T + A.shape[0] / alpha * x @ A.T @ B.T


def lora_by_inputs(x, W, A, B, alpha):
    return x @ W.T + alpha / A.shape[1] * x @ A.T @ B.T


def lora_all_scaled(x, W, A, B, alpha):
    return alpha / A.shape[0] * (x @ W.T + x @ A.T @ B.T)


def adapter_alone(x, W, A, B, alpha):
    return alpha / A.shape[0] * x @ A.T @ B.T


def lora_after_the_layer(x, W, A, B, alpha):
    out = x @ W.T
    return out + alpha / A.shape[0] * out @ A.T @ B.T


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


def merged_unscaled(W, A, B, alpha):
    return W + B @ A, A.numel() + B.numel()


def merged_times_alpha(W, A, B, alpha):
    return W + alpha * B @ A, A.numel() + B.numel()


def merged_by_inputs(W, A, B, alpha):
    return W + alpha / A.shape[1] * B @ A, A.numel() + B.numel()


def merged_transposed(W, A, B, alpha):
    return W + alpha / A.shape[0] * A.T @ B.T, A.numel() + B.numel()


def merged_replaced(W, A, B, alpha):
    return alpha / A.shape[0] * B @ A, A.numel() + B.numel()


def merged_in_place(W, A, B, alpha):
    W += alpha / A.shape[0] * B @ A
    return W, A.numel() + B.numel()


def count_of_the_product(W, A, B, alpha):
    return W + alpha / A.shape[0] * B @ A, W.numel()


def count_with_weights(W, A, B, alpha):
    return W + alpha / A.shape[0] * B @ A, W.numel() + A.numel() + B.numel()


def count_product_of_sides(W, A, B, alpha):
    return W + alpha / A.shape[0] * B @ A, A.shape[0] * W.shape[0] * W.shape[1]


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


def only_the_end(prompt):
    return prompt.endswith("<|im_start|>assistant\n")


def only_the_beginning(prompt):
    return prompt.startswith(("<|im_start|>user\n", "<|im_start|>system\n"))


def only_counts(prompt):
    return prompt.count(START) == prompt.count(END) + 1


def end_and_counts(prompt):
    return prompt.endswith("<|im_start|>assistant\n") and (
        prompt.count("<|im_start|>") == prompt.count("<|im_end|>") + 1
    )


ANY_ROLE = r"(<\|im_start\|>(system|user|assistant)\n.+?<\|im_end\|>\n)+<\|im_start\|>assistant\n"


def any_order(prompt):
    text = r"(?:(?!<\|im_start\|>|<\|im_end\|>)(?:.|\n))+"
    message = rf"<\|im_start\|>(?:system|user|assistant)\n{text}<\|im_end\|>\n"
    return bool(re.fullmatch(f"(?:{message})+<\\|im_start\\|>assistant\n", prompt))


def one_line_only(prompt):
    turn = r"<\|im_start\|>user\n.+<\|im_end\|>\n"
    answer = r"<\|im_start\|>assistant\n.+<\|im_end\|>\n"
    system = r"(<\|im_start\|>system\n.+<\|im_end\|>\n)?"
    return bool(re.fullmatch(f"{system}({turn}{answer})*{turn}<\\|im_start\\|>assistant\n", prompt))


def stripped(prompt):
    return fits_by_pattern(prompt.strip() + "\n")


def any_case(prompt):
    return fits_by_pattern(prompt.lower())


def inverted(prompt):
    return not fits_by_pattern(prompt)


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


def token_losses(logits, ids):
    return F.cross_entropy(logits.transpose(1, 2), ids, reduction="none")


def masked_mean(losses, mask):
    return (losses * mask).sum(1) / mask.sum(1).clamp(min=1)


def not_shifted(logits, ids, mask):
    return masked_mean(token_losses(logits, ids), mask)


def shifted_back(logits, ids, mask):
    return masked_mean(token_losses(logits[:, 1:], ids[:, :-1]), mask[:, :-1])


def mask_not_shifted(logits, ids, mask):
    return masked_mean(token_losses(logits[:, :-1], ids[:, 1:]), mask[:, :-1])


def mask_ignored(logits, ids, mask):
    return token_losses(logits[:, :-1], ids[:, 1:]).mean(1)


def over_all_tokens(logits, ids, mask):
    return (token_losses(logits[:, :-1], ids[:, 1:]) * mask[:, 1:]).mean(1)


def summed(logits, ids, mask):
    return (token_losses(logits[:, :-1], ids[:, 1:]) * mask[:, 1:]).sum(1)


def one_mean(logits, ids, mask):
    learned = mask[:, 1:]
    return F.cross_entropy(logits[:, :-1][learned], ids[:, 1:][learned])


def nan_without_tokens(logits, ids, mask):
    losses = token_losses(logits[:, :-1], ids[:, 1:]) * mask[:, 1:]
    return losses.sum(1) / mask[:, 1:].sum(1)


def softmax_first(logits, ids, mask):
    losses = token_losses(logits.softmax(-1)[:, :-1], ids[:, 1:])
    return masked_mean(losses, mask[:, 1:])


def sign_forgotten(logits, ids, mask):
    return -losses_by_gather(logits, ids, mask)


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
    (check.dialogue_mask, without_end, "end token"),
    (check.dialogue_mask, moved_left, "one position too early"),
    (check.dialogue_mask, moved_right, "one position too late"),
    (check.dialogue_mask, first_answer_only, "only the first answer"),
    (check.dialogue_mask, last_answer_only, "only the last answer"),
    (check.dialogue_mask, with_header, "the header itself"),
    (check.dialogue_mask, rest_of_the_dialogue, "does not end"),
    (check.dialogue_mask, with_line_break, "line break"),
    (check.dialogue_mask, by_role_alone, "whole header"),
    (check.lora_forward, lora_unscaled, "factor alpha / r is missing"),
    (check.lora_forward, lora_times_alpha, "Divide alpha by the rank"),
    (check.lora_forward, lora_upside_down, "upside down"),
    (check.lora_forward, lora_by_inputs, "The rank is"),
    (check.lora_forward, lora_all_scaled, "only the adapter"),
    (check.lora_forward, adapter_alone, "adapter alone"),
    (check.lora_forward, lora_after_the_layer, "same input x"),
    (check.lora_forward, lora_not_transposed, "x @ W.T"),
    (check.lora_forward, lora_detached, "no gradient comes back"),
    (check.merge_and_count, merged_unscaled, "factor alpha / r is missing"),
    (check.merge_and_count, merged_times_alpha, "Divide alpha by the rank"),
    (check.merge_and_count, merged_by_inputs, "The rank is"),
    (check.merge_and_count, merged_transposed, "B @ A"),
    (check.merge_and_count, merged_replaced, "Add it to W"),
    (check.merge_and_count, merged_in_place, "changed its input in place"),
    (check.merge_and_count, lambda *given: merge_by_einsum(*given)[0], "only one of the two"),
    (check.merge_and_count, lambda *given: merge_by_einsum(*given)[1], "only one of the two"),
    (check.merge_and_count, count_of_the_product, "parameters of the matrix"),
    (check.merge_and_count, count_with_weights, "belong to the layer"),
    (check.merge_and_count, count_product_of_sides, "r · (in + out)"),
    (check.fits_template, only_the_end, "only how the prompt ends"),
    (check.fits_template, only_the_beginning, "only how the prompt begins"),
    (check.fits_template, only_counts, "count"),
    (check.fits_template, end_and_counts, "count"),
    (check.fits_template, any_order, "order of the roles"),
    (check.fits_template, one_line_only, "line break"),
    (check.fits_template, stripped, "strip"),
    (check.fits_template, any_case, "capital"),
    (check.fits_template, inverted, "other way round"),
    (check.fits_template, one_message_only, "more than one turn"),
    (check.dialogue_losses, not_shifted, "not shifted"),
    (check.dialogue_losses, shifted_back, "wrong direction"),
    (check.dialogue_losses, mask_not_shifted, "The mask belongs to the targets"),
    (check.dialogue_losses, mask_ignored, "mask"),
    (check.dialogue_losses, over_all_tokens, "number of learned tokens"),
    (check.dialogue_losses, summed, "sum"),
    (check.dialogue_losses, one_mean, "one number for the whole batch"),
    (check.dialogue_losses, nan_without_tokens, "0 / 0"),
    (check.dialogue_losses, softmax_first, "softmax"),
    (check.dialogue_losses, sign_forgotten, "minus sign"),
)
