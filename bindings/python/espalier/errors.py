"""What can go wrong, as exceptions that say whose fault it was.

Each status of the library has a class; where Python has a fitting exception of its own (ValueError,
MemoryError, TimeoutError, ConnectionError ...), the class is one of those too.
"""

from __future__ import annotations

from . import _native
from ._native import lib


class EspalierError(Exception):
    """A call has failed. str() is one readable sentence; the attributes are its parts."""

    status: str
    """The name of the status in the C header, such as "ESP_EPEER"."""
    rank: int | None
    """Whose fault it was, as a rank of the world; None: nobody's in particular."""
    host: str | None
    """The name of that rank's host."""
    operation: str | None
    """ "allreduce", "send" ...; None outside of a call."""
    sequence: int | None
    """The number of the call in its group, counted from 1."""
    waits_for: int | None
    """The rank of the world that the call waited for."""
    chunk: int | None
    """The chunk of the plan that was waited for, and its step, as `espalier plan show` counts."""
    step: int | None

    def __init__(self, message: str, error: _native.Error | None = None, status: int | None = None) -> None:
        super().__init__(message)
        code = error.status if error is not None else status
        self.status = _native.text(lib.esp_status_name(code)) if code is not None else ""
        self.rank = error.rank if error is not None and error.rank >= 0 else None
        self.host = _native.text(error.host) or None if error is not None else None
        self.operation = _native.text(error.operation) or None if error is not None else None
        self.sequence = error.sequence or None if error is not None else None
        self.waits_for = error.waits_for if error is not None and error.waits_for >= 0 else None
        self.chunk = error.chunk if error is not None and error.chunk >= 0 else None
        self.step = error.step if error is not None and error.step >= 0 else None


class InvalidError(EspalierError, ValueError):
    """An argument is out of range or contradicts another."""


class UnsupportedError(EspalierError, NotImplementedError):
    """Well-formed, but this build or this memory cannot do it."""


class StateError(EspalierError, RuntimeError):
    """The right call at the wrong time."""


class ForkedError(EspalierError, RuntimeError):
    """Used in a child process after fork."""


class OutOfMemoryError(EspalierError, MemoryError):
    """Out of memory."""


class LimitError(EspalierError, RuntimeError):
    """A bound (settings, descriptors, sizes of tables) is hit."""


class FileError(EspalierError, OSError):
    """A file or a device failed."""


class ParseError(EspalierError, ValueError):
    """Text or bytes are malformed."""


class PlanError(EspalierError, ValueError):
    """A plan does not compute what it promises."""


class LinkError(EspalierError, ConnectionError):
    """A connection broke or cannot be made."""


class CorruptError(EspalierError, ConnectionError):
    """Bytes arrived that were not sent."""


class PeerError(EspalierError, ConnectionError):
    """A rank died or was excluded: `rank` and `host` say which."""


class DeadlineError(EspalierError, TimeoutError):
    """A deadline passed."""


class MismatchError(EspalierError, RuntimeError):
    """Ranks made calls that do not fit together; the sentence names both."""


class ExcludedError(EspalierError, RuntimeError):
    """The others go on without this rank."""


class QuorumError(EspalierError, RuntimeError):
    """Too few ranks are left to go on."""


class JobError(EspalierError, RuntimeError):
    """The job or the group has failed."""


class AbortedError(EspalierError, RuntimeError):
    """Ended by a caller: Group.abort()."""


CLASSES: dict[int, type[EspalierError]] = {
    _native.EINVAL: InvalidError,
    _native.EUNSUPPORTED: UnsupportedError,
    _native.ESTATE: StateError,
    _native.EFORKED: ForkedError,
    _native.ENOMEM: OutOfMemoryError,
    _native.ELIMIT: LimitError,
    _native.EIO: FileError,
    _native.EPARSE: ParseError,
    _native.EPLAN: PlanError,
    _native.ELINK: LinkError,
    _native.ECORRUPT: CorruptError,
    _native.EPEER: PeerError,
    _native.ETIMEOUT: DeadlineError,
    _native.EMISMATCH: MismatchError,
    _native.EEXCLUDED: ExcludedError,
    _native.EQUORUM: QuorumError,
    _native.EJOB: JobError,
    _native.EABORTED: AbortedError,
}


def from_native(status: int, error: _native.Error) -> EspalierError:
    kind = CLASSES.get(status, EspalierError)
    if error.status == status and error.text:
        return kind(_native.text(error.text), error)
    return kind(_native.text(lib.esp_status_text(status)), status=status)


def last(status: int) -> EspalierError:
    """The exception for what a function of the library has just returned to this thread."""
    error = _native.Error()
    lib.esp_last_error(error)
    return from_native(status, error)


def check(status: int) -> None:
    if status != _native.OK:
        raise last(status)
