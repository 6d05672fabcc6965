"""The made-up run, tokenizer and items that evaluation is tested with."""

from tests.evaluate.conftest import documents_file, finished, items_folder, tokenizer_file  # noqa: F401
