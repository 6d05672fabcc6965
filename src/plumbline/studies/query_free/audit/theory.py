"""query_free: appendix 8, score scales at init and basis transfer."""

from __future__ import annotations

from plumbline.audit.rows import Ledger
from plumbline.studies.query_free.audit import sizes


def audit(ledger: Ledger) -> None:
    """Rows of appendices 8.2 to 8.4."""
    scores(ledger)
    basis_transfer(ledger)


def scores(ledger: Ledger) -> None:
    """Appendix 8.2: standard deviation of scores at init."""
    check, prose = ledger.check, ledger.prose
    sigma, size = prose("score_sigma"), sizes.decoder(ledger.settings)
    check(
        "score_std_standard",
        "std of scores, learned query",
        "App 8.2",
        "std of scores, learned query",
        prose("score_std_standard"),
        {"sigma": sigma, "d_k": size.head_width},
    )
    check(
        "score_std_reduced",
        "std of scores, identity query",
        "App 8.2",
        "std of scores, identity query",
        prose("score_std_reduced"),
        {"sigma": sigma, "h": size.heads},
    )
    check(
        "score_ratio",
        "ratio of the two",
        "sec 5.1, App 8.2",
        "ratio",
        prose("score_ratio"),
        {"reduced": prose("score_std_reduced"), "standard": prose("score_std_standard")},
    )
    check(
        "score_ratio_exact",
        "the same from its settings: 1 / (sigma sqrt(h d_k))",
        "App 8.2",
        "score ratio",
        prose("score_ratio"),
        {"sigma": sigma, "h": size.heads, "d_k": size.head_width},
    )
    check(
        "score_ratio_inverse",
        "its inverse",
        "App 8.2",
        "inverse",
        prose("score_ratio_inverse"),
        {"ratio": prose("score_ratio")},
    )


def basis_transfer(ledger: Ledger) -> None:
    """Appendix 8.3 and 8.4."""
    check, prose = ledger.check, ledger.prose
    check(
        "transfer_factor",
        "linear error over MLP error, from their printed ranges",
        "App 8.4",
        "ratio of two ranges",
        prose("transfer_factor"),
        {f"{kind} {end}": prose(f"transfer_{kind}_{end}_pct") for kind in ("linear", "mlp") for end in ("low", "high")},
    )
    check(
        "transfer_angle",
        "angle of the printed cosine, degrees",
        "App 8.4",
        "angle",
        prose("transfer_angle_deg"),
        {"cosine": prose("transfer_cosine")},
    )
    check(
        "transfer_distance",
        "cosine distance in the caption against the cosine in the text",
        "App 8.4, fig 2",
        "complement",
        prose("transfer_cosine_distance"),
        {"cosine": prose("transfer_cosine")},
    )
    check(
        "transfer_angle_distance",
        "cosine distance in the caption against the angle in the text",
        "App 8.4, fig 2",
        "cosine distance of an angle",
        prose("transfer_cosine_distance"),
        {"angle": prose("transfer_angle_deg")},
    )
    check(
        "sigma_max",
        "largest singular value of an N(0, 1/d) matrix, from the printed range of its square",
        "App 8.3.1",
        "square root",
        prose("sigma_max"),
        {"largest square": prose("singular_squared_high")},
    )
