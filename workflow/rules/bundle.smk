"""One archive of what a configuration gave, from which every table and figure is made again elsewhere."""


rule bundle:
    """Results and what they are made of: no weights, no corpus, no items. No part of `all`."""
    input:
        PLAN.bundle_inputs(),
    output:
        PLAN.bundle_file,
    log:
        f"{LOGS}/bundle.log",
    conda:
        "../../envs/plumbline.yaml"
    threads: 1
    resources:
        mem_mb=1500,
    params:
        configuration=json.dumps(PLAN.config),
        made_of=PLAN.bundle_made_of(),
    shell:
        "exec python -m plumbline.bundle --configuration {params.configuration:q} --made-of {params.made_of:q} "
        "--out {output:q} > {log:q} 2>&1"
