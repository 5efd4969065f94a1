"""The one exception of this package."""


class ServiceError(Exception):
    """A private service cannot do what was asked; the message says why and what to do."""
