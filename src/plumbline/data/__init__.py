"""Makes packs from a corpus: fetch, documents, tokenizer, tokenize, pack; and reads them for training.

Every stage is a verb (`python -m plumbline.data.<stage>`) with explicit file arguments. Nothing here imports torch.
"""
