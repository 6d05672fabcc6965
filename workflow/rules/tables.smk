"""Tables and figures: runs and scores in, numbers and pictures out."""


rule table:
    """One table: tidy csv, md and tex renderings, and where each number came from."""
    input:
        table_inputs,
        published="config/studies/{study}/published",
    output:
        csv="results/{study}/{table}.csv",
        md="results/{study}/{table}.md",
        tex="results/{study}/{table}.tex",
        provenance="results/{study}/{table}.provenance.json",
    log:
        f"{LOGS}/table/{{study}}.{{table}}.log",
    benchmark:
        f"{BENCHMARKS}/table/{{study}}.{{table}}.jsonl"
    conda:
        "../../envs/plumbline.yaml"
    threads: 1
    resources:
        mem_mb=800,
    params:
        preset=config["preset"],
        work=WORK,
        expected=table_runs,
    shell:
        "exec python -m plumbline.results table {wildcards.study} {wildcards.table} --preset {params.preset} "
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
    log:
        f"{LOGS}/figure/{{study}}.{{figure}}.log",
    benchmark:
        f"{BENCHMARKS}/figure/{{study}}.{{figure}}.jsonl"
    conda:
        "../../envs/plumbline.yaml"
    threads: 1
    resources:
        mem_mb=800,
    params:
        preset=config["preset"],
        work=WORK,
        expected=figure_runs,
    shell:
        "exec python -m plumbline.results figure {wildcards.study} {wildcards.figure} --preset {params.preset} "
        "--work {params.work} --expected {params.expected:q} --out {output.png} > {log} 2>&1"


rule main_table:
    """The main study's tables, directly under results/."""
    input:
        multiext(
            f"results/{MAIN_STUDY}/{{table}}",
            ".csv",
            ".md",
            ".tex",
            ".provenance.json",
        ),
    output:
        multiext("results/{table}", ".csv", ".md", ".tex", ".provenance.json"),
    log:
        f"{LOGS}/main_table/{{table}}.log",
    localrule: True
    conda:
        "../../envs/plumbline.yaml"
    shell:
        "cp -p {input} results/ > {log} 2>&1"


rule main_figure:
    """The main study's figures, directly under results/."""
    input:
        multiext(f"results/{MAIN_STUDY}/{{figure}}", ".png", ".svg", ".csv"),
    output:
        multiext("results/{figure}", ".png", ".svg", ".csv"),
    log:
        f"{LOGS}/main_figure/{{figure}}.log",
    localrule: True
    conda:
        "../../envs/plumbline.yaml"
    shell:
        "cp -p {input} results/ > {log} 2>&1"
