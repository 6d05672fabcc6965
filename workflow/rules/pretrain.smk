"""One job a run: train to the final step, or to a recorded divergence."""


rule pretrain:
    """Carry out one run's spec.

    The state directory is no output: Snakemake deletes outputs of failed jobs, and the state is what an interrupted
    run goes on from. How it is launched (one process, torchrun, srun), and with which flags that cannot change what a
    run computes beyond rounding (--micro-batch, --checkpoint-steps, --strategy), is a matter of machines:
    resources.launch and resources.trainer_flags.
    """
    input:
        data=pack_of,
        validation=validation_of,
    output:
        outcome=f"{WORK}/runs/{{study}}/{{scale}}/{{method}}/s{{seed}}/outcome.json",
        manifest=f"{WORK}/runs/{{study}}/{{scale}}/{{method}}/s{{seed}}/manifest.json",
        metrics=f"{WORK}/runs/{{study}}/{{scale}}/{{method}}/s{{seed}}/metrics.parquet",
        weights=f"{WORK}/runs/{{study}}/{{scale}}/{{method}}/s{{seed}}/model.safetensors",
    log:
        f"{LOGS}/pretrain/{{study}}.{{scale}}.{{method}}.s{{seed}}.log",
    benchmark:
        f"{BENCHMARKS}/pretrain/{{study}}.{{scale}}.{{method}}.s{{seed}}.jsonl"
    conda:
        "../../envs/plumbline.yaml"
    threads: 1
    resources:
        mem_mb=1500,
        runtime=pretrain_minutes,
        launch="python",
        trainer_flags="",
    params:
        spec=run_spec,
        state=f"{WORK}/state/{{study}}/{{scale}}/{{method}}/s{{seed}}",
        out=subpath(output.outcome, parent=True),
    shell:
        "exec {resources.launch} -m plumbline.train --spec {params.spec:q} --data {input.data} "
        "--validation {input.validation} --state {params.state} --out {params.out} {resources.trainer_flags} "
        "> {log} 2>&1"
