"""How kernels are given named tuples of arrays: as the place where their parts stand in memory.

Numba hands a tuple over part by part, and an array as seven numbers or more. The plans and states of learners hold a
hundred arrays, so that most of the code of a small kernel was unpacking its arguments and packing those of the next.
Here a named tuple is written to memory once, where Python calls a kernel, and its parts are read where they are used.
Named tuples never change, so nobody needs a copy.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import cgutils, types
from numba.core.datamodel import models, register_default
from numba.core.imputils import impl_ret_borrowed, lower_getattr_generic
from numba.core.pythonapi import NativeValue, unbox
from numba.core.typing.templates import AttributeTemplate, infer_getattr

_type: Any = types.Type
_primitive: Any = models.PrimitiveModel
_template: Any = AttributeTemplate
_cg: Any = cgutils
_int = ir.IntType(32)


class Parts(_type):  # type: ignore[misc]
    """Numba's type of a named tuple that is handed over by its place."""

    def __init__(self, instance_class: type, of: tuple[Any, ...]) -> None:
        self.instance_class, self.types = instance_class, of
        self.fields: tuple[str, ...] = instance_class._fields  # type: ignore[attr-defined]
        super().__init__(f"{instance_class.__name__}({', '.join(map(str, of))})")

    @property
    def key(self) -> Any:
        return self.instance_class, self.types


def by_place(numba_type: Any) -> Any:
    """The type under which kernels take values of a type of Numba's: its own, except for named tuples."""
    if isinstance(numba_type, types.BaseNamedTuple):
        return Parts(numba_type.instance_class, tuple(by_place(one) for one in numba_type))
    return numba_type


@register_default(Parts)
class PartsModel(_primitive):  # type: ignore[misc]
    """A pointer to a structure; a named tuple within a named tuple stands in the structure itself."""

    def __init__(self, manager: Any, of: Parts) -> None:
        inner = [manager.lookup(one) for one in of.types]
        self.structure = ir.LiteralStructType(
            [one.structure if isinstance(one, PartsModel) else one.get_value_type() for one in inner]
        )
        super().__init__(manager, of, self.structure.as_pointer())


@infer_getattr
class PartOfParts(_template):  # type: ignore[misc]
    """What `parts.name` is."""

    key = Parts

    def generic_resolve(self, of: Parts, name: str) -> Any:
        return of.types[of.fields.index(name)] if name in of.fields else None


@lower_getattr_generic(Parts)
def read_part(context: Any, builder: Any, of: Parts, place: Any, name: str) -> Any:
    at = of.fields.index(name)
    part = builder.gep(place, [_int(0), _int(at)], inbounds=True)
    if isinstance(of.types[at], Parts):
        return part
    return impl_ret_borrowed(context, builder, of.types[at], builder.load(part))


@unbox(Parts)
def write_parts(of: Parts, value: Any, c: Any) -> Any:
    """Python's named tuple, written to memory that lasts as long as the call."""
    place = _cg.alloca_once(c.builder, c.context.data_model_manager[of].structure)
    failed, cleanups = _cg.alloca_once_value(c.builder, _cg.false_bit), []
    _write(of, value, c, place, failed, cleanups)

    def clean_up() -> None:
        for one in reversed(cleanups):
            one()

    return NativeValue(place, is_error=c.builder.load(failed), cleanup=clean_up if cleanups else None)


def _write(of: Parts, value: Any, c: Any, place: Any, failed: Any, cleanups: list[Any]) -> None:
    for i, one in enumerate(of.types):
        part, there = c.pyapi.tuple_getitem(value, i), c.builder.gep(place, [_int(0), _int(i)], inbounds=True)
        if isinstance(one, Parts):
            _write(one, part, c, there, failed, cleanups)
            continue
        native = c.unbox(one, part)
        c.builder.store(native.value, there)
        with c.builder.if_then(native.is_error, likely=False):
            c.builder.store(_cg.true_bit, failed)
        if native.cleanup is not None:
            cleanups.append(native.cleanup)
