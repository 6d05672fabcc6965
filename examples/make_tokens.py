"""Write tokens/ of this project's own pages and code: tokenizer.json, train.bin, val.bin (docs/your-own-data.md)."""

from pathlib import Path

import numpy as np
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

paths = sorted([*Path("docs").rglob("*.md"), *Path("src").rglob("*.py")])
texts = [text for path in paths if (text := path.read_text(encoding="utf-8"))]

words = Tokenizer(models.BPE())
words.pre_tokenizer, words.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
end = "<|endoftext|>"
trainer = trainers.BpeTrainer(vocab_size=1024, special_tokens=[end], initial_alphabet=alphabet, show_progress=False)
words.train_from_iterator(texts, trainer)
words.encode_special_tokens = True  # an end of document that is spelled out in a text does not end it

folder = Path("tokens")
folder.mkdir()
words.save(str(folder / "tokenizer.json"))
held_out = texts[::10]  # a share and no number, since a project has the pages without the code
for name, some in (("train", [text for text in texts if text not in held_out]), ("val", held_out)):
    ids = [token for text in some for token in [*words.encode(text).ids, words.token_to_id(end)]]
    np.array(ids, dtype="<u2").tofile(folder / f"{name}.bin")
    print(name, len(ids), "ids; the end of a document is", words.token_to_id(end))
