"""How kernels are given named tuples of arrays: as the place where their parts stand in memory.

Numba hands a tuple over part by part, and an array as seven numbers or more. The plans and states of learners hold a
hundred arrays, so that most of the code of a small kernel was unpacking its arguments and packing those of the next.
Here a named tuple is written to memory once, where Python calls a kernel, and its parts are read where they are used.
Named tuples never change, so nobody needs a copy.
A compiled kernel, too, can be given as the place where its machine code stands (`place_of`, `call_of`), so that one
loop, compiled once, calls any of them.
"""

from __future__ import annotations

import hashlib
from typing import Any, NamedTuple

import numba.core.datamodel
import numba.core.imputils
import numba.core.pythonapi
import numba.core.typing.templates
import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import cgutils, types
from numba.extending import intrinsic
from numpy.typing import NDArray

_numba: Any = numba.core
_build: Any = numba.core.cgutils
_intrinsic: Any = intrinsic
_int, _word = ir.IntType(32), ir.IntType(64)


class Parts(_numba.types.Type):  # type: ignore[misc]
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
    if isinstance(numba_type, _numba.types.BaseNamedTuple):
        return Parts(numba_type.instance_class, tuple(by_place(one) for one in numba_type))
    return numba_type


class PartsModel(_numba.datamodel.models.PrimitiveModel):  # type: ignore[misc]
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


def packed(value: tuple[Any, ...]) -> NDArray[np.int64]:
    """A named tuple as kernels find it in memory, to be handed over by its place and read there (`parts_at`). It says
    where arrays stand, and keeps none of them."""
    return np.array([word for part in value for word in _packed(part)], dtype=np.int64)


def _packed(part: Any) -> list[int]:
    """The words of a part, in the order of Numba's structure of an array: two for owners, whom kernels do not ask."""
    if isinstance(part, np.ndarray):
        place = part.__array_interface__["data"][0]
        return [0, 0, part.size, part.itemsize, place, *part.shape, *part.strides]
    if isinstance(part, tuple):
        return [word for one in part for word in _packed(one)]
    if part is None:
        return [0]
    return [int(np.array(part, dtype=np.float64 if isinstance(part, float) else np.int64).view(np.int64))]


class PartOfParts(_numba.typing.templates.AttributeTemplate):  # type: ignore[misc]
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
    return _numba.imputils.impl_ret_borrowed(context, builder, of.types[at], builder.load(part))


def _part(context: Any, builder: Any, of: Parts, place: Any, at: int) -> Any:
    """Where a part stands."""
    part = builder.gep(place, [_int(context.data_model_manager[of].offsets[at])], inbounds=True)
    kind = context.get_value_type(of.types[at])
    return part if isinstance(of.types[at], Parts) else builder.bitcast(part, kind.as_pointer())


def write_parts(of: Parts, value: Any, c: Any) -> Any:
    """The code that writes Python's named tuple to memory that lasts as long as the call."""
    place = _build.alloca_once(c.builder, _word, size=_int(c.context.data_model_manager[of].words))
    cleanups: list[Any] = []
    failed = _write(of, value, c, place, cleanups)

    def clean_up() -> None:
        for one in reversed(cleanups):
            one()

    return _numba.pythonapi.NativeValue(place, is_error=failed, cleanup=clean_up if cleanups else None)


def _write(of: Parts, value: Any, c: Any, place: Any, cleanups: list[Any]) -> Any:
    """Returns whether anything failed, with Python's error set. A call that writes one array in its place is all the
    code that it takes: with Numba's own, which checks each array by itself and copies it, most of the time of
    compiling went into the arguments."""
    failed = misfit = _build.false_bit
    for i, one in enumerate(of.types):
        part, there = c.pyapi.tuple_getitem(value, i), _part(c.context, c.builder, of, place, i)
        if isinstance(one, Parts):
            failed = c.builder.or_(failed, _write(one, part, c, there, cleanups))
        elif isinstance(one, _numba.types.Array) and not c.context.enable_nrt:
            code = c.pyapi.numba_array_adaptor(part, c.builder.bitcast(there, c.pyapi.voidptr))
            misfit = c.builder.or_(misfit, _build.is_not_null(c.builder, code))
        else:
            native = c.unbox(one, part)
            c.builder.store(native.value, there)
            failed = c.builder.or_(failed, native.is_error)
            if native.cleanup is not None:
                cleanups.append(native.cleanup)
    with c.builder.if_then(misfit, likely=False):
        c.pyapi.err_set_string("PyExc_TypeError", f"a part of {of.instance_class.__name__} is no array")
    return c.builder.or_(failed, misfit)


_numba.datamodel.register_default(Parts)(PartsModel)
_numba.typing.templates.infer_getattr(PartOfParts)
_numba.imputils.lower_getattr_generic(Parts)(read_part)
_numba.pythonapi.unbox(Parts)(write_parts)


class Somewhere(NamedTuple):
    """A named tuple whose kind is not known where its place is handed on."""


@_intrinsic  # type: ignore[untyped-decorator]
def parts_at(typing: Any, place: Any) -> Any:
    """What `packed` wrote, by its place."""
    kind = Parts(Somewhere, ())

    def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return builder.inttoptr(values[0], context.get_value_type(kind))

    return kind(_numba.types.int64), code


_places: dict[Any, int] = {}
_if_unlikely: Any = cgutils.if_unlikely


def place_of(kernel: Any, *arguments: Any) -> int:
    """Where a kernel's code for arguments such as these stands; it is compiled, or loaded, if it is not there yet."""
    key = kernel, _kind(arguments)
    if key not in _places:
        outer = kernel.for_python
        signature = tuple(outer.typeof_pyval(argument) for argument in arguments)
        outer.compile(signature)
        done = outer.overloads[signature]
        _places[key] = done.library.get_pointer_to_function(done.fndesc.llvm_func_name)
    return _places[key]


def _kind(value: Any) -> Any:
    """What Numba's type of a value depends on. To ask Numba itself takes milliseconds for a hundred arrays."""
    if isinstance(value, tuple):
        return type(value), *map(_kind, value)
    if isinstance(value, np.ndarray):
        return value.dtype, value.ndim, value.flags.c_contiguous, value.flags.f_contiguous, value.flags.writeable
    return type(value)


def call_of(returns: Any, *arguments: Any) -> tuple[Any, Any]:
    """For `numba.extending.intrinsic`: signature and code of a call of the kernel whose place comes first, with
    arguments of these types. Nothing checks that it is the place of the kernel for these types."""

    def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        convention = context.call_conv
        kind = convention.get_function_type(returns, arguments)
        callee = builder.inttoptr(values[0], kind.as_pointer())
        status, result = convention.call_function(builder, callee, returns, arguments, values[1:])
        with _if_unlikely(builder, status.is_error):
            convention.return_status_propagate(builder, status)
        return result

    return returns(types.int64, *arguments), code
