"""key_norms: the arithmetic of its examples, the initial norm, sizes and token counts."""

from __future__ import annotations

from plumbline.audit.interval import Number, exact
from plumbline.audit.parameters import DecoderSize
from plumbline.audit.rows import Ledger
from plumbline.audit.settings import Settings

#: Logits of the five softmax examples.
LOGITS = (
    ("1.0", "2.0", "3.0"),
    ("5.0", "5.1", "4.9"),
    ("10.0", "1.0", "1.0"),
    ("2.1", "2.2", "1.9"),
    ("30", "-10", "5"),
)


def audit(ledger: Ledger) -> None:
    """All rows of the document."""
    check, prose = ledger.check, ledger.prose
    for example, texts in enumerate(LOGITS, start=1):
        logits = [Number(text=text, exact=True) for text in texts]
        for i in range(3):
            check(
                f"softmax{example}_{i}",
                f"softmax example {example}, entry {i + 1}",
                "Prerequisites 2",
                "softmax",
                prose(f"softmax{example}_{i}"),
                {"entry": i, "z": logits},
            )
    check(
        "dot_2d",
        "dot product in 2 dimensions",
        "Prerequisites 1",
        "dot product",
        prose("dot_2d"),
        {"a": _vector(2, 3), "b": _vector(4, 1)},
    )
    check(
        "dot_4d",
        "dot product in 4 dimensions",
        "Prerequisites 1",
        "dot product",
        prose("dot_4d"),
        {"a": _vector(2, 3, 1, 2), "b": _vector(4, 1, 3, 2)},
    )
    for name, vector in (("original", (3, 4)), ("doubled", (6, 8)), ("halved", (1.5, 2))):
        check(
            f"norm_{name}",
            f"norm of the {name} vector",
            "Prerequisites 3",
            "norm",
            prose(f"norm_{name}"),
            {"x": _vector(*vector)},
        )
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
            {"norm": prose(norm), "start": Number(text=start.text, exact=True, where=start.where)},
        )
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


def _vector(*values: float) -> list[Number]:
    return [exact(value) for value in values]
