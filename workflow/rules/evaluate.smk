"""Evaluation items as files, then every run against them."""


rule items:
    """Evaluation items of every task, in the hub's own schema; proxies are named as such."""
    input:
        packages=ITEM_PACKAGES,
        validation=f"{WORK}/documents/validation.jsonl",
    output:
        items=f"{WORK}/items/items.json",
    params:
        settings=PLAN.item_settings(),
        out=subpath(output.items, parent=True),
    log:
        f"{LOGS}/items.log",
    benchmark:
        f"{BENCHMARKS}/items.jsonl"
    threads: 1
    resources:
        mem_mb=1500,
    conda:
        "../../envs/plumbline.yaml"
    shell:
        "exec python -m plumbline.evaluate.items {params.settings} --documents {input.validation} "
        "--out {params.out} > {log} 2>&1"


rule evaluate:
    """One run's checkpoint on its study's suite, through the harness's own task definitions."""
    input:
        outcome=f"{WORK}/runs/{{study}}/{{scale}}/{{method}}/s{{seed}}/outcome.json",
        manifest=f"{WORK}/runs/{{study}}/{{scale}}/{{method}}/s{{seed}}/manifest.json",
        weights=f"{WORK}/runs/{{study}}/{{scale}}/{{method}}/s{{seed}}/model.safetensors",
        items=f"{WORK}/items/items.json",
        tokenizer=f"{WORK}/tokenizer/tokenizer.json",
    output:
        scores=f"{WORK}/scores/{{study}}/{{scale}}/{{method}}/s{{seed}}/scores.parquet",
        examples=f"{WORK}/scores/{{study}}/{{scale}}/{{method}}/s{{seed}}/examples.parquet",
    params:
        suite=suite_of,
        limit=PLAN.preset["evaluation"]["limit"],
        metric=config["evaluation"]["metric"],
        run=subpath(input.outcome, parent=True),
        items=subpath(input.items, parent=True),
        out=subpath(output.scores, parent=True),
    log:
        f"{LOGS}/evaluate/{{study}}.{{scale}}.{{method}}.s{{seed}}.log",
    benchmark:
        f"{BENCHMARKS}/evaluate/{{study}}.{{scale}}.{{method}}.s{{seed}}.jsonl"
    threads: 1
    resources:
        mem_mb=1500,
    conda:
        "../../envs/plumbline.yaml"
    shell:
        "exec python -m plumbline.evaluate --run {params.run} --items {params.items} --suite {params.suite} "
        "--tokenizer {input.tokenizer} --limit {params.limit} --metric {params.metric} --out {params.out} "
        "> {log} 2>&1"
