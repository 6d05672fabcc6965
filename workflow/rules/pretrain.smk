"""One job a run: train to the final step, or to a recorded divergence; and read its probe points."""


rule pretrain:
    """Train one run as its spec says.

    The state directory is no output: Snakemake deletes outputs of failed jobs, and the state is what an interrupted
    run goes on from. How it is launched (one process, torchrun, srun), and with which flags that cannot change what a
    run computes beyond rounding (--micro-batch, --checkpoint-steps, --strategy, --attention, --compile), is a matter of
    machines: resources.launch and resources.trainer_flags, words of a command line that a shell reads as the profile
    has them. What --compile makes is kept for all runs of the preset; its place is no parameter, since it makes no run
    another one.
    """
    input:
        shards_of_run("train"),
        shards_of_run("validation"),
    output:
        outcome=f"{RUN}/outcome.json",
        manifest=f"{RUN}/manifest.json",
        metrics=f"{RUN}/metrics.parquet",
        weights=f"{RUN}/model.safetensors",
        points=directory(f"{RUN}/points"),
    log:
        f"{LOGS}/pretrain/{NAME}.log",
    benchmark:
        f"{BENCHMARKS}/pretrain/{NAME}.jsonl"
    conda:
        "../../envs/plumbline.yaml"
    threads: 1
    resources:
        mem_mb=run_mb("pretrain"),
        # What a run keeps: checkpoints, weights, and those of its probe points.
        disk_mb=of_run(lambda run: round(ESTIMATOR.disk_bytes(run) / 1e6) + 100),
        runtime=of_run(ESTIMATOR.pretrain_minutes),  # a longer run is chained over several
        launch="python",
        trainer_flags="",
        compiled=COMPILED,  # a resource: where it lies reruns nothing
    params:
        # One string, so that key order can never rerun anything.
        spec=of_run(lambda run: run.spec.to_json()),
        data=of_run(PROJECT.paths.pack_manifest),
        validation=of_run(PROJECT.paths.validation_manifest),
        state=f"{WORK}/state/{{study}}/{{scale}}/{{method}}/s{{seed}}",
        out=subpath(output.outcome, parent=True),
    shell:
        "exec {resources.launch} -m plumbline.train --spec {params.spec:q} --training-pack {params.data:q} "
        "--validation-pack {params.validation:q} --state {params.state:q} --out {params.out:q} --compile-cache {resources.compiled:q} "
        "{resources.trainer_flags} > {log:q} 2>&1"


rule probe:
    """What a run's probes say at all of its probe points, those that were read while it trained included."""
    input:
        outcome=f"{RUN}/outcome.json",
        manifest=f"{RUN}/manifest.json",
        weights=f"{RUN}/model.safetensors",
        points=f"{RUN}/points",
        packs=shards_of_run("validation"),
    output:
        f"{WORK}/probes/{{study}}/{{scale}}/{{method}}/s{{seed}}/probes.parquet",
    log:
        f"{LOGS}/probe/{NAME}.log",
    benchmark:
        f"{BENCHMARKS}/probe/{NAME}.jsonl"
    conda:
        "../../envs/plumbline.yaml"
    threads: 1
    resources:
        mem_mb=run_mb("probe"),
        runtime=of_run(ESTIMATOR.probe_minutes),
        launch="python",
    params:
        fingerprint=of_run(PROJECT.fingerprints.probes),
        run=subpath(input.outcome, parent=True),
        validation=of_run(PROJECT.paths.validation_manifest),
    shell:
        "exec {resources.launch} -m plumbline.evaluate.probes --run {params.run:q} --validation-pack {params.validation:q} "
        "--fingerprint {params.fingerprint:q} --out {output:q} > {log:q} 2>&1"
