"""One method against another one, with the steps and seeds of `config.trial`: a first look, or an evening."""


rule trial:
    """Losses at every seed, their difference, and what so many seeds can find."""
    input:
        PROJECT.targets.trial_files(),
    output:
        multiext(f"{MADE}/trial/{{trial}}/trial", csv=".csv", md=".md"),
    log:
        f"{LOGS}/trial/{{trial}}.log",
    benchmark:
        f"{BENCHMARKS}/trial/{{trial}}.jsonl"
    wildcard_constraints:
        trial=one_of([PROJECT.trial.name] if PROJECT.trial else []),
    conda:
        "../../envs/plumbline.yaml"
    threads: 1
    resources:
        mem_mb=800,
    params:
        configuration=json.dumps(PROJECT.config),
        work=WORK,
        fingerprint=lambda wildcards: PROJECT.fingerprints.trial(),
    shell:
        "exec python -m plumbline.experiment.trial --configuration {params.configuration:q} --work {params.work:q} --fingerprint {params.fingerprint:q} "
        "--out {output.csv:q} > {log:q} 2>&1"
