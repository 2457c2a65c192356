"""Wrong variants of generated scripts: each runs, and a check has to find it out.

A mutant is a few exact replacements in the text of a script. They are written as the
Cell step has them; the functional step is the same text without ``self.``, and where it
is not, or where a style's loop differs, a mutant says so with an edit of its own.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from generator import TrainingSpec, generate

Edit = tuple[str, str]

# PyNative mode: nothing is compiled, so that short runs of many scripts are quick.
BASES = {
    "full": {
        "accum": 3,
        "loss_scale": "dynamic",
        "optimizer": "momentum",
        "clip_norm": 1.0,
        "lr_schedule": "cosine",
    },
    "plain": {"accum": 3, "optimizer": "adam"},
    "fixed": {"loss_scale": "fixed", "optimizer": "sgd"},
    "half": {"amp": "O2", "optimizer": "momentum"},
    "norm": {"accum": 3, "loss_scale": "dynamic", "model": "resnet18"},
}


def base_spec(base: str, style: str) -> TrainingSpec:
    """The right script that a mutant is made of."""
    fields = {"mode": "pynative", "model": "mlp", **BASES[base]}
    return TrainingSpec(style=style, **fields)


@dataclass(frozen=True)
class Mutant:
    """A wrong script.

    Attributes:
        name: what is wrong with it.
        caught_by: the properties whose checks have to fail, each of them.
        edits: (text, other text), in the form of the Cell step.
        base: the script that it is made of, a key of ``BASES``.
        instead: per style, edits in place of ``edits``.
        in_step: whether the edits are in the step; elsewhere ``self.`` stays.
    """

    name: str
    caught_by: tuple[str, ...]
    edits: tuple[Edit, ...] = ()
    base: str = "full"
    instead: dict[str, tuple[Edit, ...]] = field(default_factory=dict)
    in_step: bool = True

    def edits_for(self, style: str) -> tuple[Edit, ...]:
        """The replacements in the script of a style."""
        if style in self.instead:
            return self.instead[style]
        if style == "functional" and self.in_step:
            return tuple(
                (old.replace("self.", ""), new.replace("self.", ""))
                for old, new in self.edits
            )
        return self.edits

    def text(self, style: str) -> str:
        """The wrong script.

        Raises:
            ValueError: if a text that is to be replaced is not there exactly once.
        """
        script = generate(base_spec(self.base, style))
        for old, new in self.edits_for(style):
            if script.count(old) != 1:
                raise ValueError(f"{self.name}, {style}: {script.count(old)} × {old!r}")
            script = script.replace(old, new)
        return script


# ---- pieces of the step that several mutants change

MEAN = "grads = tuple([total / self.weight_sum for total in self.grad_sum])"
UNSCALE = "grads = self.loss_scaler.unscale(grads)"
ADJUST = "            self.loss_scaler.adjust(finite)\n"
APPLY = "self.optimizer(ops.clip_by_global_norm(grads, CLIP_NORM))"
IF_FINITE = "            if finite:\n                self.optimizer"
TEST = "finite = amp.all_finite(grads)"
CLEAR_GRADS = """\
            for total in self.grad_sum:
                ops.assign(total, ops.zeros_like(total))
"""
CLEAR_LOSS = "            ops.assign(self.loss_sum, ops.zeros_like(self.loss_sum))\n"
CLEAR_ITEMS = (
    "            ops.assign(self.weight_sum, ops.zeros_like(self.weight_sum))\n"
)
COUNT = "micro_batches = train_data.get_dataset_size()\n"
EVALUATED = "    network.set_train(True)\n    return loss_sum"
SEEDS = "    ms.set_seed(args.seed)  # before the network draws its first weights\n"


def mean(divided: str) -> tuple[Edit, ...]:
    """Edits that put something else in the place of the window's mean gradient."""
    return ((MEAN, f"grads = tuple([{divided} for total in self.grad_sum])"),)


EACH = "        for i, grad in enumerate(grads):\n"
CLIP_EACH = (
    EACH,
    "        scale = self.loss_scaler.scale(self.one)\n"
    + EACH.replace("grads", "ops.clip_by_global_norm(grads, CLIP_NORM * scale)"),
)
SHARE = "return data.shape[0] / self.batch_size"
PAD = "\n            "

MUTANTS = [
    # -- the window's mean
    Mutant("divided-by-n", ("window-equals-batch",), mean("total / ACCUM")),
    Mutant("sum-not-mean", ("window-equals-batch",), mean("total * 1.0")),
    Mutant(
        "gradients-not-weighted",
        ("window-equals-batch",),
        (
            (
                "return self.loss_scaler.scale(loss), loss",
                "return self.loss_scaler.scale(loss / self.weight(data)), loss",
            ),
        ),
    ),
    Mutant(
        "mean-of-means",
        ("window-equals-batch", "shown-loss"),
        ((SHARE, "return 1.0"),),
    ),
    Mutant(
        "partial-window-divided-by-n",
        ("partial-windows",),
        ((MEAN, MEAN.replace("self.weight_sum", "ACCUM")),),
        base="plain",
    ),
    Mutant(
        "sums-in-float16",
        ("window-equals-batch",),
        (("[i], grad)", "[i], grad.astype(ms.float16).astype(ms.float32))"),),
    ),
    Mutant(
        "wrong-parameter-order",
        ("window-equals-batch",),
        (
            (
                "self.forward, None, optimizer.parameters, has_aux=True",
                "self.forward, None, [*optimizer.parameters[2:], "
                "*optimizer.parameters[:2]], has_aux=True",
            ),
        ),
    ),
    Mutant(
        "adam-gets-half-the-gradient",
        ("window-equals-batch", "order"),
        ((MEAN, MEAN.replace("total /", "total / 2 /")),),
        base="plain",
    ),
    # -- what is cleared
    Mutant("sums-not-cleared", ("window-equals-batch",), ((CLEAR_GRADS, ""),)),
    Mutant(
        "sums-cleared-only-when-finite",
        ("overflow", "order"),
        (
            (
                CLEAR_GRADS,
                "            if finite:\n"
                + CLEAR_GRADS.replace("            ", "                ", 1).replace(
                    "\n                ops", "\n                    ops"
                ),
            ),
        ),
    ),
    Mutant("loss-not-cleared", ("shown-loss",), ((CLEAR_LOSS, ""),)),
    Mutant("items-not-cleared", ("window-equals-batch",), ((CLEAR_ITEMS, ""),)),
    # -- clipping
    Mutant(
        "clip-before-unscale",
        ("clip-norm", "order"),
        (
            (MEAN, MEAN + PAD + "grads = ops.clip_by_global_norm(grads, CLIP_NORM)"),
            (APPLY, "self.optimizer(grads)"),
        ),
    ),
    Mutant(
        "clip-every-micro-batch",
        ("clip-norm", "order"),
        (
            CLIP_EACH,
            (APPLY, "self.optimizer(grads)"),
        ),
    ),
    Mutant(
        "clip-twice",
        ("order",),
        (CLIP_EACH,),
    ),
    Mutant(
        "clip-norm-times-n",
        ("clip-norm",),
        ((APPLY, APPLY.replace("CLIP_NORM", "CLIP_NORM * ACCUM")),),
    ),
    # -- overflows
    Mutant(
        "update-although-overflow",
        ("overflow",),
        ((IF_FINITE, IF_FINITE.replace("finite", "window_end")),),
    ),
    Mutant(
        "overflow-tested-on-the-last-micro-batch",
        ("overflow",),
        (
            (EACH, "        last = grads\n" + EACH),
            (TEST, "finite = amp.all_finite(last)"),
        ),
    ),
    Mutant(
        "overflow-tested-before-accumulating",
        ("overflow",),
        (
            (
                EACH,
                "        sums = tuple([total * 1.0 for total in self.grad_sum])\n"
                "        before = amp.all_finite(sums)\n" + EACH,
            ),
            (TEST, "finite = before"),
        ),
    ),
    Mutant(
        "step-counted-when-dropped",
        ("overflow", "learning-rate"),
        (
            (
                f"                {APPLY}\n",
                f"                {APPLY}\n"
                "            else:\n"
                "                step = self.optimizer.global_step\n"
                "                ops.assign_add(step, ops.ones_like(step))\n",
            ),
        ),
    ),
    Mutant(
        "dropped-window-counted-as-update",
        ("overflow",),
        (("self.updates += not skipped", "self.updates += 1"),),
        in_step=False,
    ),
    Mutant(
        "statistics-of-a-dropped-window-kept",
        ("overflow",),
        (
            (
                "ops.assign(statistic, self.kept[i])",
                "ops.assign(self.kept[i], statistic)",
            ),
        ),
        base="norm",
    ),
    Mutant(
        "fixed-scale-not-tested",
        ("fixed-overflow", "overflow"),
        ((TEST, "finite = amp.all_finite((self.loss_scaler.scale_value,))"),),
        base="fixed",
    ),
    Mutant(
        "fixed-scale-unscaled-twice",
        ("fixed-overflow",),
        (
            (
                UNSCALE,
                "grads = self.loss_scaler.unscale(self.loss_scaler.unscale(grads))",
            ),
        ),
        base="fixed",
    ),
    # -- the scale
    Mutant(
        "adjusted-every-micro-batch",
        ("constant-scale",),
        (
            (ADJUST, ""),
            (
                "        finite = self.true\n",
                "        finite = self.true\n"
                "        self.loss_scaler.adjust(amp.all_finite(grads))\n",
            ),
        ),
    ),
    Mutant("never-adjusted", ("constant-scale", "order"), ((ADJUST, ""),)),
    Mutant("adjusted-twice", ("constant-scale",), ((ADJUST, ADJUST + ADJUST),)),
    Mutant(
        "adjusted-only-when-finite",
        ("constant-scale",),
        ((ADJUST, "            if finite:\n    " + ADJUST),),
    ),
    Mutant(
        "not-unscaled",
        ("window-equals-batch", "scaling-bits"),
        ((UNSCALE, "grads = grads"),),
    ),
    Mutant(
        "unscaled-twice",
        ("window-equals-batch", "scaling-bits"),
        ((UNSCALE, UNSCALE + PAD + UNSCALE),),
    ),
    Mutant(
        "unscaled-by-the-new-scale",
        ("order", "constant-scale"),
        (
            (ADJUST, ""),
            (
                UNSCALE,
                "self.loss_scaler.adjust(amp.all_finite(grads))" + PAD + UNSCALE,
            ),
        ),
    ),
    Mutant(
        "the-next-window's-scale-shown",
        ("constant-scale",),
        ((ADJUST, ADJUST + "            scale = self.loss_scaler.scale(self.one)\n"),),
    ),
    # -- the loss
    Mutant(
        "scaled-loss-shown",
        ("shown-loss",),
        (
            (
                "return self.loss_scaler.scale(loss), loss",
                "return (self.loss_scaler.scale(loss),) * 2",
            ),
        ),
    ),
    Mutant(
        "loss-divided-by-n",
        ("shown-loss",),
        (
            (
                "loss = self.loss_sum / self.weight_sum",
                "loss = self.loss_sum / self.weight_sum / ACCUM",
            ),
        ),
    ),
    Mutant(
        "last-micro-batch's-loss-shown",
        ("shown-loss",),
        (("            loss = self.loss_sum / self.weight_sum\n", ""),),
    ),
    Mutant(
        "loss-in-float16",
        ("precision",),
        (
            (
                "self.loss_fn(self.network(data), label)",
                "self.loss_fn(self.network(data).astype(ms.float16), label)",
            ),
        ),
        base="half",
    ),
    # -- windows and epochs
    Mutant(
        "last-window-forgotten",
        ("partial-windows",),
        (
            (
                COUNT,
                "train_data = train_data.take("
                "train_data.get_dataset_size() // ACCUM * ACCUM)\n    " + COUNT,
            ),
        ),
    ),
    Mutant(
        "window-leaks-into-the-next-epoch",
        ("partial-windows",),
        ((COUNT, COUNT[:-1] + " // ACCUM * ACCUM\n"),),
        instead={
            "model": (
                (COUNT, COUNT[:-1] + " // ACCUM * ACCUM\n"),
                ("i % ACCUM == 0 or i == count", "i % ACCUM == 0"),
            )
        },
    ),
    Mutant(
        "items-counted-on",
        ("partial-windows",),
        (("            items = 0\n            if not", "            if not"),),
        instead={
            "model": (("        self.items = 0\n        if not", "        if not"),)
        },
    ),
    # -- the learning rate
    Mutant(
        "rate-shown-by-window",
        ("learning-rate",),
        (("lr=rates[recorder.updates]", "lr=rates[recorder.windows]"),),
        instead={
            "model": (
                (
                    "lr=self.rates[self.recorder.updates]",
                    "lr=self.rates[self.recorder.windows]",
                ),
            )
        },
    ),
    Mutant(
        "schedule-counts-micro-batches",
        ("learning-rate",),
        (
            (
                "args.epochs * math.ceil(micro_batches / ACCUM)",
                "args.epochs * micro_batches",
            ),
        ),
    ),
    # -- the run
    Mutant(
        "seed-after-the-network",
        ("same-seed",),
        (
            (SEEDS, ""),
            (
                "    loss_fn = nn.CrossEntropyLoss()\n",
                "    loss_fn = nn.CrossEntropyLoss()\n    ms.set_seed(args.seed)\n",
            ),
        ),
    ),
    Mutant(
        "evaluated-in-training-mode",
        ("train-mode",),
        (("    network.set_train(False)\n", ""),),
    ),
    Mutant(
        "trained-in-evaluation-mode",
        ("train-mode",),
        (
            ("        network.set_train(True)\n        #", "        #"),
            (EVALUATED, "    return loss_sum"),
        ),
        instead={
            # Model.train sets the mode by itself, and only once a call.
            "model": (
                (
                    "model.train(1, data, callbacks",
                    "model._train_network.set_train = lambda *_: None\n"
                    "            model.train(1, data, callbacks",
                ),
                (EVALUATED, "    return loss_sum"),
            )
        },
    ),
    Mutant(
        "evaluation-leaves-training-off",
        ("train-mode",),
        (
            (
                "    while recorder.unfinished():\n        network.set_train(True)\n",
                "    network.set_train(True)\n    while recorder.unfinished():\n",
            ),
            (EVALUATED, "    return loss_sum"),
        ),
        instead={"model": ()},
    ),
    Mutant(
        "another-loss-in-graph-mode",
        ("styles-agree",),
        (
            (
                "nn.CrossEntropyLoss()",
                "nn.CrossEntropyLoss(label_smoothing=0.1 * "
                '(ms.get_context("mode") == ms.GRAPH_MODE))',
            ),
        ),
    ),
    # -- checkpoints
    Mutant(
        "scale's-counter-not-saved",
        ("resume",),
        (('self.state["loss_scaler.counter"] = loss_scaler.counter', "pass"),),
        in_step=False,
    ),
    Mutant(
        "optimizer-not-saved",
        ("resume",),
        (("if p.name not in self.state:", "if not p.name:"),),
        in_step=False,
    ),
    Mutant(
        "resumed-at-the-epoch's-start",
        ("resume",),
        (("if index <= recorder.micro_batch:", "if index < 0:"),),
        instead={
            "model": (
                (
                    "train_data.skip(done) if done else train_data",
                    "train_data.take(micro_batches - done) if done else train_data",
                ),
            )
        },
    ),
    Mutant(
        "metrics-not-cut",
        ("resume",),
        (("self.file.truncate(min(self.metrics_size, self.file.tell()))", "pass"),),
        in_step=False,
    ),
    Mutant(
        "damaged-checkpoint-not-refused",
        ("resume",),
        (("except (ValueError, KeyError):", "except ZeroDivisionError:"),),
    ),
    # -- lost numbers
    Mutant(
        "blind-to-a-lost-loss",
        ("never-blind",),
        (
            ("if not math.isfinite(loss):", "if not self.windows:"),
            ("if not np.isfinite(parameter.asnumpy()).all():", "if not name:"),
        ),
        base="plain",
        in_step=False,
    ),
    Mutant(
        "drops-windows-for-ever",
        ("never-blind",),
        (("if self.skipped_in_row > MAX_SKIPPED:", "if self.skipped_in_row < 0:"),),
        in_step=False,
    ),
    Mutant(
        "initial-scale-too-large",
        ("learns",),
        (("amp.DynamicLossScaler(16384,", "amp.DynamicLossScaler(2.0**40,"),),
        base="half",
    ),
]


def cases() -> list[tuple[str, Mutant]]:
    """Every style with every mutant that it can have."""
    return [
        (style, mutant)
        for style in ("functional", "cell", "model")
        for mutant in MUTANTS
        if mutant.edits_for(style)
    ]
