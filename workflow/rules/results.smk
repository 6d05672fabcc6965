"""Tables, figures, claims and deviations: runs and scores in, numbers, pictures and verdicts out.

Cheap, so remade when anything changes that they are made of: runs and printed numbers are inputs, the study's YAML and
the code are the parameter `made_of`.
"""


rule table:
    """One table: tidy csv, md and tex renderings, and where each number came from."""
    input:
        target_files("table"),
    output:
        csv=report(
            f"{MADE}/{{study}}/{{table}}.csv",
            caption="../report/table.rst",
            category="{study}",
            subcategory="Tables",
            labels={"table": "{table}"},
        ),
        md=f"{MADE}/{{study}}/{{table}}.md",
        tex=f"{MADE}/{{study}}/{{table}}.tex",
        provenance=f"{MADE}/{{study}}/{{table}}.provenance.json",
    log:
        f"{LOGS}/table/{{study}}.{{table}}.log",
    benchmark:
        f"{BENCHMARKS}/table/{{study}}.{{table}}.jsonl"
    conda:
        "../../envs/plumbline.yaml"
    threads: 1
    resources:
        mem_mb=800,
        launch="python",
    params:
        preset=PROJECT.name,
        work=WORK,
        source=PROJECT.config["data"]["source"],
        expected=target_runs("table"),
        made_of=made_of("table"),
    shell:
        "exec {resources.launch} -m plumbline.results table {wildcards.study:q} {wildcards.table:q} --preset {params.preset:q} "
        "--work {params.work:q} --planned {params.expected:q} --source {params.source:q} "
        "--made-of {params.made_of:q} --out {output.csv:q} > {log:q} 2>&1"


rule figure:
    """One figure, as picture and as drawing, with the numbers it shows."""
    input:
        target_files("figure"),
    output:
        png=f"{MADE}/{{study}}/{{figure}}.png",
        svg=report(
            f"{MADE}/{{study}}/{{figure}}.svg",
            caption="../report/figure.rst",
            category="{study}",
            subcategory="Figures",
            labels={"figure": "{figure}"},
        ),
        csv=f"{MADE}/{{study}}/{{figure}}.csv",
    log:
        f"{LOGS}/figure/{{study}}.{{figure}}.log",
    benchmark:
        f"{BENCHMARKS}/figure/{{study}}.{{figure}}.jsonl"
    conda:
        "../../envs/plumbline.yaml"
    threads: 1
    resources:
        mem_mb=800,
        launch="python",
    params:
        preset=PROJECT.name,
        work=WORK,
        source=PROJECT.config["data"]["source"],
        expected=target_runs("figure"),
        made_of=made_of("figure"),
    shell:
        "exec {resources.launch} -m plumbline.results figure {wildcards.study:q} {wildcards.figure:q} --preset {params.preset:q} "
        "--work {params.work:q} --planned {params.expected:q} --source {params.source:q} "
        "--made-of {params.made_of:q} --out {output.png:q} > {log:q} 2>&1"


rule claims:
    """Each claim of a document with a verdict."""
    input:
        claims_files,
    output:
        csv=report(
            f"{MADE}/{{study}}/claims.csv",
            caption="../report/claims.rst",
            category="{study}",
            subcategory="Claims",
            labels={"page": "claims"},
        ),
        md=f"{MADE}/{{study}}/claims.md",
    log:
        f"{LOGS}/claims/{{study}}.log",
    benchmark:
        f"{BENCHMARKS}/claims/{{study}}.jsonl"
    conda:
        "../../envs/plumbline.yaml"
    threads: 1
    resources:
        mem_mb=800,
        launch="python",
    params:
        preset=PROJECT.name,
        work=WORK,
        source=PROJECT.config["data"]["source"],
        expected=study_runs,
        made_of=made_of("claims"),
    shell:
        "exec {resources.launch} -m plumbline.results claims {wildcards.study:q} --preset {params.preset:q} --work {params.work:q} "
        "--planned {params.expected:q} --source {params.source:q} "
        "--made-of {params.made_of:q} --out {output.csv:q} > {log:q} 2>&1"


rule deviations:
    """What a document leaves open or contradicts, and the ruling taken, from the study's YAML."""
    output:
        f"{MADE}/{{study}}/deviations.md",
    log:
        f"{LOGS}/deviations/{{study}}.log",
    localrule: True
    conda:
        "../../envs/plumbline.yaml"
    params:
        preset=PROJECT.name,
        source=PROJECT.config["data"]["source"],
        evaluation=PROJECT.evaluation_source,
        made_of=made_of("deviations"),
    shell:
        "exec python -m plumbline.results.deviations {wildcards.study:q} --preset {params.preset:q} "
        "--source {params.source:q} --evaluation {params.evaluation:q} --made-of {params.made_of:q} --out {output:q} "
        "> {log:q} 2>&1"


rule audit:
    """Printed numbers that follow from other printed numbers, recomputed with rounding intervals."""
    input:
        PROJECT.targets.audited_files(),
    output:
        csv=report(
            f"{MADE}/audit.csv",
            caption="../report/audit.rst",
            category="Audit",
            labels={"page": "audit"},
        ),
        md=f"{MADE}/audit.md",
    log:
        f"{LOGS}/audit.log",
    benchmark:
        f"{BENCHMARKS}/audit.jsonl"
    conda:
        "../../envs/plumbline.yaml"
    threads: 1
    resources:
        mem_mb=800,
    params:
        made_of=made_of("audit"),
    shell:
        "exec python -m plumbline.audit --made-of {params.made_of:q} --out {output.csv:q} > {log:q} 2>&1"
