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
        fingerprint=lambda wildcards: of_items(wildcards.corpus, wildcards.suite),
        out=subpath(output.facts, parent=True),
    shell:
        "exec python -m plumbline.evaluate.items {params.flags} --held-out-documents {input.validation:q} "
        "--fingerprint {params.fingerprint:q} --out {params.out:q} > {log:q} 2>&1"


rule evaluate:
    """One run's checkpoint on its study's suite, through the harness's own task definitions."""
    input:
        outcome=of_scored_run(lambda run: PROJECT.paths.run(run, "outcome.json")),
        manifest=of_scored_run(lambda run: PROJECT.paths.run(run, "manifest.json")),
        weights=of_scored_run(lambda run: PROJECT.paths.run(run, "model.safetensors")),
        facts=of_scored_run(lambda run: items_file(run.spec.data.corpus, run.suite)),
        tokenizer=of_scored_run(lambda run: tokenizer_file(run.spec.data.corpus)),
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
        runtime=of_scored_run(ESTIMATOR.evaluate_minutes),
        launch="python",
    params:
        flags=of_scored_run(PROJECT.commands.evaluation),
        fingerprint=of_scored_run(lambda run: of_scores(run.suite)),
        run=subpath(input.outcome, parent=True),
        items_folder=subpath(input.facts, parent=True),
        out=subpath(output.scores, parent=True),
    shell:
        "exec {resources.launch} -m plumbline.evaluate --run {params.run:q} --items-folder {params.items_folder:q} "
        "--tokenizer {input.tokenizer:q} {params.flags} "
        "--fingerprint {params.fingerprint:q} --out {params.out:q} > {log:q} 2>&1"
