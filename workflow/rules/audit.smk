"""What needs no training: the audit of printed numbers, and what a document leaves open."""


rule audit:
    """Every printed number that follows from other printed numbers, recomputed with rounding intervals."""
    input:
        published_files(),
    output:
        csv="results/audit.csv",
        md="results/audit.md",
    log:
        "logs/audit.log",
    benchmark:
        f"{BENCHMARKS}/audit.jsonl"
    conda:
        "../../envs/plumbline.yaml"
    threads: 1
    resources:
        mem_mb=800,
    shell:
        "exec python -m plumbline.audit --out {output.csv} > {log} 2>&1"


rule claims:
    """Each claim of a document with a verdict."""
    input:
        claims_inputs,
        published="config/studies/{study}/published",
    output:
        csv="results/{study}/claims.csv",
        md="results/{study}/claims.md",
    log:
        f"{LOGS}/claims/{{study}}.log",
    benchmark:
        f"{BENCHMARKS}/claims/{{study}}.jsonl"
    conda:
        "../../envs/plumbline.yaml"
    threads: 1
    resources:
        mem_mb=800,
    params:
        preset=config["preset"],
        work=WORK,
        expected=study_runs,
    shell:
        "exec python -m plumbline.results claims {wildcards.study} --preset {params.preset} --work {params.work} "
        "--expected {params.expected:q} --published {input.published} --out {output.csv} > {log} 2>&1"


rule deviations:
    """What a document leaves open or contradicts, and the ruling taken, from the study's YAML."""
    input:
        "config/studies/{study}/study.yaml",
    output:
        "results/{study}/deviations.md",
    log:
        f"{LOGS}/deviations/{{study}}.log",
    localrule: True
    conda:
        "../../envs/plumbline.yaml"
    params:
        preset=config["preset"],
    shell:
        "exec python -m plumbline.results.deviations {wildcards.study} --preset {params.preset} --out {output} "
        "> {log} 2>&1"


rule rulegraph:
    """The picture of the rules in the README."""
    input:
        "Snakefile",
        sorted(str(path) for path in Path("workflow/rules").glob("*.smk")),
    output:
        "docs/rulegraph.svg",
    log:
        "logs/rulegraph.log",
    localrule: True
    conda:
        "../../envs/plumbline.yaml"
    shell:
        "exec python -m plumbline.operate.rulegraph --out {output} > {log} 2>&1"
