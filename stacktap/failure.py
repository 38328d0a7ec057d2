"""The one error that ends a command: what happened, where, what to do next."""

from __future__ import annotations


class CouldNotRunError(Exception):
    """A command could not do its job. Printed as one message; `exit_code` becomes the process's (3 unless told)."""

    def __init__(self, message: str, exit_code: int = 3) -> None:
        super().__init__(message)
        self.exit_code = exit_code


def cannot_write(failure: OSError) -> str:
    """What to say where a file or folder of stacktap's own cannot be made."""
    where = failure.filename or "stacktap's folders"
    return (
        f"cannot write {where}: {failure.strerror or failure}; make it writable, or choose other folders by "
        "XDG_DATA_HOME, XDG_CACHE_HOME and XDG_STATE_HOME"
    )
