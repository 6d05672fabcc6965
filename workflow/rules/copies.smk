"""Directly under results/: copies of the preset asked for. The main study's tables and figures need no folder there.

A copy says which preset it is of in the file itself.
"""


rule copy_table:
    """A table of the preset asked for."""
    input:
        copied(".csv", ".md", ".tex", ".all.tex", ".notes.tex", ".provenance.json"),
    output:
        multiext(
            f"{RESULTS}/{{name}}",
            csv=".csv",
            md=".md",
            tex=".tex",
            all_columns=".all.tex",
            notes=".notes.tex",
            provenance=".provenance.json",
        ),
    log:
        f"{LOGS}/copy/{{name}}.log",
    wildcard_constraints:
        name=one_of(PROJECT.targets.copies("table")),
    localrule: True
    conda:
        "../../envs/plumbline.yaml"
    params:
        out=subpath(output.csv, parent=True),
    shell:
        "cp -p {input:q} {params.out:q}/ > {log:q} 2>&1"


rule copy_figure:
    """A figure of the preset asked for."""
    input:
        copied(".png", ".svg", ".csv"),
    output:
        multiext(f"{RESULTS}/{{name}}", png=".png", svg=".svg", csv=".csv"),
    log:
        f"{LOGS}/copy/{{name}}.log",
    wildcard_constraints:
        name=one_of(PROJECT.targets.copies("figure")),
    localrule: True
    conda:
        "../../envs/plumbline.yaml"
    params:
        out=subpath(output.png, parent=True),
    shell:
        "cp -p {input:q} {params.out:q}/ > {log:q} 2>&1"


rule copy_page:
    """Audit, plan, or a study's claims."""
    input:
        copied(".csv", ".md"),
    output:
        multiext(f"{RESULTS}/{{name}}", csv=".csv", md=".md"),
    log:
        f"{LOGS}/copy/{{name}}.log",
    wildcard_constraints:
        name=one_of(PROJECT.targets.copies("page")),
    localrule: True
    conda:
        "../../envs/plumbline.yaml"
    params:
        out=subpath(output.csv, parent=True),
    shell:
        "cp -p {input:q} {params.out:q}/ > {log:q} 2>&1"


rule unknown_run:
    """A run, measurement, corpus or package that there is not is answered with the nearest one."""
    input:
        lambda wildcards: PROJECT.unknown_paths.refuse_below_work(wildcards.unknown),
    output:
        f"{WORK}/{{unknown}}",
    log:
        f"{LOGS}/unknown/{{unknown}}.log",
    wildcard_constraints:
        unknown=PROJECT.unknown_paths.below_work(),
    localrule: True
    conda:
        "../../envs/plumbline.yaml"
    shell:
        "exec false > {log:q} 2>&1"


rule unknown:
    """What nothing makes is answered with the nearest thing that is made."""
    input:
        lambda wildcards: PROJECT.unknown_paths.refuse(f"{RESULTS}/{wildcards.unknown}"),
    output:
        f"{RESULTS}/{{unknown}}",
    log:
        f"{LOGS}/unknown/{{unknown}}.log",
    wildcard_constraints:
        unknown=PROJECT.unknown_paths.results(),
    localrule: True
    conda:
        "../../envs/plumbline.yaml"
    shell:
        "exec false > {log:q} 2>&1"
