"""Recomputes printed numbers of key_norms: the arithmetic of its examples, the initial norm, sizes and token counts."""

from __future__ import annotations

from plumbline.audit.audit_rows import AuditRows
from plumbline.audit.counting import rising
from plumbline.audit.math_functions import softmax, sqrt, total
from plumbline.audit.parameter_counts import DecoderSize
from plumbline.published.printed_cells import PrintedSetup
from plumbline.published.printed_number import MILLION, exact

#: Norms of the picture in the order that the text gives them: early layers, initial value, middle and final layers.
RISING = ("early_norm", "init_norm", "middle_norm", "late_norm")


def audit(ledger: AuditRows) -> None:
    """All rows of the paper."""
    check_examples(ledger)
    check_norms(ledger)
    check_layers(ledger)
    check_sizes(ledger)


def check_examples(ledger: AuditRows) -> None:
    """The prerequisites' arithmetic: softmax, dot products, norms of vectors."""
    check, prose = ledger.check, ledger.prose
    vectors = {row: ledger.table("examples").line(row).exactly() for row in ledger.table("examples").rows}
    for name in (row for row in vectors if row.startswith("softmax")):
        for i in range(len(vectors[name])):
            label = f"softmax example {name.removeprefix('softmax')}, entry {i + 1}"
            check(f"{name}_{i}", label, "Prerequisites 2", prose(f"{name}_{i}"), softmax(vectors[name], i))
    for i in range(len(vectors["softmax1"])):
        label, share = f"the same in per cent, entry {i + 1}", 100 * softmax(vectors["softmax1"], i)
        check(f"softmax1_pct_{i}", label, "Prerequisites 2", prose(f"softmax1_pct_{i}"), share)
    for name in ("dot_2d", "dot_4d"):
        a, b = vectors[f"{name}_a"], vectors[f"{name}_b"]
        check(name, f"dot product in {len(a)} dimensions", "Prerequisites 1", prose(name), total(a * b))
    for name in ("norm_original", "norm_doubled", "norm_halved"):
        label = f"norm of the {name.removeprefix('norm_')} vector"
        check(name, label, "Prerequisites 3", prose(name), sqrt(total(vectors[name] ** 2)))


def check_norms(ledger: AuditRows) -> None:
    """The initial norm, and the norms of the picture next to it."""
    check, prose = ledger.check, ledger.prose
    start = prose("init_norm")
    check("d_head", "head width", "L2 norm section", prose("d_head"), prose("d_model") / prose("heads"))
    check("init_norm", "norm of a key at init", "L2 norm section", start, sqrt(prose("d_head")))
    for name, norm in (("low_ratio", "early_norm"), ("high_ratio", "late_norm")):
        label = f"{norm.replace('_', ' ')} over the initial one"
        check(name, label, "Analyzing the image", prose(name), prose(norm) / start.exactly())
    check(
        "order",
        "norms that rise from early layers over the initial value and middle layers to final layers",
        "Analyzing the image, Experimental Analysis",
        exact(len(RISING) - 1),
        rising([prose(name) for name in RISING]),
    )


def check_layers(ledger: AuditRows) -> None:
    """Places of layers in the caption, and what the examples say of their own numbers."""
    check, prose = ledger.check, ledger.prose
    count = prose("layers")
    check("last_layer", "last layer, counted from 0", "fig 1 caption", prose("last_layer"), count - 1)
    for name, layer in (("middle_layer_low", count / 2 - 1), ("middle_layer_high", count / 2)):
        check(name, "a middle layer, counted from 0", "fig 1 caption", prose(name), layer)
    # The picture's three lines are means over two layers each; that others were looked at is not said.
    layers_a_line, lines = exact(2, "layers_a_line"), exact(3, "lines")
    label = "whether the layers that the picture shows are most of all layers, of which the text speaks"
    most = layers_a_line * lines > count / 2
    check("layers_shown", label, "Experimental Analysis, fig 1", exact(1), most, basis="other interpretation")
    for name, factor in (("doubled", "doubled_by"), ("halved", "halved_by")):
        label, norm = f"norm of the {name} vector over the original's", prose(f"norm_{name}") / prose("norm_original")
        check(factor, label, "Prerequisites 3", prose(factor), norm)
    for example in ("1", "2"):
        label, parts = f"softmax example {example} adds up to 1", [prose(f"softmax{example}_{i}") for i in range(3)]
        check(f"softmax{example}_sum", label, "Prerequisites 2", prose("adds_up_to"), total(parts))
    ledger.copy(
        "steps_twice", "steps in the caption and in the analysis", "fig 1 caption", prose("steps_text"), prose("steps")
    )


def check_sizes(ledger: AuditRows) -> None:
    """Tokens and parameters."""
    check, prose = ledger.check, ledger.prose
    where = "Experimental Analysis"
    tokens = prose("steps") * prose("batch") * prose("sequence")
    check("tokens", "tokens of about 1000 steps, in millions", where, prose("tokens_m"), tokens / MILLION)
    size = decoder(ledger.settings)
    label = (
        f"parameters of the authors' configuration ({size.key_value_heads} KV heads, ReLU^2 FFN {size.ffn_width}, "
        f"{size.vocabulary:,} tokens), millions"
    )
    for name, place in (("params_m", where), ("params_lead_m", "lead")):
        source = f"{place}; authors' repository"
        check(
            name,
            label,
            source,
            prose(name),
            exact(size.total(), "counted_parameters") / MILLION,
            basis="outside source",
        )
    ledger.copy(
        "params_twice",
        "parameters in the lead and in the analysis",
        f"lead, {where}",
        prose("params_lead_m"),
        prose("params_m"),
    )


def decoder(settings: PrintedSetup) -> DecoderSize:
    """Its decoder; grouped queries, two-matrix ReLU^2 and the vocabulary are those of the authors' repository."""
    model, external = "model", "external_author_repo"
    return DecoderSize(
        layers=settings.whole(model, "layers"),
        width=settings.whole(model, "d_model"),
        heads=settings.whole(model, "heads"),
        key_value_heads=settings.whole(external, "kv_heads"),
        head_width=settings.whole(model, "d_head"),
        ffn_width=settings.whole(external, "d_ff"),
        vocabulary=settings.whole(external, "vocab"),
        ffn_matrices=2,
        tied=settings.flag(external, "tied"),
        query_key_norm=True,
    )
