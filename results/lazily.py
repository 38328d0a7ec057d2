"""Attributes that are worked out when first asked for, and kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, Self, TypeVar, overload

Owner = TypeVar("Owner")
Value = TypeVar("Value")


class lazily(Generic[Owner, Value]):  # noqa: N801
    """`functools.cached_property` without the lock that Python 3.11 takes at each first access, which is most of what
    an access costs. An exchange and its facts are read by one thread."""

    def __init__(self, make: Callable[[Owner], Value]) -> None:
        self._make = make
        self._name = make.__name__
        self.__doc__ = make.__doc__

    @overload
    def __get__(self, instance: None, owner: type[Any]) -> Self: ...

    @overload
    def __get__(self, instance: Owner, owner: type[Any]) -> Value: ...

    def __get__(self, instance: Owner | None, owner: type[Any]) -> Self | Value:
        if instance is None:
            return self
        value = instance.__dict__[self._name] = self._make(instance)
        return value
