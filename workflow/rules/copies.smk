"""Directly under results/: copies of the preset asked for. The main study's tables and figures need no folder there.

A copy says which preset it is of in the file itself.
"""


def copied(*endings):
    """The files of this preset that a copy is made of."""

    def files(wildcards):
        return [PLAN.copied_from(wildcards.name) + ending for ending in endings]

    return files


rule copy_table:
    """A table of the preset asked for."""
    input:
        copied(".csv", ".md", ".tex", ".provenance.json"),
    output:
        multiext(f"{RESULTS}/{{name}}", ".csv", ".md", ".tex", ".provenance.json"),
    log:
        f"{LOGS}/copy/{{name}}.log",
    wildcard_constraints:
        name=one_of(PLAN.copies("table")),
    localrule: True
    conda:
        "../../envs/plumbline.yaml"
    params:
        out=subpath(output[0], parent=True),
    shell:
        "cp -p {input} {params.out}/ > {log} 2>&1"


rule copy_figure:
    """A figure of the preset asked for."""
    input:
        copied(".png", ".svg", ".csv"),
    output:
        multiext(f"{RESULTS}/{{name}}", ".png", ".svg", ".csv"),
    log:
        f"{LOGS}/copy/{{name}}.log",
    wildcard_constraints:
        name=one_of(PLAN.copies("figure")),
    localrule: True
    conda:
        "../../envs/plumbline.yaml"
    params:
        out=subpath(output[0], parent=True),
    shell:
        "cp -p {input} {params.out}/ > {log} 2>&1"


rule copy_page:
    """Audit, plan, or a study's claims."""
    input:
        copied(".csv", ".md"),
    output:
        multiext(f"{RESULTS}/{{name}}", ".csv", ".md"),
    log:
        f"{LOGS}/copy/{{name}}.log",
    wildcard_constraints:
        name=one_of(PLAN.copies("page")),
    localrule: True
    conda:
        "../../envs/plumbline.yaml"
    params:
        out=subpath(output[0], parent=True),
    shell:
        "cp -p {input} {params.out}/ > {log} 2>&1"
