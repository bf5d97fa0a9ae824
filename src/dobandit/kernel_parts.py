"""How kernels are given named tuples of arrays: as the place where their parts stand in memory.

Numba hands a tuple over part by part, and an array as seven numbers or more. The plans and states of learners hold a
hundred arrays, so that most of the code of a small kernel was unpacking its arguments and packing those of the next.
Here a named tuple is written to memory once, where Python calls a kernel, and its parts are read where they are used.
Named tuples never change, so nobody needs a copy.
"""

from __future__ import annotations

import hashlib
from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import cgutils, datamodel, imputils, pythonapi, types
from numba.core.typing import templates

_int, _word = ir.IntType(32), ir.IntType(64)


class Parts(types.Type):  # type: ignore[misc]
    """Numba's type of a named tuple that is handed over by its place."""

    def __init__(self, instance_class: Any, of: tuple[Any, ...]) -> None:
        self.instance_class, self.fields, self.types = instance_class, instance_class._fields, of
        super().__init__(f"{instance_class.__name__}({', '.join(map(str, of))})")

    @property
    def key(self) -> Any:
        return self.instance_class, self.types

    @property
    def mangling_args(self) -> tuple[str, tuple[()]]:
        """What stands for the type in names of compiled functions, which are written down at every call: with all its
        parts it would be several thousand letters."""
        return f"{self.instance_class.__name__}.{hashlib.sha256(self.name.encode()).hexdigest()[:16]}", ()


def by_place(numba_type: Any) -> Any:
    """The type under which kernels take values of a type of Numba's: its own, except for named tuples."""
    if isinstance(numba_type, types.BaseNamedTuple):
        return Parts(numba_type.instance_class, tuple(by_place(one) for one in numba_type))
    return numba_type


class PartsModel(datamodel.models.PrimitiveModel):  # type: ignore[misc]
    """A pointer to words of eight bytes. A part begins at `offsets[i]`; a named tuple within a named tuple stands there
    itself. The pointer says nothing of the parts: a type of all of them would stand in every line that reads one."""

    def __init__(self, manager: Any, of: Parts) -> None:
        self.offsets, self.words = [], 0
        for inner in map(manager.lookup, of.types):
            self.offsets.append(self.words)
            self.words += inner.words if isinstance(inner, PartsModel) else _words(inner.get_value_type())
        super().__init__(manager, of, _word.as_pointer())


def _words(kind: Any) -> int:
    """Words that are enough for a value of an LLVM type, each number in it taking one at most."""
    if isinstance(kind, ir.ArrayType):
        return int(kind.count) * _words(kind.element)
    if isinstance(kind, ir.LiteralStructType):
        return sum(map(_words, kind.elements))
    return 1


class PartOfParts(templates.AttributeTemplate):  # type: ignore[misc]
    """What `parts.name` is."""

    key = Parts

    def generic_resolve(self, of: Parts, name: str) -> Any:
        return of.types[of.fields.index(name)] if name in of.fields else None


def read_part(context: Any, builder: Any, of: Parts, place: Any, name: str) -> Any:
    """The code of `parts.name`."""
    at = of.fields.index(name)
    part = _part(context, builder, of, place, at)
    if isinstance(of.types[at], Parts):
        return part
    return imputils.impl_ret_borrowed(context, builder, of.types[at], builder.load(part))


def _part(context: Any, builder: Any, of: Parts, place: Any, at: int) -> Any:
    """Where a part stands."""
    part = builder.gep(place, [_int(context.data_model_manager[of].offsets[at])], inbounds=True)
    kind = context.get_value_type(of.types[at])
    return part if isinstance(of.types[at], Parts) else builder.bitcast(part, kind.as_pointer())


def write_parts(of: Parts, value: Any, c: Any) -> Any:
    """The code that writes Python's named tuple to memory that lasts as long as the call."""
    place = cgutils.alloca_once(c.builder, _word, size=_int(c.context.data_model_manager[of].words))
    return pythonapi.NativeValue(place, is_error=_write(of, value, c, place))


def _write(of: Parts, value: Any, c: Any, place: Any) -> Any:
    """Returns whether anything failed, with Python's error set. A call that writes one array in its place is all the
    code that it takes: with Numba's own, which checks each array by itself and copies it, most of the time of
    compiling went into the arguments."""
    failed = misfit = cgutils.false_bit
    for i, one in enumerate(of.types):
        part, there = c.pyapi.tuple_getitem(value, i), _part(c.context, c.builder, of, place, i)
        if isinstance(one, Parts):
            failed = c.builder.or_(failed, _write(one, part, c, there))
        elif isinstance(one, types.Array):
            code = c.pyapi.numba_array_adaptor(part, c.builder.bitcast(there, c.pyapi.voidptr))
            misfit = c.builder.or_(misfit, cgutils.is_not_null(c.builder, code))
        else:
            native = c.unbox(one, part)
            c.builder.store(native.value, there)
            failed = c.builder.or_(failed, native.is_error)
    with c.builder.if_then(misfit, likely=False):
        c.pyapi.err_set_string("PyExc_TypeError", f"a part of {of.instance_class.__name__} is no array")
    return c.builder.or_(failed, misfit)


datamodel.register_default(Parts)(PartsModel)
templates.infer_getattr(PartOfParts)
imputils.lower_getattr_generic(Parts)(read_part)
pythonapi.unbox(Parts)(write_parts)
