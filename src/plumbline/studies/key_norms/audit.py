"""key_norms: the arithmetic of its examples, the initial norm, sizes and token counts."""

from __future__ import annotations

from plumbline.audit.interval import Number
from plumbline.audit.parameters import DecoderSize
from plumbline.audit.rows import Ledger
from plumbline.audit.settings import Settings

#: Norms of the picture in the order that the text gives them: early layers, initial value, middle and final layers.
RISING = ("early_norm", "init_norm", "middle_norm", "late_norm")


def audit(ledger: Ledger) -> None:
    """All rows of the document."""
    examples(ledger)
    norms(ledger)
    sizes(ledger)


def examples(ledger: Ledger) -> None:
    """The prerequisites' arithmetic: softmax, dot products, norms of vectors."""
    check, prose = ledger.check, ledger.prose
    given = {row: _vector(ledger, row) for row in ledger.table("examples").index}
    for name in (row for row in given if row.startswith("softmax")):
        for i in range(len(given[name])):
            check(
                f"{name}_{i}",
                f"softmax example {name.removeprefix('softmax')}, entry {i + 1}",
                "Prerequisites 2",
                "softmax",
                prose(f"{name}_{i}"),
                {"entry": i, "z": given[name]},
            )
    for name in ("dot_2d", "dot_4d"):
        a, b = given[f"{name}_a"], given[f"{name}_b"]
        what = f"dot product in {len(a)} dimensions"
        check(name, what, "Prerequisites 1", "dot product", prose(name), {"a": a, "b": b})
    for name in ("norm_original", "norm_doubled", "norm_halved"):
        what = f"norm of the {name.removeprefix('norm_')} vector"
        check(name, what, "Prerequisites 3", "norm", prose(name), {"x": given[name]})


def norms(ledger: Ledger) -> None:
    """The initial norm, and the norms of the picture beside it."""
    check, prose = ledger.check, ledger.prose
    check(
        "d_head",
        "head width",
        "L2 norm section",
        "ratio",
        prose("d_head"),
        {"d_model": prose("d_model"), "heads": prose("heads")},
    )
    check(
        "init_norm",
        "norm of a key at init",
        "L2 norm section",
        "square root",
        prose("init_norm"),
        {"d_head": prose("d_head")},
    )
    start = prose("init_norm")
    for name, norm in (("low_ratio", "early_norm"), ("high_ratio", "late_norm")):
        check(
            name,
            f"{norm.replace('_', ' ')} over the initial one",
            "Analyzing the image",
            "ratio",
            prose(name),
            {"norm": prose(norm), "start": start.exactly()},
        )
    check(
        "order",
        "norms that rise from early layers over the initial value and middle layers to final layers",
        "Analyzing the image, Experimental Analysis",
        "count rising",
        Number(text=str(len(RISING) - 1), exact=True),
        {"norms": [prose(name) for name in RISING]},
    )


def sizes(ledger: Ledger) -> None:
    """Tokens and parameters."""
    check, prose = ledger.check, ledger.prose
    check(
        "tokens",
        "tokens of about 1000 steps, in millions",
        "Experimental Analysis",
        "product",
        prose("tokens_m"),
        {
            "steps": prose("steps"),
            "batch": prose("batch"),
            "sequence": prose("sequence"),
            "unit": Number(text="1e-6", exact=True),
        },
    )
    size, million = decoder(ledger.settings), {"unit": 10**6}
    for name, where in (("params_m", "Experimental Analysis"), ("params_lead_m", "lead")):
        check(
            name,
            f"parameters of the authors' configuration ({size.key_value_heads} KV heads, ReLU^2 FFN {size.ffn_width}, "
            f"{size.vocabulary:,} tokens), millions",
            f"{where}; authors' repository",
            "parameters",
            prose(name),
            {"N": size.total(), **million},
            basis="outside source",
        )
    ledger.copy(
        "params_twice",
        "parameters in the lead and in the analysis",
        "lead, Experimental Analysis",
        prose("params_lead_m"),
        prose("params_m"),
    )


def decoder(settings: Settings) -> DecoderSize:
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


def _vector(ledger: Ledger, example: str) -> list[Number]:
    columns = [column for column in ledger.table("examples") if ledger.prints("examples", example, column)]
    return [ledger.cell("examples", example, column, exact=True) for column in columns]
