"""Evaluation items as files, then every run against them."""


rule items:
    """Evaluation items of every task, in the hub's own schema; proxies are named as such."""
    input:
        packages=[PLAN.package_file(name) for name in PLAN.item_packages],
        validation=f"{WORK}/documents/validation.jsonl",
    output:
        facts=f"{WORK}/items/items.json",
    log:
        f"{LOGS}/items.log",
    benchmark:
        f"{BENCHMARKS}/items.jsonl"
    conda:
        "../../envs/plumbline.yaml"
    threads: 1
    resources:
        mem_mb=1500,
    params:
        flags=PLAN.item_flags(),
        out=subpath(output.facts, parent=True),
    shell:
        "exec python -m plumbline.evaluate.items {params.flags} --documents {input.validation} "
        "--out {params.out} > {log} 2>&1"


rule evaluate:
    """One run's checkpoint on its study's suite, through the harness's own task definitions."""
    input:
        outcome=f"{WORK}/runs/{{study}}/{{scale}}/{{method}}/s{{seed}}/outcome.json",
        manifest=f"{WORK}/runs/{{study}}/{{scale}}/{{method}}/s{{seed}}/manifest.json",
        weights=f"{WORK}/runs/{{study}}/{{scale}}/{{method}}/s{{seed}}/model.safetensors",
        facts=f"{WORK}/items/items.json",
        tokenizer=f"{WORK}/tokenizer/tokenizer.json",
    output:
        scores=f"{WORK}/scores/{{study}}/{{scale}}/{{method}}/s{{seed}}/scores.parquet",
        examples=f"{WORK}/scores/{{study}}/{{scale}}/{{method}}/s{{seed}}/examples.parquet",
    log:
        f"{LOGS}/evaluate/{{study}}.{{scale}}.{{method}}.s{{seed}}.log",
    benchmark:
        f"{BENCHMARKS}/evaluate/{{study}}.{{scale}}.{{method}}.s{{seed}}.jsonl"
    conda:
        "../../envs/plumbline.yaml"
    threads: 1
    resources:
        mem_mb=1500,
        runtime=evaluate_minutes,
    params:
        flags=evaluation_flags,
        run=subpath(input.outcome, parent=True),
        items_folder=subpath(input.facts, parent=True),
        out=subpath(output.scores, parent=True),
    shell:
        "exec python -m plumbline.evaluate --run {params.run} --items {params.items_folder} "
        "--tokenizer {input.tokenizer} {params.flags} --out {params.out} > {log} 2>&1"
