"""What a study measures besides its runs: side experiments and times of steps, each a function of the study's code."""


rule measure:
    """One measurement as a frame, and what it was made with; remade when its own code or options change."""
    output:
        multiext(
            f"{WORK}/measured/{{study}}/{{measurement}}",
            parquet=".parquet",
            json=".json",
        ),
    log:
        f"{LOGS}/measure/{{study}}.{{measurement}}.log",
    benchmark:
        f"{BENCHMARKS}/measure/{{study}}.{{measurement}}.jsonl"
    wildcard_constraints:
        measurement=one_of(one.name for one in PROJECT.measurements.all.values()),
    conda:
        "../../envs/plumbline.yaml"
    threads: 1
    resources:
        mem_mb=lambda wildcards, attempt: REQUESTS.measurement(
            measurement_of(wildcards).device == "gpu"
        ).choose_mb(attempt, job_needs.LEAST_MB),
        runtime=lambda wildcards: ESTIMATOR.measure_minutes(measurement_of(wildcards)),
        launch="python",
    params:
        preset=PROJECT.name,
        fingerprint=lambda wildcards: PROJECT.fingerprints.measurement(
            measurement_of(wildcards)
        ),
    shell:
        "exec {resources.launch} -m plumbline.results.measurements.run_measurement {wildcards.study:q} {wildcards.measurement:q} "
        "--preset {params.preset:q} --out {output.parquet:q} > {log:q} 2>&1"
