"""One archive of what a configuration gave, from which every table and figure is made again elsewhere."""


rule bundle:
    """Results and what they are made of: no weights, no corpus, no items. No part of `all`."""
    input:
        PROJECT.bundles.inputs(),
    output:
        PROJECT.paths.bundle,
    log:
        f"{LOGS}/bundle.log",
    conda:
        "../../envs/plumbline.yaml"
    threads: 1
    resources:
        mem_mb=product_mb("bundle"),
        runtime=product_minutes("bundle"),
    params:
        configuration=json.dumps(PROJECT.config),
        fingerprint=lambda wildcards: PROJECT.fingerprints.bundle(),
    shell:
        "exec python -m plumbline.bundle --configuration-json {params.configuration:q} --fingerprint {params.fingerprint:q} "
        "--out {output:q} > {log:q} 2>&1"
