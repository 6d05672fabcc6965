"""Evaluation items as files, then every run against them."""


rule items:
    """Evaluation items of a suite's tasks, in the form of the hub; proxies are named as such."""
    input:
        packages=[PROJECT.paths.package(name) for name in PROJECT.inputs.item_packages],
        validation=f"{CORPUS}/documents/validation.jsonl",
        files=lambda wildcards: PROJECT.inputs.item_files(wildcards.suite),
    output:
        facts=PROJECT.paths.items("{corpus}", "{suite}"),
    log:
        f"{LOGS}/items/{{corpus}}.{{suite}}.log",
    benchmark:
        f"{BENCHMARKS}/items/{{corpus}}.{{suite}}.jsonl"
    conda:
        "../../envs/plumbline.yaml"
    threads: 1
    resources:
        mem_mb=product_mb("items"),
        runtime=product_minutes("items"),
    params:
        flags=lambda wildcards: PROJECT.commands.items(wildcards.suite),
        fingerprint=items_fingerprint,
        out=subpath(output.facts, parent=True),
    shell:
        "exec python -m plumbline.evaluate.items {params.flags} --held-out-documents {input.validation:q} "
        "--fingerprint {params.fingerprint:q} --out {params.out:q} > {log:q} 2>&1"


rule evaluate:
    """One run's checkpoint on its study's suite, through the harness's own task definitions."""
    input:
        outcome=scored_file("outcome.json"),
        manifest=scored_file("manifest.json"),
        weights=scored_file("model.safetensors"),
        facts=items_of,
        tokenizer=tokenizer_of,
    output:
        scores=f"{WORK}/scores/{{study}}/{{scale}}/{{method}}/s{{seed}}/scores.parquet",
        examples=f"{WORK}/scores/{{study}}/{{scale}}/{{method}}/s{{seed}}/examples.parquet",
    log:
        f"{LOGS}/evaluate/{NAME}.log",
    benchmark:
        f"{BENCHMARKS}/evaluate/{NAME}.jsonl"
    conda:
        "../../envs/plumbline.yaml"
    threads: 1
    resources:
        mem_mb=run_mb("evaluate", scored_run_of),
        runtime=evaluate_minutes,
        launch="python",
    params:
        flags=evaluation_flags,
        fingerprint=scores_fingerprint,
        run=subpath(input.outcome, parent=True),
        items_folder=subpath(input.facts, parent=True),
        out=subpath(output.scores, parent=True),
    shell:
        "exec {resources.launch} -m plumbline.evaluate --run {params.run:q} --items-folder {params.items_folder:q} "
        "--tokenizer {input.tokenizer:q} {params.flags} "
        "--fingerprint {params.fingerprint:q} --out {params.out:q} > {log:q} 2>&1"
