"""Knows the SLURM account that profiles/slurm ships, and says what to do about it."""

from __future__ import annotations

#: The account that profiles/slurm names until a site puts its own there.
PLACEHOLDER = "plumbline"


def placeholder(name: str) -> bool:
    """Whether a SLURM account is the one that profiles/slurm ships, of which few sites will know."""
    return name == PLACEHOLDER


def account_words(name: str) -> str:
    """Say what to do about an account that is the placeholder."""
    return (
        f"profiles/slurm/config.v9+.yaml: default-resources.slurm_account: {name!r} is a placeholder; put your account "
        "and partitions into an overlay (docs/on-your-cluster.md, step 2): sacctmgr show associations user=$USER"
    )
