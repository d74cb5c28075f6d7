"""One training step on many GPUs: how computing and sending share the time."""

from typing import Any, ClassVar, NamedTuple

import traitlets

from explorers.base import Explorer, esm, in_range
from helpers.plots import BLUE, GREEN, GREY, MASKED, ORANGE, Picture, picture

# Published sizes (GPT-2, Llama): how many parameters, in how many layers.
MODELS = {"124M": (124e6, 12), "1.5B": (1.5e9, 48), "7B": (7e9, 32), "70B": (70e9, 80)}
PEAK = 989e12  # FLOP/s of an H100, for 16-bit numbers
SPEED = 400e12  # FLOP/s that its products reach: 40%
_ROWS = {"forward": (1, BLUE), "backward": (1, ORANGE), "send": (0, GREEN)}


class Block(NamedTuple):
    """What a GPU computes or sends from `start` to `end` (seconds), for one layer (from 0)."""

    kind: str  # "forward", "backward", or "send": the gradient, to and from the other GPUs
    layer: int
    start: float
    end: float


def one_step(
    parameters: float,
    layers: int,
    processes: int,
    tokens: int,
    speed: float,
    bandwidth: float,
    *,
    overlap: bool = True,
) -> list[Block]:
    """What each GPU computes and sends in a step of data-parallel training, in order.

    parameters: of the whole model, in equal layers; processes: GPUs, each with a copy of the model;
    tokens: how many each GPU processes in a step; speed: FLOP/s that each GPU reaches; bandwidth:
    bytes per second that each GPU sends. All are above zero. overlap: if True, the gradient of a
    layer, 2 bytes per number, is sent as soon as it is computed; otherwise all gradients are sent
    after the last one has been computed.

    Gradients are averaged round a ring (Patarasuk and Yuan 2009). Left out: the latency of
    messages, what attention computes beside its weights, and the optimiser's own time.
    """
    part = parameters / layers
    forward = 2 * part * tokens / speed
    send = 2 * (processes - 1) / processes * 2 * part / bandwidth
    blocks, now = [], 0.0
    for layer in range(layers):
        blocks.append(Block("forward", layer, now, now + forward))
        now += forward
    for layer in reversed(range(layers)):
        blocks.append(Block("backward", layer, now, now + 2 * forward))
        now += 2 * forward
    sent = 0.0
    for done in blocks[layers:] if processes > 1 else []:
        start = max(sent, done.end if overlap else now)
        sent = start + send
        blocks.append(Block("send", done.layer, start, sent))
    return blocks


class OverlapExplorer(Explorer):
    """A step of data-parallel training in time: what the GPU computes, and what it sends meanwhile.

    size: "124M", "1.5B", "7B" or "70B" parameters (in 12, 48, 32 or 80 layers); processes: how many
    GPUs, 1 to 16,384; tokens: how many each GPU processes in a step, 1 to 1,048,576; bandwidth:
    bytes per second that each GPU sends, 10⁸ to 10¹³; overlap: if True, a gradient is sent while
    the next one is computed; speed: FLOP/s that each GPU reaches while it computes, 10⁹ to 10¹⁸
    (the MFU is a fraction of an H100's 989·10¹²).
    Only the time is shown, not whether the model fits into a GPU's memory.
    """

    _esm: ClassVar[str] = esm("overlap")

    size = traitlets.Enum(tuple(MODELS), "7B").tag(sync=True)
    processes = traitlets.Int(8).tag(sync=True)
    tokens = traitlets.Int(8192).tag(sync=True)
    bandwidth = traitlets.Float(25e9).tag(sync=True)
    overlap = traitlets.Bool(True).tag(sync=True)
    speed = traitlets.Float(SPEED).tag(sync=True)

    def __init__(self, size: str = "7B", **settings: Any):
        super().__init__(size=size, **settings)

    _many = in_range("how many GPUs,", "processes", low=1, high=2**14)
    _read = in_range("tokens per GPU,", "tokens", low=1, high=2**20)
    _wire = in_range("bytes a second,", "bandwidth", low=10**8, high=10**13)
    _chip = in_range("FLOP a second,", "speed", low=10**9, high=10**18)

    def blocks(self, *, overlap: bool | None = None) -> list[Block]:
        """The present step (see `one_step`), or the same with or without overlap."""
        return one_step(
            *MODELS[self.size], self.processes, self.tokens, self.speed, self.bandwidth,
            overlap=self.overlap if overlap is None else overlap,
        )  # fmt: skip

    def measures(self) -> dict[str, float]:
        """`seconds` of a step, `efficiency` (the share of them in which a GPU computes), and
        `tokens_a_second` of all GPUs together."""
        blocks = self.blocks()
        seconds = max(block.end for block in blocks)
        computed = max(block.end for block in blocks if block.kind != "send")  # it never pauses
        read = self.processes * self.tokens / seconds
        return {"seconds": seconds, "efficiency": computed / seconds, "tokens_a_second": read}

    def picture(self) -> Picture:
        """The step as two rows in time: computing above, sending below."""
        end = self.measures()["seconds"]
        fig, ax = picture(
            f"One training step in time, computing above and sending below: {self.describe()}.",
            width=9,
            height=2.6,
        )
        ax.broken_barh([(0, end)], (0.65, 0.7), color=MASKED, label="idle")
        ax.broken_barh([(0, end)], (-0.35, 0.7), color=MASKED)
        blocks = self.blocks()
        for kind, (row, colour) in _ROWS.items():
            spans = [(b.start, b.end - b.start) for b in blocks if b.kind == kind]
            style: dict[str, Any] = {"facecolor": colour, "edgecolor": "white", "linewidth": 0.4}
            ax.broken_barh(spans, (row - 0.35, 0.7), label=kind, **style)
        ax.axvline(end, color=GREY, label="end of the step")
        last = max(block.end for block in self.blocks(overlap=False))
        if last > end:
            ax.axvline(last, color=GREY, linestyle=":", label="end without overlap")
        ax.set_title(self._says(), fontsize=10)
        ax.set(xlabel="seconds", xlim=(0, 1.01 * last), ylim=(-0.5, 1.5))
        ax.set_yticks([1, 0], ["computes", "sends"])
        ax.grid(visible=False)
        ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.35), ncols=6)
        return fig

    def describe(self) -> str:
        """The settings, and what they come to."""
        return (
            f"{self.size} parameters, {self.tokens:,} tokens per GPU, "
            f"{self.bandwidth / 1e9:g} GB/s, overlap {'on' if self.overlap else 'off'}: "
            f"{self._says()}"
        )

    def _says(self) -> str:
        now = self.measures()
        gpus = "1 GPU processes" if self.processes == 1 else f"{self.processes:,} GPUs process"
        percent = 100 * now["efficiency"]
        return (
            f"one step {in_time(now['seconds'])}, {in_short(percent)}% of it computing · "
            f"MFU {in_short(percent * self.speed / PEAK)}% · "
            f"{gpus} {in_short(now['tokens_a_second'], 2)} tokens per second"
        )


def in_short(value: float, digits: int = 3) -> str:
    """A positive number in so many digits, as people write it.

    >>> in_short(50_993, 2), in_short(6_214_000, 2), in_short(0.2416)
    ('51,000', '6.2 million', '0.242')
    """
    value = float(f"{value:.{digits}g}")
    for many, name in ((1e9, " billion"), (1e6, " million")):
        if value >= many:
            return f"{value / many:,g}{name}"
    return f"{value:,g}"


def in_time(seconds: float) -> str:
    """Seconds in three digits, or milliseconds if there are few.

    >>> in_time(1.2847), in_time(0.0123)
    ('1.28 s', '12.3 ms')
    """
    return f"{in_short(seconds)} s" if seconds >= 0.1 else f"{in_short(1000 * seconds)} ms"
