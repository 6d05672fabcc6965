"""Loads a folder by transformers in a process where some packages cannot be imported. Run as a script.

Reads JSON from its standard input: `folder`, `tokens` (rows of ids), `absent` (packages that must not be imported),
`code` (whether the folder brings code), `out` (a file for the logits), `threads`. It imports nothing of this package.
"""

import json
import sys


class HiddenPackages:
    """An import finder that makes some packages appear missing, installed or not."""

    def __init__(self, names):
        self.names = set(names)

    def find_spec(self, name, path=None, target=None):
        """Refuse the import of one of the packages; leave any other to the finders after this one.

        Raises:
            ModuleNotFoundError: the module belongs to one of the packages.
        """
        if name.partition(".")[0] in self.names:
            raise ModuleNotFoundError(f"No module named {name!r} (an exported folder must do without it)", name=name)
        return None


def main():
    """Load the folder, write its logits of the given tokens, and print the version of transformers.

    Raises:
        SystemExit: the folder's weights are not those of its model.
    """
    request = json.load(sys.stdin)
    sys.meta_path.insert(0, HiddenPackages(request["absent"]))
    import torch
    import transformers
    from safetensors.torch import save_file

    torch.set_num_threads(request["threads"])
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    model, report = transformers.AutoModelForCausalLM.from_pretrained(
        request["folder"], trust_remote_code=request["code"], local_files_only=True, output_loading_info=True
    )
    wrong = [*report["missing_keys"], *report["unexpected_keys"]]
    if wrong:
        raise SystemExit(f"the weights are not the model's: {wrong[0]}")
    with torch.inference_mode():
        save_file({"logits": model(torch.tensor(request["tokens"])).logits.contiguous()}, request["out"])
    print(transformers.__version__)


if __name__ == "__main__":
    main()
