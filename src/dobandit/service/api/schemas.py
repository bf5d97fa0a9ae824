"""What the OpenAPI document says of each route: the shapes of requests, and examples of requests and answers."""

from __future__ import annotations

from typing import Any

_NAMES = {"type": "array", "items": {"type": "string"}}
_VALUES = {"type": "object", "additionalProperties": {"type": ["number", "null"], "minimum": 0, "maximum": 1}}
_SEEN = {"oneOf": [_VALUES, {"type": "array", "items": {"type": "object"}}]}
_CSV = {"type": "string", "description": "A table's text, in place of an observation: a line per round, or per count"}
_RANDOMISED = {"type": "boolean", "description": "What was set was chosen at random, or by an ask"}
_GRAPH = {
    "graph": {"description": "A text in any format, or a graph or model file's object", "type": ["string", "object"]},
    "format": {"enum": ["edgelist", "json", "dot", "gml", "dagitty", "bif"]},
    "target": {"type": "string"},
    **dict.fromkeys(("latent", "controllable", "bias", "context"), _NAMES),
    "binarise": {"type": "object", "additionalProperties": _NAMES},
    "binarise_rest": {"enum": ["first", "last"]},
    "structure_only": {"type": "boolean"},
}
_RULES = {
    "budget": {"type": "integer", "minimum": 0},
    "levers": {"type": "object", "additionalProperties": {"type": "array", "items": {"type": "number"}}},
    "costs": {"type": "object", "additionalProperties": {"type": "number", "minimum": 0}},
    "total_cost": {"type": "number", "minimum": 0},
    **dict.fromkeys(("require", "forbid", "always_set", "available"), _NAMES),
    "exclusive": {"type": "array", "items": _NAMES},
    "smaller": {"type": "boolean"},
}
_CREATE = {
    "name": {"type": "string", "minLength": 1, "maxLength": 200},
    **_GRAPH,
    **_RULES,
    "policy": {"description": 'A name with settings, or {"name": ...}', "type": ["string", "object"]},
    "horizon": {"type": "integer", "minimum": 1},
    "seed": {"type": "integer", "minimum": 0},
    "lease": {"description": "Seconds", "type": "number", "exclusiveMinimum": 0},
    "links": {"description": "A link for all variables, or by name", "type": ["string", "object"]},
    "continuous": {"type": "boolean"},
    "effects": {"enum": ["nonnegative", "any"]},
    "hide": {"oneOf": [{"const": "auto"}, _NAMES]},
    "control": {"type": "number", "minimum": 0, "exclusiveMaximum": 1},
    "stop_within": {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
    "history": {"description": 'Rows, or {"csv": text}', "type": ["array", "object"]},
    "randomised": _RANDOMISED,
    "if_exists": {"enum": ["error", "open"]},
}
_KEY = {
    "name": "Idempotency-Key",
    "in": "header",
    "description": "The request may be repeated with the same key: it is done once, and answered alike.",
    "schema": {"type": "string", "maxLength": 200},
}
PROBLEM = {
    "description": "What went wrong (RFC 9457). `error` is the class of the error in Python.",
    "content": {
        "application/problem+json": {
            "schema": {
                "type": "object",
                "required": ["type", "title", "status", "detail"],
                "properties": {key: {"type": "string"} for key in ("type", "title", "detail", "error", "where")}
                | {key: {"type": "integer"} for key in ("status", "line", "column")},
            },
            "example": {
                "type": "about:blank",
                "title": "Conflict",
                "status": 409,
                "detail": 'a trial is closed once, but trial 3 was already abandoned, and is now told {"buy": 1}. '
                "Nothing was changed. If both happened, record the second as a round of its own.",
                "error": "ConflictError",
            },
        }
    },
}
_CHOSEN = {"trial": 3, "do": {"coupon": 1}, "predicted": 0.21, "interval": [0.12, 0.33], "issued": 1}
_TRIAL = {
    **_CHOSEN,
    "why": "largest optimistic E[buy]: estimate 0.210 + 0.084",
    "lease_expires": "2026-11-16T09:30:00.000Z",
    "context": {},
    "size": 1,
    "control": False,
    "interval_words": "95%, at every look (asymptotic)",
}
_ROW = {
    **_CHOSEN,
    "state": "told",
    "source": "asked",
    "observation": {"email": 0, "coupon": 1, "visit": 1, "buy": 0},
    "closed_at": "2026-11-16T09:12:00.000Z",
    "rounds": 1,
}
_STATUS = {"id": 1, "name": "spring", "policy": "causal-ucb", "target": "buy", "trials": 41, "pending": 1, "told": 40}
_STATUS |= {"stop_within": 0.02, "gap": 0.04, "more_rounds": 900, "may_stop": False, "doubts": []}
_BEST = {"do": {"coupon": 1}, "mean": 0.2, "interval": [0.11, 0.34], "rounds": 40, "level": 0.95}
_LEVER = {"name": "banner", "value": 1, "effect": -0.04, "interval": [-0.07, -0.01]}
_LEVER |= {"harms": True, "does_nothing": False}
_RECOMMENDED = {
    "do": {"coupon": 1},
    "value": 0.22,
    "interval": [0.15, 0.3],
    "nothing": {"value": 0.1, "interval": [0.06, 0.15]},
    "uplift": {"value": 0.12, "interval": [0.05, 0.19]},
    "probability_best": 0.93,
    "expected_loss": 0.002,
    "gap": 0.04,
    "more_rounds": 900,
    "guaranteed": {"interval": [0.09, 0.38], "nothing": [0.03, 0.22], "uplift": [-0.06, 0.29], "gap": 0.17},
    "levers": [_LEVER],
    "verdict": "fits",
    "warnings": [],
    "doubts": [],
    "interval_words": "95%, at every look (asymptotic)",
    "sentence": "Set coupon: buy rises by 0.12 (0.05 to 0.19; 95%, at every look) over doing nothing.",
}


def _takes(
    properties: dict[str, Any], example: Any, *required: str, key: bool = False, csv: str = ""
) -> dict[str, Any]:
    schema = {"type": "object", "additionalProperties": False, "properties": properties, "required": list(required)}
    content: dict[str, Any] = {"application/json": {"schema": schema, "example": example}}
    if csv:
        content["text/csv"] = {"schema": {"type": "string"}, "example": csv}
    return {"requestBody": {"required": bool(required), "content": content}, **({"parameters": [_KEY]} if key else {})}


def _gives(example: Any, status: int = 200, kind: str = "application/json", says: str = "Done") -> dict[str, Any]:
    answer = {"description": says, "content": {kind: {"example": example}}}
    return {"responses": {str(status): answer, "default": PROBLEM}}


_LISTED_ONE = {"id": 1, "name": "spring", "created_at": "2026-11-16T09:00:00.000Z", "trials": 41, "closed": 40}
_DEFINED = {"version": 1, "columns": ["coupon", "buy"]}
_CREATED = {"id": 1, "experiment": "spring", "created": True, "definition": _DEFINED}
LISTED = _gives({"experiments": [{**_LISTED_ONE, "pending": 1}]})
CREATE = _takes(
    _CREATE,
    {"name": "spring", "graph": "email -> visit\ncoupon -> visit\nvisit -> buy", "target": "buy", "budget": 1},
    "name",
    "graph",
    key=True,
) | _gives(_CREATED, 201)
SHOWN = _gives({**_STATUS, "definition": {"version": 1}})
STATUS = _gives(_STATUS)
RENAME = _takes({"name": {"type": "string"}}, {"name": "spring 2026"}, "name") | _gives(
    {"id": 1, "experiment": "spring 2026", "was": "spring"}
)
DELETE = _gives({"id": 1, "experiment": "spring", "deleted": True})
ASK = _takes(
    {
        "available": _NAMES,
        "n": {"type": "integer", "minimum": 1, "default": 1},
        "lease": {"description": "Seconds", "type": "number", "exclusiveMinimum": 0},
        "size": {"type": "integer", "minimum": 1, "default": 1},
        "control": {"type": "boolean"},
        "context": _VALUES,
    },
    {"n": 1, "lease": 1800},
    key=True,
) | _gives({"trials": [_TRIAL]}, 201)
TELL = _takes(
    {"observation": _SEEN, "csv": _CSV, "issued": {"type": "integer", "minimum": 1}},
    {"observation": {"visit": 1, "buy": 0}, "issued": 1},
    "issued",
) | _gives({"trial": 3, "late": False, "partial": False, "repeated": False, "rounds": 1, "missing": [], "untaught": []})
FAIL = _takes({"reason": {"type": "string"}}, {"reason": "the shop was closed"}) | _gives(
    {"trial": 4, "state": "failed", "reason": "the shop was closed"}
)
ABANDON = _takes({}, {}) | _gives({"trial": 5, "state": "abandoned"})
RECORD = _takes(
    {"do": _VALUES, "observation": _SEEN, "csv": _CSV, "randomised": _RANDOMISED},
    {"do": {"coupon": 1}, "observation": {"visit": 1, "buy": 0}},
    key=True,
) | _gives({"trial": 6}, 201)
IMPORT = _takes(
    {"rows": {"type": "array", "items": {"type": ["object", "array"]}}, "randomised": _RANDOMISED},
    {"rows": [{"do": {"coupon": 1}, "observation": {"visit": 1, "buy": 0}}]},
    "rows",
    key=True,
    csv="do:coupon,visit,buy,count\n1,1,0,105\n,0,0,880\n",
) | _gives({"rounds": 985, "first": 7, "last": 8, "warnings": []}, 201)
TRIALS = _gives({"trials": [_ROW], "next": 3})
ONE_TRIAL = _gives(_ROW)
_ASKED = {key: _TRIAL[key] for key in ("trial", "do", "predicted", "interval_words")}
EXPLAIN = _gives({**_ASKED, "optimistic": 0.29, "bonus": 0.08, "paths": []})
RECOMMEND = _gives({**_RECOMMENDED, "best_observed": _BEST})
EVALUATE = _gives(_RECOMMENDED)
OBSERVED = _gives(_BEST)
ESTIMATES = _gives({"estimates": [{"cause": "coupon", "effect": "visit", "value": 0.3, "low": 0.1, "high": 0.5}]})
PROMISES = _gives({"interval_words": "95%, at every look (asymptotic)", "delta": 0.05})
DIAGNOSE = _gives({"policy": "CausalUCB", "rounds": 40, "verdict": "calibrated", "nodes": [], "warnings": []})
TABLE = {"responses": {"200": {"description": "A file"}, "default": PROBLEM}}
_EVENT = 'event: trials\nid: 41.40\ndata: {"trials": 41, "closed": 40}\n'
EVENTS = _gives(_EVENT, kind="text/event-stream", says="Server-sent events")
CHECK = _takes(
    {**_GRAPH, "budget": _RULES["budget"], "hide": _CREATE["hide"], "always_set": _NAMES},
    {"graph": "email -> visit\nvisit -> buy", "target": "buy", "budget": 1},
    "graph",
) | _gives({"valid": True, "kind": "graph", "target": "buy", "nodes": 3, "edges": 2, "admissible": True})
_LINE = {"number": 12, "at": "2026-11-16T09:12:00.000Z", "who": "shop (token 2)", "what": "tell", "experiment": 1}
AUDIT = _gives({"audit": [{**_LINE, "name": "spring", "detail": "trial 3"}], "next": None})
