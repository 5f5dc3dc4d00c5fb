"""Exceptions. Their texts are those that the command line prints."""


class Error(Exception):
    """Something that Selkie was given is wrong, or asks for too much."""


class ModelError(Error):
    """A model cannot be read or compiled."""


class NotFoundError(ModelError, FileNotFoundError):
    """There is no such file."""


class InputError(Error, ValueError):
    """An input, or an array given as `out`, is not what the model takes."""


class RunError(Error):
    """A run failed on the values that it was given."""


class LimitError(Error):
    """A limit was reached."""
