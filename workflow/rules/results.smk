"""Tables, figures, claims and interpretations: runs and scores in, numbers, pictures and verdicts out.

Cheap, so remade when anything changes that they are made of: runs and printed numbers are inputs, the study's YAML and
the code are the parameter `fingerprint`.
"""


rule table:
    """One table: tidy csv, md, for TeX (short, whole, notes), and where each number came from."""
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
        all_columns=f"{MADE}/{{study}}/{{table}}.all.tex",
        notes=f"{MADE}/{{study}}/{{table}}.notes.tex",
        provenance=f"{MADE}/{{study}}/{{table}}.provenance.json",
    log:
        f"{LOGS}/table/{{study}}.{{table}}.log",
    benchmark:
        f"{BENCHMARKS}/table/{{study}}.{{table}}.jsonl"
    conda:
        "../../envs/plumbline.yaml"
    threads: 1
    resources:
        mem_mb=product_mb("table"),
        runtime=product_minutes("table"),
        launch="python",
    params:
        preset=PROJECT.name,
        work=WORK,
        source=PROJECT.config["data"]["source"],
        sizes=",".join(PROJECT.sizes),
        expected=lambda wildcards: PROJECT.targets.hash_runs(
            wildcards.study, wildcards.table
        ),
        fingerprint=fingerprint("table"),
    shell:
        "exec {resources.launch} -m plumbline.results table {wildcards.study:q} {wildcards.table:q} --preset {params.preset:q} "
        "--work {params.work:q} --sizes={params.sizes:q} --expected-runs-digest {params.expected:q} --documents-source {params.source:q} "
        "--fingerprint {params.fingerprint:q} --out {output.csv:q} > {log:q} 2>&1"


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
        mem_mb=product_mb("figure"),
        runtime=product_minutes("figure"),
        launch="python",
    params:
        preset=PROJECT.name,
        work=WORK,
        source=PROJECT.config["data"]["source"],
        sizes=",".join(PROJECT.sizes),
        expected=lambda wildcards: PROJECT.targets.hash_runs(
            wildcards.study, wildcards.figure
        ),
        fingerprint=fingerprint("figure"),
    shell:
        "exec {resources.launch} -m plumbline.results figure {wildcards.study:q} {wildcards.figure:q} --preset {params.preset:q} "
        "--work {params.work:q} --sizes={params.sizes:q} --expected-runs-digest {params.expected:q} --documents-source {params.source:q} "
        "--fingerprint {params.fingerprint:q} --out {output.png:q} > {log:q} 2>&1"


rule claims:
    """Each claim of a paper with a verdict."""
    input:
        lambda wildcards: PROJECT.targets.claims_files(wildcards.study),
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
        mem_mb=product_mb("claims"),
        runtime=product_minutes("claims"),
        launch="python",
    params:
        preset=PROJECT.name,
        work=WORK,
        source=PROJECT.config["data"]["source"],
        expected=lambda wildcards: PROJECT.targets.hash_claimed_runs(wildcards.study),
        fingerprint=fingerprint("claims"),
    shell:
        "exec {resources.launch} -m plumbline.results claims {wildcards.study:q} --preset {params.preset:q} --work {params.work:q} "
        "--expected-runs-digest {params.expected:q} --documents-source {params.source:q} "
        "--fingerprint {params.fingerprint:q} --out {output.csv:q} > {log:q} 2>&1"


rule interpretations:
    """What a paper leaves open or contradicts, and how it is interpreted, from the study's YAML."""
    output:
        f"{MADE}/{{study}}/interpretations.md",
    log:
        f"{LOGS}/interpretations/{{study}}.log",
    wildcard_constraints:
        study=one_of(PROJECT.studies),
    localrule: True
    conda:
        "../../envs/plumbline.yaml"
    params:
        preset=PROJECT.name,
        source=PROJECT.config["data"]["source"],
        evaluation=PROJECT.evaluation_source,
        fingerprint=fingerprint("interpretations"),
    shell:
        "exec python -m plumbline.results.interpretations {wildcards.study:q} --preset {params.preset:q} "
        "--documents-source {params.source:q} --items-source {params.evaluation:q} --fingerprint {params.fingerprint:q} --out {output:q} "
        "> {log:q} 2>&1"


rule audit:
    """Printed numbers that follow from other printed numbers, recomputed with rounding intervals."""
    input:
        PROJECT.targets.list_audited_files(),
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
        mem_mb=product_mb("audit"),
        runtime=product_minutes("audit"),
    params:
        fingerprint=fingerprint("audit"),
    shell:
        "exec python -m plumbline.audit --fingerprint {params.fingerprint:q} --out {output.csv:q} > {log:q} 2>&1"
