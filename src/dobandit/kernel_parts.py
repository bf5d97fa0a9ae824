"""How kernels are given named tuples of arrays: as the place where their parts stand in memory.

Numba hands a tuple over part by part, and an array as seven numbers or more. The plans and states of learners hold a
hundred arrays, so that most of the code of a small kernel was unpacking its arguments and packing those of the next.
Here a named tuple is written to memory once, where Python calls a kernel, and its parts are read where they are used.
Named tuples never change, so nobody needs a copy.
"""

from __future__ import annotations

from typing import Any

import numba.core.datamodel
import numba.core.imputils
import numba.core.pythonapi
import numba.core.typing.templates
from llvmlite import ir  # type: ignore[import-untyped]

_numba: Any = numba.core
_build: Any = numba.core.cgutils
_int = ir.IntType(32)


class Parts(_numba.types.Type):  # type: ignore[misc]
    """Numba's type of a named tuple that is handed over by its place."""

    def __init__(self, instance_class: Any, of: tuple[Any, ...]) -> None:
        self.instance_class, self.fields, self.types = instance_class, instance_class._fields, of
        super().__init__(f"{instance_class.__name__}({', '.join(map(str, of))})")

    @property
    def key(self) -> Any:
        return self.instance_class, self.types


def by_place(numba_type: Any) -> Any:
    """The type under which kernels take values of a type of Numba's: its own, except for named tuples."""
    if isinstance(numba_type, _numba.types.BaseNamedTuple):
        return Parts(numba_type.instance_class, tuple(by_place(one) for one in numba_type))
    return numba_type


class PartsModel(_numba.datamodel.models.PrimitiveModel):  # type: ignore[misc]
    """A pointer to a structure; a named tuple within a named tuple stands in the structure itself."""

    structure: Any

    def __init__(self, manager: Any, of: Parts) -> None:
        inner = [manager.lookup(one) for one in of.types]
        self.structure = ir.LiteralStructType(
            [one.structure if isinstance(one, PartsModel) else one.get_value_type() for one in inner]
        )
        super().__init__(manager, of, self.structure.as_pointer())


class PartOfParts(_numba.typing.templates.AttributeTemplate):  # type: ignore[misc]
    """What `parts.name` is."""

    key = Parts

    def generic_resolve(self, of: Parts, name: str) -> Any:
        return of.types[of.fields.index(name)] if name in of.fields else None


def read_part(context: Any, builder: Any, of: Parts, place: Any, name: str) -> Any:
    """The code of `parts.name`."""
    at = of.fields.index(name)
    part = builder.gep(place, [_int(0), _int(at)], inbounds=True)
    if isinstance(of.types[at], Parts):
        return part
    return _numba.imputils.impl_ret_borrowed(context, builder, of.types[at], builder.load(part))


def write_parts(of: Parts, value: Any, c: Any) -> Any:
    """The code that writes Python's named tuple to memory that lasts as long as the call."""
    place = _build.alloca_once(c.builder, c.context.data_model_manager[of].structure)
    failed = _build.alloca_once_value(c.builder, _build.false_bit)
    cleanups: list[Any] = []
    _write(of, value, c, place, failed, cleanups)

    def clean_up() -> None:
        for one in reversed(cleanups):
            one()

    return _numba.pythonapi.NativeValue(place, is_error=c.builder.load(failed), cleanup=clean_up if cleanups else None)


def _write(of: Parts, value: Any, c: Any, place: Any, failed: Any, cleanups: list[Any]) -> None:
    for i, one in enumerate(of.types):
        part, there = c.pyapi.tuple_getitem(value, i), c.builder.gep(place, [_int(0), _int(i)], inbounds=True)
        if isinstance(one, Parts):
            _write(one, part, c, there, failed, cleanups)
            continue
        native = c.unbox(one, part)
        c.builder.store(native.value, there)
        with c.builder.if_then(native.is_error, likely=False):
            c.builder.store(_build.true_bit, failed)
        if native.cleanup is not None:
            cleanups.append(native.cleanup)


_numba.datamodel.register_default(Parts)(PartsModel)
_numba.typing.templates.infer_getattr(PartOfParts)
_numba.imputils.lower_getattr_generic(Parts)(read_part)
_numba.pythonapi.unbox(Parts)(write_parts)
