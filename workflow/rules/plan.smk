"""What each target costs, before it is run and while it is."""


rule plan:
    """The price of every target. No part of `all`: it changes with every run that is done."""
    input:
        machines="config/machines.yaml",
    output:
        multiext(f"{MADE}/plan", csv=".csv", md=".md"),
    log:
        f"{LOGS}/plan.log",
    localrule: True
    conda:
        "../../envs/plumbline.yaml"
    params:
        configuration=json.dumps(PROJECT.config),
        state=lambda wildcards: ESTIMATOR.digest(),
    shell:
        "exec python -m plumbline.plan --configuration-json {params.configuration:q} --out {output.csv:q} > {log:q} 2>&1"
