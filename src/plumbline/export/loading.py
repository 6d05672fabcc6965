"""Run as a script, in a process of its own: a folder is loaded by transformers where other packages are not there.

Reads JSON from its standard input: `folder`, `tokens` (rows of ids), `absent` (packages that must not be imported),
`code` (whether the folder brings code), `out` (a file for the logits), `threads`. It imports nothing of this package.
"""

import json
import sys


class Absent:
    """Finds none of some packages, installed or not."""

    def __init__(self, names):
        self.names = set(names)

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in self.names:
            raise ModuleNotFoundError(f"No module named {name!r} (an exported folder must do without it)", name=name)
        return None


def main():
    asked = json.load(sys.stdin)
    sys.meta_path.insert(0, Absent(asked["absent"]))
    import torch
    import transformers
    from safetensors.torch import save_file

    torch.set_num_threads(asked["threads"])
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    model, report = transformers.AutoModelForCausalLM.from_pretrained(
        asked["folder"], trust_remote_code=asked["code"], local_files_only=True, output_loading_info=True
    )
    wrong = [*report["missing_keys"], *report["unexpected_keys"]]
    if wrong:
        raise SystemExit(f"the weights are not the model's: {wrong[0]}")
    with torch.inference_mode():
        save_file({"logits": model(torch.tensor(asked["tokens"])).logits.contiguous()}, asked["out"])
    print(transformers.__version__)


if __name__ == "__main__":
    main()
