"""Files that are written in one piece or not at all."""

import os
import tempfile
from pathlib import Path


def write_whole(path: str | Path, content: bytes) -> None:
    """Write a file beside its place and move it there: a crash leaves the old file or the new one.

    Folders are made as needed. Raises OSError when it cannot be written, and leaves nothing behind.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o644)  # mkstemp's are for the owner only
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
