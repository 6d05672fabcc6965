"""Pages to read and to carry. No part of `all`: they show every run, and are remade whenever a product is."""


rule report:
    """The report of this preset: a folder of static pages, of which the first is named."""
    input:
        PROJECT.report_files(),
    output:
        PROJECT.paths.report,
    log:
        f"{LOGS}/report.log",
    localrule: True
    conda:
        "../../envs/plumbline.yaml"
    params:
        configuration=json.dumps(PROJECT.config),
        fingerprint=lambda wildcards: PROJECT.fingerprints.report(),
    shell:
        "exec python -m plumbline.report --configuration-json {params.configuration:q} --fingerprint {params.fingerprint:q} "
        "--out {output:q} > {log:q} 2>&1"


rule copy_report:
    """The folder of the preset asked for."""
    input:
        PROJECT.paths.report,
    output:
        f"{RESULTS}/{REPORT_INDEX}",
    log:
        f"{LOGS}/copy/report.log",
    localrule: True
    conda:
        "../../envs/plumbline.yaml"
    params:
        source=subpath(input[0], parent=True),
        out=subpath(output[0], parent=True),
    shell:
        "(rm -rf {params.out:q}.new && cp -rp {params.source:q} {params.out:q}.new && rm -rf {params.out:q} && "
        "mv {params.out:q}.new {params.out:q}) > {log:q} 2>&1"
