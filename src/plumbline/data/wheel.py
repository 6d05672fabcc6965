"""Opens a pinned wheel, of which files are read without installing it."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from plumbline.core.errors import PlumblineError
from plumbline.core.files import find_disk_error, name_in_errors


@contextmanager
def open_wheel(wheel: Path) -> Iterator[zipfile.ZipFile]:
    """Open a wheel.

    Raises:
        PlumblineError: it is not a wheel.
        OSError: its disk fails, for which zipfile raises the same.
    """
    try:
        with name_in_errors(wheel), zipfile.ZipFile(wheel) as archive:
            yield archive
    except (zipfile.BadZipFile, OSError) as error:
        if disk_error := find_disk_error(error) or (error.__context__ and find_disk_error(error.__context__)):
            with name_in_errors(wheel):
                raise disk_error from None
        raise PlumblineError(f"{wheel}: cannot be read as a wheel ({error}); delete it and fetch it again") from error
