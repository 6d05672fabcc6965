"""Tables and figures: runs and scores in, numbers and pictures out."""


rule table:
    """One table: tidy csv, md and tex renderings, and where each number came from."""
    input:
        table_inputs,
        published="config/published/{study}",
    output:
        csv="results/{study}/{table}.csv",
        md="results/{study}/{table}.md",
        tex="results/{study}/{table}.tex",
        provenance="results/{study}/{table}.provenance.json",
    params:
        preset=config["preset"],
        work=WORK,
        expected=table_runs,
    log:
        f"{LOGS}/table/{{study}}.{{table}}.log",
    benchmark:
        f"{BENCHMARKS}/table/{{study}}.{{table}}.jsonl"
    threads: 1
    resources:
        mem_mb=800,
    conda:
        "../../envs/plumbline.yaml"
    shell:
        "exec python -m plumbline.tables {wildcards.study} {wildcards.table} --preset {params.preset} "
        "--work {params.work} --expected {params.expected:q} --published {input.published} "
        "--out {output.csv} > {log} 2>&1"


rule figure:
    """One figure, as picture and as drawing, with the numbers it shows."""
    input:
        figure_inputs,
    output:
        png="results/{study}/{figure}.png",
        svg="results/{study}/{figure}.svg",
        csv="results/{study}/{figure}.csv",
    params:
        preset=config["preset"],
        work=WORK,
        expected=figure_runs,
    log:
        f"{LOGS}/figure/{{study}}.{{figure}}.log",
    benchmark:
        f"{BENCHMARKS}/figure/{{study}}.{{figure}}.jsonl"
    threads: 1
    resources:
        mem_mb=800,
    conda:
        "../../envs/plumbline.yaml"
    shell:
        "exec python -m plumbline.figures {wildcards.study} {wildcards.figure} --preset {params.preset} "
        "--work {params.work} --expected {params.expected:q} --out {output.png} > {log} 2>&1"


rule main_target:
    """The main study's products, directly under results/."""
    input:
        "results/" + MAIN_STUDY + "/{file}",
    output:
        "results/{file}",
    wildcard_constraints:
        file=MAIN_FILES,
    log:
        f"{LOGS}/main_target/{{file}}.log",
    localrule: True
    conda:
        "../../envs/plumbline.yaml"
    shell:
        "cp -p {input} {output} > {log} 2>&1"
