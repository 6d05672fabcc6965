"""From a corpus to packs: fetch, documents, tokenizer, tokenize, pack; and the loader that training reads.

Every stage is a verb (`python -m plumbline.data.<stage>`) with explicit file arguments. Nothing here imports torch.
"""
