"""A verdict on your own modification: --config mine=my/cosine.yaml, results/verdict/cosine.md.

Its runs are made by the rules of every study; before the first of them the method is checked (operate/preflight/method_checks/check_file.py).
"""


rule verdict:
    """The page, its picture and numbers, and an entry in the ledger for each method."""
    input:
        lambda wildcards: PROJECT.verdicts.files(),
    output:
        # Compared with the ledger before it is replaced, so not removed beforehand.
        page=update(f"{MADE}/verdict/{{mine}}.md"),
        picture=f"{MADE}/verdict/{{mine}}.svg",
        numbers=f"{MADE}/verdict/{{mine}}.json",
    log:
        f"{LOGS}/verdict/{{mine}}.log",
    benchmark:
        f"{BENCHMARKS}/verdict/{{mine}}.jsonl"
    wildcard_constraints:
        mine=one_of([PROJECT.mine.name] if PROJECT.mine else []),
    conda:
        "../../envs/plumbline.yaml"
    threads: 1
    resources:
        mem_mb=lambda wildcards, attempt: verdict_need().choose_mb(
            attempt, job_needs.LEAST_MB
        ),
        runtime=lambda wildcards: verdict_need().choose_minutes(),
    params:
        file=PROJECT.config.get("mine", ""),
        preset=PROJECT.name,
        work=WORK,
        source=PROJECT.config["data"]["source"],
        checks=PROJECT.paths.verdict_checks,
        ledger=PROJECT.paths.verdict_ledger,
        expected=PROJECT.verdicts.hash_runs(),
        fingerprint=PROJECT.fingerprints.verdict(),
    shell:
        "exec python -m plumbline.operate.experiments.own_verdict {params.file:q} --preset {params.preset:q} --work {params.work:q} "
        "--documents-source {params.source:q} --checks {params.checks:q} --ledger {params.ledger:q} "
        "--expected-runs-digest {params.expected:q} --fingerprint {params.fingerprint:q} --out {output.page:q} > {log:q} 2>&1"


rule copy_verdict:
    """The page of the preset asked for, which names its ledger from where it lies."""
    input:
        page=f"{MADE}/verdict/{{mine}}.md",
        picture=f"{MADE}/verdict/{{mine}}.svg",
        numbers=f"{MADE}/verdict/{{mine}}.json",
    output:
        page=f"{RESULTS}/verdict/{{mine}}.md",
        picture=f"{RESULTS}/verdict/{{mine}}.svg",
        numbers=f"{RESULTS}/verdict/{{mine}}.json",
    log:
        f"{LOGS}/copy/verdict.{{mine}}.log",
    wildcard_constraints:
        mine=one_of([PROJECT.mine.name] if PROJECT.mine else []),
    localrule: True
    conda:
        "../../envs/plumbline.yaml"
    params:
        ledger=f"s#^Ledger: `ledger.jsonl`#Ledger: `../{PROJECT.name}/verdict/ledger.jsonl`#",
    shell:
        "sed {params.ledger:q} {input.page:q} > {output.page:q} 2> {log:q} && "
        "cp {input.picture:q} {output.picture:q} >> {log:q} 2>&1 && "
        "cp {input.numbers:q} {output.numbers:q} >> {log:q} 2>&1"
