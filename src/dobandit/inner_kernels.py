"""Compiling kernels that other kernels call, once for all of them.

Left to itself, Numba turns every kernel into machine code of its own, with all that it calls inside: code at the bottom
of a deep tree of calls is optimised again at each level above it, most of which Python never calls. Here a kernel has
two forms: the outer one, which Python calls and which is kept on disk, and the inner one, which is only translated, and
is optimised within the outer kernels that call it. That halves the time of the first use.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from numba.core.caching import FunctionCache
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_lock import global_compiler_lock
from numba.core.compiler_machinery import register_pass
from numba.core.decorators import njit
from numba.core.registry import CPUDispatcher
from numba.core.runtime.nrt import rtsys
from numba.core.typed_passes import NativeLowering

from dobandit.compile_mode import about_to_compile
from dobandit.kernel_parts import by_place

if hasattr(os, "register_at_fork"):  # who is forked while another thread compiles could never compile anything
    os.register_at_fork(
        before=global_compiler_lock.acquire,
        after_in_parent=global_compiler_lock.release,
        after_in_child=global_compiler_lock.release,
    )


class InnerLibrary(JITCodeLibrary):  # type: ignore[misc]
    """Code to be linked into other code: neither optimised nor made executable by itself."""

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True


@register_pass(mutates_CFG=True, analysis_only=False)
class InnerLowering(NativeLowering):  # type: ignore[misc]
    """Translates a kernel to LLVM's language, and lets the kernels that are being compiled call it."""

    _name = "inner_lowering"

    def run_pass(self, state: Any) -> bool:
        state.flags.no_compile = True
        state.library = InnerLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
        super().run_pass(state)
        done = state["cr"]
        key: Any = [].append  # a built-in function like no other: Numba wants one as the name of what may be called
        state.targetctx.insert_user_function(key, done.fndesc, [state.library])
        state["cr"] = done._replace(cfunc=key)
        return True


class InnerCompiler(CompilerBase):  # type: ignore[misc]
    """Numba's usual steps, with the inner form of the last one."""

    def define_pipelines(self) -> list[Any]:
        steps = DefaultPassBuilder.define_nopython_pipeline(self.state)
        steps.passes = [(InnerLowering if step is NativeLowering else step, says) for step, says in steps.passes]
        return [steps]


class LightCache(FunctionCache):  # type: ignore[misc]
    """A cache on disk that loads compiled kernels without Numba's registries of what can be compiled, which take half a
    second to import and to fill. Compiling fills them itself, before it begins."""

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        rtsys.initialize(target_context)
        found = None
        with self._guard_against_spurious_io_errors():
            found = self._load_overload(sig, target_context)
        if found is None:
            about_to_compile(f"{self._py_func.__module__}.{self._py_func.__qualname__}")
        return found


class OuterForm(CPUDispatcher):  # type: ignore[misc]
    """What Python calls."""

    def enable_caching(self) -> None:
        self._cache = LightCache(self.py_func)

    def typeof_pyval(self, value: Any) -> Any:
        return by_place(super().typeof_pyval(value))

    def compile(self, sig: Any) -> Any:
        known = len(self.overloads)
        entry = super().compile(sig)
        if len(self.overloads) > known:
            done = next(reversed(self.overloads.values()))
            if done.metadata is not None:  # compiled, not loaded; loading does this by itself
                for environment in done._find_referenced_environments():
                    done.library.codegen.set_env(environment.env_name, environment)
        return entry


INNER: dict[str, Any] = {"pipeline_class": InnerCompiler, "no_cpython_wrapper": True}


def outer_form(function: Callable[..., Any], options: dict[str, Any]) -> OuterForm:
    """The form of a kernel that Python calls, not yet kept on disk."""
    return OuterForm(py_func=function, locals={}, targetoptions={**options, "nopython": True, "boundscheck": None})


def inner_form(function: Callable[..., Any], options: dict[str, Any]) -> Any:
    """The form of a kernel that other kernels call."""
    return njit(**options, **INNER)(function)
